//! What a remote's own record of changes says about stored objects, apart from any SQL.

use serde_json::Value as Json;

use crate::{Body, Key, Value, schema::Table};

/// One object that the remote's record names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiding {
    pub key: Key,
    /// What becomes of its row, in this order.
    pub edits: Vec<Edit>,
    pub otherwise: Otherwise,
}

/// What becomes of an object that has no row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Otherwise {
    Fetch,
    /// Fetched if something kept it from being stored before: whether it is to be mirrored is not told.
    Reconsider,
    /// Fetched again also if it has a row.
    Refetch,
    Exclude {
        reason: &'static str,
    },
    /// Nothing: it is not among what is to be mirrored.
    Ignore,
}

/// A change of one column. Lists are JSON arrays of texts, sorted, each text once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    Add {
        column: &'static str,
        members: Vec<String>,
    },
    Remove {
        column: &'static str,
        members: Vec<String>,
    },
    Replace {
        column: &'static str,
        members: Vec<String>,
    },
    Set {
        column: &'static str,
        value: Value,
    },
    /// As `Set`, unless there is a value.
    Fill {
        column: &'static str,
        value: Value,
    },
}

impl Edit {
    /// Whether it made a difference.
    pub fn apply(&self, body: &mut Body, table: &Table) -> bool {
        let Some(cell) = table.position(self.column()).and_then(|place| body.values.get_mut(place)) else {
            return false;
        };
        let after = match self {
            Edit::Add { members, .. } => list(texts(cell).into_iter().chain(members.iter().cloned())),
            Edit::Remove { members, .. } => list(texts(cell).into_iter().filter(|text| !members.contains(text))),
            Edit::Replace { members, .. } => list(members.iter().cloned()),
            Edit::Set { value, .. } => value.clone(),
            Edit::Fill { value, .. } if *cell == Value::Null => value.clone(),
            Edit::Fill { .. } => return false,
        };
        let differs = *cell != after;
        *cell = after;
        differs
    }

    pub fn column(&self) -> &'static str {
        match self {
            Edit::Add { column, .. } | Edit::Remove { column, .. } | Edit::Replace { column, .. } => column,
            Edit::Set { column, .. } | Edit::Fill { column, .. } => column,
        }
    }
}

/// The members of a list; none if it is none. A list that was damaged keeps its row from passing its own check, which is
/// where that is told.
pub fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Json(json) => serde_json::from_str(json).unwrap_or_default(),
        _ => Vec::new(),
    }
}

pub fn list(members: impl Iterator<Item = String>) -> Value {
    let mut members: Vec<_> = members.collect();
    members.sort_unstable();
    members.dedup();
    Value::Json(Json::from(members).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Column, ColumnType, Role};

    const TABLE: Table = Table {
        name: "t",
        columns: &[
            Column { name: "id", kind: ColumnType::Text, role: Role::Key },
            Column { name: "labels", kind: ColumnType::Json, role: Role::Mutable },
            Column { name: "gone_at", kind: ColumnType::Time, role: Role::Mutable },
        ],
        edges: None,
        versions: None,
        time: None,
        scope: None,
        derived: None,
    };

    fn body(labels: &str) -> Body {
        Body { values: vec![Value::Text("a".into()), Value::Json(labels.into()), Value::Null], edges: Vec::new() }
    }

    fn members(members: &[&str]) -> Vec<String> {
        members.iter().map(|text| (*text).to_owned()).collect()
    }

    fn edited(labels: &str, edits: &[Edit]) -> (Value, bool) {
        let mut body = body(labels);
        let mut differs = false;
        for edit in edits {
            differs |= edit.apply(&mut body, &TABLE);
        }
        (body.values.remove(1), differs)
    }

    #[test]
    fn lists_stay_sorted_and_without_doubles() {
        let add = Edit::Add { column: "labels", members: members(&["B", "A", "B"]) };
        let remove = Edit::Remove { column: "labels", members: members(&["A", "Z"]) };
        assert_eq!(edited("[]", std::slice::from_ref(&add)), (Value::Json(r#"["A","B"]"#.into()), true));
        assert_eq!(edited(r#"["A","B"]"#, std::slice::from_ref(&add)), (Value::Json(r#"["A","B"]"#.into()), false));
        assert_eq!(edited(r#"["C"]"#, &[add, remove]), (Value::Json(r#"["B","C"]"#.into()), true));
        let replace = Edit::Replace { column: "labels", members: members(&["Q"]) };
        assert_eq!(edited(r#"["C"]"#, &[replace]), (Value::Json(r#"["Q"]"#.into()), true));
    }

    #[test]
    fn what_is_filled_once_stays() {
        let fill = |number| Edit::Fill { column: "gone_at", value: Value::Int(number) };
        let mut body = body("[]");
        assert!(fill(1).apply(&mut body, &TABLE));
        assert!(!fill(2).apply(&mut body, &TABLE));
        assert_eq!(body.values[2], Value::Int(1));
        assert!(Edit::Set { column: "gone_at", value: Value::Null }.apply(&mut body, &TABLE));
    }

    #[test]
    fn a_column_that_is_not_there_changes_nothing() {
        assert!(!Edit::Set { column: "other", value: Value::Int(1) }.apply(&mut body("[]"), &TABLE));
    }
}
