//! The file as a source and as a target of a copy: pages of rows by key, and rows written in one transaction a page.

use futures_util::future::BoxFuture;
use highwater_core::Value;
use rusqlite::{
    Connection, OptionalExtension, Row as SqlRow, ToSql, params_from_iter,
    types::{ToSqlOutput, ValueRef},
};

use super::{
    SqliteStore,
    error::Sql,
    places,
    shards::{MESSAGES, RAW, Shards, TEXTS},
    table::spelled,
    writer::{Haste, Weight},
};
use crate::{
    Amendment, Cell, Content, Hold, Kind, Result, Row, Scan, Shape,
    copy::{Pace, unfit},
};

impl Content for SqliteStore {
    fn name(&self) -> String {
        format!("sqlite:{}", self.readers.path().display())
    }

    /// The lock of the file is ours.
    fn others(&self) -> BoxFuture<'_, Result<Vec<String>>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn hold(&self) -> BoxFuture<'_, Result<Box<dyn Hold + '_>>> {
        Box::pin(async { Ok(Box::new(Lock) as Box<dyn Hold>) })
    }

    fn count<'a>(&'a self, table: &'static Shape) -> BoxFuture<'a, Result<u64>> {
        let mut count = format!("SELECT count(*) FROM \"{}\"", table.name);
        if table.name == RAW {
            count = format!("SELECT count(*) FROM ({})", places::raws("TRUE"));
        }
        let count = move |db: &Connection| Ok(db.query_row(&count, [], |row| row.get::<_, i64>(0))?.cast_unsigned());
        Box::pin(self.read("counting rows", count))
    }

    fn scan<'a>(&'a self, table: &'static Shape) -> BoxFuture<'a, Result<Box<dyn Scan + 'a>>> {
        let scan: Box<dyn Scan> = Box::new(Pages { store: self, table, after: None, pace: Pace::new() });
        Box::pin(async { Ok(scan) })
    }

    fn amend<'a>(&'a self, table: &'static Shape, amendment: Amendment) -> BoxFuture<'a, Result<()>> {
        let rows = amendment.put.len() + amendment.gone.len();
        let weight = Weight { rows, haste: Haste::AtOnce, ..Weight::default() };
        Box::pin(self.write("writing rows", weight, move |session| amend(&session.db, table, &amendment)))
    }

    fn unfinished(&self) -> BoxFuture<'_, Result<Option<String>>> {
        Box::pin(self.read("looking for an unfinished copy", unfinished))
    }

    fn begin_copy<'a>(&'a self, source: &'a str) -> BoxFuture<'a, Result<()>> {
        let source = source.to_owned();
        self.hasty("marking the copy", move |session| {
            session.db.execute_batch("CREATE TABLE highwater_copy (source TEXT NOT NULL) STRICT")?;
            session.db.execute("INSERT INTO highwater_copy (source) VALUES (?1)", [&source])?;
            Ok(())
        })
    }

    fn end_copy(&self) -> BoxFuture<'_, Result<()>> {
        self.hasty("ending the copy", |session| Ok(session.db.execute_batch("DROP TABLE highwater_copy")?))
    }
}

/// The one of the process, which lasts as long as the store.
struct Lock;

impl Hold for Lock {
    fn check(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { Ok(()) })
    }
}

/// The table is there as long as the copy is not finished.
pub(super) fn unfinished(db: &Connection) -> Sql<Option<String>> {
    let marked = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'highwater_copy'";
    if db.query_row(marked, [], |_| Ok(())).optional()?.is_none() {
        return Ok(None);
    }
    Ok(db.query_row("SELECT source FROM highwater_copy", [], |row| row.get(0)).optional()?)
}

/// Each page is a look of its own: a long one would keep the log from being folded into the file.
struct Pages<'a> {
    store: &'a SqliteStore,
    table: &'static Shape,
    after: Option<Row>,
    pace: Pace,
}

impl Scan for Pages<'_> {
    fn page(&mut self) -> BoxFuture<'_, Result<Vec<Row>>> {
        Box::pin(async move {
            let (table, after, limit) = (self.table, self.after.take(), self.pace.rows);
            let page =
                self.store.read_whole("reading rows", move |db, shards| page(db, shards, table, after.as_ref(), limit));
            let page = page.await?;
            self.pace.learn(&page);
            self.after = page.last().map(|row| table.key.iter().map(|place| row[*place].clone()).collect());
            Ok(page)
        })
    }
}

fn page(
    db: &Connection,
    shards: &mut Shards,
    table: &'static Shape,
    after: Option<&Row>,
    limit: usize,
) -> Sql<Vec<Row>> {
    if table.name == RAW {
        return raws(db, shards, table, after, limit);
    }
    let key = names(table.key_columns().map(|column| column.name));
    let condition = match after {
        Some(_) => format!("WHERE ({key}) > ({})", places(table.key.len())),
        None => String::new(),
    };
    let columns = names(table.columns.iter().map(|column| column.name));
    let select = format!("SELECT {columns} FROM \"{}\" {condition} ORDER BY {key} LIMIT {limit}", table.name);
    let mut select = db.prepare(&select)?;
    let mut rows = select.query(params_from_iter(after.into_iter().flatten()))?;
    let mut page = Vec::new();
    while let Some(row) = rows.next()? {
        let mut cells = row_of(table, row)?;
        if table.name == MESSAGES {
            add_texts(db, shards, table, &mut cells)?;
        }
        page.push(cells);
    }
    Ok(page)
}

fn add_texts(db: &Connection, shards: &mut Shards, table: &Shape, cells: &mut Row) -> Sql<()> {
    let Cell::Text(id) = &cells[table.key[0]] else { return Ok(()) };
    for (name, text) in TEXTS.iter().zip(shards.texts_of(db, id)?.into_iter().flatten()) {
        if let Some(place) = table.place(name) {
            cells[place] = cell_from(table, place, text)?;
        }
    }
    Ok(())
}

fn raws(db: &Connection, shards: &mut Shards, table: &Shape, after: Option<&Row>, limit: usize) -> Sql<Vec<Row>> {
    let condition = if after.is_some() { "message_id > ?1" } else { "TRUE" };
    let mut select = db.prepare_cached(&places::raws(condition))?;
    let mut lying = select.query(params_from_iter(after.into_iter().flatten()))?;
    let mut page = Vec::new();
    while page.len() < limit
        && let Some(row) = lying.next()?
    {
        let id: String = row.get(0)?;
        if let Some(raw) = shards.raw_at(db, places::away(row.get(1)?), &id)? {
            let cells = raw.into_iter().enumerate().map(|(place, value)| cell_from(table, place, value));
            page.push(cells.collect::<Sql<Row>>()?);
        }
    }
    Ok(page)
}

fn cell_from(table: &Shape, place: usize, value: Value) -> Sql<Cell> {
    match value {
        Value::Null => Ok(Cell::Null),
        Value::Int(number) => Ok(Cell::Int(number)),
        Value::Text(text) => Ok(Cell::Text(text.into())),
        Value::Bytes(bytes) => Ok(Cell::Bytes(bytes)),
        Value::Bool(_) | Value::Json(_) | Value::Ints(_) | Value::Time(_) => Err(unfit(table, place).into()),
    }
}

fn row_of(table: &Shape, row: &SqlRow<'_>) -> Sql<Row> {
    let cell = |(place, column): (usize, &crate::ShapeColumn)| {
        cell_of(column.kind, row.get_ref(place)?).ok_or_else(|| unfit(table, place).into())
    };
    table.columns.iter().enumerate().map(cell).collect()
}

fn cell_of(kind: Kind, value: ValueRef<'_>) -> Option<Cell> {
    let text = |bytes| std::str::from_utf8(bytes).ok();
    Some(match (kind, value) {
        (_, ValueRef::Null) => Cell::Null,
        (Kind::Bool, ValueRef::Integer(flag @ 0..=1)) => Cell::Bool(flag == 1),
        (Kind::Int | Kind::Counted | Kind::Time, ValueRef::Integer(number)) => Cell::Int(number),
        (Kind::Real, ValueRef::Real(number)) => Cell::Real(number),
        (Kind::Text | Kind::Json, ValueRef::Text(bytes)) => Cell::Text(text(bytes)?.to_owned()),
        (Kind::Bytes, ValueRef::Blob(bytes)) => Cell::Bytes(bytes.to_vec()),
        (Kind::Ints, ValueRef::Text(bytes)) => Cell::Ints(serde_json::from_str(text(bytes)?).ok()?),
        _ => return None,
    })
}

fn amend(db: &Connection, table: &Shape, amendment: &Amendment) -> Sql<()> {
    let key = names(table.key_columns().map(|column| column.name));
    let name = table.name;
    let mut delete =
        db.prepare_cached(&format!("DELETE FROM \"{name}\" WHERE ({key}) = ({})", places(table.key.len())))?;
    for gone in &amendment.gone {
        delete.execute(params_from_iter(gone))?;
    }
    let columns = names(table.columns.iter().map(|column| column.name));
    let mut insert = db.prepare_cached(&format!(
        "INSERT OR REPLACE INTO \"{name}\" ({columns}) VALUES ({})",
        places(table.columns.len())
    ))?;
    for row in &amendment.put {
        insert.execute(params_from_iter(row))?;
    }
    Ok(())
}

fn names<'a>(columns: impl Iterator<Item = &'a str>) -> String {
    columns.map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}

fn places(count: usize) -> String {
    (1..=count).map(|place| format!("?{place}")).collect::<Vec<_>>().join(", ")
}

impl ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Cell::Null => ToSqlOutput::Borrowed(ValueRef::Null),
            Cell::Int(number) => ToSqlOutput::from(*number),
            Cell::Real(number) => ToSqlOutput::from(*number),
            Cell::Bool(flag) => ToSqlOutput::from(*flag),
            Cell::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Cell::Ints(numbers) => ToSqlOutput::from(spelled(numbers)),
            Cell::Bytes(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
        })
    }
}
