//! New rows by COPY, straight into their table: a third of the server's time that arrays of columns cost. It knows no
//! conflicts, so the caller looks first; a row that appears meanwhile ends the transaction, which is then run again.

use std::{mem, pin::Pin};

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::SinkExt;
use highwater_core::{
    Value,
    schema::{ColumnType, Table},
};
use tokio_postgres::{
    CopyInSink, Statement,
    error::SqlState,
    types::{IsNull, ToSql, Type},
};

use super::{
    cells::Time,
    error::{Fault, Sql},
    link::Db,
    rows::Item,
};

/// Bytes of one message. The server keeps a message whole before it looks into it: so many stay within its processor's
/// reach, and it is at work on the first while the next are spelled.
const PIECE: usize = 64 << 10;

/// Inserts these rows, none of which is there, without their edges. `copy` is the table's statement.
pub(super) async fn load(db: &Db, table: &Table, copy: &Statement, items: &[&Item<'_>]) -> Sql<()> {
    let types = types_of(table);
    let mut loading = Loading::begin(db, copy).await?;
    for item in items {
        row(loading.room().await?, &types, item)?;
    }
    loading.end().await
}

/// Inserts the edges of these rows, none of which is there.
pub(super) async fn load_edges(db: &Db, copy: &Statement, items: &[&Item<'_>]) -> Sql<()> {
    let mut loading = Loading::begin(db, copy).await?;
    for item in items {
        let Some(parent) = item.record.key.number() else { continue };
        for (place, member) in (0i64..).zip(&item.body.edges) {
            edge(loading.room().await?, [parent, *member, place]);
        }
    }
    loading.end().await
}

/// A COPY under way. Dropped before its end, it comes to nothing.
struct Loading {
    sink: Pin<Box<CopyInSink<Bytes>>>,
    bytes: BytesMut,
}

impl Loading {
    async fn begin(db: &Db, copy: &Statement) -> Sql<Self> {
        let sink = Box::pin(db.client.copy_in(copy).await?);
        let mut bytes = empty();
        bytes.put_slice(HEAD);
        Ok(Loading { sink, bytes })
    }

    /// Where the next row goes, once a whole piece has left.
    async fn room(&mut self) -> Sql<&mut BytesMut> {
        if self.bytes.len() >= PIECE {
            let piece = mem::replace(&mut self.bytes, empty());
            self.sink.feed(piece.freeze()).await?;
        }
        Ok(&mut self.bytes)
    }

    async fn end(&mut self) -> Sql<()> {
        self.bytes.put_i16(END);
        self.sink.send(self.bytes.split().freeze()).await?;
        self.sink.as_mut().finish().await.map(drop).map_err(|error| match error.code() {
            Some(&SqlState::UNIQUE_VIOLATION) => Fault::Raced,
            _ => Fault::Sql(error),
        })
    }
}

/// A piece with room for the row that makes it whole, unless that is a long one.
fn empty() -> BytesMut {
    BytesMut::with_capacity(2 * PIECE)
}

/// The signature, no flags, no extension.
const HEAD: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// In place of a count of columns.
const END: i16 = -1;
/// Columns that are no part of a body.
const MARKS: usize = 5;
/// In place of a length.
const NULL: i32 = -1;

fn row(bytes: &mut BytesMut, types: &[Type], item: &Item<'_>) -> Sql<()> {
    let (columns, marks) = types.split_at(item.body.values.len());
    bytes.put_i16(i16::try_from(types.len()).map_err(|_| Fault::refused("too many columns"))?);
    for (value, kind) in item.body.values.iter().zip(columns) {
        field(bytes, |bytes| cell(value, kind, bytes))?;
    }
    let at = Time(item.arrival.now);
    let values: [&(dyn ToSql + Sync); MARKS] = [&at, &at, &at, &item.check, &item.record.tag];
    for (value, kind) in values.into_iter().zip(marks) {
        field(bytes, |bytes| value.to_sql_checked(kind, bytes))?;
    }
    Ok(())
}

fn edge(bytes: &mut BytesMut, numbers: [i64; 3]) {
    bytes.put_i16(3);
    for number in numbers {
        bytes.put_i32(8);
        bytes.put_i64(number);
    }
}

type Written = Result<IsNull, Box<dyn std::error::Error + Sync + Send>>;

/// A value behind its length.
fn field(bytes: &mut BytesMut, write: impl FnOnce(&mut BytesMut) -> Written) -> Sql<()> {
    let place = bytes.len();
    bytes.put_i32(NULL);
    let begin = bytes.len();
    let is_null = write(bytes).map_err(|error| Fault::refused(error.to_string()))?;
    if let IsNull::No = is_null {
        let length = i32::try_from(bytes.len() - begin).map_err(|_| Fault::refused("a value is too long"))?;
        bytes[place..begin].copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}

/// The only version of JSONB's form on the wire: text behind this byte.
const JSONB_VERSION: u8 = 1;

/// A value in the form of its column, which was checked before.
fn cell(value: &Value, kind: &Type, bytes: &mut BytesMut) -> Written {
    match value {
        Value::Null => Ok(IsNull::Yes),
        Value::Bool(flag) => flag.to_sql(kind, bytes),
        Value::Int(number) => number.to_sql(kind, bytes),
        Value::Text(text) => text.as_str().to_sql(kind, bytes),
        Value::Ints(numbers) => numbers.to_sql(kind, bytes),
        Value::Bytes(blob) => blob.to_sql(kind, bytes),
        Value::Time(at) => Time(*at).to_sql(kind, bytes),
        Value::Json(text) => {
            bytes.put_u8(JSONB_VERSION);
            bytes.put_slice(text.as_bytes());
            Ok(IsNull::No)
        }
    }
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
