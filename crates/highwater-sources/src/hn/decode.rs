//! An item from its JSON. No shape of a field can fail: what its column cannot hold without loss goes to `extra`.

use std::collections::HashSet;

use highwater_core::{
    Body, Failure, FailureKind, Value,
    schema::{Column, ColumnType},
};

use super::{
    extra::{EXACT, Extra},
    field,
    members::Members,
    schema::{self, ITEMS},
    text::{self, Text},
};

const KIDS: &str = "kids";
const DELAYED: &str = "[delayed]";

pub(super) enum Document {
    Null,
    Item(Item),
}

pub(super) struct Item {
    pub(super) id: Option<i64>,
    pub(super) time: Option<i64>,
    /// The text is a placeholder: the remote holds the real one back.
    pub(super) is_delayed: bool,
    pub(super) body: Body,
}

pub(super) fn decode(body: &[u8]) -> Result<Document, Failure> {
    let json = str::from_utf8(body).map_err(|_| malformed("the body is not UTF-8"))?;
    if json.trim_ascii() == "null" {
        return Ok(Document::Null);
    }
    // The parser's own message may quote the body.
    let members = Members::parse(json).map_err(|error| {
        malformed(if error.is_eof() { "the body ends early" } else { "the body is not a JSON object" })
    })?;
    Ok(Document::Item(item(members)))
}

fn malformed(message: &str) -> Failure {
    Failure::new(FailureKind::Malformed, message)
}

fn item(members: Members<'_>) -> Item {
    let Sorted { fields, kids, mut extra } = sort(members);
    let mut values = Vec::with_capacity(ITEMS.columns.len());
    for (column, raw) in ITEMS.columns.iter().zip(fields) {
        values.push(value(column, raw, &mut extra));
    }
    let edges = kids.map(|raw| edges(raw, &mut extra)).unwrap_or_default();
    let is_delayed = matches!(&values[schema::TEXT], Value::Text(text) if text == DELAYED);
    values.push(extra.into_value());
    Item {
        id: number(&values[schema::ID]),
        time: number(&values[schema::TIME]),
        is_delayed,
        body: Body { values, edges },
    }
}

fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        _ => None,
    }
}

/// Members by where they go. `null` is how Firebase writes that there is nothing.
struct Sorted<'a> {
    fields: [Option<&'a str>; schema::EXTRA],
    kids: Option<&'a str>,
    extra: Extra<'a>,
}

/// Of members with the same name the last one counts.
fn sort(Members(members): Members<'_>) -> Sorted<'_> {
    let mut sorted = Sorted { fields: [None; schema::EXTRA], kids: None, extra: Extra::default() };
    for (raw_name, raw) in members {
        match text::read(raw_name) {
            Some(Text::Plain(name)) if name != EXACT => sorted.place(&name, raw),
            Some(Text::Plain(name)) => sorted.extra.keep_unnamable(name.into_owned().into_bytes(), raw_name, raw),
            Some(Text::Mended { exact, .. }) => sorted.extra.keep_unnamable(exact, raw_name, raw),
            None => unreachable!("the name of a member is a string"),
        }
    }
    sorted
}

impl<'a> Sorted<'a> {
    fn place(&mut self, name: &str, raw: &'a str) {
        let value = (raw != "null").then_some(raw);
        if name == KIDS {
            self.kids = value;
        } else if let Some(place) = ITEMS.columns[..schema::EXTRA].iter().position(|column| column.name == name) {
            self.fields[place] = value;
        } else {
            self.extra.keep(name, raw);
        }
    }
}

fn value<'a>(column: &Column, raw: Option<&'a str>, extra: &mut Extra<'a>) -> Value {
    let empty = if column.kind == ColumnType::Bool { Value::Bool(false) } else { Value::Null };
    let Some(raw) = raw else { return empty };
    let read = match column.kind {
        ColumnType::Int => field::int(raw).map(Value::Int),
        ColumnType::Bool => field::bool(raw).map(Value::Bool),
        ColumnType::Ints => field::ints(raw).map(Value::Ints),
        ColumnType::Text => text::read(raw).map(|text| text_value(column.name, text, extra)),
        ColumnType::Json => None,
    };
    read.unwrap_or_else(|| {
        extra.keep(column.name, raw);
        empty
    })
}

fn text_value(name: &str, text: Text<'_>, extra: &mut Extra<'_>) -> Value {
    match text {
        Text::Plain(text) => Value::Text(text.into_owned()),
        Text::Mended { shown, exact } => {
            extra.keep_exact(name, exact);
            Value::Text(shown)
        }
    }
}

fn edges<'a>(raw: &'a str, extra: &mut Extra<'a>) -> Vec<i64> {
    match field::ints(raw) {
        Some(kids) => without_repeats(kids),
        None => {
            extra.keep(KIDS, raw);
            Vec::new()
        }
    }
}

fn without_repeats(mut kids: Vec<i64>) -> Vec<i64> {
    let mut sorted = kids.clone();
    sorted.sort_unstable();
    if sorted.windows(2).all(|pair| pair[0] != pair[1]) {
        return kids;
    }
    let mut seen = HashSet::new();
    kids.retain(|kid| seen.insert(*kid));
    kids
}

#[cfg(test)]
mod tests;
