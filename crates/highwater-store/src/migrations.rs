//! The schema in numbered steps, one SQL text for every backend. A dialect only spells the words in braces; how the
//! steps are applied is the backend's.

use aws_lc_rs::digest::{SHA256, digest};

use crate::{ErrorKind, Result, StoreError, ledger::hex};

/// A released step is never edited: its checksum is in every database it made.
pub(crate) struct Migration {
    pub(crate) version: i64,
    pub(crate) name: &'static str,
    sql: &'static str,
}

pub(crate) const MIGRATIONS: &[Migration] =
    &[Migration { version: 1, name: "first", sql: include_str!("migrations/0001_first.sql") }];

/// How a database spells the words in braces.
pub(crate) type Dialect = [(&'static str, &'static str)];

pub(crate) const SQLITE: &Dialect = &[
    ("{id}", "INTEGER PRIMARY KEY"),
    ("{key}", "INTEGER PRIMARY KEY"),
    ("{int}", "INTEGER"),
    ("{real}", "REAL"),
    ("{text}", "TEXT"),
    ("{bool}", "INTEGER"),
    ("{json}", "TEXT"),
    ("{ints}", "TEXT"),
    ("{time}", "INTEGER"),
    ("{strict}", "STRICT"),
    ("{rowless}", "STRICT, WITHOUT ROWID"),
];

/// A step as the database remembers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Applied {
    pub(crate) version: i64,
    pub(crate) checksum: String,
}

impl Migration {
    pub(crate) fn sql_in(&self, dialect: &Dialect) -> String {
        dialect.iter().fold(self.sql.to_owned(), |sql, (word, spelling)| sql.replace(word, spelling))
    }

    /// Of the text before it is spelled, so that all backends agree.
    pub(crate) fn checksum(&self) -> String {
        hex(digest(&SHA256, self.sql.as_bytes()).as_ref())
    }
}

/// The steps that a database with `applied` steps still needs.
pub(crate) fn outstanding(applied: &[Applied]) -> Result<&'static [Migration]> {
    if let Some(unknown) = applied.iter().find(|step| step.version > latest()) {
        let newer = format!(
            "the database has schema version {}, this program knows up to {}: use a newer highwater",
            unknown.version,
            latest()
        );
        return Err(StoreError::new(ErrorKind::TooNew, newer));
    }
    for (step, known) in applied.iter().zip(MIGRATIONS) {
        if step.version != known.version || step.checksum != known.checksum() {
            let differs = format!("schema version {} of the database is not the one this program knows", step.version);
            return Err(StoreError::new(ErrorKind::Corrupt, differs));
        }
    }
    Ok(&MIGRATIONS[applied.len()..])
}

pub(crate) fn latest() -> i64 {
    MIGRATIONS.last().map_or(0, |migration| migration.version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dialect_spells_every_word() {
        for migration in MIGRATIONS {
            let sql = migration.sql_in(SQLITE);
            assert!(!sql.contains(['{', '}']), "{sql}");
        }
    }

    #[test]
    fn a_step_that_was_edited_or_is_unknown_is_refused() {
        let sound = Applied { version: 1, checksum: MIGRATIONS[0].checksum() };
        assert!(outstanding(std::slice::from_ref(&sound)).is_ok_and(|rest| rest.len() == MIGRATIONS.len() - 1));
        let edited = Applied { checksum: "0".repeat(64), ..sound.clone() };
        assert!(outstanding(&[edited]).is_err_and(|error| error.kind == ErrorKind::Corrupt));
        let unknown = Applied { version: latest() + 1, ..sound.clone() };
        assert!(outstanding(&[sound, unknown]).is_err_and(|error| error.kind == ErrorKind::TooNew));
    }
}
