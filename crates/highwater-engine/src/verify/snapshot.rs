//! A mirror of everything there is at a time, against what there is now: listed, fetched and compared.

use std::collections::BTreeSet;

use highwater_core::{Event, ExceptionState, Failure, FailureKind, Key, KeySet, Lane, Value, schema::Role};
use highwater_sources::{Beat, Call, Discovered, Fetched, Renewal, StreamSpec};
use highwater_store::Page;

use super::{FindingKind, StreamVerdict, again, books::Exceptions, rows};
use crate::{Engine, asking::ask, error::Result};

const PAGE: u32 = 5_000;

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
    if renewal == Renewal::Once {
        return Ok(());
    }
    let source = engine.source.clone();
    let driver = tokio::spawn(async move { source.gateway().drive().await });
    let compared = with_remote(engine, spec, exceptions, verdict, &audit.damaged.into_keys().collect()).await;
    driver.abort();
    compared
}

async fn with_remote(
    engine: &Engine,
    spec: &StreamSpec,
    exceptions: &Exceptions,
    verdict: &mut StreamVerdict,
    damaged: &BTreeSet<Key>,
) -> Result<()> {
    let span = highwater_core::Span::new(verdict.status.origin, verdict.status.target);
    let question = async |call: &Call| engine.source.discover(&spec.name, span, call).await;
    let listed = match ask(engine, question).await? {
        Ok(Discovered::Keys(KeySet::List(keys))) => keys,
        Ok(Discovered::Refused(failure)) => {
            verdict.found(Key::from("*"), FindingKind::Unchecked, failure.message);
            return Ok(());
        }
        Ok(_) => return Ok(()),
        Err(_) => return Err(Failure::new(FailureKind::Throttled, "it asks to be left alone").into()),
    };
    let set: BTreeSet<Key> = listed.iter().cloned().collect();
    let present = present(engine, spec).await?;
    let unlisted = present.difference(&set).cloned();
    let keys: Vec<Key> = listed.into_iter().chain(unlisted).collect();
    let job_size = engine.settings.applied_to(spec.policy).job_size;
    for some in keys.chunks(job_size) {
        compare_some(engine, spec, exceptions, verdict, some, damaged).await?;
        engine.emit(Event::Compared { keys: some.len() as u64 });
    }
    Ok(())
}

/// Stored and not known to be gone.
async fn present(engine: &Engine, spec: &StreamSpec) -> Result<BTreeSet<Key>> {
    let mut present = BTreeSet::new();
    let Some(vanished) = spec.vanished else { return Ok(present) };
    let mut after = None;
    loop {
        let rows = engine.store.columns(spec.table, &[vanished], Page { after, limit: PAGE }).await?;
        let Some((last, _)) = rows.last() else { return Ok(present) };
        after = Some(last.clone());
        let is_there = |values: &[Value]| values.first().is_none_or(|value| *value == Value::Null);
        present.extend(rows.into_iter().filter(|(_, values)| is_there(values)).map(|(key, _)| key));
    }
}

async fn compare_some(
    engine: &Engine,
    spec: &StreamSpec,
    exceptions: &Exceptions,
    verdict: &mut StreamVerdict,
    keys: &[Key],
    damaged: &BTreeSet<Key>,
) -> Result<()> {
    let call = Call::new(Lane::Backfill, Beat::new(engine.world.clock.clone()));
    let answers = match engine.source.fetch(&spec.name, keys, &call).await {
        Ok(answers) => answers,
        // Together they cannot be had: one by one it is known which are not to be had.
        Err(_) if keys.len() > 1 => {
            for key in keys {
                Box::pin(compare_some(engine, spec, exceptions, verdict, std::slice::from_ref(key), damaged)).await?;
            }
            return Ok(());
        }
        Err(failure) => {
            keys.iter().for_each(|key| verdict.found(key.clone(), FindingKind::Unchecked, failure.message.clone()));
            return Ok(());
        }
    };
    for answer in answers {
        let row = again::row(engine, spec, &answer.key).await?;
        verdict.checked += 1;
        match (answer.fetched, row) {
            (Fetched::Found(record), Some(row)) if !damaged.contains(&answer.key) => {
                let fields = row.body.differing(&record.body, spec.table, Role::Content);
                if !fields.is_empty() {
                    let detail = format!("differs in {}", fields.join(", "));
                    verdict.found(answer.key, FindingKind::Differs, detail);
                }
            }
            (Fetched::Found(_), None) => match exceptions.get(&answer.key) {
                None => verdict.found(answer.key, FindingKind::Unexplained, "listed, but no row and no exception"),
                Some(ExceptionState::Missing) => {
                    verdict.found(answer.key, FindingKind::Differs, "confirmed missing, but the remote has it now");
                }
                Some(_) => {}
            },
            (Fetched::Absent, Some(_)) => {
                verdict.found(answer.key, FindingKind::Differs, "gone at the remote, and not marked as deleted");
            }
            (Fetched::Failed(failure), _) if exceptions.get(&answer.key).is_none() => {
                verdict.checked -= 1;
                verdict.found(answer.key, FindingKind::Unchecked, failure.message);
            }
            _ => {}
        }
    }
    Ok(())
}
