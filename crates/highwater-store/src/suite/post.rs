//! Verbs for cases about mail: a stream that follows its remote's record, and what is read of its tables.

use std::sync::Arc;

use highwater_core::{
    DeadLetterPolicy, Edit, History, Key, Lease, Otherwise, Position, Purpose, Record, Settlement, StreamId, Tiding,
    Timestamp, Value, Verdict, schema::Table,
};

use super::{
    scene::{ALL, Lab, Scene, at, span},
    tables::mail::ANN,
};
use crate::{Applied, Close, Closed, Commit, Page, Plan, StoredRow, Tidings};

/// Where the record of a scene's stream is followed from.
pub const MARK: &str = "100";

impl Scene {
    /// With one segment over `[0, 100)`, and a record that is followed.
    pub async fn of_mail(lab: Lab) -> Scene {
        let stream = StreamId { source: "mail".parse().unwrap(), stream: "messages".parse().unwrap() };
        lab.store.open_stream(&stream, "time").await.unwrap();
        let plan = Plan {
            stream: &stream,
            purpose: Purpose::Catchup,
            span: span(0, 100),
            segment_size: 100,
            bare_until: None,
        };
        lab.store.plan(plan).await.unwrap();
        lab.store.follow_from(&stream, MARK, None).await.unwrap();
        Scene { lab, stream }
    }

    /// With these messages stored, and the lease under which they were.
    pub async fn with_mail(lab: Lab, records: Vec<Record>) -> (Scene, Lease) {
        let scene = Scene::of_mail(lab).await;
        let lease = scene.claim_one(at(0)).await.lease;
        scene.commit(&lease, records, vec![], at(0)).await.unwrap();
        (scene, lease)
    }

    pub fn tidings(&self, tidings: Vec<Tiding>, now: Timestamp) -> Tidings {
        Tidings {
            stream: self.stream.clone(),
            table: &ANN,
            after: MARK.into(),
            upto: None,
            tidings,
            position: Position(99),
            entries: Vec::new(),
            is_reconciled: false,
            now,
        }
    }

    /// Applies a piece of what comes after [`MARK`], of which more is to come.
    pub async fn apply(&self, tidings: Vec<Tiding>, now: Timestamp) -> Applied {
        self.store().apply(Arc::new(self.tidings(tidings, now))).await.unwrap()
    }

    pub async fn commit_edits(&self, lease: &Lease, edits: Vec<(Key, &'static Table, Vec<Edit>)>, now: Timestamp) {
        let commit = Commit { edits, now, asked_at: now, ..self.commit_of(lease, vec![], vec![]) };
        let counts = self.store().commit(Arc::new(commit)).await.unwrap();
        assert_eq!(counts.new + counts.unchanged, 0, "what is edited is changed or nothing");
    }

    /// Ends a segment in which not every position is a key.
    pub async fn close_sparse(&self, lease: &Lease, now: Timestamp) -> Closed {
        let (lease, stream, policy) = (lease.clone(), self.stream.clone(), DeadLetterPolicy::Pass);
        self.store().close(Close { lease, stream, policy, dense: None, now }).await.unwrap()
    }

    pub async fn mail(&self, table: &'static Table) -> Vec<StoredRow> {
        self.store().rows(table, Page { after: None, limit: ALL }).await.unwrap()
    }

    /// `key labels`, of each message of a mailbox, all of which match their checks.
    pub async fn labels(&self, table: &'static Table) -> Vec<String> {
        let place = table.position("label_ids").unwrap();
        let rows = self.mail(table).await;
        assert!(rows.iter().all(|row| row.row_check == row.body.checksum()));
        rows.iter()
            .map(|row| format!("{} {}", row.key, highwater_core::texts(&row.body.values[place]).join(",")))
            .collect()
    }

    /// `id count labels` of each thread.
    pub async fn threads(&self) -> Vec<String> {
        let rows = self.query("SELECT id, message_count, label_ids FROM mail_threads ORDER BY id").await;
        rows.into_iter().map(|row| row.replace(['[', ']', '"', ' '], "").replace('|', " ")).collect()
    }

    /// `event entity` of the ledger's lines.
    pub async fn noted(&self) -> Vec<String> {
        let page = Page { after: None, limit: ALL };
        let lines = self.store().ledger(&self.stream.source, page).await.unwrap();
        lines.into_iter().map(|line| format!("{} {}", line.event_type, line.entity_id)).collect()
    }

    /// `key state reason attempts`
    pub async fn excepted(&self) -> Vec<String> {
        let shown = |one: highwater_core::Exception| {
            format!("{} {} {} {}", one.key, one.state.as_str(), one.reason, one.history.attempts)
        };
        self.exceptions().await.into_iter().map(shown).collect()
    }
}

pub fn told(key: &str, edits: Vec<Edit>, otherwise: Otherwise) -> Tiding {
    Tiding { key: Key::from(key), edits, otherwise }
}

pub fn wanted(key: &str) -> Tiding {
    told(key, vec![], Otherwise::Fetch)
}

pub fn judged(key: &str, verdict: Verdict) -> Settlement {
    let history = History { attempts: 3, ..History::default() };
    Settlement { key: Key::from(key), verdict, history, reason: "server", last_error: None }
}

/// When messages were sent, as the column holds it.
pub fn time(seconds: i64) -> Value {
    Value::Time(at(seconds))
}
