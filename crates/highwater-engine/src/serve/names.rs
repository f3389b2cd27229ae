//! Streams whose keys are names found in other rows: finds the names, has them planned, and looks again at those that a
//! blind window may have missed.

use std::time::Duration;

use highwater_core::{BlindWindow, Key, Lane, Span, Strike};
use highwater_sources::{Density, NamedIn};
use highwater_store::{CollectNames, NamesIn};

use super::{Followed, Service, updates::Unstored};
use crate::{
    error::Result,
    planner::{self, Range},
};

const LOOK: Duration = Duration::from_secs(2);
/// Rows looked through for names at a time, and profiles asked for at a time.
const ROWS: u64 = 10_000;
const BATCH: usize = 50;
const TRIES: u32 = 3;

impl Service {
    pub(super) async fn follow_names(&self) -> Result<()> {
        let named: Vec<(&Followed, NamedIn)> =
            self.streams.iter().filter_map(|one| Some((one, named_in(one)?))).collect();
        for (followed, named) in &named {
            let row = self.row(self.main()).await?;
            self.collect_in(followed, *named, Span::new(row.frontier, row.span.end().max(row.frontier))).await?;
        }
        loop {
            let closed = self.closed.take();
            for (followed, named) in &named {
                for span in &closed {
                    self.collect_in(followed, *named, *span).await?;
                }
                self.collect(followed, *named).await?;
                self.look_at_missed(followed, *named).await?;
            }
            self.engine.world.clock.sleep(LOOK).await;
        }
    }

    /// Enters the names of all rows behind the frontier, then plans them.
    async fn collect(&self, followed: &Followed, named: NamedIn) -> Result<()> {
        let engine = &self.engine;
        let from = self.main();
        let collect = CollectNames {
            stream: followed.stream.id.clone(),
            from: from.stream.id.clone(),
            table: named.table,
            column: named.column,
            until: self.row(from).await?.frontier,
        };
        loop {
            let more = engine.steady(|| engine.store.collect_names(&collect)).await?;
            self.plan_names(followed).await?;
            if more.is_none() {
                return Ok(());
            }
            tokio::task::yield_now().await;
        }
    }

    /// Enters the names that occur in a span, wherever the frontier is.
    async fn collect_in(&self, followed: &Followed, named: NamedIn, span: Span) -> Result<()> {
        let engine = &self.engine;
        let mut start = span.start();
        while start < span.end() {
            let end = start.plus(ROWS).min(span.end());
            let ask = NamesIn { table: named.table, column: named.column, span: Span::new(start, end) };
            let names = engine.steady(|| engine.store.names_in(&ask)).await?;
            if !names.is_empty() {
                engine.steady(|| engine.store.note_names(&followed.stream.id, &names)).await?;
            }
            start = end;
        }
        Ok(())
    }

    async fn plan_names(&self, followed: &Followed) -> Result<()> {
        let engine = &self.engine;
        let end = engine.steady(|| engine.store.listed_end(&followed.stream.id)).await?;
        let row = self.row(followed).await?;
        let range = Range::default();
        let wanted = range.resolve(followed.stream.spec.origin, end);
        if !wanted.is_empty() && planner::extend(engine, &followed.stream, &row, wanted, &range).await? > 0 {
            followed.news.notify_one();
        }
        Ok(())
    }

    /// Of windows whose items are all there: the profiles of whoever wrote what was looked at again or is new.
    async fn look_at_missed(&self, followed: &Followed, named: NamedIn) -> Result<()> {
        let engine = &self.engine;
        let state = engine.steady(|| engine.store.live_state(&self.main().stream.id)).await?;
        if state.windows.is_empty() {
            return Ok(());
        }
        let frontier = self.row(self.main()).await?.frontier;
        for window in state.windows.iter().filter(|window| window.names_at.is_none()) {
            let BlindWindow { id, span: Some(span), head: Some(head), rescan, .. } = window else { continue };
            let is_seen_again = state.rescans.iter().all(|open| Some(open.id) != *rescan);
            if is_seen_again && window.has_reached_head(frontier) {
                self.look_at_names_of(followed, named, Span::new(span.start(), *head)).await?;
                engine.steady(|| engine.store.names_done(*id, engine.now())).await?;
            }
        }
        Ok(())
    }

    async fn look_at_names_of(&self, followed: &Followed, named: NamedIn, span: Span) -> Result<()> {
        let mut start = span.start();
        let mut seen = std::collections::BTreeSet::new();
        while start < span.end() {
            let end = start.plus(ROWS).min(span.end());
            let ask = NamesIn { table: named.table, column: named.column, span: Span::new(start, end) };
            let names = self.engine.steady(|| self.engine.store.names_in(&ask)).await?;
            let new = names.into_iter().filter(|name| seen.insert(name.clone()));
            let new: Vec<Key> = new.map(|name| Key::from(name.as_str())).collect();
            for batch in new.chunks(BATCH) {
                self.look_at(followed, batch.to_vec()).await?;
            }
            start = end;
        }
        Ok(())
    }

    async fn look_at(&self, followed: &Followed, mut keys: Vec<Key>) -> Result<()> {
        let mut tries = 0;
        while !keys.is_empty() {
            let sorted = self.ask(followed, &keys, Lane::Backfill).await;
            let Unstored { behind, unplanned } = self.store(followed, &sorted).await?;
            if sorted.stopping {
                std::future::pending::<()>().await;
            }
            tries += u32::from(sorted.strike == Strike::Counts);
            keys = sorted.failed.into_iter().map(|(key, _)| key).chain(behind).chain(unplanned).collect();
            if keys.is_empty() {
                break;
            }
            if tries >= TRIES {
                for key in &keys {
                    self.defer(followed, key).await?;
                }
                break;
            }
            self.engine.world.clock.sleep(Duration::from_secs(1)).await;
        }
        Ok(())
    }
}

fn named_in(followed: &Followed) -> Option<NamedIn> {
    match followed.stream.spec.density {
        Density::Named(named) => Some(named),
        Density::Dense | Density::Sparse | Density::Snapshot(_) => None,
    }
}
