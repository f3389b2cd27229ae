//! A row from its JSON. No shape of a field can fail: what its column cannot hold without loss goes to `extra`.

use std::borrow::Cow;

use highwater_core::{
    Body, Failure, FailureKind, Value,
    schema::{Column, ColumnType, Table},
    without_repeats,
};

use super::{
    extra::{EXACT, Extra},
    field, members,
    plain::{self, Raw},
};
use crate::text::{self, Text};

/// More than any table has; on the stack, since items come by the thousand.
const COLUMNS_MAX: usize = 16;

/// The row that a body makes in its table; none if the remote says there is nothing. The last column of a table is
/// `extra`, all others come from fields of the same name.
pub(super) fn decode(body: &[u8], table: &Table) -> Result<Option<Body>, Failure> {
    let json = simdutf8::basic::from_utf8(body).map_err(|_| malformed("the body is not UTF-8"))?;
    if json.trim_ascii() == "null" {
        return Ok(None);
    }
    let mut sorted = Sorted::new(table);
    if plain::each(json, |name, raw| sorted.place(name, raw)).is_none() {
        sorted = parsed(json, table)?;
    }
    Ok(Some(row(&mut sorted)))
}

fn parsed<'a>(json: &'a str, table: &Table) -> Result<Sorted<'a>, Failure> {
    let mut sorted = Sorted::new(table);
    // The parser's own message may quote the body.
    members::each(json, |raw_name, raw| sorted.add(raw_name, raw)).map_err(|error| {
        malformed(if error.is_eof() { "the body ends early" } else { "the body is not a JSON object" })
    })?;
    Ok(sorted)
}

fn malformed(message: &str) -> Failure {
    Failure::new(FailureKind::Malformed, message)
}

fn row(sorted: &mut Sorted<'_>) -> Body {
    let Sorted { columns, fields, edges_field, edges, extra } = sorted;
    let mut values = Vec::with_capacity(columns.len() + 1);
    values.extend(columns.iter().map(empty));
    for ((value, column), raw) in values.iter_mut().zip(*columns).zip(fields) {
        if let Some(raw) = raw {
            read_into(value, column, *raw, extra);
        }
    }
    let edges = edges_field.zip(*edges).map(|(field, raw)| members_of(field, raw, extra)).unwrap_or_default();
    values.push(std::mem::take(extra).into_value());
    Body { values, edges }
}

/// Members by where they go. `null` is how Firebase writes that there is nothing.
struct Sorted<'a> {
    columns: &'static [Column],
    fields: [Option<Raw<'a>>; COLUMNS_MAX],
    edges_field: Option<&'static str>,
    edges: Option<&'a str>,
    extra: Extra<'a>,
}

impl<'a> Sorted<'a> {
    fn new(table: &Table) -> Self {
        let (columns, edges_field) = (own_columns(table), table.edges.map(|edges| edges.field));
        Sorted { columns, fields: [None; COLUMNS_MAX], edges_field, edges: None, extra: Extra::default() }
    }

    /// Of members with the same name the last one counts.
    fn add(&mut self, raw_name: &'a str, raw: &'a str) {
        match text::read(raw_name) {
            Some(Text::Plain(name)) if name != EXACT => self.place(&name, raw.into()),
            Some(Text::Plain(name)) => self.extra.keep_unnamable(name.into_owned().into_bytes(), raw_name, raw),
            Some(Text::Mended { exact, .. }) => self.extra.keep_unnamable(exact, raw_name, raw),
            None => unreachable!("the name of a member is a string"),
        }
    }

    fn place(&mut self, name: &str, raw: Raw<'a>) {
        let value = (raw.json != "null").then_some(raw);
        if Some(name) == self.edges_field {
            self.edges = value.map(|raw| raw.json);
        } else if let Some(place) = self.columns.iter().position(|column| column.name == name) {
            self.fields[place] = value;
        } else {
            self.extra.keep(name, raw.json);
        }
    }
}

/// Those that come from fields.
fn own_columns(table: &Table) -> &'static [Column] {
    table.columns.split_last().map_or(&[], |(_extra, own)| own)
}

/// What a column has when there is no such field.
fn empty(column: &Column) -> Value {
    if column.kind == ColumnType::Bool { Value::Bool(false) } else { Value::Null }
}

/// Leaves the column empty if it cannot hold the field.
fn read_into<'a>(value: &mut Value, column: &Column, raw: Raw<'a>, extra: &mut Extra<'a>) {
    let Raw { json: raw, text } = raw;
    let read = match column.kind {
        ColumnType::Int => field::int(raw).map(Value::Int),
        ColumnType::Bool => field::bool(raw).map(Value::Bool),
        ColumnType::Ints => field::ints(raw).map(Value::Ints),
        ColumnType::Text if let Some(text) = text => Some(Value::text(text)),
        ColumnType::Text => text::read(raw).map(|text| text_value(column.name, text, extra)),
        ColumnType::Json | ColumnType::Bytes | ColumnType::Time => None,
    };
    match read {
        Some(read) => *value = read,
        None => extra.keep(column.name, raw),
    }
}

fn text_value(name: &str, text: Text<'_>, extra: &mut Extra<'_>) -> Value {
    match text {
        Text::Plain(Cow::Borrowed(text)) => Value::text(text),
        Text::Plain(Cow::Owned(text)) => Value::text(text),
        Text::Mended { shown, exact } => {
            extra.keep_exact(name, exact);
            Value::text(shown)
        }
    }
}

fn members_of<'a>(field: &str, raw: &'a str, extra: &mut Extra<'a>) -> Vec<i64> {
    match field::ints(raw) {
        Some(members) => without_repeats(members),
        None => {
            extra.keep(field, raw);
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests;
