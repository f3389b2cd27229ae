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
    let (Some(first), Some(last)) = (keys.first(), keys.last()) else { return Ok(rows) };
    let is_run = first.number().zip(last.number()).is_some_and(|(a, b)| b - a + 1 == keys.len() as i64);
    if is_run {
        let page = Page { after: Some(before(first)), limit: keys.len() as u32 };
        rows.extend(engine.store.rows(spec.table, page).await?.into_iter().map(|row| (row.key.clone(), row)));
        return Ok(rows);
    }
    for key in keys {
        let page = Page { after: Some(before(key)), limit: 1 };
        rows.extend(engine.store.rows(spec.table, page).await?.into_iter().map(|row| (row.key.clone(), row)));
    }
    Ok(rows)
}

/// A key that comes before this one, and after every other that does. Names are in the order of their bytes: what ends
/// with the character before the last and then the highest there is has nothing between it and the name.
fn before(key: &Key) -> Key {
    match key {
        Key::Number(position) => Key::Number(position - 1),
        Key::Text(name) => {
            let mut text = name.to_string();
            let lower = text.pop().and_then(|last| ('\u{1}'..last).next_back());
            if let Some(lower) = lower {
                text.extend([lower, char::MAX]);
            }
            Key::from(text.as_str())
        }
    }
}

/// The exception of a key, and whether it is stored as well.
pub(super) async fn state(engine: &Engine, spec: &StreamSpec, key: &Key) -> Result<(Option<ExceptionState>, bool)> {
    let known = known(engine, spec, &KeySet::List(vec![key.clone()])).await?;
    Ok((known.exceptions.first().map(|exception| exception.state), known.stored.contains(key)))
}

pub(super) async fn keys(engine: &Engine, spec: &StreamSpec, keys: Vec<Key>) -> Result<Known> {
    known(engine, spec, &KeySet::List(keys)).await
}

pub(super) async fn span(engine: &Engine, spec: &StreamSpec, span: Span) -> Result<Known> {
    known(engine, spec, &KeySet::Range(span)).await
}

async fn known(engine: &Engine, spec: &StreamSpec, keys: &KeySet) -> Result<Known> {
    Ok(engine.store.known(&engine.stream_id(spec), spec.table, keys).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_lies_between_a_key_and_the_one_before_it() {
        assert_eq!(before(&Key::Number(5)), Key::Number(4));
        let names = ["a", "ab", "ab~", "aba", "abz", "ac", "b", "B", "_", "-"];
        for name in names {
            let before = before(&Key::from(name)).to_string();
            assert!(before.as_str() < name);
            assert!(names.iter().all(|other| *other <= before.as_str() || *other >= name), "{name}");
        }
    }
}
