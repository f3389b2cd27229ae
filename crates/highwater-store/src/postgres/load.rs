//! New rows by COPY, straight into their table: a third of the server's time that arrays of columns cost. It knows no
//! conflicts, so the caller looks first; a row that appears meanwhile ends the transaction, which is then run again.

use std::pin::pin;

use bytes::{BufMut, BytesMut};
use highwater_core::{
    Value,
    schema::{ColumnType, Table},
};
use tokio_postgres::{
    binary_copy::BinaryCopyInWriter,
    error::SqlState,
    types::{IsNull, ToSql, Type, to_sql_checked},
};

use super::{
    cells::Time,
    error::{Fault, Sql},
    rows::{Item, Rows},
};

/// Inserts these rows, none of which is there, without their edges.
pub(super) async fn load(rows: &Rows<'_>, items: &[&Item<'_>]) -> Sql<()> {
    copy(rows, items).await.map_err(|error| match error.code() {
        Some(&SqlState::UNIQUE_VIOLATION) => Fault::Raced,
        _ => Fault::Sql(error),
    })
}

async fn copy(rows: &Rows<'_>, items: &[&Item<'_>]) -> Result<(), tokio_postgres::Error> {
    let types = types_of(rows.table);
    let sink = rows.db.client.copy_in(&rows.sql.copy).await?;
    let mut writer = pin!(BinaryCopyInWriter::new(sink, &types));
    for item in items {
        let at = Time(item.arrival.now);
        let cells: Vec<_> = item.body.values.iter().map(Cell).collect();
        let marks: [&(dyn ToSql + Sync); 5] = [&at, &at, &at, &item.check, &item.record.tag];
        let values: Vec<_> = cells.iter().map(|cell| cell as &(dyn ToSql + Sync)).chain(marks).collect();
        writer.as_mut().write(&values).await?;
    }
    writer.finish().await?;
    Ok(())
}

fn types_of(table: &Table) -> Vec<Type> {
    let marks = [Type::TIMESTAMPTZ, Type::TIMESTAMPTZ, Type::TIMESTAMPTZ, Type::INT8, Type::TEXT];
    let columns = table.columns.iter().map(|column| match column.kind {
        ColumnType::Int => Type::INT8,
        ColumnType::Text => Type::TEXT,
        ColumnType::Bool => Type::BOOL,
        ColumnType::Json => Type::JSONB,
        ColumnType::Ints => Type::INT8_ARRAY,
        ColumnType::Bytes => Type::BYTEA,
        ColumnType::Time => Type::TIMESTAMPTZ,
    });
    columns.chain(marks).collect()
}

/// A value in the form of its column, which was checked before.
#[derive(Debug)]
struct Cell<'a>(&'a Value);

/// The only version of JSONB's form on the wire: text behind this byte.
const JSONB_VERSION: u8 = 1;

impl ToSql for Cell<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self.0 {
            Value::Null => Ok(IsNull::Yes),
            Value::Bool(flag) => flag.to_sql(kind, out),
            Value::Int(number) => number.to_sql(kind, out),
            Value::Text(text) => text.to_sql(kind, out),
            Value::Ints(numbers) => numbers.to_sql(kind, out),
            Value::Bytes(bytes) => bytes.to_sql(kind, out),
            Value::Time(at) => Time(*at).to_sql(kind, out),
            Value::Json(text) => {
                out.put_u8(JSONB_VERSION);
                out.put_slice(text.as_bytes());
                Ok(IsNull::No)
            }
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}
