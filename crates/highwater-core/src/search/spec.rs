//! How a source says what of its rows can be searched. Beside [`Table`](crate::schema::Table): stores read what is named
//! here, and know nothing of what it means.

use serde_json::Value as Json;

use super::Field;
use crate::{Timestamp, Value};

/// Of a column of text so many characters are looked at: more than is indexed of a text, if not of HTML with pictures in it.
pub const TEXT_MAX: usize = 1_000_000;

/// What is read of each row of a table, and what becomes of it.
#[derive(Debug)]
pub struct Searchable {
    pub columns: &'static [&'static str],
    pub beside: Option<Beside>,
    /// From the columns, and the texts beside the row, in their order.
    pub read: fn(&[Value], &[String]) -> Entry,
}

/// A column of the rows that belong to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beside {
    pub table: &'static str,
    /// The column that names the object's row.
    pub owner: &'static str,
    /// Orders the rows of an object.
    pub key: &'static str,
    pub text: &'static str,
}

/// One object for people: what it is called, who wrote it and when, and all its texts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    pub at: Option<Timestamp>,
    pub title: Option<String>,
    pub author: Option<String>,
    /// All that can be searched.
    pub texts: Vec<(Field, String)>,
    /// What else a script may want to know.
    pub facts: Vec<(&'static str, Json)>,
}

impl Entry {
    pub fn add(&mut self, field: Field, text: Option<String>) {
        self.texts.extend(text.filter(|text| !text.is_empty()).map(|text| (field, text)));
    }
}
