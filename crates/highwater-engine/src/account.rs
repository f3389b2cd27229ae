//! This process and the others of its account: tells the store what we do, and acts on what all of us know. Without
//! others it remembers, for whoever comes after us, that the remote asked to be left alone.

use std::time::Duration;

use highwater_core::{AccountReport, AccountView, Moment, SHARE_LEAST, Timestamp, WorkerId};
use highwater_sources::News;
use highwater_store::{SHARE_LASTS, ShareAsk, StoreError};

use crate::{Engine, error::Result};

/// A gate that closes for one closes for all within a second: at worst one beat goes by until the news is told, and
/// another until it is heard, and each takes its time at the store.
const BEAT: Duration = Duration::from_millis(300);
/// How often a process that is alone notes what has not changed much.
const ALONE_BEAT: Duration = Duration::from_secs(30);

pub(crate) struct AccountLink {
    engine: Engine,
    worker: WorkerId,
    started_at: Timestamp,
    demand: f64,
    /// Our cuts that the others know of, and all cuts that we know of.
    told_cuts: u64,
    known_cuts: u64,
    told: Option<Told>,
}

/// What was told last, and when.
struct Told {
    at: Moment,
    closed_until: Option<Moment>,
}

impl AccountLink {
    /// Before the first request: takes a share, and takes up what is known of the account.
    pub(crate) async fn join(engine: &Engine, worker: WorkerId) -> Result<AccountLink> {
        let mut link = AccountLink {
            engine: engine.clone(),
            worker,
            started_at: engine.now(),
            demand: 1.0,
            told_cuts: engine.source.gateway().report().cuts,
            known_cuts: 0,
            told: None,
        };
        let report = link.report();
        let ask = link.ask(&report);
        let view = engine.steady(|| engine.store.share(&ask)).await?;
        link.known_cuts = view.cuts;
        link.act(&view);
        if let Some(learned) = view.learned.filter(|learned| learned.ceiling.is_some()) {
            engine.source.gateway().recall(learned);
        }
        Ok(link)
    }

    /// Beats until it is aborted. A beat that fails is not the end: the next one tells the same.
    pub(crate) async fn keep(mut self) {
        loop {
            self.engine.world.clock.sleep(BEAT).await;
            let report = self.report();
            if self.is_worth_telling(&report)
                && let Err(error) = self.beat(&report).await
            {
                tracing::debug!(error = %crate::describe(&error), "the account's beat");
                self.step_back();
            }
        }
    }

    async fn beat(&mut self, report: &AccountReport) -> Result<(), StoreError> {
        let now = self.engine.world.clock.moment();
        let view = self.engine.store.share(&self.ask(report)).await?;
        self.told_cuts += report.cuts;
        self.told = Some(Told { at: now, closed_until: report.pause.map(|pause| now + pause.left) });
        self.act(&view);
        Ok(())
    }

    /// Others take us for dead by now, and share what was ours.
    fn step_back(&self) {
        let told_at = self.told.as_ref().map(|told| told.at);
        let now = self.engine.world.clock.moment();
        if self.engine.store.is_shared() && told_at.is_some_and(|at| now.since(at) >= SHARE_LASTS) {
            self.engine.source.gateway().adopt(SHARE_LEAST, News::None, None);
        }
    }

    fn act(&mut self, view: &AccountView) {
        let news = if view.cuts > self.known_cuts { News::Cut } else { News::None };
        self.known_cuts = view.cuts;
        self.engine.source.gateway().adopt(view.share, news, view.pause);
    }

    /// Cuts since the last beat, and a demand that does not jump at every glance.
    fn report(&mut self) -> AccountReport {
        let report = self.engine.source.gateway().report();
        self.demand = (self.demand + report.demand) / 2.0;
        AccountReport { demand: self.demand, cuts: report.cuts - self.told_cuts, ..report }
    }

    fn is_worth_telling(&self, report: &AccountReport) -> bool {
        let Some(told) = &self.told else { return true };
        let now = self.engine.world.clock.moment();
        let closed_until = report.pause.map(|pause| now + pause.left);
        let is_news = match (closed_until, told.closed_until) {
            (Some(until), Some(told)) => until > told + BEAT,
            (Some(_), None) => true,
            (None, _) => false,
        };
        is_news || self.engine.store.is_shared() || now.since(told.at) >= ALONE_BEAT
    }

    fn ask(&self, report: &AccountReport) -> ShareAsk {
        ask(&self.engine, &self.worker, self.started_at, *report)
    }
}

fn ask(engine: &Engine, worker: &WorkerId, started_at: Timestamp, report: AccountReport) -> ShareAsk {
    ShareAsk {
        source: engine.name.clone(),
        worker: worker.clone(),
        host: engine.world.process.host.clone(),
        pid: engine.world.process.pid,
        started_at,
        report,
        now: engine.now(),
    }
}

/// Gives the share back, and tells what the last beat may not have: that the remote asked to be left alone. A share that
/// is not given back ends by itself.
pub(crate) async fn leave(engine: &Engine, worker: &WorkerId) {
    const PATIENCE: Duration = Duration::from_millis(500);
    let parting = async {
        let report = engine.source.gateway().report();
        if report.pause.is_some() {
            // Of cuts the beats have told.
            let last = ask(engine, worker, engine.now(), AccountReport { cuts: 0, ..report });
            // Not noted, whoever comes next hears it from the remote.
            engine.store.share(&last).await.ok();
        }
        engine.store.leave(worker).await
    };
    tokio::select! {
        biased;
        _ = parting => {}
        () = engine.world.clock.sleep(PATIENCE) => {}
    }
}
