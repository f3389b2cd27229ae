//! Tells a source what is stored of the objects by which it finds others, as far as it has not read them itself.

use highwater_core::{StreamName, Value};
use highwater_sources::{Recall, Stored, StreamSpec};
use highwater_store::Page;

use crate::{Engine, error::Result};

/// Rows with their bodies: few at a time.
const PAGE: u32 = 200;

pub(crate) async fn recall(engine: &Engine, stream: &StreamName) -> Result<()> {
    let Some(source) = engine.source.recall() else { return Ok(()) };
    let naming = source.named_by(stream);
    for spec in engine.source.streams().iter().filter(|spec| naming.contains(&spec.name)) {
        recall_all(engine, source, spec).await?;
    }
    Ok(())
}

async fn recall_all(engine: &Engine, source: &dyn Recall, spec: &StreamSpec) -> Result<()> {
    let mark = spec.vanished.unwrap_or(FETCHED);
    let mut after = None;
    loop {
        let page = Page { after: after.clone(), limit: PAGE };
        let known = engine.steady(|| engine.store.columns(spec.table, &[FETCHED], page.clone())).await?;
        let Some((mut last, _)) = known.last().cloned() else { return Ok(()) };
        if known.iter().any(|(key, _)| source.is_unread(&spec.name, key)) {
            let columns = [source.body(), mark];
            let rows = engine.steady(|| engine.store.columns(spec.table, &columns, page.clone())).await?;
            for (key, values) in &rows {
                if let [Value::Json(body), mark] = values.as_slice()
                    && source.is_unread(&spec.name, key)
                {
                    let is_gone = spec.vanished.is_some() && *mark != Value::Null;
                    source.recall(&spec.name, Stored { key, body, is_gone });
                }
            }
            // Rows may have come between the two looks.
            let Some((seen, _)) = rows.last() else { return Ok(()) };
            last = seen.clone();
        }
        after = Some(last);
    }
}

const FETCHED: &str = "last_fetched_at";
