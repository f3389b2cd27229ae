//! Storing the rows of mirrored objects, and reading them back. Whether a row changed is the core's to say.

use highwater_core::{
    Body, Change, Key, Record, SideRow, Timestamp,
    planted::{Bug, planted},
    schema::Table,
};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{
    edits,
    error::{Fault, Sql},
    inserts::{EdgeInsert, RowInsert},
    places,
    session::Session,
    shards::{Parts, Shard, Shards, is_mail, texts_of},
    table::{EdgeSql, KeyParam, TableSql, ValueParam, values_of},
};
use crate::rules::{Arrival, Kept, Stored, by_place, distinct};

/// Stores records in the order of their keys, which fills pages from left to right.
pub(super) fn store(session: &mut Session, records: &[Record], arrival: Arrival) -> Sql<Stored> {
    let mut stored = Stored::default();
    let mut records: Vec<_> = records.iter().collect();
    records.sort_by(|a, b| by_place(a, b));
    for batch in records.chunk_by(|a, b| a.table.name == b.table.name) {
        let sql = session.table(batch[0].table);
        let mut rows = Rows::of(&session.db, &mut session.shards, batch[0].table, &sql, arrival)?;
        for record in batch {
            stored.note(rows.store(record)?, record, arrival.now);
            session.courtesy.note_row();
        }
        rows.finish()?;
    }
    Ok(stored)
}

/// Notes that the bodies of these keys are still the remote's, unless they are others by now than those it was asked
/// about.
pub(super) fn confirm(
    session: &mut Session,
    keys: &[(Key, &'static Table)],
    arrival: Arrival,
    stored: &mut Stored,
) -> Sql<()> {
    let (now, asked_at) = (arrival.now.as_millis(), arrival.asked_at.as_millis());
    for (key, table) in keys {
        let (sql, row) = (session.table(table), table.row_key(key));
        let confirmed = session.db.prepare_cached(&sql.confirm)?.execute(params![now, KeyParam(&row), asked_at])?;
        if confirmed == 0 && session.db.prepare_cached(&sql.has)?.exists([KeyParam(&row)])? {
            stored.behind.insert(key.clone());
        } else {
            stored.unchanged += 1;
        }
    }
    Ok(())
}

/// Where a batch begins to write.
pub(super) fn first(records: &[Record]) -> (&'static str, Key) {
    let first = records.iter().min_by(|a, b| by_place(a, b));
    first.map_or(("", Key::Number(0)), |first| (first.table.name, first.key.clone()))
}

/// What a rewritten row says of itself.
#[derive(Clone, Copy)]
struct Times {
    fetched: Timestamp,
    changed: Timestamp,
}

/// One table, with the statements of the common case at hand.
struct Rows<'a> {
    db: &'a Connection,
    shards: &'a mut Shards,
    table: &'static Table,
    sql: &'a TableSql,
    arrival: Arrival,
    insert: RowInsert<'a>,
    edges: Option<EdgeInsert<'a>>,
}

impl<'a> Rows<'a> {
    fn of(
        db: &'a Connection,
        shards: &'a mut Shards,
        table: &'static Table,
        sql: &'a TableSql,
        arrival: Arrival,
    ) -> Sql<Self> {
        let insert = RowInsert::of(db, sql, table, arrival)?;
        let edges = sql.edges.as_ref().map(|edges| EdgeInsert::of(db, edges)).transpose()?;
        Ok(Rows { db, shards, table, sql, arrival, insert, edges })
    }

    fn finish(mut self) -> Sql<()> {
        self.write_edges()
    }

    fn store(&mut self, record: &Record) -> Sql<Change> {
        let now = self.arrival.now;
        let row = record.row_key();
        let body = distinct(&record.body);
        let check = body.checksum();
        let shard = self.shards.target(self.db, record)?;
        let left_out: Vec<usize> =
            shard.map_or_else(Vec::new, |_| texts_of(self.table).into_iter().flatten().collect());
        if self.insert.run(&body.values, &left_out, check, record.tag.as_deref())? {
            self.add_edges(&row, &body.edges)?;
            self.add_beside(record, &row, shard)?;
            return Ok(Change::New);
        }
        // What is read may be a row of this very batch.
        self.write_edges()?;
        let lies = places::of_row(self.db, self.table, &row)?;
        let kept = read(self.db, self.shards, self.table, self.sql, &row)?
            .ok_or_else(|| Fault::refused(format!("row {row} is neither new nor there")))?;
        let change = self.arrival.change(&kept, &body, self.table);
        if change == Change::Behind {
            return Ok(change);
        }
        if change == Change::Changed {
            self.keep_version(&row, &kept)?;
            self.update(record, &row, &body, check, Times { fetched: now, changed: now })?;
        } else if kept.body.values != body.values {
            let times = Times { fetched: now.max(kept.last_fetched_at), changed: kept.last_changed_at };
            self.update(record, &row, &body, check, times)?;
        } else {
            // The check as well: it heals if only that was damaged.
            let mut touch = self.db.prepare_cached(&self.sql.touch)?;
            touch.execute(params![now.as_millis(), check, record.tag, KeyParam(&row)])?;
        }
        if kept.body.edges != body.edges {
            self.replace_edges(&row, &body.edges)?;
        }
        self.restore_beside(record, &row, lies, change)?;
        Ok(change)
    }

    fn update(&self, record: &Record, row: &Key, body: &Body, check: i64, times: Times) -> Sql<()> {
        let mut update = self.db.prepare_cached(&self.sql.update)?;
        let width = body.values.len();
        for (index, value) in body.values.iter().enumerate() {
            update.raw_bind_parameter(index + 1, ValueParam(value))?;
        }
        update.raw_bind_parameter(width + 1, times.fetched.as_millis())?;
        update.raw_bind_parameter(width + 2, times.changed.as_millis())?;
        update.raw_bind_parameter(width + 3, check)?;
        update.raw_bind_parameter(width + 4, record.tag.as_deref())?;
        update.raw_bind_parameter(width + 5, KeyParam(row))?;
        update.raw_execute()?;
        Ok(())
    }

    /// A version bears the time its body was first seen: it lasted until the next one's.
    fn keep_version(&self, key: &Key, kept: &Kept) -> Sql<()> {
        if let Some(keep_version) = &self.sql.keep_version {
            let body = kept.body.to_json(self.table).to_string();
            let mut keep = self.db.prepare_cached(keep_version)?;
            keep.execute(params![KeyParam(key), kept.last_changed_at.as_millis(), body])?;
        }
        Ok(())
    }

    fn add_beside(&mut self, record: &Record, row: &Key, shard: Option<Shard>) -> Sql<()> {
        let Some(shard) = shard else { return self.add_sides(record, |_| true) };
        let (id, parts) = (row.to_string(), Parts::of(record));
        self.shards.write(self.db, shard, |file| parts.put_in_shard(file, &id))?;
        places::put(self.db, &id, shard)?;
        self.add_sides(record, |side| !Parts::has(side))
    }

    /// A part that is another than it was comes home: what a shard holds is not written as long as it is named.
    fn restore_beside(&mut self, record: &Record, row: &Key, lies: Option<Shard>, change: Change) -> Sql<()> {
        if lies.is_none() {
            return self.add_sides(record, |_| true);
        }
        let (id, parts) = (row.to_string(), Parts::of(record));
        if change != Change::Changed && parts.agrees(self.shards.raw_at(self.db, lies, &id)?.as_ref()) {
            return self.add_sides(record, |side| !Parts::has(side));
        }
        parts.put_home(self.db, &id)?;
        places::recall(self.db, &id)?;
        self.add_sides(record, |_| true)
    }

    fn add_sides(&self, record: &Record, which: impl Fn(&SideRow) -> bool) -> Sql<()> {
        let mut sides = record.sides.iter().filter(|side| which(side));
        sides.try_for_each(|side| edits::put_side(self.db, side.table, &side.values))
    }

    fn replace_edges(&mut self, key: &Key, edges: &[i64]) -> Sql<()> {
        if let Some(sql) = &self.sql.edges
            && !planted(Bug::KidsNotReplaced)
        {
            self.db.prepare_cached(&sql.delete)?.execute([KeyParam(key)])?;
        }
        self.add_edges(key, edges)
    }

    fn add_edges(&mut self, key: &Key, edges: &[i64]) -> Sql<()> {
        if edges.is_empty() {
            return Ok(());
        }
        let (Some(insert), Some(parent)) = (&mut self.edges, key.number()) else {
            return Err(Fault::refused(format!("row {key} of {} cannot have edges", self.table.name)));
        };
        insert.add(parent, edges)
    }

    fn write_edges(&mut self) -> Sql<()> {
        self.edges.as_mut().map_or(Ok(()), EdgeInsert::flush)
    }
}

pub(super) fn read(
    db: &Connection,
    shards: &mut Shards,
    table: &Table,
    sql: &TableSql,
    key: &Key,
) -> Sql<Option<Kept>> {
    let mut select = db.prepare_cached(&sql.select)?;
    let Some(mut kept) = select.query_row([KeyParam(key)], |row| kept_of(table, row)).optional()? else {
        return Ok(None);
    };
    if let (Some(edges), Some(parent)) = (&sql.edges, key.number()) {
        kept.body.edges = edges_of(db, edges, parent)?;
    }
    add_texts(db, shards, table, key, &mut kept.body)?;
    Ok(Some(kept))
}

/// Those that lie in a shard.
pub(super) fn add_texts(db: &Connection, shards: &mut Shards, table: &Table, row: &Key, body: &mut Body) -> Sql<()> {
    if is_mail(table)
        && let Some(texts) = shards.texts_of(db, &row.to_string())?
    {
        for (place, text) in texts_of(table).into_iter().zip(texts) {
            if let Some(place) = place {
                body.values[place] = text;
            }
        }
    }
    Ok(())
}

/// Without its edges.
pub(super) fn kept_of(table: &Table, row: &Row<'_>) -> rusqlite::Result<Kept> {
    let width = table.columns.len();
    Ok(Kept {
        body: Body { values: values_of(table, row)?, edges: Vec::new() },
        last_fetched_at: Timestamp::from_millis(row.get(width)?),
        last_changed_at: Timestamp::from_millis(row.get(width + 1)?),
        row_check: row.get(width + 2)?,
        etag: row.get(width + 3)?,
    })
}

fn edges_of(db: &Connection, sql: &EdgeSql, parent: i64) -> Sql<Vec<i64>> {
    let mut select = db.prepare_cached(&sql.select)?;
    let members = select.query_map([parent], |row| row.get(0))?;
    Ok(members.collect::<Result<_, _>>()?)
}
