//! The mirror against the remote: the same decoder on both sides, field by field.

use std::{collections::BTreeMap, pin::pin, time::Duration};

use futures_util::{StreamExt, stream};
use highwater_core::{Event, ExceptionState, Failure, FailureKind, Key, Lane, Position, Record, Span, schema::Role};
use highwater_sources::{Answer, Beat, Call, Density, Fetched, StreamSpec};
use highwater_store::StoredRow;

use super::{
    AUTO_SAMPLE, FindingKind, Sample, StreamVerdict, again,
    books::{Exceptions, contradicts_a_row},
};
use tokio::task::JoinHandle;

use crate::{Engine, EngineError, error::Result, refusal::RefusalWatch};

/// Keys asked for together, batches at work at once, and how often a failing key is asked.
const BATCH: usize = 100;
const BATCHES: usize = 32;
const ROUNDS: u32 = 4;
const ROUND_WAIT: Duration = Duration::from_millis(500);

pub(super) async fn compare(
    engine: &Engine,
    spec: &StreamSpec,
    sample: Sample,
    exceptions: &Exceptions,
    verdict: &mut StreamVerdict,
) -> Result<()> {
    if matches!(spec.density, Density::Sparse | Density::Snapshot(_)) {
        return Ok(());
    }
    let span = Span::new(verdict.status.origin, verdict.status.target);
    let batches = sampled_batches(engine, span, sample);
    let source = engine.source.clone();
    let mut driver = AbortOnDrop(tokio::spawn(async move { source.gateway().drive().await }));
    let mut compared = stream::iter(batches).map(|keys| compare_batch(engine, spec, keys)).buffer_unordered(BATCHES);
    let mut shut_out = pin!(RefusalWatch::new(engine).until_shut_out(engine));
    loop {
        let batch = tokio::select! {
            biased;
            batch = compared.next() => match batch {
                Some(batch) => batch?,
                None => break,
            },
            _ = &mut driver.0 => return Err(EngineError::TaskDied("the throttle's driver".into())),
            _ = &mut shut_out => return Err(EngineError::Remote(refused())),
        };
        engine.emit(Event::Compared { keys: batch.len() as u64 });
        for (key, answer, row) in batch {
            if let Some(doubt) = judge(spec, exceptions, verdict, &key, answer, row.as_ref()) {
                confirm(engine, spec, verdict, key, doubt).await?;
            }
        }
    }
    Ok(())
}

fn refused() -> Failure {
    Failure::new(FailureKind::Throttled, "it asks to be left alone for longer than retry_patience")
}

struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Keys spread evenly over the span, one drawn from each stretch, in order; made as they are asked for.
fn sampled_batches(engine: &Engine, span: Span, sample: Sample) -> impl Iterator<Item = Vec<Key>> + Send + use<> {
    let count = match sample {
        Sample::Auto => AUTO_SAMPLE.min(span.len()),
        Sample::Count(count) => count.min(span.len()),
        Sample::All => span.len(),
    };
    let entropy = engine.world.entropy.clone();
    let key = move |index: u64| {
        let edge = |index: u64| (u128::from(index) * u128::from(span.len()) / u128::from(count)) as u64;
        let (from, to) = (edge(index), edge(index + 1));
        let Position(position) = span.start().plus(from + entropy.below(to - from));
        Key::Number(position)
    };
    (0..count.div_ceil(BATCH as u64)).map(move |batch| {
        let first = batch * BATCH as u64;
        (first..(first + BATCH as u64).min(count)).map(&key).collect()
    })
}

type Compared = (Key, Fetched, Option<StoredRow>);

/// Asks for a batch, the failing keys of it again, and looks the rows up.
async fn compare_batch(engine: &Engine, spec: &StreamSpec, places: Vec<Key>) -> Result<Vec<Compared>> {
    let mut keys = keys_at(engine, spec, places).await?;
    let rows = again::rows(engine, spec, &keys).await?;
    let call = Call::new(Lane::Backfill, Beat::new(engine.world.clock.clone()));
    let mut answers = BTreeMap::new();
    for round in 1..=ROUNDS {
        let batch = match engine.source.fetch(&spec.name, &keys, &call).await {
            Ok(batch) => batch,
            Err(failure) => {
                let failed = |key: &Key| Answer::new(key.clone(), Fetched::Failed(failure.clone()));
                keys.iter().map(failed).collect()
            }
        };
        answers.extend(batch.into_iter().map(|answer| (answer.key, answer.fetched)));
        let unsure = |key: &Key| match answers.get(key) {
            Some(Fetched::Failed(_)) => true,
            // A null where there is a row, or content held back, deserves a second look.
            Some(Fetched::Absent | Fetched::Delayed { .. }) => rows.contains_key(key),
            _ => false,
        };
        keys.retain(unsure);
        if keys.is_empty() || round == ROUNDS {
            break;
        }
        engine.world.clock.sleep(ROUND_WAIT * 2u32.pow(round)).await;
    }
    let mut rows = rows;
    Ok(answers.into_iter().map(|(key, fetched)| (key.clone(), fetched, rows.remove(&key))).collect())
}

/// The keys at these positions, which are keys themselves where every position is one.
async fn keys_at(engine: &Engine, spec: &StreamSpec, places: Vec<Key>) -> Result<Vec<Key>> {
    if spec.density == Density::Dense {
        return Ok(places);
    }
    let mut keys = Vec::with_capacity(places.len());
    for place in places.iter().filter_map(Key::number).map(Position) {
        keys.extend(engine.store.listed(&engine.stream_id(spec), Span::new(place, place.plus(1))).await?);
    }
    Ok(keys)
}

/// What is wrong with a key, unless a second look at the store shows that it has changed meanwhile.
enum Doubt {
    /// There is an explanation of why it is not stored.
    Explained(ExceptionState),
    Differs(Record),
}

fn judge(
    spec: &StreamSpec,
    exceptions: &Exceptions,
    verdict: &mut StreamVerdict,
    key: &Key,
    fetched: Fetched,
    row: Option<&StoredRow>,
) -> Option<Doubt> {
    verdict.checked += 1;
    match (fetched, row) {
        (Fetched::Found(record), Some(row)) => return judge_pair(spec, verdict, record, row),
        // What the remote holds back at the moment cannot be compared; the row may well have the whole of it.
        (Fetched::Delayed { .. }, Some(_)) => verdict.moved += 1,
        (Fetched::Found(_) | Fetched::Delayed { .. }, None) => {
            // Without a row and without an exception the books have named it already.
            let explained = exceptions.get(key).filter(|state| contradicts_a_row(**state));
            return explained.map(|state| Doubt::Explained(*state));
        }
        (Fetched::Absent, Some(_)) => verdict.vanished += 1,
        (Fetched::Absent | Fetched::Unchanged | Fetched::Excluded { .. } | Fetched::Skipped, _) => {}
        (Fetched::Failed(failure), row) => {
            verdict.checked -= 1;
            if row.is_some() || exceptions.get(key) == Some(&ExceptionState::Missing) {
                verdict.found(key.clone(), FindingKind::Unchecked, failure.message);
            }
        }
    }
    None
}

fn judge_pair(spec: &StreamSpec, verdict: &mut StreamVerdict, record: Record, row: &StoredRow) -> Option<Doubt> {
    if !row.body.differing(&record.body, spec.table, Role::Content).is_empty() {
        // A row that fails its own checksum has been named by the books.
        return (row.body.checksum() == row.row_check).then_some(Doubt::Differs(record));
    }
    let mutable = row.body.differing(&record.body, spec.table, Role::Mutable);
    if !mutable.is_empty() || row.body.edges != record.body.edges {
        verdict.moved += 1;
    }
    None
}

/// Looks at the store again, and tells only what is still so.
async fn confirm(
    engine: &Engine,
    spec: &StreamSpec,
    verdict: &mut StreamVerdict,
    key: Key,
    doubt: Doubt,
) -> Result<()> {
    match doubt {
        Doubt::Explained(state) => {
            if again::state(engine, spec, &key).await? == (Some(state), false) {
                verdict.found(key, FindingKind::Differs, format!("confirmed {state}, but the remote has it now"));
            }
        }
        Doubt::Differs(record) => {
            let row = again::row(engine, spec, &key).await?;
            // A row that has gone since is for the next audit to tell: nothing of it differs.
            let fields = row.map(|row| row.body.differing(&record.body, spec.table, Role::Content)).unwrap_or_default();
            if !fields.is_empty() {
                verdict.found(key, FindingKind::Differs, format!("differs in {}", fields.join(", ")));
            }
        }
    }
    Ok(())
}
