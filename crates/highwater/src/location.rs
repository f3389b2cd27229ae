//! Where the store is: a file or a database, read from its URL, and opened.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use highwater_store::{
    Content, ErrorKind, Execution, Mode, OpenOptions, Opening, PostgresIndex, PostgresOptions, PostgresStore,
    SearchIndex, Sharding, SqliteIndex, SqliteStore, Store, StoreError, TextStore,
};

use crate::{
    exit::{Exit, Trouble},
    settings::Access,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    Sqlite(PathBuf),
    /// The whole URL; may hold a password.
    Postgres(String),
}

impl Location {
    pub(crate) fn parse(url: &str, schema: Option<&str>) -> Result<Self, Trouble> {
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return Ok(Location::Postgres(with_schema(url, schema)));
        }
        let path = url.strip_prefix("sqlite://").or_else(|| url.strip_prefix("sqlite:"));
        match path {
            Some(path) if !path.is_empty() && schema.is_none() => Ok(Location::Sqlite(path.into())),
            Some(path) if !path.is_empty() => {
                Err(Trouble::usage("store.schema is for PostgreSQL; a SQLite file has none")
                    .hint("remove store.schema, or point store.url at postgres://…"))
            }
            _ => Err(Trouble::usage(format!("{:?} is not a store this version can open", shown(url)))
                .hint("write it as sqlite:PATH, for example sqlite:highwater.db, or as postgres://USER@HOST/DATABASE")),
        }
    }

    /// Whether both name the same store, as far as that can be seen from here.
    pub(crate) fn is(&self, other: &Location) -> bool {
        match (self, other) {
            (Location::Sqlite(one), Location::Sqlite(other)) => {
                one == other
                    || matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
            }
            (one, other) => one == other,
        }
    }

    /// Refused where mail cannot lie as it is wished for.
    pub(crate) fn holding(self, sharding: Sharding) -> Result<Self, Trouble> {
        match self {
            Location::Postgres(_) if sharding != Sharding::None => {
                Err(Trouble::usage("shards is for SQLite; a PostgreSQL database keeps all mail in its tables")
                    .hint("remove shards from the sources, or point store.url at sqlite:…"))
            }
            location => Ok(location),
        }
    }

    /// To be copied, or to be filled by a copy.
    pub(crate) async fn open_content(&self, mode: Mode) -> Result<Box<dyn Content>, Trouble> {
        match self {
            Location::Sqlite(path) => {
                let store = SqliteStore::open(OpenOptions { mode, ..OpenOptions::new(path) });
                Ok(Box::new(store.map_err(|error| sqlite_trouble(&error, path))?))
            }
            Location::Postgres(url) => {
                let store = PostgresStore::open(PostgresOptions { mode, ..PostgresOptions::new(url) }).await;
                Ok(Box::new(store.map_err(|error| postgres_trouble(&error))?))
            }
        }
    }

    /// To be read, with its index of words.
    pub(crate) async fn open_search(
        &self,
        opening: Opening,
    ) -> Result<(Box<dyn TextStore>, Box<dyn SearchIndex>), Trouble> {
        match self {
            Location::Sqlite(path) => {
                let store = SqliteStore::open(OpenOptions::read_only(path));
                let store = store.map_err(|error| self.trouble(&error))?;
                let index = SqliteIndex::open(path, opening, Execution::Blocking);
                Ok((Box::new(store), Box::new(index.map_err(|error| index_trouble(&error, opening))?)))
            }
            Location::Postgres(url) => {
                let store = PostgresStore::open(PostgresOptions::read_only(url)).await;
                let store = store.map_err(|error| self.trouble(&error))?;
                let index = PostgresIndex::open(url, opening).await;
                Ok((Box::new(store), Box::new(index.map_err(|error| index_trouble(&error, opening))?)))
            }
        }
    }

    /// Mail goes where `sharding` says.
    pub(crate) async fn open(&self, access: Access, sharding: Sharding) -> Result<Arc<dyn Store>, Trouble> {
        self.attempt(access, sharding).await.map_err(|error| self.trouble(&error))
    }

    /// As [`Location::open`], for who decides by the kind of the error.
    pub(crate) async fn attempt(&self, access: Access, sharding: Sharding) -> Result<Arc<dyn Store>, StoreError> {
        match self {
            Location::Sqlite(path) => {
                let options = match access {
                    Access::Read => OpenOptions::read_only(path),
                    Access::Write => OpenOptions { sharding, ..OpenOptions::new(path) },
                };
                Ok(Arc::new(SqliteStore::open(options)?))
            }
            Location::Postgres(url) => {
                let options = match access {
                    Access::Read => PostgresOptions::read_only(url),
                    Access::Write => PostgresOptions::new(url),
                };
                Ok(Arc::new(PostgresStore::open(options).await?))
            }
        }
    }

    /// What to say of an error met while opening.
    pub(crate) fn trouble(&self, error: &StoreError) -> Trouble {
        match self {
            Location::Sqlite(path) => sqlite_trouble(error, path),
            Location::Postgres(_) => postgres_trouble(error),
        }
    }
}

/// A URL for people: without the password, and without parameters, which may hold one.
pub(crate) fn shown(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (user, place) = rest.rsplit_once('@').map_or(("", rest), |(user, place)| (user, place));
    let (name, place) = (user.split(':').next().unwrap_or_default(), place.split('?').next().unwrap_or_default());
    let at = if name.is_empty() { "" } else { "@" };
    format!("{scheme}://{name}{at}{place}")
}

fn with_schema(url: &str, schema: Option<&str>) -> String {
    match schema {
        None => url.to_owned(),
        Some(schema) => format!("{url}{}schema={schema}", if url.contains('?') { '&' } else { '?' }),
    }
}

fn sqlite_trouble(error: &StoreError, path: &Path) -> Trouble {
    let message = format!("cannot open the store sqlite:{}: {}", path.display(), highwater_engine::describe(error));
    let trouble = Trouble::new(exit_of(error.kind), message);
    match error.kind {
        ErrorKind::Locked => trouble
            .hint("wait for it to end; if it is a service, stop it first; status, ledger and verify work meanwhile"),
        ErrorKind::TooNew => trouble.hint("use the version of highwater that made it, or a newer one"),
        ErrorKind::CannotOpen if path.exists() => {
            trouble.hint("check store.url, or --store, and that you may write the file and its folder")
        }
        ErrorKind::CannotOpen => {
            trouble.hint("check store.url, or --store; where there is no store yet, a sync makes one")
        }
        ErrorKind::Unavailable => {
            trouble.hint("another program may hold the file: end it, or run the same command again later")
        }
        ErrorKind::Full => {
            trouble.hint("make room, then run the same command again: nothing that was committed is lost")
        }
        _ => trouble,
    }
}

/// Without the URL, which may hold a password: the error names the server and the database.
fn postgres_trouble(error: &StoreError) -> Trouble {
    let trouble = Trouble::new(exit_of(error.kind), highwater_engine::describe(error));
    match error.kind {
        ErrorKind::TooNew => trouble.hint("use the version of highwater that made it, or a newer one"),
        ErrorKind::Unauthorized => {
            trouble.hint("set PGPASSWORD, or add a line to ~/.pgpass; check the user in store.url, or --store")
        }
        ErrorKind::CannotOpen | ErrorKind::Unreachable => {
            trouble.hint("check store.url, or --store, and that the server runs")
        }
        _ => trouble,
    }
}

/// The store itself could be read.
pub(crate) fn index_trouble(error: &StoreError, opening: Opening) -> Trouble {
    let trouble = Trouble::new(exit_of(error.kind), highwater_engine::describe(error));
    match (error.kind, opening) {
        (ErrorKind::CannotOpen | ErrorKind::Corrupt, Opening::AsIs) => {
            trouble.hint("search without --as-is: the index is then made, or made again")
        }
        (ErrorKind::CannotOpen, Opening::Refresh) => trouble.hint(
            "a search keeps its index beside the store, and must be allowed to write there: to the folder of the file, or \
             to make tables in the schema; --as-is searches what is indexed already",
        ),
        (ErrorKind::Full, _) => trouble.hint("make room, then search again: it goes on where it was"),
        _ => trouble,
    }
}

pub(crate) fn exit_of(kind: ErrorKind) -> Exit {
    match kind {
        ErrorKind::CannotOpen | ErrorKind::Unreachable | ErrorKind::TooNew => Exit::Usage,
        ErrorKind::Unauthorized => Exit::Credentials,
        _ => Exit::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        for (url, expected) in [
            ("postgres://ann:p@:ss?@host:1/db?schema=s", "postgres://ann@host:1/db"),
            ("postgre://ann@host/db?password=secret", "postgre://ann@host/db"),
            ("postgres://:secret@/db", "postgres:///db"),
            ("postgres://host/db", "postgres://host/db"),
            ("sqlite:a@b.db", "sqlite:a@b.db"),
        ] {
            assert_eq!(shown(url), expected);
        }
    }

    #[test]
    fn a_url_says_where_the_store_is() {
        assert_eq!(Location::parse("sqlite:a.db", None).unwrap(), Location::Sqlite("a.db".into()));
        let postgres = |url: &str, schema| Location::parse(url, schema).unwrap();
        assert_eq!(postgres("postgres://a@b/c", None), Location::Postgres("postgres://a@b/c".into()));
        assert_eq!(
            postgres("postgresql://b/c?x=1", Some("s")),
            Location::Postgres("postgresql://b/c?x=1&schema=s".into())
        );
        for refused in ["mysql://a", "sqlite:", "a.db"] {
            assert!(Location::parse(refused, None).is_err(), "{refused}");
        }
        assert!(Location::parse("sqlite:a.db", Some("s")).is_err());
    }
}
