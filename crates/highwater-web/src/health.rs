//! Whether the service is alive, and whether it does its work, judged from a view.

use std::time::Duration;

use serde::Serialize;

use crate::{LiveView, ServiceView, SourceView};

/// A listener commits, or finds nothing to commit, every few seconds.
const COMMIT_AGE_MAX: Duration = Duration::from_secs(120);

/// Alive: the loops of the process run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Health {
    pub status: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dead_loops: Vec<String>,
}

impl Health {
    pub fn of(view: &ServiceView) -> Self {
        let status = if view.dead_loops.is_empty() { "ok" } else { "failing" };
        Health { status, dead_loops: view.dead_loops.clone() }
    }

    pub fn is_ok(&self) -> bool {
        self.dead_loops.is_empty()
    }
}

/// Ready: every feed is listened to, by this process or by another, every record of changes is read, and what comes of it
/// reaches the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Readiness {
    pub ready: bool,
    pub reasons: Vec<Reason>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reason {
    pub source: String,
    pub reason: &'static str,
}

impl Readiness {
    pub fn of(view: &ServiceView) -> Self {
        let reasons: Vec<_> = view.sources.iter().flat_map(reasons).collect();
        Readiness { ready: reasons.is_empty(), reasons }
    }
}

fn reasons(source: &SourceView) -> Vec<Reason> {
    let store = source.store.trouble.then_some("the store cannot write");
    let live = source.live.iter().flat_map(|live| [feed(live), commits(live)]);
    let record = source.unheard.then_some("the record of changes cannot be read");
    let reason = |reason| Reason { source: source.name.clone(), reason };
    live.chain([record, store]).flatten().map(reason).collect()
}

fn feed(live: &LiveView) -> Option<&'static str> {
    (live.is_listener && !live.connected).then_some("the feed is not connected")
}

fn commits(live: &LiveView) -> Option<&'static str> {
    match live.last_commit_age {
        None => Some("nothing has been committed yet"),
        Some(age) if age > COMMIT_AGE_MAX => Some("nothing has been committed for two minutes"),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(change: impl Fn(&mut SourceView, &mut LiveView)) -> ServiceView {
        let last_commit_age = Some(Duration::from_secs(3));
        let mut live = LiveView { connected: true, is_listener: true, last_commit_age, ..LiveView::default() };
        let mut source = SourceView { name: "hn".into(), ..SourceView::default() };
        change(&mut source, &mut live);
        source.live = Some(live);
        ServiceView { sources: vec![source], ..ServiceView::default() }
    }

    fn reasons(change: impl Fn(&mut SourceView, &mut LiveView)) -> Vec<&'static str> {
        let readiness = Readiness::of(&view(change));
        assert_eq!(readiness.ready, readiness.reasons.is_empty());
        readiness.reasons.iter().map(|reason| reason.reason).collect()
    }

    #[test]
    fn who_listens_and_commits_is_ready() {
        assert_eq!(reasons(|_, _| {}), [""; 0]);
        assert_eq!(reasons(|_, live| live.connected = false), ["the feed is not connected"]);
        assert_eq!(reasons(|_, live| live.last_commit_age = None), ["nothing has been committed yet"]);
        let old = Some(Duration::from_secs(121));
        assert_eq!(reasons(|_, live| live.last_commit_age = old), ["nothing has been committed for two minutes"]);
        assert_eq!(reasons(|source, _| source.store.trouble = true), ["the store cannot write"]);
        assert_eq!(reasons(|source, _| source.unheard = true), ["the record of changes cannot be read"]);
    }

    #[test]
    fn who_stands_by_and_commits_is_ready() {
        assert_eq!(reasons(|_, live| (live.is_listener, live.connected) = (false, false)), [""; 0]);
    }

    #[test]
    fn a_dead_loop_is_not_healthy() {
        let mut service = view(|_, _| {});
        assert!(Health::of(&service).is_ok());
        service.dead_loops.push("rescan".into());
        assert_eq!(Health::of(&service).status, "failing");
    }
}
