//! The schema as a source and as a target of a copy: who else is there, and the mark of a copy that is not finished.

mod amend;
mod walk;

use futures_util::future::{BoxFuture, try_join, try_join3};
use tokio_postgres::types::Type;

use self::walk::Cursor;
use super::{
    PostgresStore, cells,
    error::Sql,
    link::Db,
    pool::{Access, Seat, quoted, unreachable},
};
use crate::{
    Amendment, Content, ErrorKind, Hold, Kind, Result, SHARE_LASTS, Scan, Shape, ShapeColumn, StoreError, copy::copied,
    migrations::tables,
};

impl Content for PostgresStore {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn others(&self) -> BoxFuture<'_, Result<Vec<String>>> {
        transact!(self, to_read, "reading who is at work", |db| others(db))
    }

    fn hold(&self) -> BoxFuture<'_, Result<Box<dyn Hold + '_>>> {
        Box::pin(async move {
            let doing = "keeping others from writing";
            let seat = self.pool.seat(Access::Write).await;
            let (mut seat, db) = seat.map_err(|fault| unreachable(fault, doing))?;
            seat.carry_on(lock(&db)).await.map_err(|fault| fault.while_doing(doing))?;
            Ok(Box::new(Locked { seat, db }) as Box<dyn Hold>)
        })
    }

    fn count<'a>(&'a self, table: &'static Shape) -> BoxFuture<'a, Result<u64>> {
        transact!(self, to_read, "counting rows", |db| count(db, table))
    }

    fn scan<'a>(&'a self, table: &'static Shape) -> BoxFuture<'a, Result<Box<dyn Scan + 'a>>> {
        Box::pin(async move {
            let (seat, db) = self.to_read(READING).await?;
            let cursor = Cursor::open(seat, db, table).await.map_err(|fault| fault.while_doing(READING))?;
            Ok(Box::new(cursor) as Box<dyn Scan>)
        })
    }

    fn amend<'a>(&'a self, table: &'static Shape, amendment: Amendment) -> BoxFuture<'a, Result<()>> {
        transact!(self, to_write, "writing rows", |db| amend::amend(db, table, &amendment))
    }

    fn unfinished(&self) -> BoxFuture<'_, Result<Option<String>>> {
        transact!(self, to_read, "looking for an unfinished copy", |db| begun(db))
    }

    fn begin_copy<'a>(&'a self, source: &'a str) -> BoxFuture<'a, Result<()>> {
        transact!(self, to_write, "marking the copy", |db| begin(db, source))
    }

    fn end_copy(&self) -> BoxFuture<'_, Result<()>> {
        transact!(self, to_write, "ending the copy", |db| end(db))
    }
}

const READING: &str = "reading rows";

/// Alive by the server's clock.
async fn others(db: &Db) -> Sql<Vec<String>> {
    let select = "SELECT DISTINCT host || ' pid ' || pid FROM ingest_workers
                  WHERE beat_at > clock_timestamp() - $1 * interval '1 millisecond'";
    let lasts = SHARE_LASTS.as_secs_f64() * 1e3;
    let ((), rows) = try_join(db.begin(), db.query(select, &[(&lasts, Type::FLOAT8)])).await?;
    db.commit().await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// A large table takes longer to count, or to sort where no index has the order of bytes, than anything else may take.
const UNHURRIED: &str = "SET LOCAL statement_timeout = '1h'; SET LOCAL idle_in_transaction_session_timeout = '1h'";

/// Without a snapshot, so that it keeps the server from nothing but letting others write.
async fn lock(db: &Db) -> Sql<()> {
    let names = joined(copied().map(|table| quoted(table.name)));
    db.begin().await?;
    db.run(&format!("LOCK TABLE {names} IN SHARE MODE; SET LOCAL idle_in_transaction_session_timeout = 0")).await
}

struct Locked<'a> {
    seat: Seat<'a>,
    db: Db,
}

impl Hold for Locked<'_> {
    fn check(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let lost = "the connection that kept others from writing was lost";
            self.seat.carry_on(self.db.run("SELECT 1")).await.map_err(|fault| {
                StoreError::new(ErrorKind::Unavailable, lost).caused_by(fault.while_doing("asking for a sign of life"))
            })
        })
    }
}

async fn count(db: &Db, table: &Shape) -> Sql<u64> {
    let count = format!("SELECT count(*) FROM {}", quoted(table.name));
    let ((), (), rows) = try_join3(db.begin(), db.run(UNHURRIED), db.query(&count, &[])).await?;
    db.commit().await?;
    cells::count(&rows[0], 0)
}

/// The table is there as long as the copy is not finished.
pub(super) async fn unfinished(db: &Db, schema: &str) -> Sql<Option<String>> {
    let table = format!("{}.highwater_copy", quoted(schema));
    let marked = db.query("SELECT to_regclass($1) IS NOT NULL", &[(&table, Type::TEXT)]).await?.remove(0);
    if !marked.try_get::<_, bool>(0)? {
        return Ok(None);
    }
    let rows = db.query(&format!("SELECT source FROM {table}"), &[]).await?;
    rows.first().map(|row| Ok(row.try_get(0)?)).transpose()
}

async fn begun(db: &Db) -> Sql<Option<String>> {
    let ((), rows) = try_join(db.begin(), db.query("SELECT current_schema()", &[])).await?;
    let source = unfinished(db, rows[0].try_get(0)?).await?;
    db.commit().await?;
    Ok(source)
}

async fn begin(db: &Db, source: &str) -> Sql<()> {
    let mark = "INSERT INTO highwater_copy (source) VALUES ($1)";
    db.begin().await?;
    db.run("CREATE TABLE highwater_copy (source TEXT NOT NULL)").await?;
    db.execute(mark, &[(&source, Type::TEXT)]).await?;
    db.commit().await
}

async fn end(db: &Db) -> Sql<()> {
    db.begin().await?;
    for table in tables() {
        for column in table.columns.iter().filter(|column| column.kind == Kind::Counted) {
            db.run(&count_on(table, column)).await?;
        }
    }
    db.run("DROP TABLE highwater_copy").await?;
    db.commit().await
}

fn count_on(table: &Shape, column: &ShapeColumn) -> String {
    let (name, column, place) = (quoted(table.name), quoted(column.name), column.name);
    format!(
        "SELECT setval(pg_get_serial_sequence('{name}', '{place}'), COALESCE(max({column}), 1), max({column}) IS NOT NULL)
         FROM {name}"
    )
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}
