//! The part of the store that serves the live feed.

use std::{collections::BTreeMap, sync::Arc};

use futures_util::future::BoxFuture;
use highwater_core::{
    AgeCounts, Key, KeySet, Position, RescanId, SourceName, Span, StreamId, Timestamp, WindowId, schema::Table,
};

use super::{PostgresStore, ages, alerts, compact, ending, job::Job, names, rescans, roles, state, windows};
use crate::{
    AlertNote, AlertRow, CollectNames, Collected, EndWindow, Heard, LiveCommit, LiveCommitted, LiveSettled, LiveState,
    LiveStore, NamesIn, NewWindow, RescanPlan, Result, RoleAsk, StoreSizes, rules::Pass,
};

impl PostgresStore {
    async fn lay_rest(&self, stream: &StreamId, mut pass: Pass) -> Result<RescanId> {
        let (doing, id) = ("laying a rescan", pass.rescan.id);
        while !pass.is_laid() {
            let (seat, db) = self.to_write(doing).await?;
            pass = seat.run(doing, rescans::lay(&db, stream, id)).await?;
        }
        Ok(id)
    }

    async fn begin_pass(&self, plan: &RescanPlan) -> Result<Pass> {
        let doing = "laying a rescan";
        let (seat, db) = self.to_write(doing).await?;
        seat.run(doing, rescans::begin(&db, plan)).await
    }

    async fn end_one(&self, end: &EndWindow) -> Result<Pass> {
        let doing = "ending a window";
        let (seat, db) = self.to_write(doing).await?;
        seat.run(doing, windows::end(&db, end)).await
    }
}

impl LiveStore for PostgresStore {
    fn commit_live(&self, commit: Arc<LiveCommit>) -> BoxFuture<'_, Result<LiveCommitted>> {
        Box::pin(async move {
            self.check_writable("committing what the feed told")?;
            self.writer.submit(&self.pool, Job::Live(commit)).await
        })
    }

    fn tags<'a>(&'a self, table: &'static Table, keys: &'a KeySet) -> BoxFuture<'a, Result<BTreeMap<Key, String>>> {
        transact!(self, to_read, "reading the marks of rows", |db| state::tags(db, table, keys))
    }

    fn take_role<'a>(&'a self, ask: &'a RoleAsk) -> BoxFuture<'a, Result<bool>> {
        let now = self.lease_time(ask.now);
        transact!(self, to_write, "taking a role", |db| roles::take(db, ask, now))
    }

    fn drop_role<'a>(&'a self, ask: &'a RoleAsk) -> BoxFuture<'a, Result<()>> {
        transact!(self, to_write, "giving up a role", |db| roles::give_up(db, ask))
    }

    fn live_state<'a>(&'a self, stream: &'a StreamId) -> BoxFuture<'a, Result<LiveState>> {
        transact!(self, to_read, "reading the state of the feed", |db| state::live(db, stream))
    }

    fn heard<'a>(&'a self, heard: &'a Heard) -> BoxFuture<'a, Result<()>> {
        transact!(self, to_write, "noting what was heard", |db| windows::heard(db, heard))
    }

    fn told<'a>(&'a self, stream: &'a StreamId) -> BoxFuture<'a, Result<Vec<Key>>> {
        transact!(self, to_read, "reading what was told", |db| windows::told(db, stream))
    }

    fn open_window<'a>(&'a self, window: &'a NewWindow) -> BoxFuture<'a, Result<WindowId>> {
        transact!(self, to_write, "opening a window", |db| windows::open(db, window))
    }

    fn end_window<'a>(&'a self, end: &'a EndWindow) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move { self.lay_rest(&end.rescan.stream, self.end_one(end).await?).await.map(drop) })
    }

    fn names_in<'a>(&'a self, names: &'a NamesIn) -> BoxFuture<'a, Result<Vec<String>>> {
        transact!(self, to_read, "reading names", |db| names::names_in(db, names))
    }

    fn names_done(&self, window: WindowId, now: Timestamp) -> BoxFuture<'_, Result<()>> {
        transact!(self, to_write, "noting names that were seen", |db| windows::names_done(db, window, now))
    }

    fn begin_rescan<'a>(&'a self, plan: &'a RescanPlan) -> BoxFuture<'a, Result<RescanId>> {
        Box::pin(async move { self.lay_rest(&plan.stream, self.begin_pass(plan).await?).await })
    }

    fn settle_live<'a>(&'a self, stream: &'a StreamId, now: Timestamp) -> BoxFuture<'a, Result<LiveSettled>> {
        transact!(self, to_write, "ending rescans", |db| ending::settle(db, stream, now))
    }

    fn compact<'a>(&'a self, stream: &'a StreamId, segment_size: u64) -> BoxFuture<'a, Result<u64>> {
        transact!(self, to_write, "joining segments", |db| compact::compact(db, stream, segment_size))
    }

    fn collect_names<'a>(&'a self, collect: &'a CollectNames) -> BoxFuture<'a, Result<Option<Collected>>> {
        transact!(self, to_write, "collecting names", |db| names::collect(db, collect))
    }

    fn note_names<'a>(&'a self, stream: &'a StreamId, names: &'a [String]) -> BoxFuture<'a, Result<()>> {
        transact!(self, to_write, "entering names", |db| names::note(db, stream, names))
    }

    fn listed<'a>(&'a self, stream: &'a StreamId, span: Span) -> BoxFuture<'a, Result<Vec<Key>>> {
        transact!(self, to_read, "reading a list of names", |db| names::listed(db, stream, span))
    }

    fn listed_at<'a>(&'a self, stream: &'a StreamId, name: &'a Key) -> BoxFuture<'a, Result<Option<Position>>> {
        transact!(self, to_read, "finding a name", |db| names::at(db, stream, name))
    }

    fn listed_end<'a>(&'a self, stream: &'a StreamId) -> BoxFuture<'a, Result<Position>> {
        transact!(self, to_read, "measuring a list of names", |db| names::end(db, stream))
    }

    fn ages<'a>(&'a self, stream: &'a StreamId) -> BoxFuture<'a, Result<AgeCounts>> {
        transact!(self, to_read, "reading the ages of changes", |db| ages::read(db, stream))
    }

    fn note_alert<'a>(&'a self, alert: &'a AlertNote) -> BoxFuture<'a, Result<()>> {
        transact!(self, to_write, "noting an alert", |db| alerts::note(db, alert))
    }

    fn open_alerts<'a>(&'a self, source: &'a SourceName) -> BoxFuture<'a, Result<Vec<AlertRow>>> {
        transact!(self, to_read, "reading alerts", |db| alerts::open(db, source))
    }

    fn told_alerts<'a>(&'a self, source: &'a SourceName) -> BoxFuture<'a, Result<Vec<(String, Timestamp)>>> {
        transact!(self, to_read, "reading when alerts were told", |db| alerts::told(db, source))
    }

    fn sizes(&self) -> BoxFuture<'_, Result<StoreSizes>> {
        transact!(self, to_read, "measuring the database", |db| state::sizes(db))
    }

    fn first_run_at<'a>(
        &'a self,
        source: &'a SourceName,
        command: Option<&'static str>,
    ) -> BoxFuture<'a, Result<Option<Timestamp>>> {
        transact!(self, to_read, "reading when the first run began", |db| state::first_run_at(db, source, command))
    }
}
