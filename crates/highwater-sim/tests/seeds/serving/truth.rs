//! The mirror against the world: at any moment nothing is behind without a reason, nothing goes back; in the end all is
//! there.

use std::{collections::BTreeMap, fmt::Write, path::Path};

use highwater_sim::{Expected, HnSim};
use rusqlite::Connection;
use serde_json::Value as Json;

use super::{
    books::{Books, all},
    history::{Histories, Told},
};
use crate::oracle;

/// After a kill, whenever it comes.
pub(crate) fn check_any_time(path: &Path, histories: &Histories) {
    let db = oracle::open(path);
    let is_new = all(&db, "SELECT name FROM sqlite_master WHERE name = 'ingest_blind_windows'", |_| Ok(())).is_empty();
    if is_new {
        return;
    }
    let books = Books::read(&db);
    let versions = versions(&db);
    for (id, history) in &histories.items {
        let Some(stored) = oracle::stored_body(&db, *id) else { continue };
        check_order(*id, history, versions.get(id).map_or(&[], Vec::as_slice), &stored);
        let held = last_index(history, &stored).unwrap_or_else(|| panic!("item {id} never was as stored: {stored:?}"));
        for (index, change) in history.iter().enumerate().skip(held + 1) {
            let why = || explain(&db, &format!("item {id}"), history, held);
            assert!(books.may_lack(*id, change), "change {index} of item {id} is lost: {}", why());
        }
    }
    let listed = listed(&db);
    for (name, history) in &histories.users {
        let Some(stored) = stored_user(&db, name) else { continue };
        let held = last_index(history, &stored).unwrap_or_else(|| panic!("{name} never was as stored: {stored:?}"));
        for (index, change) in history.iter().enumerate().skip(held + 1) {
            let why = || explain(&db, name, history, held);
            let excused = books.may_lack_of_profile(name, listed.get(name).copied(), change);
            assert!(excused || is_hidden(&db, name, change), "change {index} of {name} is lost: {}", why());
        }
    }
}

/// After an undisturbed time without changes.
pub(crate) fn check_end(path: &Path, sim: &HnSim, histories: &Histories) {
    let db = oracle::open(path);
    let head = histories.items.keys().next_back().map_or(0, |id| *id as i64 + 1);
    let frontiers = all(&db, "SELECT frontier FROM ingest_streams WHERE stream = 'items'", |row| row.get::<_, i64>(0));
    assert_eq!(frontiers, [head], "the frontier is the head");
    assert!(!Books::read(&db).has_open_window(), "no window is open");
    for (id, history) in &histories.items {
        let stored = oracle::stored_body(&db, *id);
        match sim.expected(*id) {
            Expected::Body(_) => {
                let last = history.last().expect("an item has a body");
                let why = || explain(&db, &format!("item {id}"), history, 0);
                assert_eq!(stored.as_ref(), Some(&last.plain), "item {id}: {}", why());
            }
            Expected::Missing => assert_eq!(stored, None, "item {id}"),
            Expected::Unreachable(fault) => panic!("item {id} is out of reach by {}", fault.as_str()),
        }
    }
    for (name, history) in histories.users.iter().filter(|(name, _)| is_author(&db, name)) {
        let stored = stored_user(&db, name).unwrap_or_else(|| panic!("the profile of {name} is missing"));
        let held = last_index(history, &stored).unwrap_or_else(|| panic!("{name} never was as stored: {stored:?}"));
        let lost = history.iter().skip(held + 1).any(|change| change.told.is_some() && !is_hidden(&db, name, change));
        assert!(!lost, "the profile of {name} is behind: {}", explain(&db, name, history, held));
    }
}

/// The bodies that were kept, and the present one, are bodies the item had, in that order.
fn check_order(id: u64, history: &[Told], kept: &[Json], stored: &oracle::Plain) {
    let mut next = 0;
    for json in kept {
        let found = history.iter().skip(next).position(|told| told.json == *json);
        next += found.unwrap_or_else(|| panic!("item {id} went back before {json}\nof {kept:#?}"));
    }
    let is_ahead = history.iter().skip(next).any(|told| told.plain == *stored);
    assert!(is_ahead, "item {id} went back to {stored:?}\nafter {kept:#?}");
}

fn last_index(history: &[Told], stored: &oracle::Plain) -> Option<usize> {
    history.iter().rposition(|told| told.plain == *stored)
}

fn versions(db: &Connection) -> BTreeMap<u64, Vec<Json>> {
    let rows = all(db, "SELECT id, body FROM hn_item_versions ORDER BY version", |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
    });
    let mut versions = BTreeMap::<u64, Vec<Json>>::new();
    for (id, body) in rows {
        versions.entry(id as u64).or_default().push(serde_json::from_str(&body).unwrap());
    }
    versions
}

const USER_COLUMNS: [&str; 5] = ["created", "karma", "about", "submitted", "extra"];

fn stored_user(db: &Connection, name: &str) -> Option<oracle::Plain> {
    let columns = USER_COLUMNS.map(|column| format!("CAST(\"{column}\" AS TEXT)")).join(", ");
    let mut select = db.prepare_cached(&format!("SELECT {columns} FROM hn_users WHERE id = ?1")).unwrap();
    let mut rows = select.query([name]).unwrap();
    let row = rows.next().unwrap()?;
    let texts = USER_COLUMNS.iter().enumerate();
    let texts =
        texts.filter_map(|(index, name)| Some(((*name).to_owned(), row.get::<_, Option<String>>(index).unwrap()?)));
    Some((texts.collect(), Vec::new()))
}

fn listed(db: &Connection) -> BTreeMap<String, i64> {
    all(db, "SELECT name, seq FROM ingest_names", |row| Ok((row.get(0)?, row.get(1)?))).into_iter().collect()
}

fn is_author(db: &Connection, name: &str) -> bool {
    let sql = "SELECT EXISTS (SELECT 1 FROM hn_items WHERE by = ?1)";
    db.query_row(sql, [name], |row| row.get(0)).unwrap()
}

/// A window finds the profiles it may have missed by the items it looks at again. One whose items there are deleted,
/// and so name nobody, it cannot find.
fn is_hidden(db: &Connection, name: &str, change: &Told) -> bool {
    let sql = "SELECT EXISTS (SELECT 1 FROM ingest_blind_windows AS w JOIN ingest_rescans AS r USING (rescan_id)
        WHERE w.opened_at <= ?2 AND w.ended_at >= ?2
        AND NOT EXISTS (SELECT 1 FROM hn_items WHERE by = ?1 AND id >= r.start_pos AND id < r.end_pos))";
    let at = change.told.unwrap_or(change.at).as_millis();
    db.query_row(sql, rusqlite::params![name, at], |row| row.get(0)).unwrap()
}

/// Everything one needs to know to find out why.
fn explain(db: &Connection, whose: &str, history: &[Told], held: usize) -> String {
    let mut out = format!("{whose} is held as of change {held}\n");
    for (index, change) in history.iter().enumerate() {
        writeln!(out, "  change {index} at {} told {:?}", change.at.as_millis(), change.told.map(|at| at.as_millis()))
            .unwrap();
    }
    for table in ["ingest_streams", "ingest_blind_windows", "ingest_rescans", "ingest_exceptions"] {
        writeln!(out, "{table}").unwrap();
        let rows = all(db, &format!("SELECT * FROM {table}"), |row| {
            let columns = row.as_ref().column_count();
            Ok((0..columns).map(|index| format!("{:?}", row.get_ref_unwrap(index))).collect::<Vec<_>>().join(" "))
        });
        rows.iter().for_each(|row| writeln!(out, "  {row}").unwrap());
    }
    let id = whose.strip_prefix("item ").unwrap_or("0");
    let times = all(db, &format!("SELECT last_fetched_at, last_changed_at FROM hn_items WHERE id = {id}"), |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
    });
    writeln!(out, "last fetched and changed {times:?}").unwrap();
    out
}
