//! Second looks. A sync may go on beside a verification, which reads the store in many steps: what looks wrong is read
//! again, by itself, and told only if it is still so.

use std::collections::BTreeMap;

use highwater_core::{ExceptionState, Key, KeySet, Span};
use highwater_sources::StreamSpec;
use highwater_store::{Known, Page, StoredRow, StreamRow};

use crate::{Engine, error::Result};

/// What is planned of a stream by now.
pub(super) async fn stream(engine: &Engine, spec: &StreamSpec) -> Result<Option<StreamRow>> {
    let id = engine.stream_id(spec);
    Ok(engine.store.streams().await?.into_iter().find(|row| row.id == id && !row.span.is_empty()))
}

pub(super) async fn row(engine: &Engine, spec: &StreamSpec, key: &Key) -> Result<Option<StoredRow>> {
    Ok(rows(engine, spec, std::slice::from_ref(key)).await?.remove(key))
}

/// The rows of some keys, with one call if they follow each other.
pub(super) async fn rows(engine: &Engine, spec: &StreamSpec, keys: &[Key]) -> Result<BTreeMap<Key, StoredRow>> {
    let mut rows = BTreeMap::new();
    let (Some(first), Some(last)) = (keys.first().and_then(Key::number), keys.last().and_then(Key::number)) else {
        return Ok(rows);
    };
    let before = |position: i64| Some(Key::Number(position - 1));
    if last - first + 1 == keys.len() as i64 {
        let page = Page { after: before(first), limit: keys.len() as u32 };
        rows.extend(engine.store.rows(spec.table, page).await?.into_iter().map(|row| (row.key.clone(), row)));
        return Ok(rows);
    }
    for position in keys.iter().filter_map(Key::number) {
        let page = Page { after: before(position), limit: 1 };
        rows.extend(engine.store.rows(spec.table, page).await?.into_iter().map(|row| (row.key.clone(), row)));
    }
    Ok(rows)
}

/// The exception of a key, and whether it is stored as well.
pub(super) async fn state(engine: &Engine, spec: &StreamSpec, key: &Key) -> Result<(Option<ExceptionState>, bool)> {
    let known = known(engine, spec, &KeySet::List(vec![key.clone()])).await?;
    Ok((known.exceptions.first().map(|exception| exception.state), known.stored.contains(key)))
}

pub(super) async fn span(engine: &Engine, spec: &StreamSpec, span: Span) -> Result<Known> {
    known(engine, spec, &KeySet::Range(span)).await
}

async fn known(engine: &Engine, spec: &StreamSpec, keys: &KeySet) -> Result<Known> {
    Ok(engine.store.known(&engine.stream_id(spec), spec.table, keys).await?)
}
