//! What only a file can show: locks, other versions, readers beside a run, what a dead process left.

use std::{fs, path::Path, sync::Arc};

use highwater_core::{DeadLetterPolicy, Position, Purpose, SegmentStatus, Verdict};
use highwater_store::{
    Commit, Durability, ErrorKind, Execution, OpenOptions, Page, Result, RunStart, SqliteStore, Store,
    suite::{
        ITEMS, Lab, Scene, item,
        scene::{at, span, verdict},
    },
};
use rusqlite::Connection;
use tempfile::TempDir;

fn open(path: &Path) -> Result<SqliteStore> {
    SqliteStore::open(OpenOptions { durability: Durability::Off, ..OpenOptions::new(path) })
}

fn refusal(path: &Path) -> (ErrorKind, String) {
    let error = open(path).err().expect("refused");
    (error.kind, error.doing)
}

fn lab(store: SqliteStore) -> Lab {
    Lab { store: Arc::new(store), query: Box::new(|_| Box::pin(async { Vec::new() })) }
}

#[test]
fn a_second_writer_is_told_who_has_the_file() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.db");
    let first = open(&path).unwrap();
    let (kind, text) = refusal(&path);
    let pid = std::process::id();
    assert_eq!(kind, ErrorKind::Locked);
    assert!(text.ends_with(&format!("is used by process {pid}")), "{text}");
    #[cfg(unix)]
    {
        let other_name = folder.path().join("link.db");
        std::os::unix::fs::symlink(&path, &other_name).unwrap();
        assert_eq!(refusal(&other_name).0, ErrorKind::Locked);
    }
    drop(first);
    open(&path).unwrap();
}

#[test]
fn a_newer_database_is_refused_and_left_alone() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.db");
    drop(open(&path).unwrap());
    let newer = "INSERT INTO highwater_schema (version, name, checksum) VALUES (99, 'later', '')";
    Connection::open(&path).unwrap().execute(newer, []).unwrap();
    let (kind, text) = refusal(&path);
    assert_eq!(kind, ErrorKind::TooNew);
    assert!(text.contains("schema version 99"), "{text}");
    let reader = SqliteStore::open(OpenOptions::read_only(&path)).err().unwrap();
    assert_eq!(reader.kind, ErrorKind::TooNew);
}

#[test]
fn what_cannot_be_opened_is_said_clearly() {
    let folder = TempDir::new().unwrap();
    let absent = folder.path().join("no/such/folder/store.db");
    assert_eq!(refusal(&absent).0, ErrorKind::CannotOpen);
    assert_eq!(refusal(folder.path()).0, ErrorKind::CannotOpen);

    let garbage = folder.path().join("garbage.db");
    fs::write(&garbage, "this is a letter to my aunt, not a database\n".repeat(100)).unwrap();
    let (kind, text) = refusal(&garbage);
    assert_eq!(kind, ErrorKind::CannotOpen);
    assert!(text.contains("garbage.db: it is not a SQLite database"), "{text}");

    let kind_of_reader = |path: &Path| SqliteStore::open(OpenOptions::read_only(path)).err().unwrap().kind;
    let missing = folder.path().join("missing.db");
    assert_eq!(kind_of_reader(&missing), ErrorKind::CannotOpen);
    assert!(!missing.exists(), "a reader makes no file");
    let older = folder.path().join("older.db");
    Connection::open(&older).unwrap().execute_batch("CREATE TABLE notes (text)").unwrap();
    assert_eq!(kind_of_reader(&older), ErrorKind::CannotOpen);
}

#[tokio::test]
async fn a_reader_sees_every_commit_and_stops_none() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.db");
    let scene = Scene::planned(lab(open(&path).unwrap()), 0, 30, 10).await;
    let reader = SqliteStore::open(OpenOptions::read_only(&path)).unwrap();
    for frontier in [10, 20, 30] {
        let claimed = scene.claim_one(at(0)).await;
        scene.finish(&claimed, at(0)).await;
        let row = reader.streams().await.unwrap().remove(0);
        assert_eq!((row.frontier, row.stored), (Position(frontier), frontier.cast_unsigned()));
        assert_eq!(reader.integrity().await.unwrap(), [""; 0]);
    }
    assert_eq!(reader.rows(&ITEMS, Page { after: None, limit: 99 }).await.unwrap().len(), 30);
    let refused = reader.open_stream(&scene.stream, "id").await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::CannotOpen);
}

#[tokio::test]
async fn a_reader_reads_what_a_killed_process_left() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.db");
    let scene = Scene::planned(lab(open(&path).unwrap()), 0, 30, 10).await;
    let claimed = scene.claim_one(at(0)).await;
    scene.finish(&claimed, at(0)).await;
    let left = folder.path().join("left.db");
    for suffix in ["", "-wal"] {
        fs::copy(folder.path().join(format!("store.db{suffix}")), folder.path().join(format!("left.db{suffix}")))
            .unwrap();
    }
    let reader = SqliteStore::open(OpenOptions::read_only(&left)).unwrap();
    assert_eq!(reader.streams().await.unwrap().remove(0).frontier, Position(10));
}

#[tokio::test]
async fn work_of_a_dead_process_is_taken_up_where_it_stood() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.db");
    let scene = Scene::planned(lab(open(&path).unwrap()), 0, 30, 10).await;
    let start =
        RunStart { id: "r".into(), source: scene.stream.source.clone(), command: "sync", workers: 1, at: at(0) };
    scene.store().begin_run(&start).await.unwrap();
    let claimed = scene.claim("dead", 3, at(0)).await;
    let half = scene.commit_of(&claimed[0].lease, (0..4).map(|key| item(key, "", &[])).collect(), vec![]);
    scene.store().commit(Arc::new(Commit { cursor: Some(Position(4)), ..half })).await.unwrap();
    let retrying = &claimed[1];
    scene.store_all_but(retrying, &[15], at(0)).await;
    scene.commit(&retrying.lease, vec![], vec![verdict(15, Verdict::Retry { at: at(50) })], at(0)).await.unwrap();
    scene.close(&retrying.lease, DeadLetterPolicy::Hold, at(0)).await.unwrap();
    let retrying = scene.claim("dead", 1, at(50)).await.remove(0);
    drop(scene);

    let scene = Scene::new(lab(open(&path).unwrap())).await;
    let late = scene.commit(&claimed[0].lease, vec![item(5, "", &[])], vec![], at(1)).await;
    assert_eq!(late.unwrap_err().kind, ErrorKind::Fenced);
    let segments = scene.store().segments(&scene.stream, Page { after: None, limit: 9 }).await.unwrap();
    let statuses: Vec<_> = segments.iter().map(|segment| segment.status).collect();
    assert_eq!(statuses, [SegmentStatus::Pending, SegmentStatus::RetryWait, SegmentStatus::Pending]);
    let again = scene.claim("new", 9, at(50)).await;
    assert_eq!((again[0].span, again[0].due.len()), (retrying.span, 1));
    assert_eq!((again[1].span, again[1].cursor, again[1].lease.epoch.0), (span(0, 10), Some(Position(4)), 2));
    let runs = Connection::open(&path).unwrap();
    let outcome: String = runs.query_row("SELECT outcome FROM ingest_runs", [], |row| row.get(0)).unwrap();
    assert_eq!(outcome, "failed");
}

#[tokio::test]
async fn claims_and_the_frontier_use_their_indexes() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.db");
    let scene = Scene::planned(lab(open(&path).unwrap()), 0, 10, 10).await;
    scene.plan(Purpose::Rescan, 0, 10, 10).await.unwrap();
    let db = Connection::open(&path).unwrap();
    let plan_of =
        |sql: &str| -> String { db.query_row(&format!("EXPLAIN QUERY PLAN {sql}"), [], |row| row.get(3)).unwrap() };
    let segments = "SELECT start_pos FROM ingest_segments WHERE source = 'hn' AND stream = 'items'";
    for (condition, index) in [
        ("status = 'pending' ORDER BY start_pos, segment_id", "segments_pending"),
        ("status = 'retry_wait' AND next_retry_at <= 5 ORDER BY next_retry_at, segment_id", "segments_waiting"),
        ("status = 'in_progress' AND heartbeat_at <= 5 ORDER BY heartbeat_at, segment_id", "segments_leased"),
        ("purpose = 'catchup' AND status <> 'sealed' ORDER BY start_pos", "segments_unsealed"),
    ] {
        let plan = plan_of(&format!("{segments} AND {condition} LIMIT 1"));
        assert!(plan.contains(index), "{condition}: {plan}");
    }
    let due = "SELECT min(next_retry_at) FROM ingest_exceptions
               WHERE source = 'hn' AND stream = 'items' AND (reason = 'unpublished') = 0 AND state = 'retry_wait'";
    assert!(plan_of(due).contains("exceptions_due"), "{}", plan_of(due));
}

#[test]
fn a_run_inline_repeats_itself_to_the_byte() {
    let play = || {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("store.db");
        let options =
            OpenOptions { execution: Execution::Inline, durability: Durability::Off, ..OpenOptions::new(&path) };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let scene = Scene::planned(lab(SqliteStore::open(options).unwrap()), 0, 50, 10).await;
            let claimed = scene.claim("worker", 5, at(0)).await;
            let work = claimed.iter().map(|segment| scene.finish(segment, at(1)));
            futures_util::future::join_all(work).await;
        });
        fs::read(path).unwrap()
    };
    assert!(play() == play(), "two runs differ");
}

/// What `dbstat` finds by reading every page, beside what counting rows says.
#[tokio::test]
async fn the_control_plane_is_about_as_large_as_it_is_said_to_be() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.db");
    let scene = Scene::planned(lab(open(&path).unwrap()), 40_000_000, 40_020_000, 1).await;
    let lease = scene.claim_one(at(0)).await.lease;
    let missing = (40_000_000..40_005_000).map(|key| verdict(key, Verdict::Missing)).collect();
    scene.commit(&lease, vec![], missing, at(0)).await.unwrap();
    let names: Vec<_> = (0..20_000).map(|number| format!("name{}", number * 7_919 % 100_003)).collect();
    scene.store().note_names(&scene.stream, &names).await.unwrap();
    let db = Connection::open(&path).unwrap();
    db.execute_batch(
        "UPDATE ingest_segments SET status = 'sealed', started_at = 1700000000000, sealed_at = 1700000000000,
             attempts = 1, lease_epoch = 1, scan_cursor = end_pos, stored_count = 997",
    )
    .unwrap();
    let told = scene.store().sizes().await.unwrap();
    let found = "SELECT sum(pgsize) FROM dbstat WHERE aggregate = TRUE AND name IN (
                     SELECT name FROM sqlite_schema WHERE tbl_name LIKE 'ingest_%' OR tbl_name = 'ledger')";
    let found: u64 = db.query_row(found, [], |row| row.get::<_, i64>(0)).unwrap().cast_unsigned();
    let share = told.control_bytes as f64 / found as f64;
    assert!((0.8..1.25).contains(&share), "{} of {found} bytes", told.control_bytes);
    assert!(told.database_bytes >= found);
}
