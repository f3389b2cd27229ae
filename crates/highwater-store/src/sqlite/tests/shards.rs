//! Mail in shards: whatever a process was killed in, every message is whole in one place, and found there.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use highwater_core::{Key, Lease, Record, Value};
use proptest::prelude::*;
use rusqlite::Connection;
use tempfile::TempDir;

use super::script::options;
use crate::{
    Commit, ErrorKind, FollowStore, MailboxStore, MoveProgress, OpenOptions, Page, Sharding, SqliteStore, Store,
    sqlite::{arrange, commit, session::Session},
    suite::{
        Lab, Scene,
        mail::{ALL_MAIL, ANN, RAW, message, with_bytes},
        scene::at,
    },
};

/// One life of a process on the store.
struct Life {
    store: Arc<SqliteStore>,
    scene: Scene,
    lease: Lease,
}

impl Life {
    async fn begin(path: &Path, sharding: Sharding) -> Life {
        let store = Arc::new(SqliteStore::open(OpenOptions { sharding, ..options(path) }).unwrap());
        let lab = Lab { store: store.clone(), query: Box::new(|_| Box::pin(async { Vec::new() })) };
        let scene = Scene::of_mail(lab).await;
        let lease = scene.claim_one(at(0)).await.lease;
        Life { store, scene, lease }
    }

    async fn commit(&self, records: Vec<Record>) {
        self.scene.commit(&self.lease, records, vec![], at(1)).await.unwrap();
    }

    async fn arrange(&self) {
        self.store.arrange(&MoveProgress::default()).await.unwrap();
    }

    /// Does something, and is killed when the shards have committed and the store has not.
    fn die_between(self, work: impl FnOnce(&mut Session)) {
        let mut session = self.store.writer.as_ref().unwrap().session.try_lock().unwrap();
        session.begin().unwrap();
        work(&mut session);
        session.shards.commit().unwrap();
        session.undo();
    }

    fn die_committing(self, records: Vec<Record>) {
        let commit = Commit { now: at(1), asked_at: at(1), ..self.scene.commit_of(&self.lease, records, vec![]) };
        self.die_between(|session| commit::commit(session, &commit).map(drop).unwrap());
    }

    /// Every message with its texts and bytes, all of which match their checks, and files that are sound.
    async fn mail(&self) -> Vec<(Key, Vec<Value>, Vec<Value>)> {
        let all = 10_000;
        let rows = self.store.rows(&ANN, Page { after: None, limit: all }).await.unwrap();
        assert!(rows.iter().all(|row| row.row_check == row.body.checksum()));
        let raws = self.store.side_rows(&RAW, &ALL_MAIL, Page { after: None, limit: all }).await.unwrap();
        assert_eq!(raws.len(), rows.len());
        assert_eq!(self.store.integrity().await.unwrap(), [""; 0]);
        rows.into_iter().zip(raws).map(|(row, raw)| (row.key, row.body.values, raw)).collect()
    }
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(work)
}

const YEAR_MILLIS: i64 = 31_557_600_000;

/// One of each of ten years from 2014, with a text that tells versions apart.
fn dated(number: i64, version: u8) -> Record {
    let mut record = message(&ANN, &number.to_string(), "t", &["A"]);
    let place = |name| ANN.position(name).unwrap();
    record.body.values[place("internal_date")] = Value::Int(1_400_000_000_000 + number % 10 * YEAR_MILLIS);
    record.body.values[place("body_plain")] = Value::text(format!("{number} in version {version}"));
    with_bytes(record, format!("bytes of {number}, {version}").repeat(40).as_bytes())
}

fn expected(numbers: impl Iterator<Item = (i64, u8)>) -> Vec<(Key, Vec<Value>, Vec<Value>)> {
    let whole = |(number, version)| {
        let record = dated(number, version);
        (record.key.clone(), record.body.values.clone(), record.sides[0].values.clone())
    };
    let mut all: Vec<_> = numbers.map(whole).collect();
    all.sort_by_key(|one| one.0.to_string());
    all
}

fn files(folder: &TempDir) -> Vec<String> {
    let names = folder.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name.contains("-mail-") && name.ends_with(".db")).collect();
    names.sort();
    names
}

fn at_home(path: &Path) -> i64 {
    let count = "SELECT count(*) FROM mail_messages m LEFT JOIN mail_raw r ON r.message_id = m.id
        WHERE m.body_plain IS NOT NULL OR m.body_html IS NOT NULL OR r.raw IS NOT NULL";
    Connection::open(path).unwrap().query_row(count, [], |row| row.get(0)).unwrap()
}

fn ground() -> (TempDir, std::path::PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.db");
    (folder, path)
}

#[test]
fn the_parts_of_a_message_lie_in_the_file_of_its_year() {
    let (folder, path) = ground();
    block_on(async {
        let life = Life::begin(&path, Sharding::Year).await;
        life.commit((0..30).map(|number| dated(number, 0)).collect()).await;
        assert_eq!(life.mail().await, expected((0..30).map(|number| (number, 0))));
        assert_eq!(files(&folder), (2014..2024).map(|year| format!("store-mail-{year}.db")).collect::<Vec<_>>());
        assert_eq!(at_home(&path), 0);
        let beside = SqliteStore::open(OpenOptions::read_only(&path)).unwrap();
        assert_eq!(beside.rows(&ANN, Page { after: None, limit: 99 }).await.unwrap().len(), 30);
    });
}

#[test]
fn a_shard_has_committed_when_the_store_names_what_is_in_it() {
    let (folder, path) = ground();
    block_on(async {
        let life = Life::begin(&path, Sharding::Year).await;
        let shards = folder.path().to_owned();
        let seen = Arc::new(AtomicI64::new(0));
        let committing = {
            let seen = seen.clone();
            move || {
                let files = shards.read_dir().unwrap().map(|entry| entry.unwrap().path());
                let files = files.filter(|path| path.to_string_lossy().ends_with("-mail-2014.db"));
                let raws = |path| {
                    Connection::open(path)
                        .unwrap()
                        .query_row("SELECT count(*) FROM mail_raw", [], |row| row.get::<_, i64>(0))
                };
                seen.store(files.map(|path| raws(path).unwrap()).sum::<i64>(), Ordering::Relaxed);
                false
            }
        };
        let writer = life.store.writer.as_ref().unwrap();
        writer.session.try_lock().unwrap().db.commit_hook(Some(committing)).unwrap();
        life.commit(vec![dated(0, 0)]).await;
        assert_eq!(seen.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn a_change_of_the_setting_moves_everything_and_leaves_no_empty_file() {
    let (folder, path) = ground();
    let all = || expected((0..1_200).map(|number| (number, 0)));
    block_on(async {
        Life::begin(&path, Sharding::None).await.commit((0..1_200).map(|number| dated(number, 0)).collect()).await;
        for sharding in
            [Sharding::Year, Sharding::Size(300_000), Sharding::None, Sharding::Size(200_000), Sharding::Year]
        {
            let life = Life::begin(&path, sharding).await;
            assert_eq!(life.mail().await, all(), "before it is moved by {sharding:?}");
            // Killed after the first of several batches, and again in the middle of one.
            life.store.hasty("moving", arrange::first_step).await.unwrap();
            drop(life);
            Life::begin(&path, sharding).await.die_between(|session| arrange::first_step(session).unwrap());
            let life = Life::begin(&path, sharding).await;
            assert_eq!(life.mail().await, all(), "half moved by {sharding:?}");
            life.arrange().await;
            assert_eq!(life.mail().await, all(), "moved by {sharding:?}");
            assert_eq!(life.store.sweep().await.unwrap(), 0, "nothing is left behind");
            let (home, count) = (at_home(&path), files(&folder).len());
            match sharding {
                Sharding::None => assert_eq!((home, count), (1_200, 0)),
                Sharding::Year => assert_eq!((home, count), (0, 10)),
                Sharding::Size(_) => assert!(home == 0 && (3..30).contains(&count), "{home} at home, {count} files"),
            }
        }
    });
}

/// Also while somebody reads who opened the store before.
#[test]
fn a_reader_beside_finds_what_is_moved_meanwhile() {
    let (_folder, path) = ground();
    block_on(async {
        let life = Life::begin(&path, Sharding::Year).await;
        life.commit((0..30).map(|number| dated(number, 0)).collect()).await;
        let beside = SqliteStore::open(OpenOptions::read_only(&path)).unwrap();
        let read = async || beside.rows(&ANN, Page { after: None, limit: 99 }).await.unwrap();
        let before = read().await;
        drop(life);
        for sharding in [Sharding::Size(1_000_000), Sharding::Year, Sharding::None, Sharding::Year] {
            Life::begin(&path, sharding).await.arrange().await;
            assert_eq!(read().await, before, "{sharding:?}");
        }
    });
}

#[test]
fn what_changes_comes_home_and_is_moved_again_at_the_next_start() {
    let (_folder, path) = ground();
    block_on(async {
        let life = Life::begin(&path, Sharding::Year).await;
        life.commit((0..5).map(|number| dated(number, 0)).collect()).await;
        life.arrange().await;
        life.commit(vec![dated(3, 1)]).await;
        let all = expected((0..5).map(|number| (number, u8::from(number == 3))));
        assert_eq!((life.mail().await, at_home(&path)), (all.clone(), 1));
        drop(life);
        let life = Life::begin(&path, Sharding::Year).await;
        life.arrange().await;
        assert_eq!((life.mail().await, at_home(&path)), (all, 0));
    });
}

#[test]
fn damage_in_a_shard_is_noticed_and_repaired() {
    let (folder, path) = ground();
    block_on(async {
        let life = Life::begin(&path, Sharding::Year).await;
        life.commit((0..3).map(|number| dated(number, 0)).collect()).await;
        let shard = Connection::open(folder.path().join("store-mail-2015.db")).unwrap();
        shard.execute("UPDATE mail_bodies SET body_plain = 'other'", []).unwrap();
        let lost = Connection::open(folder.path().join("store-mail-2016.db")).unwrap();
        lost.execute_batch("DELETE FROM mail_raw; DELETE FROM mail_bodies").unwrap();
        let rows = life.store.rows(&ANN, Page { after: None, limit: 9 }).await.unwrap();
        let sound: Vec<_> = rows.iter().map(|row| row.row_check == row.body.checksum()).collect();
        assert_eq!(sound, [true, false, false]);
        let raws = life.store.side_rows(&RAW, &ANN, Page { after: None, limit: 9 }).await.unwrap();
        assert_eq!(raws.len(), 2);
        let told = life.store.integrity().await.unwrap();
        assert_eq!(told, ["store-mail-2016.db: 1 messages that should be there are not"]);
        life.commit((0..3).map(|number| dated(number, 0)).collect()).await;
        assert_eq!(life.mail().await, expected((0..3).map(|number| (number, 0))));
    });
}

#[test]
fn a_file_that_is_missing_is_named() {
    let (folder, path) = ground();
    block_on(async { Life::begin(&path, Sharding::Year).await.commit(vec![dated(1, 0)]).await });
    std::fs::rename(folder.path().join("store-mail-2015.db"), folder.path().join("elsewhere")).unwrap();
    for options in [options(&path), OpenOptions::read_only(&path)] {
        let error = SqliteStore::open(options).err().unwrap();
        assert_eq!(error.kind, ErrorKind::Corrupt);
        assert!(error.doing.contains("store-mail-2015.db is missing"), "{error}");
    }
}

fn any_sharding() -> impl Strategy<Value = Sharding> {
    prop_oneof![Just(Sharding::None), Just(Sharding::Year), Just(Sharding::Size(100_000))]
}

#[derive(Clone, Debug)]
enum End {
    Orderly,
    Arranged,
    BetweenCommits,
    BetweenCommitsOfAMove,
}

fn any_end() -> impl Strategy<Value = End> {
    prop_oneof![Just(End::Orderly), Just(End::Arranged), Just(End::BetweenCommits), Just(End::BetweenCommitsOfAMove)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// What was acknowledged is there, what was not is as it was, whatever setting each life had.
    #[test]
    fn kills_between_the_commits_lose_nothing_and_show_nothing_half(
        lives in prop::collection::vec((any_sharding(), prop::collection::vec((0i64..20, 0u8..3), 1..8), any_end()), 1..6)
    ) {
        let (_folder, path) = ground();
        let mut known = std::collections::BTreeMap::new();
        block_on(async {
            for (sharding, writes, end) in lives {
                let life = Life::begin(&path, sharding).await;
                assert_eq!(life.mail().await, expected(known.iter().map(|(number, version)| (*number, *version))));
                let writes: std::collections::BTreeMap<_, _> = writes.into_iter().collect();
                let records = writes.iter().map(|(number, version)| dated(*number, *version)).collect();
                match end {
                    End::Orderly | End::Arranged => {
                        life.commit(records).await;
                        known.extend(writes);
                        if matches!(end, End::Arranged) {
                            life.arrange().await;
                        }
                    }
                    End::BetweenCommits => life.die_committing(records),
                    End::BetweenCommitsOfAMove => life.die_between(|session| arrange::first_step(session).unwrap()),
                }
            }
            let life = Life::begin(&path, Sharding::Year).await;
            life.arrange().await;
            life.store.sweep().await.unwrap();
            assert_eq!(life.mail().await, expected(known.into_iter()));
            assert_eq!((at_home(&path), life.store.sweep().await.unwrap()), (0, 0));
        });
    }
}
