//! How a source describes the tables it fills. Stores turn a description into SQL; sources never write any.

/// What a column holds, whatever a store calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    Int,
    Text,
    Bool,
    Json,
    /// A list of integers.
    Ints,
}

/// What a column means when a row is compared with a newer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Key,
    /// Does not change by itself: a difference is an edit or damage.
    Content,
    /// Moves all the time at the remote.
    Mutable,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    pub kind: ColumnType,
    pub role: Role,
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
}

impl Table {
    /// The columns that name a row, with their place among all columns.
    pub fn key_columns(&self) -> impl Iterator<Item = (usize, &'static Column)> + use<> {
        self.columns.iter().enumerate().filter(|(_, column)| column.role == Role::Key)
    }

    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}
