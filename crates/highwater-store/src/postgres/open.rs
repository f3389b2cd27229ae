//! Opening a database: what is asked for, whether the server will do, and the schema.

use std::{sync::Arc, time::Duration};

use super::{
    address::Address,
    copy,
    error::{Fault, Sql},
    link::{Db, Link, is_about_encryption},
    pool::{Begin, Packs, Pool, quoted},
};
use crate::{
    ErrorKind, Execution, GroupLimits, Mode, Result, StoreError,
    copy::is_unfinished,
    migrations::{self, Applied},
};
use tokio_postgres::types::Type;

#[derive(Clone)]
pub struct PostgresOptions {
    /// `postgres://…`; may hold a password.
    pub url: String,
    pub mode: Mode,
    pub clock: LeaseClock,
    pub execution: Execution,
    pub group: GroupLimits,
    /// One writes rows; the others are for claims, closings, heartbeats and readers, none of which waits long. More
    /// would only cost the server memory: a process has few things to ask at once.
    pub connections: usize,
}

/// Whose clock leases live by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseClock {
    /// The database's: the clocks of many machines differ.
    Server,
    /// Whatever the caller says: for tests that play with time.
    Caller,
}

const CONNECTIONS: usize = 6;
/// Larger than those of a file: the first thousand rows of a COPY cost the server about twice what the others do. Of two
/// processes on one machine each brings 6,000 in that time. A crash undoes two such groups at most.
const GROUP: GroupLimits = GroupLimits { rows: 8_000, bytes: 16 << 20, linger: Duration::from_millis(250) };
/// In the server's own count.
const OLDEST: i32 = 130_000;

impl PostgresOptions {
    pub fn new(url: impl Into<String>) -> Self {
        PostgresOptions {
            url: url.into(),
            mode: Mode::ReadWrite,
            clock: LeaseClock::Server,
            execution: Execution::Blocking,
            group: GROUP,
            connections: CONNECTIONS,
        }
    }

    pub fn read_only(url: impl Into<String>) -> Self {
        PostgresOptions { mode: Mode::ReadOnly, ..PostgresOptions::new(url) }
    }
}

/// The pool, and a name for the store.
pub(super) async fn open(options: &PostgresOptions) -> Result<(Pool, String)> {
    let address = Address::parse(&options.url, &|name| std::env::var(name).ok())?;
    let doing = format!("cannot open the {}", address.shown());
    let prepare = async {
        let mut link = Link::connect(&address).await?;
        let db = Db { client: link.client(), begin: Arc::from("BEGIN") };
        let place = link.drive(ready(&db, address.schema.as_deref(), options.mode)).await?;
        Ok((link, place))
    };
    let (link, Place { schema, packs }) = prepare.await.map_err(|fault| while_opening(fault, &doing))?;
    let name = format!("{}, schema {schema:?}", address.place());
    Ok((Pool::new(address, Begin::new(&schema, packs), link, options.connections), name))
}

/// There is no run yet that could go on when it heals. A certificate that is not trusted will not be in a moment either.
fn while_opening(fault: Fault, doing: &str) -> StoreError {
    let is_final = matches!(&fault, Fault::Sql(error) if is_about_encryption(error));
    let error = fault.while_doing(doing);
    let kind = match error.kind {
        ErrorKind::Unavailable if !is_final => ErrorKind::Unreachable,
        ErrorKind::Unavailable | ErrorKind::Refused => ErrorKind::CannotOpen,
        kind => kind,
    };
    StoreError { kind, ..error }
}

/// Where on the server the store is, and what is known of it.
struct Place {
    schema: String,
    packs: Packs,
}

/// Brings the schema up to date, or checks that it is.
async fn ready(db: &Db, schema: Option<&str>, mode: Mode) -> Sql<Place> {
    db.begin().await?;
    let place = check_server(db, schema).await?;
    match mode {
        Mode::ReadOnly | Mode::CopySource => check_schema(db, &place.schema).await?,
        Mode::ReadWrite | Mode::CopyTarget => migrate(db, &place.schema).await?,
    }
    if mode != Mode::CopyTarget
        && let Some(source) = copy::unfinished(db, &place.schema).await?
    {
        return Err(is_unfinished(&source).into());
    }
    db.commit().await?;
    Ok(place)
}

async fn check_server(db: &Db, schema: Option<&str>) -> Sql<Place> {
    let asked = "SELECT current_setting('server_version_num')::int, current_setting('server_version'),
                        COALESCE($1, current_schema()),
                        EXISTS (SELECT 1 FROM pg_settings
                                WHERE name = 'default_toast_compression' AND 'lz4' = ANY(enumvals))";
    let row = db.query(asked, &[(&schema, Type::TEXT)]).await?.remove(0);
    let (version, name): (i32, &str) = (row.try_get(0)?, row.try_get(1)?);
    if version < OLDEST {
        let old = format!("the server is PostgreSQL {name}; highwater needs 13 or later");
        return Err(StoreError::new(ErrorKind::CannotOpen, old).into());
    }
    let none = "the user's search path has no schema: name one with ?schema=NAME";
    let schema = row.try_get::<_, Option<String>>(2)?.ok_or_else(|| StoreError::new(ErrorKind::CannotOpen, none))?;
    Ok(Place { schema, packs: if row.try_get(3)? { Packs::Quickly } else { Packs::AsEver } })
}

/// One process migrates, the others wait for it and find nothing left to do.
async fn migrate(db: &Db, schema: &str) -> Sql<()> {
    let lock = "SELECT pg_advisory_xact_lock(hashtextextended('highwater schema ' || $1, 0))";
    db.query(lock, &[(&schema, Type::TEXT)]).await?;
    if db.query("SELECT 1 FROM pg_namespace WHERE nspname = $1", &[(&schema, Type::TEXT)]).await?.is_empty() {
        db.run(&format!("CREATE SCHEMA {}", quoted(schema))).await?;
    }
    db.run(&format!("SET LOCAL search_path = {}", quoted(schema))).await?;
    let applied = applied(db, schema).await?;
    let outstanding = migrations::outstanding(&applied)?;
    if applied.is_empty() {
        db.run(
            "CREATE TABLE highwater_schema (version BIGINT PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL)",
        )
        .await?;
    }
    for migration in outstanding {
        db.run(&migration.sql_in(migrations::POSTGRES)).await?;
        db.execute(
            "INSERT INTO highwater_schema (version, name, checksum) VALUES ($1, $2, $3)",
            &[(&migration.version, Type::INT8), (&migration.name, Type::TEXT), (&migration.checksum(), Type::TEXT)],
        )
        .await?;
    }
    Ok(())
}

async fn check_schema(db: &Db, schema: &str) -> Sql<()> {
    let applied = applied(db, schema).await?;
    if migrations::outstanding(&applied)?.is_empty() {
        return Ok(());
    }
    let older = if applied.is_empty() {
        format!("there is no store in schema {schema:?}; a sync makes one")
    } else {
        let (has, needs) = (applied.len(), migrations::latest());
        format!("it has schema version {has}, not yet {needs}; a sync brings it up to date")
    };
    Err(StoreError::new(ErrorKind::CannotOpen, older).into())
}

async fn applied(db: &Db, schema: &str) -> Sql<Vec<Applied>> {
    let table = format!("{}.highwater_schema", quoted(schema));
    let there = db.query("SELECT to_regclass($1) IS NOT NULL", &[(&table, Type::TEXT)]).await?.remove(0);
    if !there.try_get::<_, bool>(0)? {
        return Ok(Vec::new());
    }
    let steps = db.query(&format!("SELECT version, checksum FROM {table} ORDER BY version"), &[]).await?;
    steps.iter().map(|row| Ok(Applied { version: row.try_get(0)?, checksum: row.try_get(1)? })).collect()
}
