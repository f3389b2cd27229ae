//! Mail that several processes bring at once: threads that belong to all of them, and tidings that all of them read.

use std::sync::Arc;

use futures_util::{future::join, poll};
use highwater_core::{Lease, Otherwise, Position, StreamId, Tiding};
use highwater_store::{
    Commit, FollowStore, LedgerEntry, PostgresOptions, PostgresStore, Store, Tidings,
    suite::{
        Scene,
        mail::{ANN, label, message},
        post::{told, wanted},
        scene::at,
    },
};
use serde_json::json;

use crate::{crowd::is_waiting, ground::Ground};

/// A store whose transactions the server knows by this name.
async fn named(ground: &Ground, name: &str) -> PostgresStore {
    let url = format!("{}&application_name={name}", ground.url);
    PostgresStore::open(PostgresOptions { url, ..ground.options() }).await.unwrap()
}

/// Everybody stops here short of the end, with all that comes before the stream's row and the ledger's chain done.
async fn hold_the_end(ground: &Ground) {
    let hold = "
        BEGIN; SELECT 1 FROM ingest_streams FOR NO KEY UPDATE;
        SELECT pg_advisory_xact_lock(hashtextextended('highwater ledger ' || current_schema() || ' ' || source, 0))
        FROM ingest_streams";
    ground.beside.batch_execute(hold).await.unwrap();
}

async fn let_go(ground: &Ground) {
    ground.beside.batch_execute("ROLLBACK").await.unwrap();
}

/// Two leases on halves of the stream.
async fn two_leases(scene: &Scene) -> [Lease; 2] {
    let first = scene.claim_one(at(0)).await.lease;
    scene.store().cut(&first, Position(50)).await.unwrap();
    [first, scene.claim_one(at(0)).await.lease]
}

/// Neither sees what the other has not committed yet, and yet the thread has both.
#[tokio::test]
async fn two_who_add_to_a_thread_at_once_lose_nothing_of_it() {
    let ground = Ground::new().await;
    let scene = Scene::of_mail(ground.lab().await).await;
    let [one, other] = two_leases(&scene).await;
    let (first, second) = (named(&ground, "first").await, named(&ground, "second").await);
    for (key, expected) in [(1, "m1-t 2 A,B"), (3, "m1-t 4 A,B")] {
        let brought = |lease: &Lease, key: i64, name| {
            let record = message(&ANN, &key.to_string(), "t", &[name]);
            Arc::new(Commit { now: at(key), asked_at: at(key), ..scene.commit_of(lease, vec![record], vec![]) })
        };
        hold_the_end(&ground).await;
        let mut early = first.commit(brought(&one, key, "A"));
        while !is_waiting(&ground, "first").await {
            assert!(poll!(&mut early).is_pending());
        }
        let mut late = second.commit(brought(&other, key + 1, "B"));
        while !is_waiting(&ground, "second").await {
            assert!(poll!(&mut late).is_pending());
        }
        let_go(&ground).await;
        let (early, late) = join(early, late).await;
        assert_eq!((early.unwrap().new, late.unwrap().new), (1, 1));
        assert_eq!(scene.threads().await, [expected]);
    }
    let seen = scene.noted().await.into_iter().filter(|line| line.starts_with("THREAD_SEEN"));
    assert_eq!(seen.count(), 1, "the thread was new to one of them");
    drop((scene, first, second));
    ground.leave().await;
}

/// Many threads at once, in any order: nobody waits for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crowded_threads_add_up() {
    let ground = Ground::new().await;
    let scene = Scene::of_mail(ground.lab().await).await;
    let leases = two_leases(&scene).await;
    let (first, second) = (named(&ground, "first").await, named(&ground, "second").await);
    for round in 0..15 {
        let bring = |store: &'static str, lease: &Lease| {
            let records = (0..20).map(|place| {
                let thread = format!("t{}", if store == "first" { place } else { 19 - place });
                message(&ANN, &format!("{store}-{round}-{place}"), &thread, &[])
            });
            Arc::new(scene.commit_of(lease, records.collect(), vec![]))
        };
        let (one, other) =
            join(first.commit(bring("first", &leases[0])), second.commit(bring("second", &leases[1]))).await;
        assert_eq!((one.unwrap().new, other.unwrap().new), (20, 20));
    }
    let counts = scene.query("SELECT count(*), min(message_count), max(message_count) FROM mail_threads").await;
    assert_eq!(counts, ["20|30|30"]);
    drop((scene, first, second));
    ground.leave().await;
}

fn stretch(stream: &StreamId, tidings: Vec<Tiding>) -> Arc<Tidings> {
    let entry = LedgerEntry {
        at: at(1),
        event_type: "RECONCILED",
        source: stream.source.clone(),
        entity_type: "stream",
        entity_id: "messages".into(),
        payload: json!({}),
        actor: "highwater".into(),
    };
    Arc::new(Tidings {
        stream: stream.clone(),
        table: &ANN,
        after: "100".into(),
        upto: Some("200".into()),
        tidings,
        position: Position(99),
        entries: vec![entry],
        is_reconciled: true,
        now: at(1),
    })
}

/// Both have seen that nobody has applied it yet.
#[tokio::test]
async fn a_stretch_that_two_read_at_once_is_applied_once() {
    let edits = || told("1", vec![label("B")], Otherwise::Ignore);
    for tidings in [vec![edits(), wanted("2")], vec![edits()], vec![wanted("2")], vec![]] {
        let ground = Ground::new().await;
        let (scene, _) = Scene::with_mail(ground.lab().await, vec![message(&ANN, "1", "t", &["A"])]).await;
        let (first, second) = (named(&ground, "first").await, named(&ground, "second").await);
        hold_the_end(&ground).await;
        let stretch = stretch(&scene.stream, tidings.clone());
        let (mut one, mut other) = (first.apply(stretch.clone()), second.apply(stretch));
        while !(is_waiting(&ground, "first").await && is_waiting(&ground, "second").await) {
            assert!(poll!(&mut one).is_pending() && poll!(&mut other).is_pending());
        }
        let_go(&ground).await;
        let (one, other) = join(one, other).await;
        let (one, other) = (one.unwrap(), other.unwrap());
        assert_eq!(u8::from(one.is_late) + u8::from(other.is_late), 1, "{one:?} {other:?}");
        let wanted = tidings.iter().filter(|tiding| tiding.edits.is_empty()).count();
        assert_eq!(one.wanted + other.wanted, wanted as u64);
        assert_eq!(scene.excepted().await.len(), wanted);
        assert_eq!(one.edited + other.edited, (tidings.len() - wanted) as u64);
        let laid = scene.query("SELECT count(*) FROM ingest_segments WHERE purpose = 'rescan'").await;
        assert_eq!(laid, [wanted.to_string()]);
        assert_eq!(scene.noted().await.iter().filter(|line| line.starts_with("RECONCILED")).count(), 1);
        drop((scene, first, second));
        ground.leave().await;
    }
}
