//! Mirrors that move: from SQLite to PostgreSQL and back, broken off, resumed, damaged and refused.

#![expect(clippy::unwrap_used, reason = "a step that fails is a failed test")]

#[path = "postgres/ground.rs"]
mod ground;

use std::{collections::BTreeMap, path::Path, sync::Arc};

use highwater_core::{
    AccountReport, AlertState, Edit, Key, Otherwise, Position, Purpose, Record, RescanReason, StreamId, Value, Verdict,
    throttle::Learned,
};
use highwater_store::{
    AlertNote, Content, CopyProgress, CopyReport, DownloadNote, Durability, EndWindow, ErrorKind, Heard, LiveCommit,
    MailboxId, Mode, NewWindow, OpenOptions, PostgresOptions, PostgresStore, RunEnd, RunOutcome, RunStart, RunTallies,
    ShareAsk, SqliteStore, Store, StoreError, Tidings, copy,
    suite::{
        Lab, Scene,
        content::dashboard,
        item,
        mail::{ANN, ZOE, message, with_bytes},
        post::{told, wanted},
        scene::{at, verdict, worker},
        user,
    },
};
use rusqlite::{Connection, types::Value as Sql};
use tempfile::TempDir;

use ground::Ground;

const ODD: [&str; 6] =
    ["", "\u{fffd} \u{1}", "it's \"quoted\" \\ ; --", "👩‍👩‍👧 e\u{301} \u{202e}rtl", "\r\n\t", "NULL {a,\"b\"} $1 ?1"];

fn file(path: &Path, mode: Mode) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(OpenOptions { mode, durability: Durability::Off, ..OpenOptions::new(path) })
}

async fn server(ground: &Ground, mode: Mode) -> Result<PostgresStore, StoreError> {
    PostgresStore::open(PostgresOptions { mode, ..ground.options() }).await
}

async fn copied(from: &dyn Content, to: &dyn Content) -> Result<CopyReport, StoreError> {
    copy(from, to, &CopyProgress::default()).await
}

fn unsound(report: &CopyReport) -> Vec<&str> {
    report.differing().map(|table| table.name).collect()
}

/// A mirror with something in every table, and a segment at work.
async fn fill(store: Arc<dyn Store>) -> Scene {
    let scene = Scene::planned(Lab { store, query: Box::new(|_| Box::pin(async { Vec::new() })) }, 0, 60, 20).await;
    let store = scene.store();
    let source = scene.stream.source.clone();
    for id in ["b", "A", "c", "Ä"] {
        let start = RunStart { id: id.into(), source: source.clone(), command: "sync", workers: 2, at: at(0) };
        store.begin_run(&start).await.unwrap();
        let outcome = RunOutcome::Complete;
        let end = RunEnd {
            id: id.into(),
            source: source.clone(),
            command: "sync",
            outcome,
            items: 7,
            requests: 9,
            tallies: RunTallies::default(),
            at: at(3),
        };
        store.end_run(&end).await.unwrap();
    }
    for run in ["b", "Ä"] {
        let downloads = [(at(0), 5), (at(4_000), 1 << 40)].into_iter().collect();
        let note = DownloadNote { source: source.clone(), run: run.into(), downloads, now: at(4_000) };
        store.note_downloads(&note).await.unwrap();
    }
    let learned = Some(Learned { rate: 0.1 + 0.2, ceiling: None });
    let report = AccountReport { demand: 1.0, rate: Some(9.5), cuts: 1, pause: None, learned };
    let (host, started_at) = ("here".to_owned(), at(0));
    let ask = ShareAsk { source, worker: worker("w"), host, pid: 7, started_at, report, now: at(0) };
    store.share(&ask).await.unwrap();
    let first = scene.claim_one(at(0)).await;
    scene.finish(&first, at(1)).await;
    let second = scene.claim_one(at(1)).await;
    let mut odd = item(27, "old", &[3, 1, 2]);
    odd.body.values[9] = Value::Json(r#"{"a":[1.0,123456789012345678901234567890],"bb":{"c":"\u0001é"}}"#.into());
    let texts = (20..).zip(ODD).map(|(id, text)| item(id, text, &[1, 2])).chain([odd]);
    let users = ["zoe", "Ann", "10", "é"].map(|name| user(name, 3));
    let settlements =
        vec![verdict(30, Verdict::Missing), verdict(31, Verdict::Dead), verdict(32, Verdict::Retry { at: at(500) })];
    scene.commit(&second.lease, texts.chain(users).collect(), settlements, at(2)).await.unwrap();
    let changed = vec![item(27, "new", &[2, 3]), item(21, "changed", &[])];
    scene.commit(&second.lease, changed, vec![], at(3)).await.unwrap();
    fill_live(&scene).await;
    scene
}

/// What a mirror that stays current adds.
async fn fill_live(scene: &Scene) {
    let (store, stream) = (scene.store(), scene.stream.clone());
    scene.tell(vec![Record { tag: Some("W/\"Ä\"".into()), ..item(50, "told", &[]) }], at(4)).await;
    let users = StreamId { stream: "users".parse().unwrap(), ..stream.clone() };
    store.open_stream(&users, "name").await.unwrap();
    store.note_names(&users, &["zoe".into(), "Ann".into(), "é".into()]).await.unwrap();
    assert!(scene.listen("w", at(4)).await);
    let (reason, worker) = ("stopped".to_owned(), worker("w"));
    let told = vec![(stream.stream.clone(), vec![Key::Number(7)]), (users.stream, vec![Key::Text("é\u{0}".into())])];
    let heard = Heard { stream: stream.clone(), until: at(4), told, worker: worker.clone(), now: at(4) };
    store.heard(&heard).await.unwrap();
    let window = NewWindow { stream, opened_at: at(4), reason, worker: worker.clone(), now: at(4) };
    let window = store.open_window(&window).await.unwrap();
    let rescan = scene.rescan_of(RescanReason::Blind, 60, 60, at(5));
    store.end_window(&EndWindow { window, ended_at: at(5), head: Position(60), rescan, worker }).await.unwrap();
    let alert = AlertNote {
        source: scene.stream.source.clone(),
        condition: "quiet".into(),
        severity: "warning".into(),
        message: "nothing heard".into(),
        at: at(5),
        state: AlertState::Raised,
        told_at: Some(at(5)),
    };
    store.note_alert(&alert).await.unwrap();
    let ann = MailboxId::new("default", "ann@example.com");
    store.open_mailbox(&ann, &"mail".parse().unwrap(), at(5)).await.unwrap();
    store.set_credentials(&ann, Some("v1:sealed".into()), at(6)).await.unwrap();
    fill_mail(store).await;
    for hash in ["a", "b"] {
        let stream = StreamId { source: "bi".parse().unwrap(), stream: "dashboards".parse().unwrap() };
        store.open_stream(&stream, "snapshot").await.unwrap();
        let (records, unchanged) = (vec![dashboard("7", hash, 1)], Vec::new());
        let commit = LiveCommit { stream, now: at(6), asked_at: at(6), records, unchanged };
        store.commit_live(Arc::new(commit)).await.unwrap();
    }
}

/// Two mailboxes, every byte there is, and a record that was followed.
async fn fill_mail(store: &dyn Store) {
    let stream = StreamId { source: "mail".parse().unwrap(), stream: "messages".parse().unwrap() };
    store.open_stream(&stream, "time").await.unwrap();
    let after = "18446744073709551614".to_owned();
    store.follow_from(&stream, &after, Some(2)).await.unwrap();
    let bytes: Vec<u8> = (0..=255).collect();
    let records = vec![
        with_bytes(message(&ANN, "1", "t", &["INBOX", "é"]), &bytes),
        with_bytes(message(&ZOE, "1", "t", &[]), &[]),
    ];
    let (now, unchanged) = (at(6), Vec::new());
    let commit = LiveCommit { stream: stream.clone(), now, asked_at: now, records, unchanged };
    store.commit_live(Arc::new(commit)).await.unwrap();
    let gone = Edit::Set { column: "deleted_remotely_at", value: Value::Time(at(7)) };
    let tidings = Tidings {
        stream,
        table: &ANN,
        after,
        upto: Some("18446744073709551615".into()),
        tidings: vec![told("1", vec![gone], Otherwise::Ignore), wanted("2")],
        position: Position(0),
        entries: Vec::new(),
        is_reconciled: true,
        now,
    };
    store.apply(Arc::new(tidings)).await.unwrap();
}

/// Every row of every table of a file, as it lies.
fn everything(path: &Path) -> BTreeMap<String, Vec<Vec<Sql>>> {
    let db = Connection::open(path).unwrap();
    let mut tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").unwrap();
    let tables = tables.query_map([], |row| row.get::<_, String>(0)).unwrap().map(Result::unwrap);
    let rows = |table: String| {
        let mut select = db.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let width = select.column_count();
        let rows = select.query_map([], |row| (0..width).map(|place| row.get(place)).collect()).unwrap();
        let mut rows = rows.collect::<Result<Vec<Vec<Sql>>, _>>().unwrap();
        rows.sort_by_key(|row| format!("{row:?}"));
        (table, rows)
    };
    tables.filter(|table| table != "ingest_workers").map(rows).collect()
}

/// The one thing that does not come back as it went: a number with an exponent, inside an earlier body.
fn respelled(mut rows: Vec<Vec<Sql>>) -> Vec<Vec<Sql>> {
    for cell in rows.iter_mut().flatten() {
        if let Sql::Text(text) = cell {
            *text = text.replace("1.2345678901234568e+29", "123456789012345680000000000000");
        }
    }
    rows
}

/// The tables of the schema, as the server itself tells it.
async fn tables(ground: &Ground) -> Vec<String> {
    let tables = "SELECT table_name::text FROM information_schema.tables
                  WHERE table_schema = current_schema() AND table_type = 'BASE TABLE' ORDER BY 1";
    ground.cells(tables).await
}

#[tokio::test]
async fn a_mirror_goes_to_the_server_and_back_and_is_the_same() {
    let (folder, ground) = (TempDir::new().unwrap(), Ground::new().await);
    let (there, back) = (folder.path().join("there.db"), folder.path().join("back.db"));
    drop(fill(Arc::new(file(&there, Mode::ReadWrite).unwrap())).await);
    drop(ground.lab().await);
    // Nobody promises that a database orders texts by their bytes.
    for (table, column) in [("ingest_runs", "run_id"), ("ledger", "source"), ("ingest_exceptions", "stream")] {
        ground.cells(&format!("ALTER TABLE {table} ALTER COLUMN {column} TYPE TEXT COLLATE \"en-x-icu\"")).await;
    }

    let from = file(&there, Mode::CopySource).unwrap();
    let to = server(&ground, Mode::CopyTarget).await.unwrap();
    let report = copied(&from, &to).await.unwrap();
    assert_eq!(unsound(&report), [""; 0]);
    let mut names: Vec<_> = report.tables.iter().map(|table| table.name.to_owned()).collect();
    let left = ["highwater_schema", "ingest_roles", "ingest_workers", "mail_layout", "mail_places", "mail_shards"];
    names.extend(left.map(String::from));
    names.sort();
    assert_eq!(names, tables(&ground).await, "every table of the schema is copied");
    assert!(report.tables.iter().all(|table| table.rows > 0), "{report:?}");
    assert_eq!(ground.cells("SELECT count(*) FROM ingest_segments WHERE status = 'in_progress'").await, ["0"]);
    drop(to);

    let from = server(&ground, Mode::CopySource).await.unwrap();
    let to = file(&back, Mode::CopyTarget).unwrap();
    assert_eq!(copied(&from, &to).await.unwrap(), report, "the digests tell no store from another");
    drop((to, file(&there, Mode::ReadWrite)));
    for (table, rows) in everything(&back) {
        assert_eq!((&table, rows), (&table, respelled(everything(&there).remove(&table).unwrap())));
    }
    goes_on(Arc::new(ground.store().await)).await;
    goes_on(Arc::new(file(&back, Mode::ReadWrite).unwrap())).await;
    ground.leave().await;
}

/// The chain holds, and new rows find numbers that are free.
async fn goes_on(store: Arc<dyn Store>) {
    let scene = Scene::new(Lab { store, query: Box::new(|_| Box::pin(async { Vec::new() })) }).await;
    assert_eq!(scene.frontier().await, 20);
    scene.plan(Purpose::Catchup, 60, 100, 20).await.unwrap();
    let claimed = scene.claim("next", 9, at(600)).await;
    assert_eq!(claimed.iter().map(|claimed| claimed.span.start().0).collect::<Vec<_>>(), [20, 40, 60, 80]);
    scene.commit(&claimed[0].lease, vec![item(27, "newest", &[])], vec![], at(600)).await.unwrap();
    scene.finish(&claimed[3], at(601)).await;
    assert_eq!(scene.ledger_events().await.len(), 11, "ten were copied");
}

/// The server refuses a table half-way, and the source changes before the second attempt.
#[tokio::test]
async fn a_copy_broken_off_goes_on_and_follows_the_source() {
    let (folder, ground) = (TempDir::new().unwrap(), Ground::new().await);
    let path = folder.path().join("source.db");
    drop(fill(Arc::new(file(&path, Mode::ReadWrite).unwrap())).await);
    drop(ground.lab().await);
    ground.cells("ALTER TABLE hn_kids ADD CONSTRAINT none CHECK (item <> 27)").await;
    let to = server(&ground, Mode::CopyTarget).await.unwrap();
    let broken = copied(&file(&path, Mode::CopySource).unwrap(), &to).await.unwrap_err();
    assert_eq!(broken.kind, ErrorKind::Refused);
    assert!(broken.doing.starts_with("copying hn_kids: "), "{broken}");
    for mode in [Mode::ReadWrite, Mode::ReadOnly, Mode::CopySource] {
        let closed = server(&ground, mode).await.err().unwrap();
        assert_eq!(closed.kind, ErrorKind::CannotOpen);
        assert!(closed.doing.contains("unfinished copy of sqlite:"), "{closed}");
    }

    let written = "SELECT xmin FROM hn_items WHERE id BETWEEN 1 AND 19";
    let before = ground.cells(written).await;
    assert_eq!(before.len(), 19, "what came before it is there");
    Connection::open(&path)
        .unwrap()
        .execute_batch(
            "DELETE FROM hn_items WHERE id IN (0, 27);
             DELETE FROM ingest_exceptions WHERE item_key = '30';
             UPDATE hn_items SET title = 'since' WHERE id = 20",
        )
        .unwrap();
    ground.cells("ALTER TABLE hn_kids DROP CONSTRAINT none").await;
    let report = copied(&file(&path, Mode::CopySource).unwrap(), &to).await.unwrap();
    assert_eq!(unsound(&report), [""; 0]);
    assert_eq!(ground.cells(written).await, before, "what was there is not written again");
    assert_eq!(ground.cells("SELECT id FROM hn_items WHERE id IN (0, 27) OR title = 'since'").await, ["20"]);
    ground.store().await;
    ground.leave().await;
}

#[tokio::test]
async fn a_row_that_differs_is_noticed_and_the_target_stays_closed() {
    let (folder, ground) = (TempDir::new().unwrap(), Ground::new().await);
    let path = folder.path().join("source.db");
    drop(fill(Arc::new(file(&path, Mode::ReadWrite).unwrap())).await);
    drop(ground.lab().await);
    ground
        .beside
        .batch_execute(
            "CREATE FUNCTION damage() RETURNS trigger LANGUAGE plpgsql AS
                 $$ BEGIN IF NEW.id = 5 THEN NEW.score = NEW.score + 1; END IF; RETURN NEW; END $$;
             CREATE TRIGGER damage BEFORE INSERT OR UPDATE ON hn_items FOR EACH ROW EXECUTE FUNCTION damage()",
        )
        .await
        .unwrap();
    let from = file(&path, Mode::CopySource).unwrap();
    let to = server(&ground, Mode::CopyTarget).await.unwrap();
    assert_eq!(unsound(&copied(&from, &to).await.unwrap()), ["hn_items"]);
    assert_eq!(server(&ground, Mode::ReadWrite).await.err().unwrap().kind, ErrorKind::CannotOpen);
    ground.cells("DROP TRIGGER damage ON hn_items").await;
    assert_eq!(unsound(&copied(&from, &to).await.unwrap()), [""; 0]);
    ground.store().await;
    ground.leave().await;
}

#[tokio::test]
async fn only_an_empty_store_or_the_same_copy_is_taken() {
    let (folder, ground) = (TempDir::new().unwrap(), Ground::new().await);
    let [full, other, target] = ["full.db", "other.db", "target.db"].map(|name| folder.path().join(name));
    drop(fill(Arc::new(file(&full, Mode::ReadWrite).unwrap())).await);
    drop(fill(Arc::new(file(&other, Mode::ReadWrite).unwrap())).await);
    let from = file(&full, Mode::CopySource).unwrap();
    let refused = async |to: &dyn Content, why: &str| {
        let error = copied(&from, to).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::CannotOpen);
        assert!(error.doing.contains(why), "{error}");
    };
    refused(&from, "into itself").await;
    refused(&file(&other, Mode::CopyTarget).unwrap(), "is not empty: there are rows in ingest_streams").await;
    let to = file(&target, Mode::CopyTarget).unwrap();
    to.begin_copy("sqlite:elsewhere.db").await.unwrap();
    refused(&to, "is an unfinished copy of sqlite:elsewhere.db, not of").await;
    drop(to);
    for mode in [Mode::ReadWrite, Mode::ReadOnly, Mode::CopySource] {
        assert_eq!(file(&target, mode).err().unwrap().kind, ErrorKind::CannotOpen);
    }
    let absent = folder.path().join("absent.db");
    assert_eq!(file(&absent, Mode::CopySource).err().unwrap().kind, ErrorKind::CannotOpen);
    assert!(!absent.exists());
    ground.leave().await;
}

#[tokio::test]
async fn a_server_at_work_is_no_source_and_what_the_dead_left_is_taken_up() {
    let (folder, ground) = (TempDir::new().unwrap(), Ground::new().await);
    let scene = fill(ground.lab().await.store).await;
    ground.cells("UPDATE ingest_workers SET beat_at = clock_timestamp()").await;
    assert_eq!(ground.cells("SELECT lease_owner FROM ingest_segments WHERE status = 'in_progress'").await, ["worker"]);
    let to = file(&folder.path().join("target.db"), Mode::CopyTarget).unwrap();
    let from = server(&ground, Mode::CopySource).await.unwrap();
    let busy = copied(&from, &to).await.unwrap_err();
    assert_eq!(busy.kind, ErrorKind::Locked);
    assert!(busy.doing.contains("in use by here pid 7"), "{busy}");

    scene.store().leave(&worker("w")).await.unwrap();
    assert_eq!(unsound(&copied(&from, &to).await.unwrap()), [""; 0]);
    drop(to);
    let left = "SELECT count(*) FROM ingest_segments WHERE status = 'in_progress' OR lease_owner IS NOT NULL";
    let db = Connection::open(folder.path().join("target.db")).unwrap();
    assert_eq!(db.query_row(left, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
    ground.leave().await;
}
