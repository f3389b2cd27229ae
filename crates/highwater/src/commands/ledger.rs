//! `highwater ledger`: the record of what was done.

use std::collections::VecDeque;

use highwater_core::SourceName;
use highwater_store::{ChainCheck, LedgerLine, Page, Store, payload_text};
use serde_json::{Value as Json, json};

use crate::{
    args::{Global, LedgerArgs},
    exit::Exit,
    out,
    settings::{Access, Settings},
};

pub(super) async fn run(global: &Global, args: &LedgerArgs) -> anyhow::Result<Exit> {
    let settings = Settings::load(global)?;
    let sources: Vec<SourceName> = match &args.source {
        Some(name) => vec![settings.config.source(name)?.name.clone()],
        None => settings.config.sources.iter().map(|source| source.name.clone()).collect(),
    };
    let store = settings.open_store(Access::Read).await?;
    let mut exit = Exit::Complete;
    for source in &sources {
        let one = if args.verify {
            verify(global, &*store, source).await?
        } else {
            show(global, &*store, source, args.last as usize).await?
        };
        exit = exit.max(one);
    }
    Ok(exit)
}

/// Calls `each` for every line in order, until it says to stop.
async fn walk(store: &dyn Store, source: &SourceName, mut each: impl FnMut(LedgerLine) -> bool) -> anyhow::Result<()> {
    let mut after = None;
    loop {
        let lines = store.ledger(source, Page { after, limit: 1000 }).await?;
        let Some(last) = lines.last() else { return Ok(()) };
        after = Some(last.seq);
        for line in lines {
            if !each(line) {
                return Ok(());
            }
        }
    }
}

async fn verify(global: &Global, store: &dyn Store, source: &SourceName) -> anyhow::Result<Exit> {
    let mut check = ChainCheck::default();
    let mut broken = None;
    walk(store, source, |line| {
        broken = check.add(&line).err();
        broken.is_none()
    })
    .await?;
    let lines = check.lines();
    let error = broken.map(|broken| broken.to_string());
    if global.json {
        out::data(
            &json!({ "source": source.as_str(), "lines": lines, "sound": error.is_none(), "error": error }).to_string(),
        );
    } else {
        match &error {
            None => out::data(&format!("{source}: {lines} lines, the chain holds")),
            Some(error) => out::data(&format!("{source}: broken after {lines} sound lines: {error}")),
        }
    }
    Ok(if error.is_none() { Exit::Complete } else { Exit::Unaccounted })
}

async fn show(global: &Global, store: &dyn Store, source: &SourceName, last: usize) -> anyhow::Result<Exit> {
    let mut tail = VecDeque::with_capacity(last.min(10_000) + 1);
    walk(store, source, |line| {
        tail.push_back(line);
        if tail.len() > last {
            tail.pop_front();
        }
        true
    })
    .await?;
    for line in tail {
        if global.json {
            out::data(&line_json(&line).to_string());
        } else {
            let payload = payload_text(&line.payload);
            let LedgerLine { seq, event_type, entity_type, entity_id, .. } = &line;
            out::data(&format!("{seq:>6}  {}  {event_type} {entity_type} {entity_id} {payload}", out::time(line.at)));
        }
    }
    Ok(Exit::Complete)
}

fn line_json(line: &LedgerLine) -> Json {
    json!({
        "seq": line.seq,
        "at": line.at.as_millis(),
        "event_type": line.event_type,
        "source": line.source.as_str(),
        "entity_type": line.entity_type,
        "entity_id": line.entity_id,
        "payload": line.payload,
        "actor": line.actor,
        "prev_hash": line.prev_hash,
        "hash": line.hash,
    })
}
