//! Two tables of the schema as a source would describe them: one with numbers for keys, edges and versions, and one
//! with names for keys and nothing beside.

pub mod mail;

use highwater_core::{
    Body, Key, Record, Value,
    schema::{ColumnType, Edges, Role, Table, column},
};

pub static ITEMS: Table = Table {
    name: "hn_items",
    columns: &[
        column("id", ColumnType::Int, Role::Key),
        column("type", ColumnType::Text, Role::Content),
        column("by", ColumnType::Text, Role::Content),
        column("time", ColumnType::Int, Role::Content),
        column("title", ColumnType::Text, Role::Content),
        column("text", ColumnType::Text, Role::Content),
        column("score", ColumnType::Int, Role::Mutable),
        column("parts", ColumnType::Ints, Role::Content),
        column("dead", ColumnType::Bool, Role::Content),
        column("extra", ColumnType::Json, Role::Content),
    ],
    edges: Some(Edges { table: "hn_kids", parent: "item", member: "kid", order: "display_order", field: "kids" }),
    versions: Some("hn_item_versions"),
    time: Some("time"),
    scope: None,
    derived: None,
};

pub static USERS: Table = Table {
    name: "hn_users",
    columns: &[
        column("id", ColumnType::Text, Role::Key),
        column("karma", ColumnType::Int, Role::Mutable),
        column("about", ColumnType::Text, Role::Content),
    ],
    edges: None,
    versions: None,
    time: None,
    scope: None,
    derived: None,
};

pub fn item(id: i64, text: &str, kids: &[i64]) -> Record {
    let values = vec![
        Value::Int(id),
        Value::Text("comment".into()),
        Value::Text("ann".into()),
        Value::Int(1_600_000_000 + id),
        Value::Null,
        Value::Text(text.into()),
        Value::Int(7),
        Value::Ints(vec![id, -id]),
        Value::Bool(false),
        Value::Json(r#"{"a":[1,2]}"#.into()),
    ];
    Record::new(Key::Number(id), &ITEMS, Body { values, edges: kids.to_vec() })
}

pub fn user(name: &str, karma: i64) -> Record {
    let values = vec![Value::Text(name.into()), Value::Int(karma), Value::Null];
    Record::new(Key::from(name), &USERS, Body { values, edges: Vec::new() })
}
