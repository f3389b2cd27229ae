//! Contents outside the database that no row names: left by whoever was killed between the two, and by nothing else.

use std::{collections::BTreeSet, fmt};

use futures_util::StreamExt;
use highwater_core::{Value, blob_path};
use highwater_sources::{
    Clock,
    gmail::{ALL_MESSAGES, ATTACHMENTS},
};
use highwater_store::{BlobName, Page, Store};

use crate::{
    out,
    settings::{Access, Settings},
};

const PAGE: u32 = 5_000;

pub(super) struct Orphans {
    pub(super) found: u64,
    pub(super) bytes: u64,
    /// Of messages, in files beside the store.
    pub(super) parts: u64,
    /// Not while others are at work: what no row names yet may be named by the next.
    pub(super) collected: bool,
}

impl fmt::Display for Orphans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (found, bytes) = (out::grouped(self.found), out::grouped(self.bytes));
        let what = if self.collected { "collected" } else { "left alone while others are at work" };
        write!(f, "blobs: {found} that no row names ({bytes} bytes), {what}")?;
        if self.parts > 0 {
            write!(f, "\nshards: {} messages that no row names, collected", out::grouped(self.parts))?;
        }
        Ok(())
    }
}

/// None if no source keeps anything outside the database.
pub(super) async fn collect(settings: &Settings) -> anyhow::Result<Option<Orphans>> {
    let sources: Vec<_> = settings.config.sources.iter().filter(|source| source.gmail.is_some()).collect();
    if sources.is_empty() {
        return Ok(None);
    }
    // Who may write is alone, or sees the others at work.
    let (store, mut is_alone) = match settings.open_store(Access::Write).await {
        Ok(store) => (store, true),
        Err(_) => (settings.open_store(Access::Read).await?, false),
    };
    for source in sources {
        is_alone &= store.workers(&source.name, Clock::system().now()).await?.is_empty();
    }
    let blobs = settings.blobs()?;
    let parts = if is_alone { store.sweep().await? } else { 0 };
    let mut orphans = Orphans { found: 0, bytes: 0, parts, collected: is_alone };
    let named = named(&*store).await?;
    let mut listed = blobs.list();
    while let Some(blob) = listed.next().await {
        let (name, size) = blob?;
        if named.contains(&name) {
            continue;
        }
        orphans.found += 1;
        orphans.bytes += size;
        if is_alone {
            blobs.delete(&name).await?;
        }
    }
    Ok(Some(orphans))
}

async fn named(store: &dyn Store) -> anyhow::Result<BTreeSet<BlobName>> {
    let hash = ATTACHMENTS.columns.iter().position(|column| column.name == "sha256");
    let mut named = BTreeSet::new();
    let mut after = None;
    loop {
        let rows = store.side_rows(&ATTACHMENTS, &ALL_MESSAGES, Page { after, limit: PAGE }).await?;
        let last = rows.last().and_then(|row| row.first()).and_then(Value::as_text);
        let Some(last) = last else { return Ok(named) };
        after = Some(last.to_owned());
        for row in &rows {
            if let Some(sha256) = hash.and_then(|place| row.get(place)).and_then(Value::as_text) {
                named.extend(blob_path(sha256).parse::<BlobName>());
            }
        }
    }
}
