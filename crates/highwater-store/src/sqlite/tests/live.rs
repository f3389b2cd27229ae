//! The part of the script that plays a mirror that stays current: every method that writes, once at least.

use std::{sync::Arc, time::Duration};

use highwater_core::{AlertState, Key, Position, Record, RescanReason, Span, StreamId, Timestamp, WindowId, WorkerId};

use crate::{
    AlertNote, CollectNames, EndWindow, Heard, LISTENER, LiveCommit, LiveStore, NewWindow, RescanPlan, Result, RoleAsk,
    SqliteStore, Store,
    suite::{ITEMS, item},
};

pub(super) struct LiveScript {
    stream: StreamId,
    users: StreamId,
    window: Option<WindowId>,
}

/// What the script does as it does it for a catch-up.
pub(super) enum Part {
    Claim,
    Commit,
    Close,
}

pub(super) const STEPS: usize = 19;

impl LiveScript {
    pub(super) fn new(stream: StreamId) -> LiveScript {
        let users = StreamId { stream: "users".parse().unwrap(), ..stream.clone() };
        LiveScript { stream, users, window: None }
    }

    /// One step; may be repeated until it is acknowledged.
    pub(super) async fn play(&mut self, store: &SqliteStore, step: usize, now: Timestamp) -> Result<Option<Part>> {
        match step {
            0 => store.open_stream(&self.users, "name").await.map(drop)?,
            1 => store.take_role(&self.role(now)).await.map(drop)?,
            2 => {
                let told = vec![(self.stream.stream.clone(), vec![Key::Number(7)])];
                store.heard(&Heard { stream: self.stream.clone(), until: now, told, worker: ear(), now }).await?;
            }
            3 => store.commit_live(Arc::new(self.told(now))).await.map(drop)?,
            4 => self.window = Some(store.open_window(&self.new_window(now)).await?),
            5 => store.end_window(&self.end(now)).await?,
            6 | 9 => return Ok(Some(Part::Claim)),
            7 => return Ok(Some(Part::Commit)),
            8 | 10 => return Ok(Some(Part::Close)),
            11 => store.names_done(self.window.unwrap(), now).await?,
            12 => store.settle_live(&self.stream, now).await.map(drop)?,
            13 => store.begin_rescan(&self.rescan(RescanReason::Key, 7, 8, now)).await.map(drop)?,
            14 => store.compact(&self.stream, 20).await.map(drop)?,
            15 => store.note_names(&self.users, &["zoe".into(), "ann".into()]).await?,
            16 => store.collect_names(&self.collect()).await.map(drop)?,
            17 => store.note_alert(&self.alert(now)).await?,
            18 => store.drop_role(&self.role(now)).await?,
            _ => unreachable!("the script has {STEPS} steps"),
        }
        Ok(None)
    }

    fn role(&self, now: Timestamp) -> RoleAsk {
        let (source, ttl) = (self.stream.source.clone(), Duration::from_secs(60));
        RoleAsk { source, role: LISTENER, worker: ear(), ttl, now }
    }

    fn told(&self, now: Timestamp) -> LiveCommit {
        let records =
            vec![Record { tag: Some("mark".into()), ..item(1, "told", &[7]) }, item(10, "no longer dead", &[])];
        let unchanged = vec![(Key::Number(5), &ITEMS)];
        LiveCommit { stream: self.stream.clone(), now, asked_at: now, records, unchanged }
    }

    fn new_window(&self, now: Timestamp) -> NewWindow {
        NewWindow { stream: self.stream.clone(), opened_at: now, reason: "silence".into(), worker: ear(), now }
    }

    fn end(&self, now: Timestamp) -> EndWindow {
        let rescan = self.rescan(RescanReason::Blind, 0, 20, now);
        EndWindow { window: self.window.unwrap(), ended_at: now, head: Position(20), rescan, worker: ear() }
    }

    fn rescan(&self, reason: RescanReason, start: i64, end: i64, now: Timestamp) -> RescanPlan {
        let span = Span::new(Position(start), Position(end));
        RescanPlan { stream: self.stream.clone(), reason, span, segment_size: 10, now }
    }

    fn collect(&self) -> CollectNames {
        let (stream, from) = (self.users.clone(), self.stream.clone());
        CollectNames { stream, from, table: &ITEMS, column: "by", until: Position(20) }
    }

    fn alert(&self, now: Timestamp) -> AlertNote {
        AlertNote {
            source: self.stream.source.clone(),
            condition: "quiet".into(),
            severity: "warning".into(),
            message: "nothing heard".into(),
            at: now,
            state: AlertState::Raised,
            told_at: Some(now),
        }
    }
}

fn ear() -> WorkerId {
    WorkerId::new("ear")
}
