//! The tables of Hacker News.

use highwater_core::schema::{
    ColumnType::{Bool, Int, Ints, Json, Text},
    Edges,
    Role::{Content, Key, Mutable},
    Table, column,
};

pub(super) static ITEMS: Table = Table {
    name: "hn_items",
    columns: &[
        column("id", Int, Key),
        column("type", Text, Content),
        column("by", Text, Content),
        column("time", Int, Content),
        column("title", Text, Content),
        column("url", Text, Content),
        column("text", Text, Content),
        column("score", Int, Mutable),
        column("descendants", Int, Mutable),
        column("parent", Int, Content),
        column("poll", Int, Content),
        column("parts", Ints, Content),
        column("dead", Bool, Content),
        column("deleted", Bool, Content),
        column("extra", Json, Content),
    ],
    edges: Some(Edges { table: "hn_kids", parent: "item", member: "kid", order: "display_order", field: "kids" }),
    versions: Some("hn_item_versions"),
    time: Some("time"),
    scope: None,
    derived: None,
};

pub(super) static USERS: Table = Table {
    name: "hn_users",
    columns: &[
        column("id", Text, Key),
        column("created", Int, Content),
        column("karma", Int, Mutable),
        column("about", Text, Content),
        column("submitted", Ints, Mutable),
        column("extra", Json, Content),
    ],
    edges: None,
    versions: None,
    time: None,
    scope: None,
    derived: None,
};

/// The places of columns that are looked at after decoding.
pub(super) const ID: usize = 0;
pub(super) const TIME: usize = 3;
pub(super) const TEXT: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_where_they_say() {
        for (place, name) in [(ID, "id"), (TIME, "time"), (TEXT, "text")] {
            assert_eq!(ITEMS.position(name), Some(place));
        }
        assert_eq!(USERS.position("id"), Some(ID));
    }

    #[test]
    fn the_last_column_is_what_has_no_other() {
        for table in [&ITEMS, &USERS] {
            assert_eq!(table.columns.last().map(|column| column.name), Some("extra"));
        }
    }
}
