//! Rows of a copy on their way into a table: one array a column, behind a check that the copy is still under way.

use std::borrow::Cow;

use highwater_core::Timestamp;
use tokio_postgres::error::SqlState;

use super::{
    super::{
        cells::Time,
        columns::{Column, list_text},
        error::{Fault, Sql},
        link::Db,
        pool::quoted,
    },
    joined,
};
use crate::{Amendment, Cell, ErrorKind, Kind, Row, Shape, ShapeColumn, StoreError, copy::unfit};

/// Not waited for until it is on disk: the end of the copy is, and takes everything before it along.
pub(super) async fn amend(db: &Db, table: &Shape, amendment: &Amendment) -> Sql<()> {
    let fence = db.query("SELECT source FROM highwater_copy FOR SHARE", &[]);
    let (begun, fenced) = futures_util::future::join(db.begin_lightly(), fence).await;
    begun?;
    if fenced.map_err(ended_meanwhile)?.is_empty() {
        return Err(ended());
    }
    if !amendment.gone.is_empty() {
        delete(db, table, &amendment.gone).await?;
    }
    if !amendment.put.is_empty() {
        upsert(db, table, &amendment.put).await?;
    }
    db.commit().await
}

fn ended_meanwhile(fault: Fault) -> Fault {
    match &fault {
        Fault::Sql(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => ended(),
        _ => fault,
    }
}

fn ended() -> Fault {
    StoreError::new(ErrorKind::Locked, "another process has finished the copy meanwhile").into()
}

async fn delete(db: &Db, table: &Shape, keys: &[Row]) -> Sql<()> {
    let columns: Vec<_> =
        table.key.iter().enumerate().map(|(at, place)| column_of(table, *place, keys, at)).collect::<Sql<_>>()?;
    let names = joined(table.key_columns().map(|column| quoted(column.name)));
    let same: Vec<_> = table.key_columns().map(|column| format!("t.{0} = n.{0}", quoted(column.name))).collect();
    let delete = format!(
        "DELETE FROM {} AS t USING UNNEST({}) AS n ({names}) WHERE {}",
        quoted(table.name),
        places(columns.len()),
        same.join(" AND ")
    );
    db.execute(&delete, &columns.iter().map(Column::param).collect::<Vec<_>>()).await?;
    Ok(())
}

async fn upsert(db: &Db, table: &Shape, rows: &[Row]) -> Sql<()> {
    let columns: Vec<_> =
        (0..table.columns.len()).map(|place| column_of(table, place, rows, place)).collect::<Sql<_>>()?;
    let names = joined(table.columns.iter().map(|column| quoted(column.name)));
    let given = joined(table.columns.iter().map(given_value));
    let key = joined(table.key_columns().map(|column| quoted(column.name)));
    let others = table.columns.iter().enumerate().filter(|(place, _)| !table.key.contains(place));
    let assigned = joined(others.map(|(_, column)| format!("{0} = EXCLUDED.{0}", quoted(column.name))));
    let resolve = if assigned.is_empty() { "NOTHING".into() } else { format!("UPDATE SET {assigned}") };
    let insert = format!(
        "INSERT INTO {} ({names}) SELECT {given} FROM UNNEST({}) AS n ({names}) ON CONFLICT ({key}) DO {resolve}",
        quoted(table.name),
        places(columns.len())
    );
    db.execute(&insert, &columns.iter().map(Column::param).collect::<Vec<_>>()).await?;
    Ok(())
}

/// Lists of lists would be taken apart, and JSON is checked by the server: both travel as text.
fn given_value(column: &ShapeColumn) -> String {
    let name = quoted(column.name);
    match column.kind {
        Kind::Json => format!("n.{name}::jsonb"),
        Kind::Ints => format!("n.{name}::bigint[]"),
        _ => format!("n.{name}"),
    }
}

/// The column at `place` of the table, which is at `at` in the rows.
fn column_of<'a>(table: &Shape, place: usize, rows: &'a [Row], at: usize) -> Sql<Column<'a>> {
    let cells = rows.iter().map(|row| &row[at]);
    let unfit = || Fault::from(unfit(table, place));
    macro_rules! column {
        ($column:ident, $($cell:pat => $value:expr),+) => {
            Column::$column(
                cells.map(|cell| match cell {
                    Cell::Null => Ok(None),
                    $($cell => Ok(Some($value)),)+
                    _ => Err(unfit()),
                }).collect::<Sql<_>>()?,
            )
        };
    }
    Ok(match table.columns[place].kind {
        Kind::Int | Kind::Counted => column!(Ints, Cell::Int(number) => *number),
        Kind::Real => column!(Reals, Cell::Real(number) => *number),
        Kind::Bool => column!(Bools, Cell::Bool(flag) => *flag),
        Kind::Time => column!(Times, Cell::Int(millis) => Time(Timestamp::from_millis(*millis))),
        Kind::Text | Kind::Json => column!(Texts, Cell::Text(text) => Cow::Borrowed(text.as_str())),
        Kind::Bytes => column!(Blobs, Cell::Bytes(bytes) => bytes.as_slice()),
        Kind::Ints => column!(Texts, Cell::Ints(numbers) => Cow::Owned(list_text(numbers))),
    })
}

fn places(count: usize) -> String {
    joined((1..=count).map(|place| format!("${place}")))
}
