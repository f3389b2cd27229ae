//! A mirrored object as rows, and how it compares with what is stored already.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json};

use crate::{
    Key, Text, Timestamp,
    schema::{Role, SideTable, Table},
};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Text(Text),
    /// Compact JSON with sorted keys.
    Json(String),
    Ints(Vec<i64>),
    Bytes(Vec<u8>),
    Time(Timestamp),
}

/// One object, ready to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub key: Key,
    pub table: &'static Table,
    pub body: Body,
    /// The remote's mark of this body, if it gave one.
    pub tag: Option<String>,
    /// Rows that are stored together with it.
    pub sides: Vec<SideRow>,
    /// What the ledger says when it is new.
    pub notes: Vec<Note>,
    /// Large contents that its rows name: to be stored before them.
    pub blobs: Vec<Blob>,
}

/// A content kept outside the database, under its own hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    /// SHA-256 in hexadecimal.
    pub sha256: String,
    pub content: Vec<u8>,
}

/// Where a blob is kept, below the folder or prefix of all of them.
pub fn blob_path(sha256: &str) -> String {
    let (fan, rest) = sha256.split_at_checked(2).unwrap_or((sha256, ""));
    format!("sha256/{fan}/{rest}")
}

/// How hashes are written everywhere.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideRow {
    pub table: &'static SideTable,
    pub values: Vec<Value>,
}

/// A line of the ledger about an object, which it names but does not quote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub event_type: &'static str,
    pub entity_type: &'static str,
    pub entity_id: String,
    pub payload: Json,
}

impl Record {
    /// An object that is one row.
    pub fn new(key: Key, table: &'static Table, body: Body) -> Self {
        Record { key, table, body, tag: None, sides: Vec::new(), notes: Vec::new(), blobs: Vec::new() }
    }

    /// What its row is called.
    pub fn row_key(&self) -> Key {
        self.table.row_key(&self.key)
    }
}

/// The columns of a row in the order of its table, and its list of edges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    pub values: Vec<Value>,
    pub edges: Vec<i64>,
}

/// What storing a record did, or would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    New,
    Unchanged,
    /// Only the order of the edges, or what moves without meaning: rewritten, but not a version.
    Reordered,
    Changed,
    /// Not stored: what is there came in while this was on its way, and says something else.
    Behind,
}

impl Body {
    /// How `newer` differs from this stored body.
    pub fn change_to(&self, newer: &Body, table: &Table) -> Change {
        if self == newer {
            return Change::Unchanged;
        }
        let means = |role| role != Role::Volatile;
        let pairs = table.columns.iter().zip(self.values.iter().zip(&newer.values));
        let is_other = pairs.into_iter().any(|(column, (a, b))| means(column.role) && a != b);
        if is_other || self.values.len() != newer.values.len() || !same_members(&self.edges, &newer.edges) {
            Change::Changed
        } else {
            Change::Reordered
        }
    }

    /// The names of the columns of `role` that differ.
    pub fn differing(&self, other: &Body, table: &Table, role: Role) -> Vec<&'static str> {
        let pairs = table.columns.iter().zip(self.values.iter().zip(&other.values));
        pairs.filter(|(column, (a, b))| column.role == role && a != b).map(|(column, _)| column.name).collect()
    }

    /// The body as one JSON object without its empty fields: what a version keeps.
    pub fn to_json(&self, table: &Table) -> Json {
        let mut object = Map::new();
        for (column, value) in table.columns.iter().zip(&self.values) {
            if let Some(json) = value.to_json() {
                object.insert(column.name.into(), json);
            }
        }
        if let Some(edges) = table.edges.as_ref().filter(|_| !self.edges.is_empty()) {
            object.insert(edges.field.into(), self.edges.clone().into());
        }
        Json::Object(object)
    }

    /// A checksum kept beside the row: a row changed behind our back does not match its own any more. Persisted, so
    /// the arithmetic may never change.
    pub fn checksum(&self) -> i64 {
        let mut sum = Checksum::default();
        for value in &self.values {
            sum.add_value(value);
        }
        sum.add_ints(&self.edges);
        sum.finish()
    }
}

impl Value {
    pub fn text(text: impl Into<Text>) -> Self {
        Value::Text(text.into())
    }

    pub fn as_text(&self) -> Option<&str> {
        if let Value::Text(text) = self { Some(text) } else { None }
    }

    fn to_json(&self) -> Option<Json> {
        match self {
            Value::Null => None,
            Value::Bool(flag) => Some((*flag).into()),
            Value::Int(number) => Some((*number).into()),
            Value::Text(text) => Some(text.as_str().into()),
            Value::Json(text) => Some(serde_json::from_str(text).unwrap_or_else(|_| text.as_str().into())),
            Value::Ints(numbers) => Some(numbers.clone().into()),
            Value::Bytes(bytes) => Some(bytes.len().into()),
            Value::Time(at) => Some(at.as_millis().into()),
        }
    }
}

/// A checksum over the rows beside an object, in whatever order they come. Kept in the object's own row, so that what
/// belongs to it cannot change, go or come behind our back either. Persisted, as that of a row is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SidesCheck(i64);

impl SidesCheck {
    pub fn of<'a>(sides: impl IntoIterator<Item = &'a SideRow>) -> i64 {
        let mut check = SidesCheck::default();
        sides.into_iter().for_each(|side| check.add(&side.values));
        check.sum()
    }

    pub fn add(&mut self, values: &[Value]) {
        let mut sum = Checksum::default();
        values.iter().for_each(|value| sum.add_value(value));
        self.0 = self.0.wrapping_add(sum.finish());
    }

    pub fn sum(self) -> i64 {
        self.0
    }
}

/// A remote may name an edge twice; the first place counts.
pub fn without_repeats(mut edges: Vec<i64>) -> Vec<i64> {
    if has_repeats(&edges) {
        let mut seen = BTreeSet::new();
        edges.retain(|edge| seen.insert(*edge));
    }
    edges
}

/// Up to this length a list is looked through as it is; a longer one, in which that would take long, is sorted first.
const LOOKED_THROUGH: usize = 32;

pub fn has_repeats(edges: &[i64]) -> bool {
    if edges.len() <= LOOKED_THROUGH {
        return edges.iter().enumerate().any(|(place, edge)| edges[..place].contains(edge));
    }
    let mut sorted = edges.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).any(|pair| pair[0] == pair[1])
}

fn same_members(a: &[i64], b: &[i64]) -> bool {
    if a == b {
        return true;
    }
    let sorted = |list: &[i64]| {
        let mut list = list.to_vec();
        list.sort_unstable();
        list
    };
    a.len() == b.len() && sorted(a) == sorted(b)
}

/// Multiply and rotate over words of eight bytes: finds accidents and edits, not forgeries.
struct Checksum(u64);

impl Default for Checksum {
    fn default() -> Self {
        Checksum(0x9e37_79b9_7f4a_7c15)
    }
}

impl Checksum {
    fn add_word(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd).rotate_left(29);
    }

    fn add_bytes(&mut self, tag: u64, bytes: &[u8]) {
        self.add_word(tag << 56 | bytes.len() as u64);
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.add_word(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.add_word(u64::from_le_bytes(last));
    }

    fn add_ints(&mut self, numbers: &[i64]) {
        self.add_word(6 << 56 | numbers.len() as u64);
        for number in numbers {
            self.add_word(number.cast_unsigned());
        }
    }

    fn add_value(&mut self, value: &Value) {
        match value {
            Value::Null => self.add_word(1 << 56),
            Value::Bool(flag) => self.add_word(2 << 56 | u64::from(*flag)),
            Value::Int(number) => {
                self.add_word(3 << 56);
                self.add_word(number.cast_unsigned());
            }
            Value::Text(text) => self.add_bytes(4, text.as_bytes()),
            Value::Json(text) => self.add_bytes(5, text.as_bytes()),
            Value::Ints(numbers) => self.add_ints(numbers),
            Value::Bytes(bytes) => self.add_bytes(7, bytes),
            Value::Time(at) => {
                self.add_word(8 << 56);
                self.add_word(at.as_millis().cast_unsigned());
            }
        }
    }

    fn finish(self) -> i64 {
        (self.0 ^ self.0 >> 31).cast_signed()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::schema::{ColumnType, column};

    const TABLE: Table = Table {
        name: "t",
        columns: &[column("id", ColumnType::Int, Role::Key), column("text", ColumnType::Text, Role::Content)],
        edges: None,
        versions: None,
        time: None,
        scope: None,
        derived: None,
    };

    fn body(text: &str, edges: &[i64]) -> Body {
        Body { values: vec![Value::Int(7), Value::Text(text.into())], edges: edges.to_vec() }
    }

    #[test]
    fn what_moves_without_meaning_is_no_version() {
        const VOLATILE: Table =
            Table { columns: &[TABLE.columns[0], column("text", ColumnType::Text, Role::Volatile)], ..TABLE };
        assert_eq!(body("a", &[]).change_to(&body("b", &[]), &VOLATILE), Change::Reordered);
        assert_eq!(body("a", &[]).change_to(&body("b", &[]), &TABLE), Change::Changed);
        assert_eq!(body("a", &[]).change_to(&body("a", &[]), &VOLATILE), Change::Unchanged);
    }

    #[test]
    fn the_order_of_edges_alone_is_no_version() {
        let change = |newer: Body| body("a", &[1, 2]).change_to(&newer, &TABLE);
        assert_eq!(change(body("a", &[1, 2])), Change::Unchanged);
        assert_eq!(change(body("a", &[2, 1])), Change::Reordered);
        assert_eq!(change(body("a", &[2, 3])), Change::Changed);
        assert_eq!(change(body("b", &[2, 1])), Change::Changed);
    }

    #[test]
    fn rows_beside_an_object_count_in_any_order_and_each_of_them() {
        let sum = |rows: &[&str]| {
            let mut check = SidesCheck::default();
            rows.iter().for_each(|row| check.add(&[Value::Text((*row).into()), Value::Null, Value::Bytes(vec![1])]));
            check.sum()
        };
        assert_eq!(sum(&["a", "b"]), sum(&["b", "a"]));
        let sums = [sum(&[]), sum(&["a"]), sum(&["b"]), sum(&["a", "a"]), sum(&["a", "b"])];
        assert_eq!(sums.iter().collect::<std::collections::BTreeSet<_>>().len(), sums.len());
        assert_eq!(sum(&["a"]), 4_589_854_709_853_389_305);
    }

    #[test]
    fn checksums_are_the_same_for_ever() {
        assert_eq!(body("hello", &[1, 2]).checksum(), -925_443_988_864_739_463);
    }

    proptest! {
        #[test]
        fn of_equal_edges_the_first_stays(edges in prop::collection::vec(prop_oneof![0i64..60, 0i64..5_000], 0..70)) {
            let mut expected: Vec<i64> = Vec::new();
            edges.iter().for_each(|edge| if !expected.contains(edge) { expected.push(*edge) });
            prop_assert_eq!(has_repeats(&edges), expected != edges);
            prop_assert_eq!(without_repeats(edges), expected);
        }

        #[test]
        fn another_body_has_another_checksum(a in ".{0,40}", b in ".{0,40}", edges in prop::collection::vec(any::<i64>(), 0..5)) {
            prop_assert_eq!(a == b, body(&a, &edges).checksum() == body(&b, &edges).checksum());
        }
    }
}
