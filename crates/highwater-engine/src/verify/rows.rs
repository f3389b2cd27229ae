//! Rows and what belongs to them, against their own checksums and hashes: finds whatever was changed behind our back.

use std::collections::{BTreeMap, BTreeSet};

use aws_lc_rs::digest::{Context, SHA256};
use highwater_core::{
    Body, Key, SidesCheck, Value, hex,
    schema::{SIDES_CHECK, SideSpec},
};
use highwater_sources::StreamSpec;
use highwater_store::{BlobName, Page};

use crate::{Engine, error::Result};

const PAGE: u32 = 500;
/// Rows with whole messages beside them.
const SIDE_PAGE: u32 = 50;

/// What an audit of a stream's rows came to.
#[derive(Default)]
pub(crate) struct RowAudit {
    pub(crate) rows: u64,
    /// Keys whose rows are not as they were written, and why. Each once.
    pub(crate) damaged: BTreeMap<Key, &'static str>,
    /// Contents outside the database that are there, or should be.
    pub(crate) blobs: u64,
    /// Groups whose derived row is not what their rows make.
    pub(crate) misderived: Vec<String>,
    /// SHA-256 over the name and the checksum of every row, in the order of their names.
    pub(crate) digest: String,
}

/// What a row says of those beside it, and what these come to.
#[derive(Default)]
struct Beside {
    noted: Option<i64>,
    found: SidesCheck,
}

type Names = BTreeMap<Key, Beside>;

pub(crate) async fn audit(engine: &Engine, spec: &StreamSpec) -> Result<RowAudit> {
    let mut audit = RowAudit::default();
    let mut names = Names::new();
    let mut digest = Context::new(&SHA256);
    let mut after = None;
    loop {
        let rows = engine.store.rows(spec.table, Page { after, limit: PAGE }).await?;
        let Some(last) = rows.last() else { break };
        after = Some(last.key.clone());
        for row in rows {
            audit.rows += 1;
            let check = row.body.checksum();
            if check != row.row_check {
                audit.damaged.insert(row.key.clone(), "the row is not the one that was written");
            }
            digest.update(format!("{} {check}\n", row.key).as_bytes());
            names.insert(row.key, Beside { noted: noted(spec, &row.body), found: SidesCheck::default() });
        }
    }
    audit.digest = hex(digest.finish().as_ref());
    for side in spec.sides {
        audit_side(engine, spec, side, &mut names, &mut audit).await?;
    }
    for (key, Beside { noted, found }) in names {
        if noted.is_some_and(|noted| noted != found.sum()) {
            audit.damaged.entry(key).or_insert("what belongs to the row is not what was written with it");
        }
    }
    audit.misderived = misderived(engine, spec).await?;
    Ok(audit)
}

fn noted(spec: &StreamSpec, body: &Body) -> Option<i64> {
    match spec.table.position(SIDES_CHECK).and_then(|place| body.values.get(place)) {
        Some(Value::Int(check)) => Some(*check),
        _ => None,
    }
}

async fn misderived(engine: &Engine, spec: &StreamSpec) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    let mut after = None;
    loop {
        let looked = engine.store.misderived(spec.table, Page { after, limit: PAGE }).await?;
        wrong.extend(looked.wrong);
        if looked.last.is_none() {
            return Ok(wrong);
        }
        after = looked.last;
    }
}

async fn audit_side(
    engine: &Engine,
    spec: &StreamSpec,
    side: &SideSpec,
    names: &mut Names,
    audit: &mut RowAudit,
) -> Result<()> {
    let mut owners = BTreeSet::new();
    let mut checked: BTreeMap<String, Option<&'static str>> = BTreeMap::new();
    let mut after: Option<String> = None;
    loop {
        let page = Page { after: after.clone(), limit: SIDE_PAGE };
        let rows = engine.store.side_rows(side.table, spec.table, page).await?;
        let Some(last) = rows.last() else { break };
        let Some(key) = last[0].as_text() else { break };
        after = Some(key.to_owned());
        for row in &rows {
            let found = (side.check)(row);
            let owner = spec.table.key_of_row(&Key::from(found.owner.as_str()));
            let mut fault = found.fault;
            if let (None, Some(sha256)) = (fault, found.blob) {
                audit.blobs += 1;
                fault = match checked.get(&sha256) {
                    Some(known) => *known,
                    None => *checked.entry(sha256.clone()).or_insert(check_blob(engine, &sha256).await),
                };
            }
            match names.get_mut(&owner) {
                Some(beside) => beside.found.add(row),
                None => fault = fault.or(Some("something is stored beside a row that is not there")),
            }
            if let Some(fault) = fault {
                audit.damaged.entry(owner.clone()).or_insert(fault);
            }
            owners.insert(owner);
        }
    }
    if side.is_required {
        for key in names.keys().filter(|key| !owners.contains(*key)) {
            audit.damaged.entry(key.clone()).or_insert("what belongs to the row is gone");
        }
    }
    Ok(())
}

async fn check_blob(engine: &Engine, sha256: &str) -> Option<&'static str> {
    let blobs = engine.blobs.as_ref()?;
    let Ok(name) = highwater_core::blob_path(sha256).parse::<BlobName>() else {
        return Some("an attachment has no name");
    };
    match blobs.read(&name).await {
        Ok(Some(_)) => None,
        Ok(None) => Some("an attachment is gone"),
        Err(_) => Some("an attachment is not what was stored"),
    }
}
