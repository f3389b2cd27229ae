//! A table from its first row to its last, for a copy.

use futures_util::future::BoxFuture;

use super::{
    super::{
        cells,
        error::Sql,
        link::Db,
        pool::{Seat, quoted},
    },
    READING, UNHURRIED, joined,
};
use crate::{
    Cell, Kind, Result, Row, Scan, Shape, ShapeColumn,
    copy::{Pace, unfit},
};

/// A walk with the server's cursor: it sees one state of the table, and sorts at most once.
pub(super) struct Cursor<'a> {
    seat: Seat<'a>,
    db: Db,
    table: &'static Shape,
    pace: Pace,
}

impl<'a> Cursor<'a> {
    pub(super) async fn open(mut seat: Seat<'a>, db: Db, table: &'static Shape) -> Sql<Cursor<'a>> {
        seat.carry_on(declare(&db, table)).await?;
        Ok(Cursor { seat, db, table, pace: Pace::new() })
    }
}

impl Scan for Cursor<'_> {
    fn page(&mut self) -> BoxFuture<'_, Result<Vec<Row>>> {
        Box::pin(async move {
            let fetch = format!("FETCH {} FROM walk", self.pace.rows);
            let fetched = self.seat.carry_on(self.db.query(&fetch, &[])).await;
            let page = fetched.and_then(|rows| rows.iter().map(|row| row_of(self.table, row)).collect());
            let page: Vec<Row> = page.map_err(|fault| fault.while_doing(READING))?;
            self.pace.learn(&page);
            Ok(page)
        })
    }
}

async fn declare(db: &Db, table: &Shape) -> Sql<()> {
    let shown = |column: &ShapeColumn| match column.kind {
        Kind::Json => format!("{}::text", quoted(column.name)),
        _ => quoted(column.name),
    };
    let placed = |column: &ShapeColumn| match column.kind {
        Kind::Text => format!("{} COLLATE \"C\"", quoted(column.name)),
        _ => quoted(column.name),
    };
    let columns = joined(table.columns.iter().map(shown));
    let (name, key) = (quoted(table.name), joined(table.key_columns().map(placed)));
    db.begin().await?;
    db.run(&format!("{UNHURRIED}; DECLARE walk NO SCROLL CURSOR FOR SELECT {columns} FROM {name} ORDER BY {key}")).await
}

fn row_of(table: &Shape, row: &tokio_postgres::Row) -> Sql<Row> {
    let cell = |(place, column): (usize, &ShapeColumn)| cell_of(table, column.kind, row, place);
    table.columns.iter().enumerate().map(cell).collect()
}

fn cell_of(table: &Shape, kind: Kind, row: &tokio_postgres::Row, place: usize) -> Sql<Cell> {
    let cell = match kind {
        Kind::Int | Kind::Counted => row.try_get::<_, Option<i64>>(place)?.map(Cell::Int),
        Kind::Real => row.try_get::<_, Option<f64>>(place)?.map(Cell::Real),
        Kind::Bool => row.try_get::<_, Option<bool>>(place)?.map(Cell::Bool),
        Kind::Text | Kind::Json => row.try_get::<_, Option<String>>(place)?.map(Cell::Text),
        Kind::Bytes => row.try_get::<_, Option<Vec<u8>>>(place)?.map(Cell::Bytes),
        Kind::Time => cells::time(row, place)?.map(|at| Cell::Int(at.as_millis())),
        Kind::Ints => match row.try_get::<_, Option<Vec<Option<i64>>>>(place)? {
            Some(numbers) => {
                let numbers = numbers.into_iter().collect::<Option<_>>();
                Some(Cell::Ints(numbers.ok_or_else(|| unfit(table, place))?))
            }
            None => None,
        },
    };
    Ok(cell.unwrap_or(Cell::Null))
}
