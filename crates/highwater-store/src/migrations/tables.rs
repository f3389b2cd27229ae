//! What the steps make: each table with its columns, their kinds and its key, read off the very text that makes it, so
//! that a table added there is known here. Understands the form in which the steps are written, not SQL at large.

use std::sync::OnceLock;

use super::MIGRATIONS;

/// A table as every backend has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    pub name: &'static str,
    pub columns: Vec<ShapeColumn>,
    /// Places of the columns that name a row, in the order in which rows are listed.
    pub key: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeColumn {
    pub name: &'static str,
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Int,
    /// A number that the database counts up for new rows.
    Counted,
    Real,
    Text,
    Bool,
    Json,
    Ints,
    Bytes,
    Time,
}

impl Shape {
    pub fn place(&self, column: &str) -> Option<usize> {
        self.columns.iter().position(|known| known.name == column)
    }

    pub fn key_columns(&self) -> impl Iterator<Item = &ShapeColumn> {
        self.key.iter().map(|place| &self.columns[*place])
    }
}

/// All tables of the latest version, in an order in which a row comes after those it refers to.
pub(crate) fn tables() -> &'static [Shape] {
    static TABLES: OnceLock<Vec<Shape>> = OnceLock::new();
    TABLES.get_or_init(|| read(MIGRATIONS.iter().map(|migration| migration.sql)))
}

fn read(steps: impl Iterator<Item = &'static str>) -> Vec<Shape> {
    let mut reader = Reader::default();
    steps.flat_map(str::lines).for_each(|line| reader.take(line.trim()));
    reader.tables
}

#[derive(Default)]
struct Reader {
    tables: Vec<Shape>,
    is_inside: bool,
}

impl Reader {
    fn take(&mut self, line: &'static str) {
        let mut words = line.split_whitespace();
        match (words.next(), words.next(), words.next()) {
            (Some("CREATE"), Some("TABLE"), Some(name)) => {
                self.tables.push(Shape { name, columns: Vec::new(), key: Vec::new() });
                self.is_inside = true;
            }
            (Some("ALTER"), Some("TABLE"), Some(name)) => self.alter(name, line),
            (Some("PRIMARY"), Some("KEY"), _) if self.is_inside => self.key(line),
            (Some(end), ..) if end.starts_with(')') => self.is_inside = false,
            (Some(name), Some(word), _) if self.is_inside => {
                let table = self.tables.last_mut().expect("a column stands inside a table");
                add_column(table, name, word, line);
            }
            _ => {}
        }
    }

    /// `ALTER TABLE name ADD COLUMN name {kind} …`
    fn alter(&mut self, table: &str, line: &'static str) {
        let table = self.tables.iter_mut().find(|known| known.name == table);
        let column = line.split_once(" ADD COLUMN ").and_then(|(_, column)| column.split_once(' '));
        if let (Some(table), Some((name, rest))) = (table, column) {
            add_column(table, name, rest.split_whitespace().next().unwrap_or_default(), "");
        }
    }

    /// `PRIMARY KEY (name, name)`
    fn key(&mut self, line: &str) {
        let table = self.tables.last_mut().expect("a key stands inside a table");
        let names = line.split(['(', ')']).nth(1).unwrap_or_default();
        table.key = names.split(',').filter_map(|name| table.place(name.trim())).collect();
    }
}

fn add_column(table: &mut Shape, name: &'static str, word: &str, line: &str) {
    // What does not begin with a name and a word in braces goes on with the line before.
    let word = word.trim_end_matches([',', ';']);
    let Some(kind) = kind_of(word) else { return };
    if matches!(word, "{id}" | "{key}") || line.contains("PRIMARY KEY") {
        table.key = vec![table.columns.len()];
    }
    table.columns.push(ShapeColumn { name, kind });
}

fn kind_of(word: &str) -> Option<Kind> {
    Some(match word {
        "{id}" => Kind::Counted,
        "{key}" | "{int}" => Kind::Int,
        "{real}" => Kind::Real,
        "{text}" | "{name}" => Kind::Text,
        "{bool}" => Kind::Bool,
        "{json}" => Kind::Json,
        "{ints}" => Kind::Ints,
        "{bytes}" => Kind::Bytes,
        "{time}" => Kind::Time,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;
    use crate::migrations::SQLITE;

    /// `table: column, column | key, key`, as the database itself tells it.
    fn told_by_database() -> Vec<String> {
        let db = Connection::open_in_memory().unwrap();
        MIGRATIONS.iter().for_each(|migration| db.execute_batch(&migration.sql_in(SQLITE)).unwrap());
        let column = |sql: &str, table: &str| -> String {
            let mut names = db.prepare(sql).unwrap();
            let names = names.query_map([table], |row| row.get(0)).unwrap();
            names.collect::<Result<Vec<String>, _>>().unwrap().join(", ")
        };
        let mut tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").unwrap();
        let tables = tables.query_map([], |row| row.get(0)).unwrap().collect::<Result<Vec<String>, _>>().unwrap();
        let told = |table: &String| {
            let columns = column("SELECT name || ' ' || type FROM pragma_table_info(?1) ORDER BY cid", table);
            let key = column("SELECT name FROM pragma_table_info(?1) WHERE pk > 0 ORDER BY pk", table);
            format!("{table}: {columns} | {key}")
        };
        tables.iter().map(told).collect()
    }

    fn shown(shape: &Shape) -> String {
        let word = |kind| match kind {
            Kind::Real => "REAL",
            Kind::Text | Kind::Json | Kind::Ints => "TEXT",
            Kind::Bytes => "BLOB",
            Kind::Int | Kind::Counted | Kind::Bool | Kind::Time => "INTEGER",
        };
        let columns: Vec<_> =
            shape.columns.iter().map(|column| format!("{} {}", column.name, word(column.kind))).collect();
        let key: Vec<_> = shape.key_columns().map(|column| column.name).collect();
        format!("{}: {} | {}", shape.name, columns.join(", "), key.join(", "))
    }

    #[test]
    fn every_table_column_and_key_of_the_steps_is_known() {
        let mut known: Vec<_> = tables().iter().map(shown).collect();
        known.sort();
        assert_eq!(known, told_by_database());
    }

    #[test]
    fn a_later_step_may_add_a_column() {
        let steps = [
            "CREATE TABLE a (\n    id {id},\n    b {text} NOT NULL\n) {strict};",
            "ALTER TABLE a ADD COLUMN c {json};",
        ];
        let shape = read(steps.into_iter()).remove(0);
        assert_eq!(shown(&shape), "a: id INTEGER, b TEXT, c TEXT | id");
        assert_eq!(shape.columns[2].kind, Kind::Json);
    }
}
