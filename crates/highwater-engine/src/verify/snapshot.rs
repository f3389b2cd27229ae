//! A mirror of everything there is at a time, against what there is now: listed, fetched and compared.

use std::collections::{BTreeMap, BTreeSet};

use highwater_core::{Event, ExceptionState, Failure, FailureKind, Key, Lane, Record, Value, schema::Role};
use highwater_sources::{Answer, Beat, Call, Discovered, Fetched, Renewal, StreamSpec, Unlisted};
use highwater_store::Page;

use super::{FindingKind, StreamVerdict, books::Exceptions, rows};
use crate::{Engine, asking::ask, dispatcher::DrainEnd, error::Result, recall::recall};

const PAGE: u32 = 5_000;
/// Of a key that cannot be had.
const TRIES: u32 = 3;

pub(super) async fn compare(
    engine: &Engine,
    spec: &StreamSpec,
    renewal: Renewal,
    exceptions: &Exceptions,
    verdict: &mut StreamVerdict,
) -> Result<()> {
    let audit = rows::audit(engine, spec).await?;
    verdict.stored = audit.rows;
    verdict.digest = Some(audit.digest);
    for (key, why) in &audit.damaged {
        verdict.found(key.clone(), FindingKind::Differs, *why);
    }
    let source = engine.source.clone();
    let driver = tokio::spawn(async move { source.gateway().drive().await });
    let listed = list(engine, spec, verdict).await;
    let compared = match (listed, renewal) {
        (Ok(Some(keys)), Renewal::Anew) => {
            with_remote(engine, spec, exceptions, keys, verdict, &audit.damaged.into_keys().collect()).await
        }
        (Ok(Some(keys)), Renewal::Once) => are_there(engine, spec, exceptions, &keys, verdict).await,
        (Ok(None), _) => Ok(()),
        (Err(error), _) => Err(error),
    };
    driver.abort();
    compared
}

/// None if it cannot be had, which is told.
async fn list(engine: &Engine, spec: &StreamSpec, verdict: &mut StreamVerdict) -> Result<Option<Vec<Key>>> {
    recall(engine, &spec.name).await?;
    let span = highwater_core::Span::new(verdict.status.origin, verdict.status.target);
    let question = async |call: &Call| engine.source.discover(&spec.name, span, call).await;
    match ask(engine, question).await? {
        Ok(Discovered::Roll(roll)) => {
            for Unlisted { part, failure } in roll.unlisted {
                verdict.found(Key::from(format!("* {part}").as_str()), FindingKind::Unchecked, failure.message);
            }
            Ok(Some(roll.keys))
        }
        Ok(Discovered::Refused(failure)) => {
            verdict.found(Key::from("*"), FindingKind::Unchecked, failure.message);
            Ok(None)
        }
        Ok(_) => Ok(None),
        Err(DrainEnd::Spent { why, .. }) => Err(Failure::new(FailureKind::Spent, why).into()),
        Err(_) => Err(Failure::new(FailureKind::Throttled, "it asks to be left alone").into()),
    }
}

/// What never changes is there, or it is known why not.
async fn are_there(
    engine: &Engine,
    spec: &StreamSpec,
    exceptions: &Exceptions,
    keys: &[Key],
    verdict: &mut StreamVerdict,
) -> Result<()> {
    let rows = rows_of(engine, spec).await?;
    for key in keys {
        if !rows.contains_key(key) && !exceptions.contains_key(key) {
            verdict.found(key.clone(), FindingKind::Unexplained, "named, but no row and no exception");
        }
    }
    Ok(())
}

async fn with_remote(
    engine: &Engine,
    spec: &StreamSpec,
    exceptions: &Exceptions,
    listed: Vec<Key>,
    verdict: &mut StreamVerdict,
    damaged: &BTreeSet<Key>,
) -> Result<()> {
    let set: BTreeSet<Key> = listed.iter().cloned().collect();
    let rows = rows_of(engine, spec).await?;
    let unlisted = rows.iter().filter(|(key, row)| !row.is_gone && !set.contains(*key)).map(|(key, _)| key.clone());
    let keys: Vec<Key> = listed.into_iter().chain(unlisted).collect();
    let job_size = engine.settings.applied_to(spec.policy).job_size;
    let mut comparison = Comparison { engine, spec, exceptions, damaged, rows: &rows, verdict };
    for some in keys.chunks(job_size) {
        comparison.compare(some).await?;
        engine.emit(Event::Compared { keys: some.len() as u64 });
    }
    Ok(())
}

/// What is stored of an object, without its body.
struct Row {
    content: Vec<Value>,
    is_gone: bool,
}

fn content_columns(spec: &StreamSpec) -> Vec<&'static str> {
    spec.table.columns.iter().filter(|column| column.role == Role::Content).map(|column| column.name).collect()
}

async fn rows_of(engine: &Engine, spec: &StreamSpec) -> Result<BTreeMap<Key, Row>> {
    let columns: Vec<&'static str> = content_columns(spec).into_iter().chain(spec.vanished).collect();
    let mut rows = BTreeMap::new();
    let mut after = None;
    loop {
        let page = engine.store.columns(spec.table, &columns, Page { after, limit: PAGE }).await?;
        let Some((last, _)) = page.last() else { return Ok(rows) };
        after = Some(last.clone());
        for (key, mut content) in page {
            let is_gone = spec.vanished.is_some() && content.pop().is_some_and(|value| value != Value::Null);
            rows.insert(key, Row { content, is_gone });
        }
    }
}

struct Comparison<'a> {
    engine: &'a Engine,
    spec: &'a StreamSpec,
    exceptions: &'a Exceptions,
    damaged: &'a BTreeSet<Key>,
    rows: &'a BTreeMap<Key, Row>,
    verdict: &'a mut StreamVerdict,
}

impl Comparison<'_> {
    async fn compare(&mut self, keys: &[Key]) -> Result<()> {
        let call = Call::new(Lane::Backfill, Beat::new(self.engine.world.clock.clone()));
        let mut fetched = self.engine.source.fetch(&self.spec.name, keys, &call).await;
        for _ in 1..TRIES {
            match &fetched {
                Err(failure) if keys.len() == 1 && !failure.kind.is_about_account() => {}
                _ => break,
            }
            fetched = self.engine.source.fetch(&self.spec.name, keys, &call).await;
        }
        let answers = match fetched {
            Ok(answers) => answers,
            Err(failure) if failure.kind.is_about_account() => return Err(failure.into()),
            // Together they cannot be had: one by one it is known which are not to be had.
            Err(_) if keys.len() > 1 => {
                for key in keys {
                    Box::pin(self.compare(std::slice::from_ref(key))).await?;
                }
                return Ok(());
            }
            Err(failure) => keys.iter().map(|key| failed(key, &failure)).collect(),
        };
        answers.into_iter().for_each(|answer| self.judge(answer));
        Ok(())
    }

    fn judge(&mut self, answer: Answer) {
        let Answer { key, fetched, .. } = answer;
        self.verdict.checked += 1;
        match (fetched, self.rows.get(&key)) {
            (Fetched::Found(record), Some(row)) if !self.damaged.contains(&key) => self.compare_row(key, &record, row),
            (Fetched::Found(_), None) => match self.exceptions.get(&key) {
                None => self.verdict.found(key, FindingKind::Unexplained, "listed, but no row and no exception"),
                Some(ExceptionState::Missing) => {
                    self.verdict.found(key, FindingKind::Differs, "confirmed missing, but the remote has it now");
                }
                Some(_) => {}
            },
            (Fetched::Absent, Some(row)) if !row.is_gone => {
                self.verdict.found(key, FindingKind::Differs, "gone at the remote, and not marked as deleted");
            }
            (Fetched::Failed(failure), _) if !self.exceptions.contains_key(&key) => {
                self.verdict.checked -= 1;
                self.verdict.found(key, FindingKind::Unchecked, failure.message);
            }
            _ => {}
        }
    }

    fn compare_row(&mut self, key: Key, record: &Record, row: &Row) {
        let names = content_columns(self.spec);
        let place = |name: &str| self.spec.table.position(name).expect("a column of its table");
        let differs = |(name, stored): &(&&str, &Value)| record.body.values[place(name)] != **stored;
        let mut fields: Vec<_> = names.iter().zip(&row.content).filter(differs).map(|(name, _)| *name).collect();
        let is_other = |name: &&str| (record.body.values[place(name)] != Value::Null) != row.is_gone;
        fields.extend(self.spec.vanished.filter(is_other));
        if !fields.is_empty() {
            self.verdict.found(key, FindingKind::Differs, format!("differs in {}", fields.join(", ")));
        }
    }
}

fn failed(key: &Key, failure: &Failure) -> Answer {
    Answer::new(key.clone(), Fetched::Failed(failure.clone()))
}
