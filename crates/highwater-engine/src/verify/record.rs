//! A mirror that follows a record of changes, against everything the remote has: two full listings, with the record
//! between them to tell what moved meanwhile.

use std::collections::BTreeSet;

use highwater_core::{ExceptionState, Failure, FailureKind, Key};
use highwater_sources::{Call, Census, Changes, Since, StreamSpec};
use highwater_store::Page;

use super::{FindingKind, StreamVerdict, books::Exceptions, rows};
use crate::{Engine, asking::ask, error::Result};

const PAGE: u32 = 5_000;

pub(super) async fn compare(
    engine: &Engine,
    spec: &StreamSpec,
    changes: &dyn Changes,
    exceptions: &Exceptions,
    verdict: &mut StreamVerdict,
) -> Result<()> {
    let audit = rows::audit(engine, spec).await?;
    verdict.stored = audit.rows;
    verdict.blobs = audit.blobs;
    verdict.digest = Some(audit.digest);
    for (key, why) in &audit.damaged {
        verdict.found(key.clone(), FindingKind::Differs, *why);
    }
    for group in &audit.misderived {
        verdict.found(Key::from(group.as_str()), FindingKind::Differs, "its row is not what its members make");
    }
    let source = engine.source.clone();
    let driver = tokio::spawn(async move { source.gateway().drive().await });
    let listed = listings(engine, spec, changes, verdict).await;
    driver.abort();
    let Listings { census, moved } = listed?;
    verdict.checked = census.keys.len() as u64;
    verdict.moved = moved.len() as u64;
    let sound = |key: &Key| !moved.contains(key) && !audit.damaged.contains_key(key);
    let stored = compare_rows(engine, spec, changes, &census, verdict, &sound).await?;
    for key in census.keys.iter().filter(|key| !stored.contains(key) && !moved.contains(key)) {
        match exceptions.get(key) {
            None => verdict.found(key.clone(), FindingKind::Unexplained, "listed, but no row and no exception"),
            Some(ExceptionState::Missing) => {
                verdict.found(key.clone(), FindingKind::Differs, "confirmed missing, but the remote lists it");
            }
            Some(ExceptionState::Excluded) if !census.excluded.contains_key(key) => {
                verdict.found(key.clone(), FindingKind::Differs, "left out, but policy would have it now");
            }
            Some(_) => {}
        }
    }
    Ok(())
}

struct Listings {
    census: Census,
    /// Changed at the remote since it was last followed.
    moved: BTreeSet<Key>,
}

async fn listings(
    engine: &Engine,
    spec: &StreamSpec,
    changes: &dyn Changes,
    verdict: &mut StreamVerdict,
) -> Result<Listings> {
    let from = verdict.status.origin;
    let first = asked(engine, async |call| changes.census(from, call).await).await?;
    let census = asked(engine, async |call| changes.census(from, call).await).await?;
    let upto = engine.store.followed(&engine.stream_id(spec)).await?.upto;
    let since = match &upto {
        Some(upto) => asked(engine, async |call| changes.since(upto, engine.now(), call).await).await?,
        None => Since::Expired,
    };
    let moved = match since {
        Since::Told { tidings, .. } => tidings.into_iter().map(|tiding| tiding.key).collect(),
        Since::Expired => {
            verdict.book_errors.push("the record of changes does not go back to the last sync: sync first".into());
            BTreeSet::new()
        }
    };
    for key in first.keys.symmetric_difference(&census.keys).filter(|key| !moved.contains(*key)) {
        verdict.found(key.clone(), FindingKind::Unchecked, "two listings do not agree on it");
    }
    Ok(Listings { census, moved })
}

async fn asked<T>(engine: &Engine, question: impl AsyncFn(&Call) -> Result<T, Failure>) -> Result<T> {
    match ask(engine, question).await? {
        Ok(answer) => Ok(answer),
        Err(_) => {
            let message = "it asks to be left alone for longer than retry_patience";
            Err(Failure::new(FailureKind::Throttled, message).into())
        }
    }
}

/// The keys that have a row.
async fn compare_rows(
    engine: &Engine,
    spec: &StreamSpec,
    changes: &dyn Changes,
    census: &Census,
    verdict: &mut StreamVerdict,
    is_to_be_judged: &impl Fn(&Key) -> bool,
) -> Result<BTreeSet<Key>> {
    let now = engine.now();
    let mut stored = BTreeSet::new();
    let mut after = None;
    loop {
        let rows = engine.store.columns(spec.table, changes.compared(), Page { after, limit: PAGE }).await?;
        let Some((last, _)) = rows.last() else { return Ok(stored) };
        after = Some(last.clone());
        for (key, values) in rows {
            let edits = changes.compare(census, &key, &values, now);
            if !census.keys.contains(&key) && edits.is_empty() {
                verdict.vanished += 1;
            }
            if let Some(edit) = edits.first().filter(|_| is_to_be_judged(&key)) {
                verdict.found(key.clone(), FindingKind::Differs, format!("differs in {}", edit.column()));
            }
            stored.insert(key);
        }
    }
}
