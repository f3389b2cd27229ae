//! Reads one section of the file key by key, and knows which keys nobody asked for.

use std::{str::FromStr, time::Duration};

use highwater_core::UnknownWord;
use toml::{Table, Value};

use super::units;

pub(super) struct Reader {
    path: String,
    table: Table,
    known: Vec<&'static str>,
}

impl Reader {
    pub(super) fn new(path: &str, table: Table) -> Self {
        Reader { path: path.into(), table, known: Vec::new() }
    }

    pub(super) fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.into() } else { format!("{}.{key}", self.path) }
    }

    fn take(&mut self, key: &'static str) -> Option<Value> {
        self.known.push(key);
        self.table.remove(key)
    }

    /// What is left, for sections whose keys are names.
    pub(super) fn into_sections(self) -> Result<Vec<(String, Reader)>, String> {
        let path = self.path;
        let section = |(name, value)| match value {
            Value::Table(table) => Ok((format!("{path}.{name}"), name, table)),
            other => Err(format!("{path}.{name}: expected a section, found {}", shown(&other))),
        };
        let sections: Result<Vec<_>, String> = self.table.into_iter().map(section).collect();
        Ok(sections?.into_iter().map(|(path, name, table)| (name, Reader::new(&path, table))).collect())
    }

    pub(super) fn section(&mut self, key: &'static str) -> Result<Option<Reader>, String> {
        let path = self.path_of(key);
        self.read(key, "a section", |value| match value {
            Value::Table(table) => Some(Reader::new(&path, table.clone())),
            _ => None,
        })
    }

    pub(super) fn string(&mut self, key: &'static str) -> Result<Option<String>, String> {
        self.read(key, "a text", |value| value.as_str().map(str::to_owned))
    }

    pub(super) fn strings(&mut self, key: &'static str) -> Result<Option<Vec<String>>, String> {
        self.read(key, "a list of texts", |value| {
            value.as_array()?.iter().map(|one| one.as_str().map(str::to_owned)).collect()
        })
    }

    /// A text that must be one of a few.
    pub(super) fn word<T: FromStr<Err = UnknownWord>>(&mut self, key: &'static str) -> Result<Option<T>, String> {
        let path = self.path_of(key);
        let unknown = |UnknownWord { text, known, .. }| {
            let meant = nearest(&text, known).map_or(String::new(), |near| format!("; did you mean {near:?}?"));
            format!("{path}: {text:?} is none of {}{meant}", known.join(", "))
        };
        self.string(key)?.map(|text| text.parse().map_err(unknown)).transpose()
    }

    pub(super) fn whole<T: TryFrom<i64>>(&mut self, key: &'static str) -> Result<Option<T>, String> {
        let path = self.path_of(key);
        let number =
            self.read(key, "a whole number above 0", |value| value.as_integer().filter(|number| *number > 0))?;
        let fitting = |number| T::try_from(number).map_err(|_| format!("{path}: {number} is too large"));
        number.map(fitting).transpose()
    }

    pub(super) fn number(&mut self, key: &'static str) -> Result<Option<f64>, String> {
        self.read(key, "a number above 0", positive)
    }

    pub(super) fn duration(&mut self, key: &'static str) -> Result<Option<Duration>, String> {
        self.read(key, "a duration such as \"30s\", \"10m\", \"6h\" or \"14d\"", |value| {
            value.as_str().and_then(units::parse_duration)
        })
    }

    pub(super) fn size(&mut self, key: &'static str) -> Result<Option<u64>, String> {
        self.read(key, "a size such as \"500MB\" or \"2GB\"", |value| value.as_str().and_then(units::parse_size))
    }

    pub(super) fn read<T>(
        &mut self,
        key: &'static str,
        expected: &str,
        convert: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, String> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let path = self.path_of(key);
        convert(&value).map(Some).ok_or_else(|| format!("{path}: expected {expected}, found {}", shown(&value)))
    }

    pub(super) fn finish(self) -> Result<(), String> {
        let Some(key) = self.table.keys().next() else { return Ok(()) };
        let path = self.path_of(key);
        match nearest(key, &self.known) {
            Some(known) => Err(format!("unknown key '{path}'; did you mean '{known}'?")),
            None => Err(format!("unknown key '{path}'; known keys are {}", self.known.join(", "))),
        }
    }
}

/// What was meant, if it is a slip away.
fn nearest<'a>(text: &str, known: &[&'a str]) -> Option<&'a str> {
    let (distance, known) = known.iter().map(|known| (strsim::damerau_levenshtein(text, known), *known)).min()?;
    (distance <= 2 && distance < text.len()).then_some(known)
}

pub(super) fn positive(value: &Value) -> Option<f64> {
    let number = value.as_float().or_else(|| value.as_integer().map(|number| number as f64))?;
    (number.is_finite() && number > 0.0).then_some(number)
}

fn shown(value: &Value) -> String {
    match value {
        Value::Table(_) => "a section".into(),
        Value::Array(_) => "a list".into(),
        other => other.to_string(),
    }
}
