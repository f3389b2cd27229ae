//! A stream on a fresh store, with verbs to play a case in few words.

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use highwater_core::{
    BatchCounts, DeadLetterPolicy, Exception, History, Key, Lease, Position, Purpose, Record, RescanReason, Settlement,
    Span, StreamId, Timestamp, Verdict, WorkerId,
};

use super::{ITEMS, item};
use crate::{
    ChainCheck, Claim, Claimed, Close, Closed, Commit, ExceptionFilter, LISTENER, LiveCommit, LiveCommitted, Page,
    Plan, RescanPlan, Result, RoleAsk, Store, StoredRow, StreamRow, Wanted,
};

/// Runs one SQL statement beside the store; the cells of each row, joined by `|`.
pub type Query = Box<dyn Fn(&str) -> BoxFuture<'static, Vec<String>> + Send + Sync>;

/// A fresh store, and a way to look behind it.
pub struct Lab {
    pub store: Arc<dyn Store>,
    pub query: Query,
}

pub struct Scene {
    pub lab: Lab,
    pub stream: StreamId,
}

pub const TTL: Duration = Duration::from_secs(60);
/// For those who want everything.
pub const ALL: u32 = 100_000;

pub fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + seconds * 1000)
}

pub fn span(start: i64, end: i64) -> Span {
    Span::new(Position(start), Position(end))
}

pub fn worker(name: &str) -> WorkerId {
    WorkerId::new(name)
}

pub fn verdict(key: i64, verdict: Verdict) -> Settlement {
    let history = History { attempts: 1, absences: 0, first_absent_at: None };
    Settlement { key: Key::Number(key), verdict, history, reason: "server", last_error: Some("503".into()) }
}

impl Scene {
    pub async fn new(lab: Lab) -> Scene {
        let stream = StreamId { source: "hn".parse().unwrap(), stream: "items".parse().unwrap() };
        lab.store.open_stream(&stream, "id").await.unwrap();
        Scene { lab, stream }
    }

    /// With catch-up segments over `[start, end)`.
    pub async fn planned(lab: Lab, start: i64, end: i64, size: u64) -> Scene {
        let scene = Scene::new(lab).await;
        scene.plan(Purpose::Catchup, start, end, size).await.unwrap();
        scene
    }

    pub fn store(&self) -> &dyn Store {
        self.lab.store.as_ref()
    }

    pub async fn query(&self, sql: &str) -> Vec<String> {
        (self.lab.query)(sql).await
    }

    pub async fn plan(&self, purpose: Purpose, start: i64, end: i64, size: u64) -> Result<()> {
        self.store().plan(self.plan_of(purpose, start, end, size)).await
    }

    pub fn plan_of(&self, purpose: Purpose, start: i64, end: i64, size: u64) -> Plan<'_> {
        Plan { stream: &self.stream, purpose, span: span(start, end), segment_size: size, bare_until: None }
    }

    pub async fn claim(&self, owner: &str, limit: u32, now: Timestamp) -> Vec<Claimed> {
        self.claim_of(owner, limit, Wanted::Anything, now).await
    }

    pub async fn claim_of(&self, owner: &str, limit: u32, wanted: Wanted, now: Timestamp) -> Vec<Claimed> {
        let owner = worker(owner);
        let claim = Claim { stream: &self.stream, owner: &owner, limit, wanted, lease_ttl: TTL, now };
        self.store().claim(claim).await.unwrap()
    }

    pub async fn claim_one(&self, now: Timestamp) -> Claimed {
        self.claim("worker", 1, now).await.pop().unwrap()
    }

    pub fn commit_of(&self, lease: &Lease, records: Vec<Record>, settlements: Vec<Settlement>) -> Commit {
        Commit {
            edits: Vec::new(),
            lease: lease.clone(),
            stream: self.stream.clone(),
            now: at(0),
            asked_at: at(0),
            unchanged: Vec::new(),
            records,
            settlements,
            cursor: None,
        }
    }

    pub async fn commit(
        &self,
        lease: &Lease,
        records: Vec<Record>,
        settlements: Vec<Settlement>,
        now: Timestamp,
    ) -> Result<BatchCounts> {
        let commit = Commit { now, asked_at: now, ..self.commit_of(lease, records, settlements) };
        self.store().commit(Arc::new(commit)).await
    }

    /// What the feed told.
    pub async fn tell(&self, records: Vec<Record>, now: Timestamp) -> LiveCommitted {
        let commit = LiveCommit { stream: self.stream.clone(), now, asked_at: now, records, unchanged: Vec::new() };
        self.store().commit_live(Arc::new(commit)).await.unwrap()
    }

    /// Whether the role of the listener is the worker's now.
    pub async fn listen(&self, name: &str, now: Timestamp) -> bool {
        self.store().take_role(&self.role_of(name, now)).await.unwrap()
    }

    pub fn role_of(&self, name: &str, now: Timestamp) -> RoleAsk {
        RoleAsk { source: self.stream.source.clone(), role: LISTENER, worker: worker(name), ttl: TTL, now }
    }

    pub fn rescan_of(&self, reason: RescanReason, start: i64, end: i64, now: Timestamp) -> RescanPlan {
        RescanPlan { stream: self.stream.clone(), reason, span: span(start, end), segment_size: 10, now }
    }

    /// Claims everything there is and seals it.
    pub async fn finish_all(&self, now: Timestamp) {
        for claimed in self.claim("worker", 1_000, now).await {
            self.finish(&claimed, now).await;
        }
    }

    /// Stores every key of the segment but those.
    pub async fn store_all_but(&self, claimed: &Claimed, but: &[i64], now: Timestamp) {
        let keys = claimed.span.start().0..claimed.span.end().0;
        let records = keys.filter(|key| !but.contains(key)).map(|key| item(key, "text", &[])).collect();
        self.commit(&claimed.lease, records, Vec::new(), now).await.unwrap();
    }

    pub async fn close(&self, lease: &Lease, policy: DeadLetterPolicy, now: Timestamp) -> Result<Closed> {
        let close = Close { lease: lease.clone(), stream: self.stream.clone(), policy, dense: Some(&ITEMS), now };
        self.store().close(close).await
    }

    /// Stores all of a segment and seals it.
    pub async fn finish(&self, claimed: &Claimed, now: Timestamp) -> Closed {
        self.store_all_but(claimed, &[], now).await;
        self.close(&claimed.lease, DeadLetterPolicy::Hold, now).await.unwrap()
    }

    pub async fn row(&self) -> StreamRow {
        self.store().streams().await.unwrap().into_iter().find(|row| row.id == self.stream).unwrap()
    }

    pub async fn frontier(&self) -> i64 {
        self.row().await.frontier.0
    }

    pub async fn stored(&self, key: i64) -> Option<StoredRow> {
        let page = Page { after: Some(Key::Number(key - 1)), limit: 1 };
        self.store().rows(&ITEMS, page).await.unwrap().into_iter().find(|row| row.key == Key::Number(key))
    }

    pub async fn exceptions(&self) -> Vec<Exception> {
        let page = Page { after: None, limit: ALL };
        self.store().exceptions(&self.stream, ExceptionFilter::default(), page).await.unwrap()
    }

    pub async fn ledger_events(&self) -> Vec<String> {
        let lines = self.store().ledger(&self.stream.source, Page { after: None, limit: ALL }).await.unwrap();
        let mut check = ChainCheck::default();
        for line in &lines {
            check.add(line).unwrap();
        }
        lines.into_iter().map(|line| format!("{} {}", line.event_type, line.payload)).collect()
    }

    /// Catch-up segments cover `[origin, target)` without gap or overlap, as one query sees them.
    pub async fn assert_tiled(&self) {
        let faults = self.query(TILING).await;
        assert_eq!(faults, ["0|1"], "gaps | ends meet");
    }
}

const TILING: &str = "
    WITH laid AS (
        SELECT start_pos, end_pos, LEAD(start_pos) OVER (ORDER BY start_pos) AS next
        FROM ingest_segments WHERE purpose = 'catchup'
    )
    SELECT
        (SELECT count(*) FROM laid WHERE next IS NOT NULL AND next <> end_pos),
        CASE WHEN NOT EXISTS (SELECT 1 FROM laid) THEN 1
             WHEN (SELECT origin FROM ingest_streams) = (SELECT min(start_pos) FROM laid)
              AND (SELECT target FROM ingest_streams) = (SELECT max(end_pos) FROM laid) THEN 1 ELSE 0 END";
