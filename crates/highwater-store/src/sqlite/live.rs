//! The part of the store that serves the live feed.

use std::{collections::BTreeMap, sync::Arc};

use futures_util::future::BoxFuture;
use highwater_core::{
    AgeCounts, Key, KeySet, Position, RescanId, SourceName, Span, StreamId, Timestamp, WindowId, schema::Table,
};

use super::{
    SqliteStore, ages, alerts, commit, compact, ending, names, rescans, roles, rows, state, windows,
    writer::{Haste, Weight},
};
use crate::{
    AlertNote, AlertRow, CollectNames, Collected, EndWindow, Heard, LiveCommit, LiveCommitted, LiveSettled, LiveState,
    LiveStore, NamesIn, NewWindow, RescanPlan, Result, RoleAsk, StoreSizes,
    rules::{Pass, size_of},
};

impl SqliteStore {
    async fn lay_rest(&self, stream: &StreamId, mut pass: Pass) -> Result<RescanId> {
        let id = pass.rescan.id;
        while !pass.is_laid() {
            // Others write between the chunks.
            tokio::task::yield_now().await;
            let stream = stream.clone();
            pass = self.hasty("laying a rescan", move |session| rescans::lay(&session.db, &stream, id)).await?;
        }
        Ok(id)
    }
}

impl LiveStore for SqliteStore {
    fn commit_live(&self, commit: Arc<LiveCommit>) -> BoxFuture<'_, Result<LiveCommitted>> {
        let weight = Weight {
            rows: commit.records.len() + commit.unchanged.len(),
            bytes: commit.records.iter().map(size_of).sum(),
            haste: Haste::AtOnce,
            first: Some(rows::first(&commit.records)),
        };
        Box::pin(
            self.write("committing what the feed told", weight, move |session| commit::commit_live(session, &commit)),
        )
    }

    fn tags<'a>(&'a self, table: &'static Table, keys: &'a KeySet) -> BoxFuture<'a, Result<BTreeMap<Key, String>>> {
        let keys = keys.clone();
        Box::pin(self.read("reading the marks of rows", move |db| state::tags(db, table, &keys)))
    }

    fn take_role<'a>(&'a self, ask: &'a RoleAsk) -> BoxFuture<'a, Result<bool>> {
        let ask = ask.clone();
        self.hasty("taking a role", move |session| roles::take(&session.db, &ask))
    }

    fn drop_role<'a>(&'a self, ask: &'a RoleAsk) -> BoxFuture<'a, Result<()>> {
        let ask = ask.clone();
        self.hasty("giving up a role", move |session| roles::give_up(&session.db, &ask))
    }

    fn live_state<'a>(&'a self, stream: &'a StreamId) -> BoxFuture<'a, Result<LiveState>> {
        let stream = stream.clone();
        Box::pin(self.read("reading the state of the feed", move |db| state::live(db, &stream)))
    }

    fn heard<'a>(&'a self, heard: &'a Heard) -> BoxFuture<'a, Result<()>> {
        let heard = heard.clone();
        self.hasty("noting what was heard", move |session| windows::heard(&session.db, &heard))
    }

    fn told<'a>(&'a self, stream: &'a StreamId) -> BoxFuture<'a, Result<Vec<Key>>> {
        let stream = stream.clone();
        Box::pin(self.read("reading what was told", move |db| windows::told(db, &stream)))
    }

    fn open_window<'a>(&'a self, window: &'a NewWindow) -> BoxFuture<'a, Result<WindowId>> {
        let window = window.clone();
        self.hasty("opening a window", move |session| windows::open(session, &window))
    }

    fn end_window<'a>(&'a self, end: &'a EndWindow) -> BoxFuture<'a, Result<()>> {
        let own = end.clone();
        let ended = self.hasty("ending a window", move |session| windows::end(session, &own));
        Box::pin(async move { self.lay_rest(&end.rescan.stream, ended.await?).await.map(drop) })
    }

    fn names_in<'a>(&'a self, names: &'a NamesIn) -> BoxFuture<'a, Result<Vec<String>>> {
        let names = names.clone();
        Box::pin(self.read("reading names", move |db| names::names_in(db, &names)))
    }

    fn names_done(&self, window: WindowId, now: Timestamp) -> BoxFuture<'_, Result<()>> {
        self.hasty("noting names that were seen", move |session| windows::names_done(&session.db, window, now))
    }

    fn begin_rescan<'a>(&'a self, plan: &'a RescanPlan) -> BoxFuture<'a, Result<RescanId>> {
        let own = plan.clone();
        let begun = self.hasty("laying a rescan", move |session| rescans::begin(&session.db, &own));
        Box::pin(async move { self.lay_rest(&plan.stream, begun.await?).await })
    }

    fn settle_live<'a>(&'a self, stream: &'a StreamId, now: Timestamp) -> BoxFuture<'a, Result<LiveSettled>> {
        let stream = stream.clone();
        self.hasty("ending rescans", move |session| ending::settle(session, &stream, now))
    }

    fn compact<'a>(&'a self, stream: &'a StreamId, segment_size: u64) -> BoxFuture<'a, Result<u64>> {
        let stream = stream.clone();
        self.hasty("joining segments", move |session| compact::compact(&session.db, &stream, segment_size))
    }

    fn collect_names<'a>(&'a self, collect: &'a CollectNames) -> BoxFuture<'a, Result<Option<Collected>>> {
        let collect = collect.clone();
        self.hasty("collecting names", move |session| names::collect(&session.db, &collect))
    }

    fn note_names<'a>(&'a self, stream: &'a StreamId, names: &'a [String]) -> BoxFuture<'a, Result<()>> {
        let (stream, names) = (stream.clone(), names.to_vec());
        self.hasty("entering names", move |session| names::note(&session.db, &stream, &names).map(drop))
    }

    fn listed<'a>(&'a self, stream: &'a StreamId, span: Span) -> BoxFuture<'a, Result<Vec<Key>>> {
        let stream = stream.clone();
        Box::pin(self.read("reading a list of names", move |db| names::listed(db, &stream, span)))
    }

    fn listed_at<'a>(&'a self, stream: &'a StreamId, name: &'a Key) -> BoxFuture<'a, Result<Option<Position>>> {
        let (stream, name) = (stream.clone(), name.clone());
        Box::pin(self.read("finding a name", move |db| names::at(db, &stream, &name)))
    }

    fn listed_end<'a>(&'a self, stream: &'a StreamId) -> BoxFuture<'a, Result<Position>> {
        let stream = stream.clone();
        Box::pin(self.read("measuring a list of names", move |db| names::end(db, &stream)))
    }

    fn ages<'a>(&'a self, stream: &'a StreamId) -> BoxFuture<'a, Result<AgeCounts>> {
        let stream = stream.clone();
        Box::pin(self.read("reading the ages of changes", move |db| ages::read(db, &stream)))
    }

    fn note_alert<'a>(&'a self, alert: &'a AlertNote) -> BoxFuture<'a, Result<()>> {
        let alert = alert.clone();
        self.hasty("noting an alert", move |session| alerts::note(session, &alert))
    }

    fn open_alerts<'a>(&'a self, source: &'a SourceName) -> BoxFuture<'a, Result<Vec<AlertRow>>> {
        let source = source.clone();
        Box::pin(self.read("reading alerts", move |db| alerts::open(db, &source)))
    }

    fn told_alerts<'a>(&'a self, source: &'a SourceName) -> BoxFuture<'a, Result<Vec<(String, Timestamp)>>> {
        let source = source.clone();
        Box::pin(self.read("reading when alerts were told", move |db| alerts::told(db, &source)))
    }

    fn sizes(&self) -> BoxFuture<'_, Result<StoreSizes>> {
        Box::pin(self.read_whole("measuring the database", |db, shards| state::sizes(db, shards)))
    }

    fn first_run_at<'a>(
        &'a self,
        source: &'a SourceName,
        command: Option<&'static str>,
    ) -> BoxFuture<'a, Result<Option<Timestamp>>> {
        let source = source.clone();
        Box::pin(self.read("reading when the first run began", move |db| state::first_run_at(db, &source, command)))
    }
}
