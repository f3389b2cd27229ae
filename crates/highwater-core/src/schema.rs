//! How a source describes the tables it fills. Stores turn a description into SQL; sources never write any.

use crate::{Key, Value, record::Note};

/// What a column holds, whatever a store calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    Int,
    Text,
    Bool,
    Json,
    /// A list of integers.
    Ints,
    Bytes,
    /// A time of our own.
    Time,
}

/// What a column means when a row is compared with a newer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Key,
    /// Does not change by itself: a difference is an edit or damage.
    Content,
    /// Moves all the time at the remote.
    Mutable,
    /// Follows from other columns, or moves without meaning: what is new is written, and is no version.
    Volatile,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    pub kind: ColumnType,
    pub role: Role,
}

pub const fn column(name: &'static str, kind: ColumnType, role: Role) -> Column {
    Column { name, kind, role }
}

/// An ordered list of numbers kept as rows of their own: parent, member, place in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edges {
    pub table: &'static str,
    pub parent: &'static str,
    pub member: &'static str,
    pub order: &'static str,
    /// The name of the list in the body of a version.
    pub field: &'static str,
}

/// A table of mirrored objects. Besides these columns every such table has `first_seen_at`, `last_fetched_at`,
/// `last_changed_at`, `row_check` and `etag`, which the store keeps.
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    pub name: &'static str,
    pub columns: &'static [Column],
    pub edges: Option<Edges>,
    /// Where earlier bodies go.
    pub versions: Option<&'static str>,
    /// The column that says when an object was made, in seconds since 1970.
    pub time: Option<&'static str>,
    /// Which rows are a source's own, where several share the table: those whose key begins with this.
    pub scope: Option<&'static str>,
    /// What is computed from the rows.
    pub derived: Option<&'static Derived>,
}

/// Rows that belong to an object, written together with its own. The remote never changes them.
#[derive(Debug, PartialEq, Eq)]
pub struct SideTable {
    pub name: &'static str,
    pub columns: &'static [Column],
}

/// The column in which a row keeps the checksum of all rows beside it.
pub const SIDES_CHECK: &str = "sides_check";

/// What belongs to the rows of a table, and how to tell that it is what was stored.
#[derive(Debug)]
pub struct SideSpec {
    pub table: &'static SideTable,
    /// Whether every row has one.
    pub is_required: bool,
    pub check: fn(&[Value]) -> SideCheck,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideCheck {
    /// What the row is called that it belongs to.
    pub owner: String,
    /// What is wrong with it.
    pub fault: Option<&'static str>,
    /// SHA-256 of the content outside the database that it names.
    pub blob: Option<String>,
}

/// A table computed from another: one row for each value of a column there, from all rows that have it.
#[derive(Debug)]
pub struct Derived {
    pub name: &'static str,
    /// The first is the key.
    pub columns: &'static [Column],
    /// The column of the other table that names a row of this.
    pub group: &'static str,
    /// The columns of the other table that are looked at.
    pub reads: &'static [&'static str],
    /// From the rows of a group, in the order of their keys and never none, to the columns of its row.
    pub fold: fn(&[Vec<Value>]) -> Vec<Value>,
    /// What the ledger says when a row is new.
    pub note: fn(&[Value]) -> Note,
}

impl PartialEq for Derived {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Derived {}

/// Between the scope of a row's key and the rest.
const SCOPE_END: char = '-';
/// The character after it.
const SCOPE_BEYOND: char = '.';

impl Table {
    /// The columns that name a row, with their place among all columns.
    pub fn key_columns(&self) -> impl Iterator<Item = (usize, &'static Column)> + use<> {
        self.columns.iter().enumerate().filter(|(_, column)| column.role == Role::Key)
    }

    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// What the row of `key` is called in the table.
    pub fn row_key(&self, key: &Key) -> Key {
        match self.scope {
            None => key.clone(),
            Some(scope) => Key::Text(format!("{scope}{SCOPE_END}{key}").into()),
        }
    }

    /// The key whose row is called so.
    pub fn key_of_row(&self, row: &Key) -> Key {
        match (self.scope, row) {
            (Some(scope), Key::Text(text)) => {
                let rest = text.strip_prefix(scope).and_then(|rest| rest.strip_prefix(SCOPE_END));
                rest.map_or_else(|| row.clone(), Key::from)
            }
            _ => row.clone(),
        }
    }

    /// Between which keys the source's own rows lie, the second exclusive; none if all are.
    pub fn bounds(&self) -> Option<[String; 2]> {
        self.scope.map(|scope| [SCOPE_END, SCOPE_BEYOND].map(|end| format!("{scope}{end}")))
    }
}

impl SideTable {
    pub fn key_columns(&self) -> impl Iterator<Item = &'static Column> + use<> {
        self.columns.iter().filter(|column| column.role == Role::Key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Table =
        Table { name: "t", columns: &[], edges: None, versions: None, time: None, scope: None, derived: None };

    #[test]
    fn a_scoped_row_is_found_by_its_key_and_lies_within_its_bounds() {
        let table = Table { scope: Some("a1"), ..PLAIN };
        let [first, beyond] = table.bounds().unwrap();
        for key in ["7", "18c5f", "", "-", "~"] {
            let row = table.row_key(&Key::from(key));
            assert_eq!(row.to_string(), format!("a1-{key}"));
            assert!(first <= row.to_string() && row.to_string() < beyond);
            assert_eq!(table.key_of_row(&row), Key::from(key));
        }
        assert_eq!((PLAIN.row_key(&Key::Number(7)), PLAIN.bounds()), (Key::Number(7), None));
    }
}
