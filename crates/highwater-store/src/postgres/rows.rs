//! Storing the rows of mirrored objects, a batch at a time. Whether a row changed is the core's to say.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashSet},
};

use futures_util::future::try_join;
use highwater_core::{
    Body, Change, Key, Record, Timestamp,
    schema::{ColumnType, Table},
};
use tokio_postgres::types::Type;

use super::{
    cells::{Keys, Time, time_at},
    columns::{self, kept_of},
    edges::{self, EdgeArrays},
    error::{Fault, Sql},
    job::Job,
    link::Db,
    load::load,
    rewrite, sides,
    table::TableSql,
};
use crate::rules::{Arrival, Kept, Stored, distinct, key_of};

/// One record of a job of the group.
pub(super) struct Item<'a> {
    job: usize,
    pub(super) record: &'a Record,
    /// What its row is called.
    pub(super) row: Key,
    pub(super) body: Cow<'a, Body>,
    pub(super) check: i64,
    pub(super) arrival: Arrival,
}

/// One table, and how to speak to it.
pub(super) struct Rows<'a> {
    pub(super) db: &'a Db,
    pub(super) table: &'static Table,
    pub(super) sql: TableSql,
}

/// Whether the records can be stored at all, as far as can be told from here.
pub(super) fn check(job: &Job) -> Sql<()> {
    for record in job.records() {
        columns::check(record.table.name, record.table.columns, &record.body.values)?;
        for side in &record.sides {
            columns::check(side.table.name, side.table.columns, &side.values)?;
        }
        if record.tag.as_ref().is_some_and(|tag| tag.contains('\0')) {
            return Err(Fault::refused(format!(
                "row {} of {} has a mark that is no text",
                record.key, record.table.name
            )));
        }
        if !record.body.edges.is_empty() && (record.table.edges.is_none() || record.key.number().is_none()) {
            return Err(Fault::refused(format!("row {} of {} cannot have edges", record.key, record.table.name)));
        }
    }
    Ok(())
}

/// Stores the records of all jobs in the order of their keys: pages are filled from left to right, and two groups with
/// the same keys cannot wait for each other. What became of each job's.
pub(super) async fn store(db: &Db, jobs: &[&Job]) -> Sql<Vec<Stored>> {
    let mut stored = vec![Stored::default(); jobs.len()];
    let mut items: Vec<_> = jobs.iter().enumerate().flat_map(|(place, job)| items_of(place, job)).collect();
    items.sort_by(|a, b| (a.record.table.name, &a.row).cmp(&(b.record.table.name, &b.row)));
    for batch in items.chunk_by(|a, b| a.record.table.name == b.record.table.name) {
        let table = batch[0].record.table;
        let rows = Rows { db, table, sql: TableSql::of(table) };
        let mut rest: Vec<_> = batch.iter().collect();
        while !rest.is_empty() {
            let (round, later) = one_of_each(rest);
            for (item, change) in round.iter().zip(rows.store(&round).await?) {
                stored[item.job].note(change, item.record, item.arrival.now);
            }
            rest = later;
        }
    }
    let is_believed = |item: &&Item<'_>| !stored[item.job].behind.contains(&item.record.key);
    sides::store(db, items.iter().filter(is_believed)).await?;
    confirm(db, jobs, &mut stored).await?;
    Ok(stored)
}

fn items_of(place: usize, job: &Job) -> impl Iterator<Item = Item<'_>> {
    let arrival = job.arrival();
    job.records().iter().map(move |record| {
        let body = distinct(&record.body);
        Item { job: place, record, row: record.row_key(), check: body.checksum(), body, arrival }
    })
}

/// Notes which bodies are still the remote's, unless they are others by now than those it was asked about.
async fn confirm(db: &Db, jobs: &[&Job], stored: &mut [Stored]) -> Sql<()> {
    let mut tables: BTreeMap<&str, (&'static Table, BTreeMap<Key, Timestamp>)> = BTreeMap::new();
    for (key, table) in jobs.iter().flat_map(|job| job.unchanged()) {
        let (_, rows) = tables.entry(table.name).or_insert_with(|| (table, BTreeMap::new()));
        rows.insert(table.row_key(key), Timestamp::EPOCH);
    }
    for (table, mut rows) in tables.into_values() {
        let sql = TableSql::of(table);
        let changed_at = changed_at(db, &sql, rows.keys()).await?;
        for (job, stored) in jobs.iter().zip(stored.iter_mut()) {
            let Arrival { now, asked_at } = job.arrival();
            for (key, of) in job.unchanged().iter().filter(|(_, of)| of.name == table.name) {
                let row = of.row_key(key);
                if changed_at.get(&row).is_some_and(|changed_at| *changed_at > asked_at) {
                    stored.behind.insert(key.clone());
                    continue;
                }
                stored.unchanged += 1;
                rows.entry(row).and_modify(|at| *at = now.max(*at));
            }
        }
        let times: Vec<_> = rows.values().map(|at| Time(*at)).collect();
        let keys = Keys::of(sql.key.kind, rows.keys());
        db.execute(&sql.confirm, &[keys.param(), (&times, Type::TIMESTAMPTZ_ARRAY)]).await?;
    }
    Ok(())
}

async fn changed_at<'a>(db: &Db, sql: &TableSql, keys: impl Iterator<Item = &'a Key>) -> Sql<BTreeMap<Key, Timestamp>> {
    let keys = Keys::of(sql.key.kind, keys);
    let rows = db.query(&sql.changed_at, &[keys.param()]).await?;
    rows.iter().map(|row| Ok((key_at(sql, row)?, time_at(row, 1)?))).collect()
}

/// The key in the first column.
fn key_at(sql: &TableSql, row: &tokio_postgres::Row) -> Sql<Key> {
    Ok(match sql.key.kind {
        ColumnType::Int => Key::Number(row.try_get(0)?),
        _ => Key::from(row.try_get::<_, &str>(0)?),
    })
}

/// The first of each key, and the others: two jobs of a group may bring the same object.
fn one_of_each<'a>(items: Vec<&'a Item<'a>>) -> (Vec<&'a Item<'a>>, Vec<&'a Item<'a>>) {
    let mut last = None;
    items.into_iter().partition(|item| last.replace(&item.row) != Some(&item.row))
}

impl Rows<'_> {
    /// What became of each; no key twice.
    async fn store(&self, items: &[&Item<'_>]) -> Sql<Vec<Change>> {
        let there = self.there(items).await?;
        let (known, fresh): (Vec<_>, Vec<_>) = items.iter().partition(|item| there.contains(&item.row));
        if !fresh.is_empty() {
            try_join(load(self, &fresh), self.link(&fresh)).await?;
        }
        if known.is_empty() {
            return Ok(vec![Change::New; items.len()]);
        }
        let mut known = rewrite::store(self, &known).await?.into_iter();
        let change = |item: &&Item<'_>| {
            if there.contains(&item.row) { known.next().expect("one for each known row") } else { Change::New }
        };
        Ok(items.iter().map(change).collect())
    }

    /// The keys that have a row already.
    async fn there(&self, items: &[&Item<'_>]) -> Sql<HashSet<Key>> {
        let keys = self.keys(items.iter().copied());
        let rows = self.db.query(&self.sql.select_keys, &[keys.param()]).await?;
        rows.iter().map(|row| key_at(&self.sql, row)).collect()
    }

    /// Adds the edges of rows that had none; one that outlived an earlier row of that key is no obstacle.
    pub(super) async fn link(&self, items: &[&Item<'_>]) -> Sql<()> {
        let edges = EdgeArrays::of(items.iter().copied());
        if let Some(sql) = &self.sql.edges
            && !edges.is_empty()
        {
            self.db.execute(&sql.insert, &edges.params()).await?;
        }
        Ok(())
    }

    /// The rows of these keys as they lie, with their edges.
    pub(super) async fn read(&self, select: &str, keys: &Keys) -> Sql<BTreeMap<Key, Kept>> {
        let (rows, lists) = try_join(
            async { self.db.query(select, &[keys.param()]).await },
            edges::read(self.db, self.sql.edges.as_ref(), keys),
        )
        .await?;
        let place = self.table.position(self.sql.key.name).expect("the key is a column");
        let mut lists = lists;
        let kept = |row| -> Sql<(Key, Kept)> {
            let mut kept = kept_of(self.table, row)?;
            let key = key_of(&kept.body.values[place]);
            kept.body.edges = key.number().and_then(|key| lists.remove(&key)).unwrap_or_default();
            Ok((key, kept))
        };
        rows.iter().map(kept).collect()
    }

    pub(super) fn keys<'k>(&self, items: impl Iterator<Item = &'k Item<'k>>) -> Keys {
        Keys::of(self.sql.key.kind, items.map(|item| &item.row))
    }
}
