//! A batch of rows turned on its side: one array a column, and back again. A value that its column cannot hold is
//! refused here, before it can spoil the work of others.

use std::borrow::Cow;

use highwater_core::{
    Body, Value,
    schema::{Column as Described, ColumnType, Table},
};
use tokio_postgres::{
    Row,
    types::{ToSql, Type},
};

use super::{
    cells::{Time, time, time_at},
    error::{Fault, Sql},
    link::Param,
    rows::Item,
};
use crate::rules::{Kept, canonical};

pub(super) enum Column<'a> {
    Ints(Vec<Option<i64>>),
    Bools(Vec<Option<bool>>),
    Texts(Vec<Option<Cow<'a, str>>>),
    Reals(Vec<Option<f64>>),
    Times(Vec<Option<Time>>),
    Blobs(Vec<Option<&'a [u8]>>),
}

impl Column<'_> {
    pub(super) fn param(&self) -> Param<'_> {
        let (values, kind): (&(dyn ToSql + Sync), _) = match self {
            Column::Ints(values) => (values, Type::INT8_ARRAY),
            Column::Bools(values) => (values, Type::BOOL_ARRAY),
            Column::Texts(values) => (values, Type::TEXT_ARRAY),
            Column::Reals(values) => (values, Type::FLOAT8_ARRAY),
            Column::Times(values) => (values, Type::TIMESTAMPTZ_ARRAY),
            Column::Blobs(values) => (values, Type::BYTEA_ARRAY),
        };
        (values, kind)
    }
}

/// These rows column by column.
pub(super) fn columns_of<'a>(described: &[Described], rows: &[&'a [Value]]) -> Sql<Vec<Column<'a>>> {
    let column = |(index, column): (usize, &Described)| {
        let values = rows.iter().map(|row| &row[index]);
        Ok(match column.kind {
            ColumnType::Int => Column::Ints(values.map(int).collect::<Sql<_>>()?),
            ColumnType::Bool => Column::Bools(values.map(flag).collect::<Sql<_>>()?),
            ColumnType::Bytes => Column::Blobs(values.map(blob).collect::<Sql<_>>()?),
            ColumnType::Time => Column::Times(values.map(moment).collect::<Sql<_>>()?),
            kind => Column::Texts(values.map(|value| text(kind, value)).collect::<Sql<_>>()?),
        })
    };
    described.iter().enumerate().map(column).collect()
}

/// Whether every value is one that its column can hold.
pub(super) fn check(name: &str, described: &[Described], values: &[Value]) -> Sql<()> {
    if values.len() != described.len() {
        return Err(Fault::refused(format!("a row of {name} has {} columns", values.len())));
    }
    for (column, value) in described.iter().zip(values) {
        match column.kind {
            ColumnType::Int => drop(int(value)?),
            ColumnType::Bool => drop(flag(value)?),
            ColumnType::Bytes => drop(blob(value)?),
            ColumnType::Time => drop(moment(value)?),
            kind => drop(text(kind, value)?),
        }
    }
    Ok(())
}

fn blob(value: &Value) -> Sql<Option<&[u8]>> {
    match value {
        Value::Null => Ok(None),
        Value::Bytes(bytes) => Ok(Some(bytes)),
        _ => Err(unfit("bytes")),
    }
}

fn moment(value: &Value) -> Sql<Option<Time>> {
    match value {
        Value::Null => Ok(None),
        Value::Time(at) => Ok(Some(Time(*at))),
        _ => Err(unfit("a time")),
    }
}

fn int(value: &Value) -> Sql<Option<i64>> {
    match value {
        Value::Null => Ok(None),
        Value::Int(number) => Ok(Some(*number)),
        _ => Err(unfit("a number")),
    }
}

fn flag(value: &Value) -> Sql<Option<bool>> {
    match value {
        Value::Null => Ok(None),
        Value::Bool(flag) => Ok(Some(*flag)),
        _ => Err(unfit("true or false")),
    }
}

fn text(kind: ColumnType, value: &Value) -> Sql<Option<Cow<'_, str>>> {
    match (kind, value) {
        (_, Value::Null) => Ok(None),
        (ColumnType::Text, Value::Text(text)) if !text.contains('\0') => Ok(Some(Cow::Borrowed(text))),
        (ColumnType::Json, Value::Json(text)) if !text.contains('\0') => Ok(Some(Cow::Borrowed(text))),
        (ColumnType::Ints, Value::Ints(numbers)) => Ok(Some(Cow::Owned(list_text(numbers)))),
        _ => Err(unfit("what it is for")),
    }
}

/// A list as the server reads it.
pub(super) fn list_text(numbers: &[i64]) -> String {
    let numbers: Vec<_> = numbers.iter().map(i64::to_string).collect();
    format!("{{{}}}", numbers.join(","))
}

fn unfit(holds: &str) -> Fault {
    Fault::refused(format!("a value is not one that its column can hold, which is {holds}"))
}

/// A row of `TableSql::select`, without its edges. What its column should not hold comes back as what it is, so that it
/// differs from anything a source says, instead of stopping those who would repair it.
pub(super) fn kept_of(table: &Table, row: &Row) -> Sql<Kept> {
    let width = table.columns.len();
    let value = |(index, column): (usize, &Described)| value_of(column.kind, row, index);
    Ok(Kept {
        body: Body { values: table.columns.iter().enumerate().map(value).collect::<Sql<_>>()?, edges: Vec::new() },
        last_fetched_at: time_at(row, width)?,
        last_changed_at: time_at(row, width + 1)?,
        row_check: row.try_get(width + 2)?,
        etag: row.try_get(width + 3)?,
    })
}

pub(super) fn value_of(kind: ColumnType, row: &Row, index: usize) -> Sql<Value> {
    Ok(match kind {
        ColumnType::Int => row.try_get::<_, Option<i64>>(index)?.map(Value::Int),
        ColumnType::Bool => row.try_get::<_, Option<bool>>(index)?.map(Value::Bool),
        ColumnType::Text => row.try_get::<_, Option<&str>>(index)?.map(Value::text),
        ColumnType::Bytes => row.try_get::<_, Option<Vec<u8>>>(index)?.map(Value::Bytes),
        ColumnType::Time => time(row, index)?.map(Value::Time),
        ColumnType::Json => row.try_get::<_, Option<&str>>(index)?.map(|json| Value::Json(canonical(json))),
        ColumnType::Ints => row.try_get::<_, Option<Vec<Option<i64>>>>(index)?.map(|numbers| {
            let shown = format!("{numbers:?}");
            numbers.into_iter().collect::<Option<_>>().map_or(Value::text(shown), Value::Ints)
        }),
    }
    .unwrap_or(Value::Null))
}

/// The arrays that follow the columns: times, checks and tags.
pub(super) struct Marks<'a> {
    times: Vec<Time>,
    checks: Vec<i64>,
    tags: Vec<Option<&'a str>>,
}

impl<'a> Marks<'a> {
    pub(super) fn of(items: impl Iterator<Item = &'a Item<'a>> + Clone) -> Marks<'a> {
        Marks {
            times: items.clone().map(|item| Time(item.arrival.now)).collect(),
            checks: items.clone().map(|item| item.check).collect(),
            tags: items.map(|item| item.record.tag.as_deref()).collect(),
        }
    }

    pub(super) fn params(&self) -> [Param<'_>; 3] {
        [(&self.times, Type::TIMESTAMPTZ_ARRAY), (&self.checks, Type::INT8_ARRAY), (&self.tags, Type::TEXT_ARRAY)]
    }
}
