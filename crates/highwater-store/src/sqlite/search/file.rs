//! The file of an index: made beside its store, made again if it is of another version or no database, and left alone if
//! it is somebody else's.

use std::{
    fs, io,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::{
    ErrorKind, Opening, Result, StoreError,
    search::{INDEX_VERSION, NO_INDEX},
    sqlite::error::{Fault, Sql},
};

/// `hwfx`: by this a file is known to be ours.
const APPLICATION: i64 = 0x6877_6678;
/// Another search may be indexing; it commits after every batch, which takes a second or two.
const BUSY_PATIENCE: Duration = Duration::from_secs(60);
/// Negative: in KiB.
const CACHE: i64 = -(16 << 10);
const STATEMENTS_CACHED: usize = 32;

/// Words come folded, with a space between, and gaps as `_`: SQLite is to change nothing of that.
const SCHEMA: &str = "
    CREATE TABLE search_collections (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
    CREATE TABLE search_documents (
        id INTEGER PRIMARY KEY,
        collection INTEGER NOT NULL,
        key ANY NOT NULL,
        row_check INTEGER NOT NULL,
        at INTEGER,
        UNIQUE (collection, key)
    ) STRICT;
    CREATE VIRTUAL TABLE search_words USING fts5 (
        title, author, addressee, text, content = '', contentless_delete = 1, tokenize = \"ascii tokenchars '_'\");";

pub(super) fn beside(store: &Path) -> PathBuf {
    let stem = store.file_stem().unwrap_or_default().to_string_lossy();
    store.with_file_name(format!("{stem}-search.db"))
}

pub(super) fn open(path: &Path, store: &Path, opening: Opening) -> Result<Connection> {
    let opened = match opening {
        Opening::AsIs => read_only(path),
        Opening::Refresh => make(path, store).and_then(|()| ready(path)),
    };
    match opened {
        Err(fault) if fault.kind() == ErrorKind::Corrupt && opening == Opening::Refresh => {
            open_anew(path, opening).map_err(|fault| while_opening(path, fault))
        }
        opened => opened.map_err(|fault| while_opening(path, fault)),
    }
}

/// With nothing in it, whatever there was.
pub(super) fn open_anew(path: &Path, opening: Opening) -> Sql<Connection> {
    if opening == Opening::AsIs {
        return Err(absent());
    }
    let mut journal = path.as_os_str().to_owned();
    journal.push("-journal");
    remove(Path::new(&journal))?;
    // Emptied and not deleted: it keeps its owner and mode, and another who has it open sees the same file.
    let mut emptied = fs::OpenOptions::new();
    emptied.write(true).truncate(true).create(true).mode(OWNERS).open(path).map_err(|error| on_disk(path, error))?;
    ready(path)
}

fn remove(path: &Path) -> Sql<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(on_disk(path, error)),
        _ => Ok(()),
    }
}

/// Who searches may always write here.
const OWNERS: u32 = 0o600;

/// It says much of what the store says: who may not read that may not read this.
fn make(path: &Path, store: &Path) -> Sql<()> {
    let made = fs::OpenOptions::new().write(true).create_new(true).mode(OWNERS).open(path);
    match made {
        Ok(file) => {
            let mode = |store: fs::Metadata| fs::Permissions::from_mode(store.permissions().mode() | OWNERS);
            let set = fs::metadata(store).and_then(|store| file.set_permissions(mode(store)));
            set.map_err(|error| on_disk(path, error))
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(on_disk(path, error)),
    }
}

fn ready(path: &Path) -> Sql<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut db = Connection::open_with_flags(path, flags)?;
    set_up(&db)?;
    // Not a write-ahead log: who may only read the folder could not read the file.
    db.pragma_update_and_check(None, "journal_mode", "truncate", |_| Ok(()))?;
    // What a power cut takes away is indexed again.
    db.pragma_update(None, "synchronous", "NORMAL")?;
    db.pragma_update(None, "temp_store", "MEMORY")?;
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let (application, version) = marks(&transaction)?;
    if application != APPLICATION && has_tables(&transaction)? {
        return Err(foreign(path));
    }
    if (application, version) != (APPLICATION, INDEX_VERSION) {
        let names = ["search_words", "search_documents", "search_collections"];
        let drop: String = names.iter().map(|name| format!("DROP TABLE IF EXISTS {name};")).collect();
        transaction.execute_batch(&drop)?;
        transaction.execute_batch(SCHEMA)?;
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", INDEX_VERSION)?;
    }
    transaction.commit()?;
    Ok(db)
}

fn read_only(path: &Path) -> Sql<Connection> {
    if !path.exists() {
        return Err(absent());
    }
    let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    set_up(&db)?;
    if marks(&db)? == (APPLICATION, INDEX_VERSION) { Ok(db) } else { Err(absent()) }
}

fn set_up(db: &Connection) -> Sql<()> {
    db.busy_timeout(BUSY_PATIENCE)?;
    db.set_prepared_statement_cache_capacity(STATEMENTS_CACHED);
    db.pragma_update(None, "cache_size", CACHE)?;
    Ok(())
}

/// Whose file it is, and of which version.
fn marks(db: &Connection) -> Sql<(i64, i64)> {
    let mark = |name: &str| db.pragma_query_value(None, name, |row| row.get(0));
    Ok((mark("application_id")?, mark("user_version")?))
}

fn has_tables(db: &Connection) -> Sql<bool> {
    Ok(db.prepare("SELECT 1 FROM sqlite_schema")?.exists([])?)
}

fn absent() -> Fault {
    StoreError::new(ErrorKind::CannotOpen, NO_INDEX).into()
}

fn foreign(path: &Path) -> Fault {
    let foreign = format!("{} is a database, but no search index of highwater: move it away", path.display());
    StoreError::new(ErrorKind::CannotOpen, foreign).into()
}

fn on_disk(path: &Path, error: io::Error) -> Fault {
    let kind = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::Full,
        _ => ErrorKind::CannotOpen,
    };
    StoreError::new(kind, format!("cannot make the search index {}", path.display())).caused_by(error).into()
}

fn while_opening(path: &Path, fault: Fault) -> StoreError {
    fault.while_doing(&format!("cannot open the search index {}", path.display()))
}
