//! Storing the rows of mirrored objects, a batch at a time. Whether a row changed is the core's to say.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashSet},
};

use futures_util::future::try_join;
use highwater_core::{Body, Change, Key, Record, Timestamp, schema::Table};

use super::{
    cells::Keys,
    columns::{self, Marks, columns_of, kept_of},
    edges::{self, EdgeArrays},
    error::{Fault, Sql},
    link::{Db, Param},
    rewrite,
    table::TableSql,
};
use crate::{
    Commit,
    rules::{Kept, Stored, distinct, key_of, place},
};

/// One record of a job of the group.
pub(super) struct Item<'a> {
    job: usize,
    pub(super) record: &'a Record,
    pub(super) body: Cow<'a, Body>,
    pub(super) check: i64,
    pub(super) now: Timestamp,
}

/// One table, and how to speak to it.
pub(super) struct Rows<'a> {
    pub(super) db: &'a Db,
    pub(super) table: &'static Table,
    pub(super) sql: TableSql,
}

/// Whether the records can be stored at all, as far as can be told from here.
pub(super) fn check(commit: &Commit) -> Sql<()> {
    for record in &commit.records {
        columns::check(record.table, &record.body)?;
        if !record.body.edges.is_empty() && (record.table.edges.is_none() || record.key.number().is_none()) {
            return Err(Fault::refused(format!("row {} of {} cannot have edges", record.key, record.table.name)));
        }
    }
    Ok(())
}

/// Stores the records of all jobs in the order of their keys: pages are filled from left to right, and two groups with
/// the same keys cannot wait for each other. What became of each job's.
pub(super) async fn store(db: &Db, jobs: &[&Commit]) -> Sql<Vec<Stored>> {
    let mut stored = vec![Stored::default(); jobs.len()];
    let mut items: Vec<_> = jobs.iter().enumerate().flat_map(|(job, commit)| items_of(job, commit)).collect();
    items.sort_by(|a, b| place(a.record).cmp(&place(b.record)));
    for batch in items.chunk_by(|a, b| a.record.table.name == b.record.table.name) {
        let table = batch[0].record.table;
        let rows = Rows { db, table, sql: TableSql::of(table) };
        let mut rest: Vec<_> = batch.iter().collect();
        while !rest.is_empty() {
            let (round, later) = one_of_each(rest);
            for (item, change) in round.iter().zip(rows.store(&round).await?) {
                stored[item.job].note(change);
            }
            rest = later;
        }
    }
    Ok(stored)
}

fn items_of(job: usize, commit: &Commit) -> impl Iterator<Item = Item<'_>> {
    commit.records.iter().map(move |record| {
        let body = distinct(&record.body);
        Item { job, record, check: body.checksum(), body, now: commit.now }
    })
}

/// The first of each key, and the others: two jobs of a group may bring the same object.
fn one_of_each<'a>(items: Vec<&'a Item<'a>>) -> (Vec<&'a Item<'a>>, Vec<&'a Item<'a>>) {
    let mut last = None;
    items.into_iter().partition(|item| last.replace(&item.record.key) != Some(&item.record.key))
}

impl Rows<'_> {
    /// What became of each; no key twice.
    async fn store(&self, items: &[&Item<'_>]) -> Sql<Vec<Change>> {
        let fresh = self.insert(items).await?;
        if fresh.len() == items.len() {
            return Ok(vec![Change::New; items.len()]);
        }
        let known: Vec<_> = items.iter().copied().filter(|item| !fresh.contains(&item.record.key)).collect();
        let mut known = rewrite::store(self, &known).await?.into_iter();
        let change = |item: &&Item<'_>| {
            if fresh.contains(&item.record.key) { Change::New } else { known.next().expect("one for each known row") }
        };
        Ok(items.iter().map(change).collect())
    }

    /// Inserts what is not there yet, with its edges; the keys of that.
    async fn insert(&self, items: &[&Item<'_>]) -> Sql<HashSet<Key>> {
        let bodies: Vec<_> = items.iter().map(|item| item.body.as_ref()).collect();
        let columns = columns_of(self.table, &bodies)?;
        let marks = Marks::of(items.iter().map(|item| (item.now, item.check)));
        let edges = EdgeArrays::of(items.iter().copied());
        let mut params: Vec<Param<'_>> = columns.iter().map(columns::Column::param).chain(marks.params()).collect();
        let sql = match &self.sql.insert_with_edges {
            Some(with_edges) if !edges.is_empty() => {
                params.extend(edges.params());
                with_edges
            }
            _ => &self.sql.insert,
        };
        let rows = self.db.query(sql, &params).await?;
        let key = |row: &tokio_postgres::Row| -> Sql<Key> {
            Ok(if self.sql.key.kind == highwater_core::schema::ColumnType::Int {
                Key::Number(row.try_get(0)?)
            } else {
                Key::from(row.try_get::<_, &str>(0)?)
            })
        };
        rows.iter().map(key).collect()
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
        Keys::of(self.sql.key.kind, items.map(|item| &item.record.key))
    }
}
