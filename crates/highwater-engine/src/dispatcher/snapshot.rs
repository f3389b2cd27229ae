//! Everything there is, as it was at a time or later: which keys of a list are still to be asked for, and the second
//! list that ends it. What was fetched since that time is done, also by a process that is gone.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use highwater_core::{
    Event, Exception, ExceptionState, Failure, FailureKind, History, Key, KeySet, Lease, Settlement, Span, Timestamp,
    Verdict,
};
use highwater_sources::{Discovered, Renewal};
use highwater_store::{Claimed, Commit, ExceptionFilter, Known, Page};

use super::Prepared;
use crate::{
    EngineError,
    error::Result,
    recall::recall,
    work::{Job, SegmentWork, SnapshotWork},
    worker::{JobError, Worker},
};

/// Stands for the stream itself, where there is something to be said of all its keys.
const ALL: &str = "*";
const PAGE: u32 = 5_000;

/// What is stored of a key.
struct Row {
    fetched_at: Timestamp,
    is_gone: bool,
}

type Rows = BTreeMap<Key, Row>;

pub(super) async fn prepare(worker: &Worker, mut claimed: Claimed, renewal: Renewal) -> Result<Prepared> {
    let (segment, span) = (claimed.lease.segment, claimed.span);
    let is_all_due = claimed.due.iter().any(|exception| exception.key == Key::from(ALL));
    claimed.due.retain(|exception| exception.key != Key::from(ALL));
    let due: Vec<Key> = claimed.due.iter().map(|exception| exception.key.clone()).collect();
    let (open, known, snapshot) = if claimed.rest().is_empty() && !is_all_due {
        // Listed twice already: only what is to be tried again is left.
        (Vec::new(), look_up(worker, due).await?, SnapshotWork::default())
    } else {
        recall(&worker.engine, &worker.stream.spec.name).await?;
        match patiently(worker, span, Look::First).await? {
            Ok(keys) => open_up(worker, &claimed, keys.unwrap_or_default(), due, renewal).await?,
            Err(failure) => {
                settle_all(worker, &claimed.lease, Some(&failure)).await?;
                (Vec::new(), look_up(worker, due).await?, SnapshotWork::default())
            }
        }
    };
    let (work, jobs) = SegmentWork::of_snapshot(claimed, open, known, snapshot, worker.stream.policy.job_size);
    worker.engine.emit(Event::Claimed { segment, span, keys: jobs.iter().map(|job| job.keys.len() as u64).sum() });
    Ok((Arc::new(work), jobs))
}

async fn open_up(
    worker: &Worker,
    claimed: &Claimed,
    listed: Vec<Key>,
    due: Vec<Key>,
    renewal: Renewal,
) -> Result<(Vec<Key>, Known, SnapshotWork)> {
    let rows = rows(worker).await?;
    let since = worker.stream.seen_since(claimed.span);
    let set: BTreeSet<Key> = listed.iter().cloned().collect();
    let vanished = match renewal {
        Renewal::Anew => rows.iter().filter(|(key, row)| !row.is_gone && !set.contains(key)).count(),
        Renewal::Once => 0,
    };
    let mut open = candidates(&rows, listed, &set, since, renewal);
    open.extend(given_up(worker).await?.into_iter().filter(|key| !set.contains(key) && !rows.contains_key(key)));
    let asked = open.iter().cloned().chain(due).chain([Key::from(ALL)]).collect();
    let known = look_up(worker, asked).await?;
    if known.exceptions.iter().any(|exception| exception.key == Key::from(ALL)) {
        settle_all(worker, &claimed.lease, None).await?;
    }
    let open = untried(open, &known, since, worker.engine.now());
    Ok((open, known, SnapshotWork::of(set.clone(), vanished > set.len())))
}

impl Worker {
    /// Makes the list once more when all of the first is dealt with; the jobs that come of it.
    pub(crate) async fn recheck(&self, work: &SegmentWork) -> Result<Vec<Job>, JobError> {
        let Some(snapshot) = work.snapshot.as_ref().filter(|_| work.is_to_be_rechecked()) else {
            return Ok(Vec::new());
        };
        let again = match patiently(self, work.span, Look::Second).await.map_err(job_error)? {
            Ok(Some(keys)) => keys,
            Ok(None) => return Ok(Vec::new()),
            Err(failure) => {
                settle_all(self, &work.lease, Some(&failure)).await.map_err(job_error)?;
                return Ok(Vec::new());
            }
        };
        let since = self.stream.seen_since(work.span);
        let rows = rows(self).await.map_err(job_error)?;
        let set: BTreeSet<Key> = again.iter().cloned().collect();
        let mut open = candidates(&rows, again, &set, since, Renewal::Anew);
        let known = look_up(self, open.iter().chain(&snapshot.listed).cloned().collect()).await.map_err(job_error)?;
        open = untried(open, &known, since, self.engine.now());
        open.extend(gone_since(snapshot, &set, &rows, &known));
        Ok(work.add_later(&open, known, self.stream.policy.job_size))
    }
}

/// Keys of the first list that the second has not, and that nobody has found to be gone yet.
fn gone_since(snapshot: &SnapshotWork, again: &BTreeSet<Key>, rows: &Rows, known: &Known) -> Vec<Key> {
    let waits = |key: &Key| {
        known.exceptions.iter().any(|exception| exception.key == *key && exception.state == ExceptionState::RetryWait)
    };
    let is_there = |key: &Key| rows.get(key).is_some_and(|row| !row.is_gone);
    snapshot.listed.difference(again).filter(|key| is_there(key) || waits(key)).cloned().collect()
}

/// Listed or stored keys that were not fetched since the time of the snapshot, those that are listed first.
fn candidates(rows: &Rows, listed: Vec<Key>, set: &BTreeSet<Key>, since: Timestamp, renewal: Renewal) -> Vec<Key> {
    let is_done = |key: &Key| match (rows.get(key), renewal) {
        (None, _) => false,
        (Some(_), Renewal::Once) => true,
        (Some(row), Renewal::Anew) => row.fetched_at >= since,
    };
    let mut open: Vec<Key> = listed.into_iter().filter(|key| !is_done(key)).collect();
    if renewal == Renewal::Anew {
        let unlisted = rows.iter().filter(|(key, row)| !row.is_gone && row.fetched_at < since && !set.contains(key));
        open.extend(unlisted.map(|(key, _)| key.clone()));
    }
    open
}

/// Without those that wait for a retry, or were judged since the time of the snapshot.
fn untried(mut open: Vec<Key>, known: &Known, since: Timestamp, now: Timestamp) -> Vec<Key> {
    let exceptions: BTreeMap<&Key, &Exception> =
        known.exceptions.iter().map(|exception| (&exception.key, exception)).collect();
    open.retain(|key| match exceptions.get(key) {
        None => true,
        Some(exception) if exception.state == ExceptionState::RetryWait => exception.is_due(now),
        Some(exception) => exception.last_tried_at < since,
    });
    open
}

/// Dead letters of earlier snapshots. What is no longer listed may be gone by now.
async fn given_up(worker: &Worker) -> Result<Vec<Key>> {
    let (engine, stream) = (&worker.engine, &worker.stream.id);
    let filter = ExceptionFilter { state: Some(ExceptionState::DeadLetter) };
    let mut keys: Vec<Key> = Vec::new();
    loop {
        let page = Page { after: keys.last().cloned(), limit: PAGE };
        let letters = engine.steady(|| engine.store.exceptions(stream, filter, page.clone())).await?;
        if letters.is_empty() {
            keys.retain(|key| *key != Key::from(ALL));
            return Ok(keys);
        }
        keys.extend(letters.into_iter().map(|letter| letter.key));
    }
}

async fn look_up(worker: &Worker, keys: Vec<Key>) -> Result<Known> {
    let (engine, keys) = (&worker.engine, KeySet::List(keys));
    let (id, table) = (&worker.stream.id, worker.stream.spec.table);
    Ok(engine.steady(|| engine.store.known(id, table, &keys)).await?)
}

async fn rows(worker: &Worker) -> Result<Rows> {
    let (engine, spec) = (&worker.engine, &worker.stream.spec);
    let columns: Vec<&'static str> = ["last_fetched_at"].into_iter().chain(spec.vanished).collect();
    let mut rows = Rows::new();
    let mut after = None;
    loop {
        let page = Page { after: after.clone(), limit: PAGE };
        let found = engine.steady(|| engine.store.columns(spec.table, &columns, page.clone())).await?;
        let Some((last, _)) = found.last() else { return Ok(rows) };
        after = Some(last.clone());
        for (key, values) in found {
            let fetched_at = match values.first() {
                Some(highwater_core::Value::Time(at)) => *at,
                _ => Timestamp::EPOCH,
            };
            let is_gone = values.get(1).is_some_and(|value| *value != highwater_core::Value::Null);
            rows.insert(key, Row { fetched_at, is_gone });
        }
    }
}

/// Which of the two lists of a snapshot.
#[derive(Clone, Copy)]
enum Look {
    First,
    Second,
}

impl Look {
    async fn list(self, worker: &Worker, span: Span) -> Result<Option<Discovered>, Failure> {
        let (source, stream, call) = (&worker.engine.source, &worker.stream.spec.name, worker.control_call());
        match self {
            Look::First => source.discover(stream, span, &call).await.map(Some),
            Look::Second => source.recheck(stream, span, &call).await,
        }
    }
}

/// Asks as often as for a key. A remote that cannot be reached at all ends the run; a list that fails is told of, and the
/// other streams go on.
async fn patiently(worker: &Worker, span: Span, look: Look) -> Result<Result<Option<Vec<Key>>, Failure>> {
    let engine = &worker.engine;
    let (clock, began) = (&engine.world.clock, engine.world.clock.moment());
    let mut attempt = 0;
    loop {
        let failure = match look.list(worker, span).await {
            Ok(None) => return Ok(Ok(None)),
            Ok(Some(Discovered::Keys(KeySet::List(keys)))) => return Ok(Ok(Some(keys))),
            Ok(Some(Discovered::Refused(failure))) => return Ok(Err(failure)),
            Ok(Some(Discovered::Keys(KeySet::Range(_)) | Discovered::TooMany)) => {
                return Err(EngineError::TaskDied("a snapshot is a list of keys".into()));
            }
            Err(failure) => failure,
        };
        attempt += 1;
        // What is wrong with the question itself is so the next time as well.
        let attempts = if failure.kind == FailureKind::Status { 2 } else { engine.settings.retry.attempts };
        let is_over = attempt >= attempts || clock.moment().since(began) >= engine.settings.patience.retry;
        match failure.kind {
            FailureKind::Credentials | FailureKind::Spent | FailureKind::Redirect => return Err(failure.into()),
            FailureKind::Connect if is_over => return Err(failure.into()),
            _ if engine.source.gateway().is_stopped() => return Err(failure.into()),
            _ if is_over => return Ok(Err(failure)),
            _ => {
                let wait = engine.settings.retry.delay(attempt, engine.world.entropy.unit());
                engine.emit(Event::HeadFailed { kind: failure.kind, retry_at: engine.now() + wait });
                clock.sleep(wait).await;
            }
        }
    }
}

/// Notes that nothing can be said of the stream, and why; or that it can again.
async fn settle_all(worker: &Worker, lease: &Lease, failure: Option<&Failure>) -> Result<()> {
    let (engine, now) = (&worker.engine, worker.engine.now());
    let verdict = if failure.is_some() { Verdict::Dead } else { Verdict::Stored };
    if let Some(failure) = failure {
        engine.emit(Event::DeadLetter { key: Key::from(ALL), reason: failure.kind.as_str() });
    }
    let settlement = Settlement {
        key: Key::from(ALL),
        verdict,
        history: History { attempts: 1, ..History::default() },
        reason: failure.map_or("listed", |failure| failure.kind.as_str()),
        last_error: failure.map(|failure| failure.message.clone()),
    };
    let commit = Arc::new(Commit {
        lease: lease.clone(),
        stream: worker.stream.id.clone(),
        now,
        asked_at: now,
        records: Vec::new(),
        unchanged: Vec::new(),
        edits: Vec::new(),
        settlements: vec![settlement],
        cursor: None,
    });
    engine.steady(|| engine.store.commit(commit.clone())).await?;
    Ok(())
}

fn job_error(error: EngineError) -> JobError {
    match error {
        EngineError::Store(error) => JobError::Store(error),
        EngineError::Remote(failure) | EngineError::Account(failure) => JobError::Account(failure),
        other => JobError::Account(Failure::new(FailureKind::Internal, other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: &str) -> Key {
        Key::from(id)
    }

    fn row(fetched_at: i64, is_gone: bool) -> Row {
        Row { fetched_at: Timestamp::from_millis(fetched_at), is_gone }
    }

    #[test]
    fn what_was_fetched_since_is_done_and_what_is_no_longer_listed_is_looked_at() {
        let rows: Rows = [("a", row(5, false)), ("b", row(20, false)), ("c", row(5, false)), ("d", row(5, true))]
            .into_iter()
            .map(|(id, row)| (key(id), row))
            .collect();
        let listed = vec![key("z"), key("b"), key("a")];
        let set = listed.iter().cloned().collect();
        let open = |renewal| candidates(&rows, listed.clone(), &set, Timestamp::from_millis(10), renewal);
        assert_eq!(open(Renewal::Anew), [key("z"), key("a"), key("c")]);
        assert_eq!(open(Renewal::Once), [key("z")]);
    }

    #[test]
    fn keys_that_went_between_the_lists_are_looked_at_unless_that_is_known() {
        let listed = ["a", "b", "c"].map(key).into_iter().collect();
        let snapshot = SnapshotWork::of(listed, false);
        let rows: Rows = [(key("a"), row(20, false)), (key("b"), row(20, true))].into_iter().collect();
        let again = [key("d")].into_iter().collect();
        assert_eq!(gone_since(&snapshot, &again, &rows, &Known::default()), [key("a")]);
    }
}
