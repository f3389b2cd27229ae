//! A log that was torn by a power cut opens to a state that was acknowledged once, or is refused; the frontier is never
//! wrong.

use std::{collections::BTreeSet, fs, path::Path};

use highwater_core::{Purpose, SegmentStatus};
use tempfile::TempDir;

use super::script::{STEPS, Script, dump, options};
use crate::{ChainCheck, Page, SqliteStore, Store};

/// The files after each step, and what they hold.
struct Snapshot {
    database: Vec<u8>,
    log: Vec<u8>,
}

fn record(checkpoint_after: usize) -> (Vec<Snapshot>, BTreeSet<String>) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.db");
    let store = SqliteStore::open(options(&path)).unwrap();
    let mut script = Script::new();
    let mut states = BTreeSet::from([String::new(), dump(&path).unwrap()]);
    let mut snapshots = Vec::new();
    for step in 0..STEPS {
        block_on(script.play(&store, step)).unwrap();
        if step == checkpoint_after {
            let session = store.writer.as_ref().unwrap().session.try_lock().unwrap();
            session.db.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(())).unwrap();
        }
        states.insert(dump(&path).unwrap());
        snapshots.push(Snapshot { database: fs::read(&path).unwrap(), log: fs::read(log_of(&path)).unwrap() });
    }
    (snapshots, states)
}

fn log_of(path: &Path) -> std::path::PathBuf {
    path.with_extension("db-wal")
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(work)
}

/// Opens the files with this log and checks what comes up.
fn open_torn(snapshot: &Snapshot, log: &[u8], states: &BTreeSet<String>) -> bool {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.db");
    fs::write(&path, &snapshot.database).unwrap();
    fs::write(log_of(&path), log).unwrap();
    let Ok(state) = dump(&path) else {
        assert!(SqliteStore::open(options(&path)).is_err(), "a damaged file is refused");
        return false;
    };
    assert!(states.contains(&state), "a state nobody ever saw:\n{state}");
    let store = SqliteStore::open(options(&path)).unwrap();
    block_on(check(&store));
    true
}

async fn check(store: &SqliteStore) {
    assert_eq!(store.integrity().await.unwrap(), [""; 0]);
    let mut chain = ChainCheck::default();
    for line in store.ledger(&"hn".parse().unwrap(), Page { after: None, limit: 999 }).await.unwrap() {
        chain.add(&line).unwrap();
    }
    for stream in store.streams().await.unwrap() {
        let segments = store.segments(&stream.id, Page { after: None, limit: 999 }).await.unwrap();
        let mut catchup = segments.iter().filter(|segment| segment.purpose == Purpose::Catchup);
        let unsealed = catchup.find(|segment| segment.status != SegmentStatus::Sealed);
        let expected = unsealed.map_or(stream.span.end(), |segment| segment.span.start());
        assert_eq!(stream.frontier, expected);
    }
}

#[test]
fn a_torn_log_opens_to_an_acknowledged_state() {
    let mut opened = 0;
    for checkpoint_after in [usize::MAX, 4] {
        let (snapshots, states) = record(checkpoint_after);
        for snapshot in snapshots[2..].iter().step_by(2) {
            let log = &snapshot.log;
            for cut in (0..24).map(|n| log.len() - log.len() * n / 24).chain([0, 1, 31, 32, 33]) {
                opened += usize::from(open_torn(snapshot, &log[..cut.min(log.len())], &states));
            }
            for spot in (0..16).map(|n| log.len() - 1 - (log.len() - 1) * n / 16) {
                let mut flipped = log.clone();
                flipped[spot] ^= 0x10;
                opened += usize::from(open_torn(snapshot, &flipped, &states));
            }
        }
    }
    assert!(opened > 400, "{opened} logs opened");
}
