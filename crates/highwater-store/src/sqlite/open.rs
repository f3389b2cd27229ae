//! Opening a database file: what is asked for, the settings of a connection, and the schema.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags, OptionalExtension, config::DbConfig};

use super::{
    copy,
    error::{Fault, Sql},
    shards::{self, Sharding},
};
use crate::{
    ErrorKind, Execution, Result, StoreError,
    copy::is_unfinished,
    migrations::{self, Applied},
};

#[derive(Clone, Debug)]
pub struct OpenOptions {
    pub path: PathBuf,
    pub mode: Mode,
    pub execution: Execution,
    pub durability: Durability,
    pub group: GroupLimits,
    /// Where mail goes from now on; what is there already is moved by `arrange`.
    pub sharding: Sharding,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Takes the process lock and brings the schema up to date.
    ReadWrite,
    /// Takes no lock and changes nothing; may be used beside a process that writes.
    ReadOnly,
    /// To be read while nobody writes: a file is locked as for writing, and must be there already.
    CopySource,
    /// As `ReadWrite`, and the only way into a copy that is not finished.
    CopyTarget,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// A commit that returned survives a power cut.
    Full,
    /// Survives the end of the process only.
    Off,
}

/// When a group of operations is written: at the first of these.
#[derive(Clone, Copy, Debug)]
pub struct GroupLimits {
    pub rows: usize,
    pub bytes: usize,
    pub linger: Duration,
}

impl Default for GroupLimits {
    fn default() -> Self {
        GroupLimits { rows: 1_000, bytes: 16 << 20, linger: Duration::from_millis(50) }
    }
}

impl OpenOptions {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        OpenOptions {
            path: path.into(),
            mode: Mode::ReadWrite,
            execution: Execution::Blocking,
            durability: Durability::Full,
            group: GroupLimits::default(),
            sharding: Sharding::None,
        }
    }

    pub fn read_only(path: impl Into<PathBuf>) -> Self {
        OpenOptions { mode: Mode::ReadOnly, ..OpenOptions::new(path) }
    }
}

/// 16 KiB wrote a third faster than 4 KiB; see also the cache below, which counts in bytes.
const PAGE_SIZE: u32 = 16 << 10;
/// Negative: in KiB. With the readers' the largest part of the process's memory.
const WRITER_CACHE: i64 = -(24 << 10);
const READER_CACHE: i64 = -(4 << 10);
/// Rows of mail are mostly read and written once.
const SHARD_CACHE: i64 = -(1 << 10);
/// In pages: 32 MB of log between two checkpoints.
const CHECKPOINT_PAGES: u32 = 2_000;
const LOG_SIZE_MAX: i64 = 64 << 20;
/// Another program may hold the file for a moment, to back it up or to look at it.
const BUSY_PATIENCE: Duration = Duration::from_secs(5);
const STATEMENTS_CACHED: usize = 64;

/// The file behind `path`, so that two names of one file meet at one lock.
pub(super) fn resolve(path: &Path) -> Result<PathBuf> {
    if let Ok(real) = path.canonicalize() {
        return Ok(real);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().ok_or_else(|| cannot_open(path, "names no file"))?;
    match folder.canonicalize() {
        Ok(folder) => Ok(folder.join(name)),
        Err(error) => Err(cannot_open(path, "its folder cannot be reached").caused_by(error)),
    }
}

/// Before anything is made beside it, and before this process has it open: to close a file gives up all locks that its
/// process holds on it. A file that is still empty, or shorter than what tells, is for SQLite to judge.
pub(super) fn check_is_database(path: &Path) -> Result<()> {
    if !path.exists() {
        return Ok(());
    }
    if !path.is_file() {
        return Err(cannot_open(path, if path.is_dir() { "it is a folder" } else { "it is no file" }));
    }
    let mut begins = [0; MAGIC.len()];
    // Whether it may be read is found out by opening it.
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut begins));
    if read.is_ok() && begins != *MAGIC { Err(cannot_open(path, "it is not a SQLite database")) } else { Ok(()) }
}

/// How every SQLite file begins.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

fn cannot_open(path: &Path, why: &str) -> StoreError {
    StoreError::new(ErrorKind::CannotOpen, format!("cannot open {}: {why}", path.display()))
}

/// The one connection that writes, on a database whose schema is up to date.
pub(super) fn writer(path: &Path, options: &OpenOptions) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connect = || -> Sql<Connection> {
        let mut db = Connection::open_with_flags(path, flags)?;
        check_is_ours(&db)?;
        set_up_writer(&db, options.durability)?;
        migrate(&mut db)?;
        if options.mode != Mode::CopyTarget {
            check_finished(&db)?;
        }
        shards::check_files(&db, path)?;
        Ok(db)
    };
    connect().map_err(|fault| opening(path, fault))
}

pub(super) fn reader(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connect = || -> Sql<Connection> {
        let db = Connection::open_with_flags(path, flags)?;
        set_up(&db)?;
        db.pragma_update(None, "cache_size", READER_CACHE)?;
        Ok(db)
    };
    connect().map_err(|fault| opening(path, fault))
}

/// Makes the file if there is none.
pub(super) fn shard_writer(path: &Path, durability: Durability, schema: &str) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connect = || -> Sql<Connection> {
        let file = Connection::open_with_flags(path, flags)?;
        set_up_writer(&file, durability)?;
        file.pragma_update(None, "cache_size", SHARD_CACHE)?;
        file.execute_batch(schema)?;
        Ok(file)
    };
    connect().map_err(|fault| opening(path, fault))
}

pub(super) fn shard_reader(path: &Path) -> Result<Connection> {
    let file = reader(path)?;
    let small = file.pragma_update(None, "cache_size", SHARD_CACHE);
    small.map_err(|error| opening(path, error.into()))?;
    Ok(file)
}

/// A first reader for a store that nobody may change: also checks that its schema is ours.
pub(super) fn checked_reader(path: &Path) -> Result<Connection> {
    check_exists(path)?;
    let db = reader(path)?;
    let applied = applied(&db).map_err(|fault| opening(path, fault))?;
    if migrations::outstanding(&applied)?.is_empty() {
        check_finished(&db).map_err(|fault| opening(path, fault))?;
        shards::check_files(&db, path).map_err(|fault| opening(path, fault))?;
        return Ok(db);
    }
    let older = format!(
        "it has schema version {}, not yet {}; a sync brings it up to date",
        applied.len(),
        migrations::latest()
    );
    Err(cannot_open(path, &older))
}

pub(super) fn check_exists(path: &Path) -> Result<()> {
    if path.exists() { Ok(()) } else { Err(cannot_open(path, "there is no such file")) }
}

/// Before anything of it is changed: a database of another program is not ours to settle in.
fn check_is_ours(db: &Connection) -> Sql<()> {
    set_up(db)?;
    let is_strange = "SELECT count(*) > 0 AND count(*) FILTER (WHERE name = 'highwater_schema') = 0 FROM sqlite_schema";
    match db.query_row(is_strange, [], |row| row.get(0))? {
        true => Err(StoreError::new(ErrorKind::CannotOpen, "it is the database of another program").into()),
        false => Ok(()),
    }
}

fn check_finished(db: &Connection) -> Sql<()> {
    copy::unfinished(db)?.map_or(Ok(()), |source| Err(is_unfinished(&source).into()))
}

fn opening(path: &Path, fault: Fault) -> StoreError {
    let path = path.display();
    match fault.kind() {
        ErrorKind::Corrupt if matches!(fault, Fault::Sql(_)) => {
            fault.while_doing(&format!("{path} is damaged or is not a SQLite database"))
        }
        _ => fault.while_doing(&format!("cannot open {path}")),
    }
}

fn set_up(db: &Connection) -> Sql<()> {
    db.busy_timeout(BUSY_PATIENCE)?;
    db.set_prepared_statement_cache_capacity(STATEMENTS_CACHED);
    // Without it, binding another key compiles a statement anew.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

fn set_up_writer(db: &Connection, durability: Durability) -> Sql<()> {
    set_up(db)?;
    // Takes effect only in a file that is still empty.
    db.pragma_update(None, "page_size", PAGE_SIZE)?;
    let journal: String = db.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    if journal != "wal" {
        let shared = "the file system does not support a write-ahead log";
        return Err(StoreError::new(ErrorKind::CannotOpen, shared).into());
    }
    db.pragma_update(None, "synchronous", if durability == Durability::Full { "FULL" } else { "OFF" })?;
    db.pragma_update(None, "cache_size", WRITER_CACHE)?;
    db.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    db.pragma_update(None, "journal_size_limit", LOG_SIZE_MAX)?;
    // Savepoints keep what they may have to undo here.
    db.pragma_update(None, "temp_store", "MEMORY")?;
    // References are checked by `integrity`; the order of writes inside a transaction is ours.
    db.pragma_update(None, "foreign_keys", false)?;
    Ok(())
}

fn migrate(db: &mut Connection) -> Sql<()> {
    let transaction = db.transaction_with_behavior(rusqlite::TransactionBehavior::Exclusive)?;
    transaction.execute_batch(
        "CREATE TABLE IF NOT EXISTS highwater_schema (
            version INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL) STRICT",
    )?;
    for migration in migrations::outstanding(&applied(&transaction)?)? {
        transaction.execute_batch(&migration.sql_in(migrations::SQLITE))?;
        transaction.execute(
            "INSERT INTO highwater_schema (version, name, checksum) VALUES (?1, ?2, ?3)",
            (migration.version, migration.name, migration.checksum()),
        )?;
    }
    Ok(transaction.commit()?)
}

fn applied(db: &Connection) -> Sql<Vec<Applied>> {
    let table = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'highwater_schema'";
    if db.query_row(table, [], |_| Ok(())).optional()?.is_none() {
        return Ok(Vec::new());
    }
    let mut steps = db.prepare("SELECT version, checksum FROM highwater_schema ORDER BY version")?;
    let rows = steps.query_map([], |row| Ok(Applied { version: row.get(0)?, checksum: row.get(1)? }))?;
    Ok(rows.collect::<Result<_, _>>()?)
}
