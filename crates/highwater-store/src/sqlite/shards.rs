//! Files beside the store that hold the large parts of mail: what goes there, which file a message belongs to, and the
//! connections to them.
//!
//! A part in a shard is written only while no row of the store names it, and the shard is committed before the store:
//! whoever sees the name finds the part, and a crash between the two leaves parts that nobody names.

mod parts;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use highwater_core::{Record, Value};
use rusqlite::Connection;

pub(super) use self::parts::{MESSAGES, Parts, RAW, TEXTS, is_mail, texts_of};
use super::{
    error::{Fault, Sql},
    open::{self, Durability},
    places,
};
use crate::{ErrorKind, StoreError};

/// Where the large parts of mail go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharding {
    /// Into the store itself.
    #[default]
    None,
    /// A file for each year in which messages came in, by UTC.
    Year,
    /// A file after the other, each of about so many bytes.
    Size(u64),
}

impl Sharding {
    pub(super) fn word(self) -> &'static str {
        match self {
            Sharding::None => "none",
            Sharding::Year => "year",
            Sharding::Size(_) => "size",
        }
    }

    /// Whether a message of this date may stay where it lies. A file that was filled to another size is kept.
    pub(super) fn keeps(self, date: Option<i64>, lies: Option<Shard>) -> bool {
        match self {
            Sharding::None => lies.is_none(),
            Sharding::Year => lies == date.map(Shard::of_year),
            Sharding::Size(_) => lies.is_some_and(Shard::is_numbered),
        }
    }
}

/// A file, by its year or by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Shard(pub(super) i64);

/// Dates are what senders and imports say: those out of bounds share the first or the last file, so that there are never
/// more than these.
const FIRST_YEAR: i64 = 1970;
const LAST_YEAR: i64 = 2099;
/// Numbers end before years begin; the last file takes all the rest.
const LAST_NUMBER: i64 = FIRST_YEAR - 1;

impl Shard {
    /// Of a date in milliseconds.
    pub(super) fn of_year(date: i64) -> Shard {
        let at = jiff::Timestamp::from_millisecond(date);
        let year = at.map_or(if date < 0 { FIRST_YEAR } else { LAST_YEAR }, |at| {
            i64::from(at.to_zoned(jiff::tz::TimeZone::UTC).year())
        });
        Shard(year.clamp(FIRST_YEAR, LAST_YEAR))
    }

    fn is_numbered(self) -> bool {
        self.0 <= LAST_NUMBER
    }

    /// `highwater-mail-2024.db` beside `highwater.db`.
    fn file_name(self, store: &Path) -> String {
        let stem = store.file_stem().unwrap_or_default().to_string_lossy();
        format!("{stem}-mail-{:04}.db", self.0)
    }
}

/// Connections kept between transactions: a backfill works on a few months at a time.
const OPEN_MAX: usize = 8;

/// The shards of one connection to the store.
pub(super) struct Shards {
    store: PathBuf,
    access: Access,
    open: BTreeMap<Shard, Connection>,
    /// Something was not where its place says: it was moved meanwhile, or it is lost.
    is_missing: bool,
}

/// Where the texts of a message are.
pub(super) enum Lying {
    InRow,
    InShard([Value; 2]),
    /// Not where its place says.
    Lost,
}

#[derive(Clone, Copy)]
enum Access {
    Read,
    Write { sharding: Sharding, durability: Durability },
}

impl Shards {
    pub(super) fn to_read(store: &Path) -> Shards {
        Shards { store: store.into(), access: Access::Read, open: BTreeMap::new(), is_missing: false }
    }

    pub(super) fn to_write(store: &Path, sharding: Sharding, durability: Durability) -> Shards {
        Shards { access: Access::Write { sharding, durability }, ..Shards::to_read(store) }
    }

    pub(super) fn sharding(&self) -> Sharding {
        match self.access {
            Access::Read => Sharding::None,
            Access::Write { sharding, .. } => sharding,
        }
    }

    /// Of a file that the store names.
    pub(super) fn path_of(&self, file: &str) -> PathBuf {
        self.store.with_file_name(file)
    }

    /// Where a record that is new belongs; none is the store itself.
    pub(super) fn target(&mut self, db: &Connection, record: &Record) -> Sql<Option<Shard>> {
        if self.sharding() == Sharding::None || !is_mail(record.table) {
            return Ok(None);
        }
        let date = record.table.position("internal_date").and_then(|place| record.body.values.get(place));
        match date {
            Some(Value::Int(date)) => self.target_of(db, Some(*date)),
            _ => self.target_of(db, None),
        }
    }

    pub(super) fn target_of(&mut self, db: &Connection, date: Option<i64>) -> Sql<Option<Shard>> {
        match self.sharding() {
            Sharding::None => Ok(None),
            Sharding::Year => Ok(date.map(Shard::of_year)),
            Sharding::Size(limit) => self.with_room(db, limit).map(Some),
        }
    }

    /// The last of the numbered files, or the one after it when that is full.
    fn with_room(&mut self, db: &Connection, limit: u64) -> Sql<Shard> {
        let Some(last) = places::last_upto(db, Shard(LAST_NUMBER))? else { return Ok(Shard(1)) };
        let size = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
        let size = |file: &Connection| Ok(file.prepare_cached(size)?.query_row([], |row| row.get::<_, i64>(0))?);
        let is_full = self.within(db, last, size)?.cast_unsigned() >= limit;
        Ok(if is_full { Shard((last.0 + 1).min(LAST_NUMBER)) } else { last })
    }

    /// Does something with a shard that is there.
    pub(super) fn within<T>(
        &mut self,
        db: &Connection,
        shard: Shard,
        work: impl FnOnce(&Connection) -> Sql<T>,
    ) -> Sql<T> {
        let path = match places::file(db, shard)? {
            Some(file) => self.path_of(&file),
            None => return Err(nowhere(shard)),
        };
        if !self.open.contains_key(&shard) && !path.exists() {
            self.is_missing = true;
            return Err(lost(&path).into());
        }
        work(self.connect(shard, &path)?).map_err(|fault| in_file(&path, fault))
    }

    /// Writes to a shard, which is made if there is none. Others see it after [`Shards::commit`].
    pub(super) fn write(
        &mut self,
        db: &Connection,
        shard: Shard,
        work: impl FnOnce(&Connection) -> Sql<()>,
    ) -> Sql<()> {
        let name = shard.file_name(&self.store);
        if places::enter(db, shard, &name)? {
            let path = self.path_of(&name);
            self.connect(shard, &path)?;
        }
        self.within(db, shard, |file| {
            if file.is_autocommit() {
                file.execute_batch("BEGIN IMMEDIATE")?;
            }
            work(file)
        })
    }

    /// The texts of a message, if they do not lie in its row; empty if they are lost.
    pub(super) fn texts_of(&mut self, db: &Connection, id: &str) -> Sql<Option<[Value; 2]>> {
        Ok(match self.find_texts(db, id)? {
            Lying::InRow => None,
            Lying::InShard(texts) => Some(texts),
            Lying::Lost => Some([Value::Null, Value::Null]),
        })
    }

    pub(super) fn find_texts(&mut self, db: &Connection, id: &str) -> Sql<Lying> {
        let Some(shard) = places::of(db, id)? else { return Ok(Lying::InRow) };
        let texts = self.within(db, shard, |file| parts::texts_in(file, id))?;
        self.is_missing |= texts.is_none();
        Ok(texts.map_or(Lying::Lost, Lying::InShard))
    }

    /// The row of bytes of a message that lies there.
    pub(super) fn raw_at(&mut self, db: &Connection, lies: Option<Shard>, id: &str) -> Sql<Option<Vec<Value>>> {
        let Some(shard) = lies else { return parts::raw_in(db, id) };
        let raw = self.within(db, shard, |file| parts::raw_in(file, id))?;
        self.is_missing |= raw.is_none();
        Ok(raw)
    }

    fn connect(&mut self, shard: Shard, path: &Path) -> Sql<&Connection> {
        if !self.open.contains_key(&shard) {
            let file = match self.access {
                Access::Read => open::shard_reader(path)?,
                Access::Write { durability, .. } => open::shard_writer(path, durability, parts::SCHEMA)?,
            };
            self.open.insert(shard, file);
        }
        Ok(&self.open[&shard])
    }

    /// Before the store itself commits.
    pub(super) fn commit(&mut self) -> Sql<()> {
        for file in self.open.values().filter(|file| !file.is_autocommit()) {
            file.execute_batch("COMMIT")?;
        }
        Ok(())
    }

    pub(super) fn undo(&mut self) {
        // Closing rolls back as well, where that cannot be told.
        self.open.retain(|_, file| file.is_autocommit() || file.execute_batch("ROLLBACK").is_ok());
    }

    /// Between transactions: closes those beyond what is kept.
    pub(super) fn rest(&mut self) {
        while self.open.len() > OPEN_MAX {
            self.open.pop_first();
        }
    }

    pub(super) fn close(&mut self, shard: Shard) {
        self.open.remove(&shard);
    }

    /// Whether something was missing since this was last asked. What was open may be a file that is no longer there.
    pub(super) fn take_missing(&mut self) -> bool {
        if self.is_missing {
            self.open.clear();
        }
        std::mem::take(&mut self.is_missing)
    }
}

/// All files that the store names are there.
pub(super) fn check_files(db: &Connection, store: &Path) -> Sql<()> {
    let mut paths = places::files(db)?.into_iter().map(|(_, file)| store.with_file_name(file));
    paths.find(|path| !path.exists()).map_or(Ok(()), |path| Err(lost(&path).into()))
}

fn lost(path: &Path) -> StoreError {
    let lost = format!("{} is missing: mail of this store is in it, put it back", path.display());
    StoreError::new(ErrorKind::Corrupt, lost)
}

fn in_file(path: &Path, fault: Fault) -> Fault {
    fault.while_doing(&format!("using {}", path.display())).into()
}

fn nowhere(shard: Shard) -> Fault {
    Fault::Decided(StoreError::new(
        ErrorKind::Corrupt,
        format!("mail is said to be in shard {}: there is none", shard.0),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_in_its_year_and_odd_ones_are_in_the_first_or_the_last() {
        let year = |date| Shard::of_year(date).0;
        assert_eq!((year(1_704_067_199_999), year(1_704_067_200_000)), (2023, 2024));
        assert_eq!((year(0), year(-1), year(i64::MIN)), (1970, 1970, 1970));
        assert_eq!((year(7_000_000_000_000), year(i64::MAX)), (2099, 2099));
    }

    #[test]
    fn a_file_is_called_by_the_store_and_its_year_or_number() {
        let name = |shard: i64| Shard(shard).file_name(Path::new("/a/highwater.db"));
        assert_eq!((name(2024), name(7)), ("highwater-mail-2024.db".into(), "highwater-mail-0007.db".into()));
    }
}
