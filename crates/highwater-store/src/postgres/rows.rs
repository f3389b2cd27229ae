//! Storing the rows of mirrored objects, a batch at a time. Whether a row changed is the core's to say.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashSet},
};

use futures_util::{
    FutureExt,
    future::{OptionFuture, try_join, try_join_all, try_join3},
};
use highwater_core::{
    Body, Change, Key, Record, Timestamp,
    schema::{ColumnType, Table},
};
use tokio_postgres::{Statement, types::Type};

use super::{
    cells::{Keys, Time, time_at},
    columns::{self, kept_of},
    edges::{self, EdgeArrays},
    error::{Fault, Sql},
    job::Job,
    link::Db,
    load::{load, load_edges},
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

/// The records of a group in the order of their keys: pages are filled from left to right, and two groups with the same
/// keys cannot wait for each other.
pub(super) struct Batch<'a> {
    db: &'a Db,
    tables: Vec<(Rows<'a>, Vec<Item<'a>>)>,
    expected: Expected,
}

/// What is expected to be in the way of new rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    Nothing,
    /// Edges that outlived an earlier row, as an attempt before this one may have found.
    Edges,
}

/// What a table says of the records it is to take.
pub(super) struct Looked {
    /// The keys that have a row already.
    there: HashSet<Key>,
    copy: Statement,
    /// None where an edge that is there already must be no obstacle.
    copy_edges: Option<Statement>,
}

impl<'a> Batch<'a> {
    pub(super) fn of(db: &'a Db, jobs: &[&'a Job], expected: Expected) -> Batch<'a> {
        let mut items: Vec<_> = jobs.iter().enumerate().flat_map(|(place, job)| items_of(place, job)).collect();
        items.sort_by(|a, b| (a.record.table.name, &a.row).cmp(&(b.record.table.name, &b.row)));
        let mut tables: Vec<(Rows<'_>, Vec<_>)> = Vec::new();
        for item in items {
            match tables.last_mut() {
                Some((rows, items)) if rows.table.name == item.record.table.name => items.push(item),
                _ => tables
                    .push((Rows { db, table: item.record.table, sql: TableSql::of(item.record.table) }, vec![item])),
            }
        }
        Batch { db, tables, expected }
    }

    /// Table by table, in one go.
    pub(super) async fn look(&self) -> Sql<Vec<Looked>> {
        try_join_all(self.tables.iter().map(|(rows, items)| rows.look(items, self.expected))).await
    }

    /// Stores the records of the jobs that are admitted. What became of each job's.
    pub(super) async fn store(&self, jobs: &[&Job], admitted: &[bool], looked: Vec<Looked>) -> Sql<Vec<Stored>> {
        let mut stored = vec![Stored::default(); jobs.len()];
        for ((rows, items), mut looked) in self.tables.iter().zip(looked) {
            let mut rest: Vec<_> = items.iter().filter(|item| admitted[item.job]).collect();
            while !rest.is_empty() {
                let (round, later) = one_of_each(rest);
                for (item, change) in round.iter().zip(rows.store(&round, &looked).await?) {
                    stored[item.job].note(change, item.record, item.arrival.now);
                }
                looked.there.extend(later.iter().map(|item| item.row.clone()));
                rest = later;
            }
        }
        let is_believed = |item: &&Item<'_>| admitted[item.job] && !stored[item.job].behind.contains(&item.record.key);
        sides::store(self.db, self.tables.iter().flat_map(|(_, items)| items).filter(is_believed)).await?;
        confirm(self.db, jobs, admitted, &mut stored).await?;
        Ok(stored)
    }
}

fn items_of(place: usize, job: &Job) -> impl Iterator<Item = Item<'_>> {
    let arrival = job.arrival();
    job.records().iter().map(move |record| {
        let body = distinct(&record.body);
        Item { job: place, record, row: record.row_key(), check: body.checksum(), body, arrival }
    })
}

/// Notes which bodies are still the remote's, unless they are others by now than those it was asked about.
async fn confirm(db: &Db, jobs: &[&Job], admitted: &[bool], stored: &mut [Stored]) -> Sql<()> {
    let mut tables: BTreeMap<&str, (&'static Table, BTreeMap<Key, Timestamp>)> = BTreeMap::new();
    let mut sound: Vec<_> = jobs.iter().zip(stored).zip(admitted).filter(|(_, admitted)| **admitted).collect();
    for (key, table) in sound.iter().flat_map(|((job, _), _)| job.unchanged()) {
        let (_, rows) = tables.entry(table.name).or_insert_with(|| (table, BTreeMap::new()));
        rows.insert(table.row_key(key), Timestamp::EPOCH);
    }
    for (table, mut rows) in tables.into_values() {
        let sql = TableSql::of(table);
        let changed_at = changed_at(db, &sql, rows.keys()).await?;
        for ((job, stored), _) in &mut sound {
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
    /// Which keys have a row already, and how new ones are brought.
    async fn look(&self, items: &[Item<'_>], expected: Expected) -> Sql<Looked> {
        let edges = self.sql.edges.as_ref().filter(|_| expected == Expected::Nothing);
        let edges = edges.filter(|_| items.iter().any(|item| !item.body.edges.is_empty()));
        let (there, copy, copy_edges) = try_join3(
            self.there(items),
            self.db.prepare(&self.sql.copy),
            OptionFuture::from(edges.map(|edges| self.db.prepare(&edges.copy))).map(Option::transpose),
        )
        .await?;
        Ok(Looked { there, copy, copy_edges })
    }

    /// The keys that have a row.
    async fn there(&self, items: &[Item<'_>]) -> Sql<HashSet<Key>> {
        let keys = self.keys(items.iter());
        let rows = match keys.runs() {
            Some([firsts, lasts]) => {
                let params = [(&firsts as _, Type::INT8_ARRAY), (&lasts as _, Type::INT8_ARRAY)];
                self.db.query(&self.sql.select_runs, &params).await?
            }
            None => self.db.query(&self.sql.select_keys, &[keys.param()]).await?,
        };
        rows.iter().map(|row| key_at(&self.sql, row)).collect()
    }

    /// What became of each; no key twice.
    async fn store(&self, items: &[&Item<'_>], looked: &Looked) -> Sql<Vec<Change>> {
        let Looked { there, copy, copy_edges } = looked;
        let (known, fresh): (Vec<_>, Vec<_>) = items.iter().partition(|item| there.contains(&item.row));
        if !fresh.is_empty() {
            // One after the other: what follows a COPY that fails would leave an answer that nobody expects.
            load(self.db, self.table, copy, &fresh).await?;
            match copy_edges {
                Some(copy) => load_edges(self.db, copy, &fresh).await?,
                None => self.link(&fresh).await?,
            }
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
