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
use highwater_sources::{Discovered, Renewal, Roll, Unlisted};
use highwater_store::{Claimed, Commit, ExceptionFilter, Known, Page};

use super::claiming::Prepared;
use crate::{
    EngineError,
    error::Result,
    recall::recall,
    work::{Job, SegmentWork, SnapshotWork},
    worker::{JobError, Worker},
};

/// Stands for the stream itself, where there is something to be said of all its keys; with more after it, for a part.
const ALL: &str = "*";
const PAGE: u32 = 5_000;
/// So few may well be deleted at once, also if they are more than are left.
const FEW: usize = 20;

/// What is stored of a key.
struct Row {
    fetched_at: Timestamp,
    is_gone: bool,
}

type Rows = BTreeMap<Key, Row>;

pub(super) async fn prepare(worker: &Worker, mut claimed: Claimed, renewal: Renewal) -> Result<Prepared> {
    let (segment, span) = (claimed.lease.segment, claimed.span);
    let is_list_due = claimed.due.iter().any(|exception| is_part(&exception.key));
    let is_listed_twice = claimed.rest().is_empty() && !is_list_due;
    let (parts, due): (Vec<Key>, Vec<Key>) =
        claimed.due.iter().map(|exception| exception.key.clone()).partition(is_part);
    claimed.due.retain(|exception| !is_part(&exception.key));
    let (open, known, snapshot) = if is_listed_twice {
        // Only what is to be tried again is left.
        (Vec::new(), look_up(worker, due).await?, SnapshotWork::default())
    } else {
        recall(&worker.engine, &worker.stream.spec.name).await?;
        match patiently(worker, span, Look::First).await? {
            Ok(Some(roll)) => open_up(worker, &claimed, roll, (parts, due), renewal).await?,
            // Nothing listed is not the same as nothing there.
            Ok(None) => return Err(EngineError::TaskDied("a snapshot begins with a list".into())),
            Err(failure) => {
                settle(worker, &claimed.lease, vec![(Key::from(ALL), Some(failure))]).await?;
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
    roll: Roll,
    (parts, due): (Vec<Key>, Vec<Key>),
    renewal: Renewal,
) -> Result<(Vec<Key>, Known, SnapshotWork)> {
    let rows = rows(worker).await?;
    let since = worker.stream.seen_since(claimed.span);
    let set: BTreeSet<Key> = roll.keys.iter().cloned().collect();
    let vanished = match renewal {
        Renewal::Anew => rows.iter().filter(|(key, row)| !row.is_gone && !set.contains(key)).count(),
        Renewal::Once => 0,
    };
    let mut open = candidates(&rows, roll.keys, &set, since, renewal);
    let (dead_parts, dead): (Vec<Key>, Vec<Key>) = given_up(worker).await?.into_iter().partition(is_part);
    open.extend(dead.into_iter().filter(|key| !set.contains(key) && !rows.contains_key(key)));
    let known = look_up(worker, open.iter().cloned().chain(due).collect()).await?;
    let open = untried(open, &known, since, worker.engine.now());
    let told = parts.into_iter().chain(dead_parts).collect();
    let unlisted = settle_parts(worker, &claimed.lease, told, roll.unlisted).await?;
    let doubts_absence = vanished > set.len().max(FEW);
    Ok((open, known, SnapshotWork::of(set, doubts_absence, unlisted)))
}

fn is_part(key: &Key) -> bool {
    key.to_string().starts_with(ALL)
}

impl Worker {
    /// Makes the list once more when all of the first is dealt with; the jobs that come of it.
    pub(crate) async fn recheck(&self, work: &SegmentWork) -> Result<Vec<Job>, JobError> {
        let Some(snapshot) = work.snapshot.as_ref().filter(|_| work.is_to_be_rechecked()) else {
            return Ok(Vec::new());
        };
        let again = match patiently(self, work.span, Look::Second).await.map_err(job_error)? {
            Ok(Some(roll)) => roll,
            Ok(None) => return Ok(Vec::new()),
            Err(failure) => {
                let all = vec![(Key::from(ALL), Some(failure))];
                settle(self, &work.lease, all).await.map_err(job_error)?;
                return Ok(Vec::new());
            }
        };
        settle_parts(self, &work.lease, snapshot.unlisted.clone(), again.unlisted).await.map_err(job_error)?;
        let since = self.stream.seen_since(work.span);
        let rows = rows(self).await.map_err(job_error)?;
        let set: BTreeSet<Key> = again.keys.iter().cloned().collect();
        let mut open = candidates(&rows, again.keys, &set, since, Renewal::Anew);
        let known = look_up(self, open.iter().chain(&snapshot.listed).cloned().collect()).await.map_err(job_error)?;
        open = untried(open, &known, since, self.engine.now());
        open.extend(gone_since(snapshot, &set, &rows, &known));
        let moved: Vec<Key> = again.moved.into_iter().filter(|key| !open.contains(key)).collect();
        open.extend(moved);
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
async fn patiently(worker: &Worker, span: Span, look: Look) -> Result<Result<Option<Roll>, Failure>> {
    let engine = &worker.engine;
    let (clock, began) = (&engine.world.clock, engine.world.clock.moment());
    let mut attempt = 0;
    loop {
        let failure = match look.list(worker, span).await {
            Ok(None) => return Ok(Ok(None)),
            Ok(Some(Discovered::Roll(roll))) => return Ok(Ok(Some(roll))),
            Ok(Some(Discovered::Refused(failure))) => return Ok(Err(failure)),
            Ok(Some(Discovered::Keys(_) | Discovered::TooMany)) => {
                return Err(EngineError::TaskDied("a snapshot is a list of all there is".into()));
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
            // What cannot be listed while nothing answers is no fault of the stream.
            _ if is_over && engine.source.probe(&worker.stream.spec.name, None).await.is_err() => {
                return Err(failure.into());
            }
            _ if is_over => return Ok(Err(failure)),
            _ => {
                let wait = engine.settings.retry.delay(attempt, engine.world.entropy.unit());
                engine.emit(Event::HeadFailed { kind: failure.kind, retry_at: engine.now() + wait });
                clock.sleep(wait).await;
            }
        }
    }
}

/// Notes which parts cannot be listed, and that those can again of which that was told; the former.
async fn settle_parts(worker: &Worker, lease: &Lease, told: Vec<Key>, unlisted: Vec<Unlisted>) -> Result<Vec<Key>> {
    let part = |one: Unlisted| (Key::from(format!("{ALL} {}", one.part).as_str()), Some(one.failure));
    let mut parts: BTreeMap<Key, Option<Failure>> = told.into_iter().map(|key| (key, None)).collect();
    parts.extend(unlisted.into_iter().map(part));
    let failed = parts.iter().filter(|(_, failure)| failure.is_some()).map(|(key, _)| key.clone()).collect();
    settle(worker, lease, parts.into_iter().collect()).await?;
    Ok(failed)
}

/// Notes that nothing can be said of a part of the stream, and why; or that it can again.
async fn settle(worker: &Worker, lease: &Lease, parts: Vec<(Key, Option<Failure>)>) -> Result<()> {
    if parts.is_empty() {
        return Ok(());
    }
    let (engine, now) = (&worker.engine, worker.engine.now());
    for (key, failure) in parts.iter().filter_map(|(key, failure)| Some((key, failure.as_ref()?))) {
        engine.emit(Event::DeadLetter { key: key.clone(), reason: failure.kind.as_str() });
    }
    let settlement = |(key, failure): (Key, Option<Failure>)| Settlement {
        key,
        verdict: if failure.is_some() { Verdict::Dead } else { Verdict::Stored },
        history: History { attempts: 1, ..History::default() },
        reason: failure.as_ref().map_or("listed", |failure| failure.kind.as_str()),
        last_error: failure.map(|failure| failure.message),
    };
    let commit = Arc::new(Commit {
        lease: lease.clone(),
        stream: worker.stream.id.clone(),
        now,
        asked_at: now,
        records: Vec::new(),
        unchanged: Vec::new(),
        edits: Vec::new(),
        settlements: parts.into_iter().map(settlement).collect(),
        cursor: None,
    });
    engine.steady(|| engine.store.commit(commit.clone())).await?;
    Ok(())
}

fn job_error(error: EngineError) -> JobError {
    match error {
        EngineError::Store(error) => JobError::Store(error),
        EngineError::Remote(failure) | EngineError::Spent(failure) | EngineError::Account(failure) => {
            JobError::Account(failure)
        }
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
        let snapshot = SnapshotWork::of(listed, false, Vec::new());
        let rows: Rows = [(key("a"), row(20, false)), (key("b"), row(20, true))].into_iter().collect();
        let again = [key("d")].into_iter().collect();
        assert_eq!(gone_since(&snapshot, &again, &rows, &Known::default()), [key("a")]);
    }
}
