//! The table of everything a Looker instance holds.

use highwater_core::schema::{
    Column,
    ColumnType::{Bytes, Json, Text, Time},
    Role::{Content, Key, Mutable, Volatile},
    Table, column,
};

const COLUMNS: &[Column] = &[
    column("id", Text, Key),
    column("source", Text, Content),
    column("content_type", Text, Content),
    column("content_id", Text, Content),
    column("name", Text, Content),
    column("folder_id", Text, Content),
    column("owner_id", Text, Content),
    column("created_at", Time, Content),
    column("updated_at", Time, Content),
    column(DELETED, Time, Mutable),
    column(BODY, Json, Volatile),
    column("content_hash", Text, Content),
    column("exact", Bytes, Volatile),
];

pub(super) const DELETED: &str = "deleted_at";
pub(super) const BODY: &str = "body";

/// The rows of one type of one source. A description lives as long as the program, and there are few.
pub(super) fn content(source: &str, kind: &str) -> &'static Table {
    let scope: Option<&'static str> = Some(String::leak(format!("{source}:{kind}")));
    Box::leak(Box::new(Table {
        name: "looker_content",
        columns: COLUMNS,
        edges: None,
        versions: Some("looker_versions"),
        time: None,
        scope,
        derived: None,
    }))
}
