//! Many at once on one database: claimers, closers, writers, and those whose connection is cut.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures_util::{
    future::{join_all, try_join_all},
    poll,
};
use highwater_core::{DeadLetterPolicy, Position, Record, RescanReason, WorkerId};
use highwater_store::{
    Claim, Close, ErrorKind, LiveCommit, LiveStore, Page, PostgresStore, Store,
    suite::{
        ITEMS, Scene, item,
        scene::{TTL, at},
    },
};

use crate::ground::{Ground, connect};

async fn stores(ground: &Ground, count: usize) -> Vec<PostgresStore> {
    join_all((0..count).map(|_| ground.store())).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn neighbours_closed_together_leave_no_frontier_behind() {
    let ground = Ground::new().await;
    let scene = Scene::planned(ground.lab().await, 0, 200, 2).await;
    let stores = stores(&ground, 4).await;
    let claimed = scene.claim("worker", 100, at(0)).await;
    for segment in &claimed {
        scene.store_all_but(segment, &[], at(0)).await;
    }
    for neighbours in claimed.chunks(4) {
        let closings = neighbours.iter().zip(&stores).map(|(segment, store)| {
            store.close(Close {
                lease: segment.lease.clone(),
                stream: scene.stream.clone(),
                policy: DeadLetterPolicy::Hold,
                dense: Some(&ITEMS),
                now: at(1),
            })
        });
        let closed = try_join_all(closings).await.unwrap();
        let end = neighbours.iter().map(|segment| segment.span.end()).max().unwrap();
        assert_eq!(scene.frontier().await, end.0);
        assert!(closed.iter().any(|closed| closed.frontier == end), "one of them saw all: {closed:?}");
    }
    assert_eq!(scene.ledger_events().await.len(), 100);
    drop(scene);
    ground.leave().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_claimers_never_get_the_same_segment() {
    let ground = Ground::new().await;
    let scene = Scene::planned(ground.lab().await, 0, 400, 1).await;
    let stores = stores(&ground, 8).await;
    let claimers = stores.iter().enumerate().map(|(number, store)| {
        let stream = &scene.stream;
        async move {
            let owner = WorkerId::new(&format!("worker {number}"));
            let mut mine = Vec::new();
            loop {
                let claim = Claim {
                    stream,
                    owner: &owner,
                    limit: 3,
                    wanted: highwater_store::Wanted::Anything,
                    lease_ttl: TTL,
                    now: at(0),
                };
                let claimed = store.claim(claim).await.unwrap();
                if claimed.is_empty() {
                    return mine;
                }
                mine.extend(claimed.into_iter().map(|claimed| claimed.lease.segment));
            }
        }
    });
    let all: Vec<_> = join_all(claimers).await.concat();
    assert_eq!((all.len(), all.iter().collect::<BTreeSet<_>>().len()), (400, 400));
    drop(scene);
    ground.leave().await;
}

/// The same keys from a catch-up and a rescan at the same time, over and over: nobody waits for ever, nothing is double.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_who_bring_the_same_rows_agree() {
    let ground = Ground::new().await;
    let scene = Scene::planned(ground.lab().await, 0, 50, 50).await;
    scene.plan(highwater_core::Purpose::Rescan, 0, 50, 50).await.unwrap();
    let stores = stores(&ground, 2).await;
    let claimed = scene.claim("worker", 2, at(0)).await;
    for round in 0..20 {
        let commits = stores.iter().zip(&claimed).enumerate().map(|(who, (store, segment))| {
            let text = format!("{} {}", round, who * (round % 2));
            let mut records: Vec<_> = (0..50).map(|id| item(id, &text, &[id, id + 1])).collect();
            if who == 1 {
                records.reverse();
            }
            let missing =
                (50..60).map(|key| highwater_store::suite::scene::verdict(key, highwater_core::Verdict::Dead));
            let commit = scene.commit_of(&segment.lease, records, missing.collect());
            store.commit(Arc::new(highwater_store::Commit {
                now: at(round as i64),
                asked_at: at(round as i64),
                ..commit
            }))
        });
        let counts = try_join_all(commits).await.unwrap();
        let new: u64 = counts.iter().map(|counts| counts.new).sum();
        assert_eq!(new, if round == 0 { 50 } else { 0 }, "each row is new once");
    }
    assert_eq!((scene.row().await.stored, scene.exceptions().await.len()), (50, 10));
    assert_eq!(scene.ledger_events().await.len(), 10, "each dead letter is told once");
    let edges = "SELECT count(*), count(DISTINCT item) FROM hn_kids";
    assert_eq!(scene.query(edges).await, ["100|50"]);
    drop(scene);
    ground.leave().await;
}

/// A second look finds a row as it was, and while it notes so, the feed tells that the row has become another.
#[tokio::test]
async fn a_body_that_changes_during_a_second_look_keeps_its_check_and_mark() {
    let mut ground = Ground::new().await;
    ground.url.push_str("&application_name=look");
    let scene = Scene::planned(ground.lab().await, 0, 10, 10).await;
    let lease = scene.claim_one(at(0)).await.lease;
    scene.commit(&lease, vec![item(1, "same", &[])], vec![], at(0)).await.unwrap();
    let told = "BEGIN; UPDATE hn_items SET text = 'told', row_check = 5, etag = 'new' WHERE id = 1";
    ground.beside.batch_execute(told).await.unwrap();
    let mut look =
        Box::pin(scene.commit(&lease, vec![Record { tag: Some("old".into()), ..item(1, "same", &[]) }], vec![], at(1)));
    while !is_waiting(&ground, "look").await {
        assert!(poll!(&mut look).is_pending());
    }
    ground.beside.batch_execute("COMMIT").await.unwrap();
    look.await.unwrap();
    assert_eq!(ground.cells("SELECT text, row_check, etag FROM hn_items").await, ["told|5|new"]);
    drop(scene);
    ground.leave().await;
}

/// Catch-up, rescan and feed bring the same new rows at the same moment, while what is done is closed and joined.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_many_bring_at_once_is_counted_once() {
    const ROUNDS: i64 = 40;
    let ground = Ground::new().await;
    let scene = Scene::planned(ground.lab().await, 0, ROUNDS * 20, 20).await;
    scene.store().begin_rescan(&scene.rescan_of(RescanReason::Scheduled, 0, ROUNDS * 20, at(0))).await.unwrap();
    let stores = stores(&ground, 4).await;
    let claimed = scene.claim("worker", 1_000, at(0)).await;
    let mut worked = 0;
    for start in (0..ROUNDS).map(|round| round * 20) {
        let mine = |claimed: &&highwater_store::Claimed| (start..start + 20).contains(&claimed.span.start().0);
        let work = join_all(claimed.iter().filter(mine).zip(&stores).map(|(segment, store)| {
            let keys = segment.span.start().0..segment.span.end().0;
            let records = keys.rev().map(|key| item(key, "text", &[key])).collect();
            store.commit(Arc::new(scene.commit_of(&segment.lease, records, vec![])))
        }));
        let feed = join_all((0..2).zip(&stores[2..]).map(|(who, store)| {
            let records = (start..start + 20).map(|key| item(key, &format!("told {who}"), &[])).collect();
            let (stream, unchanged) = (scene.stream.clone(), Vec::new());
            store.commit_live(Arc::new(LiveCommit { stream, now: at(1), asked_at: at(1), records, unchanged }))
        }));
        let joining = stores[3].compact(&scene.stream, 100);
        let (work, feed, _) = tokio::join!(work, feed, joining);
        let by_work: u64 = work.into_iter().map(|counts| counts.unwrap().new).sum();
        let by_feed: u64 = feed.into_iter().map(|told| told.unwrap().batch.new).sum();
        worked += by_work;
        let there: u64 = scene.query("SELECT count(*) FROM hn_items").await[0].parse().unwrap();
        assert_eq!((by_work + by_feed, scene.row().await.stored, there), (20, there, start.unsigned_abs() + 20));
        assert_eq!(scene.query("SELECT sum(stored_count) FROM ingest_segments").await, [worked.to_string()]);
        for segment in claimed.iter().filter(mine) {
            scene.close(&segment.lease, DeadLetterPolicy::Hold, at(2)).await.unwrap();
        }
    }
    drop(scene);
    ground.leave().await;
}

/// Segments are sealed, looked at again and joined, all at once, while the feed tells of their keys.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_feed_joining_and_ending_get_along_with_the_work() {
    let ground = Ground::new().await;
    let scene = Scene::planned(ground.lab().await, 0, 120, 2).await;
    scene.store().begin_rescan(&scene.rescan_of(RescanReason::Scheduled, 0, 120, at(0))).await.unwrap();
    let stores = stores(&ground, 3).await;
    let claimed = scene.claim("worker", 200, at(0)).await;
    let work = async {
        for segment in &claimed {
            scene.finish(segment, at(1)).await;
        }
    };
    let feed = async {
        for round in 0..30i64 {
            let records = (0..40).map(|id| item(round * 3 + id, &format!("told {round}"), &[round])).collect();
            let (stream, unchanged) = (scene.stream.clone(), Vec::new());
            let commit = LiveCommit { stream, now: at(round), asked_at: at(round), records, unchanged };
            stores[0].commit_live(Arc::new(commit)).await.unwrap();
        }
    };
    let joining = async {
        for _ in 0..60 {
            stores[1].compact(&scene.stream, 40).await.unwrap();
        }
    };
    let ending = async {
        for _ in 0..60 {
            stores[2].settle_live(&scene.stream, at(2)).await.unwrap();
        }
    };
    tokio::join!(work, feed, joining, ending);
    while stores[1].compact(&scene.stream, 40).await.unwrap() > 0 {}
    scene.assert_tiled().await;
    stores[2].settle_live(&scene.stream, at(3)).await.unwrap();
    assert_eq!((scene.frontier().await, scene.row().await.stored, scene.exceptions().await.len()), (120, 127, 0));
    assert_eq!(scene.query("SELECT count(*) FROM ingest_segments WHERE purpose = 'catchup'").await, ["3"]);
    let rows = scene.store().rows(&ITEMS, Page { after: None, limit: 200 }).await.unwrap();
    assert!(rows.iter().all(|row| row.row_check == row.body.checksum()));
    assert_eq!(scene.store().integrity().await.unwrap(), [""; 0]);
    drop(scene);
    ground.leave().await;
}

#[tokio::test]
async fn who_follows_a_leader_that_leaves_is_written_all_the_same() {
    let mut ground = Ground::new().await;
    ground.url.push_str("&application_name=left");
    let scene = Scene::planned(ground.lab().await, 0, 10, 10).await;
    let lease = scene.claim_one(at(0)).await.lease;
    ground.beside.batch_execute("BEGIN; SELECT 1 FROM ingest_segments FOR UPDATE").await.unwrap();
    let commit = |id| scene.store().commit(scene.commit_of(&lease, vec![item(id, "", &[])], vec![]).into());
    let (mut leader, mut follower) = (commit(1), commit(2));
    while !is_waiting(&ground, "left").await {
        assert!(poll!(&mut leader).is_pending() && poll!(&mut follower).is_pending());
    }
    drop(leader);
    ground.beside.batch_execute("ROLLBACK").await.unwrap();
    tokio::time::timeout(Duration::from_secs(20), follower).await.unwrap().unwrap();
    assert!(scene.stored(1).await.is_some() && scene.stored(2).await.is_some(), "what was begun is carried through");
    assert_eq!(scene.row().await.stored, 2);
    drop(scene);
    ground.leave().await;
}

/// Between the look whether a row is there and its COPY.
#[tokio::test]
async fn a_row_that_somebody_else_brings_meanwhile_costs_no_connection() {
    let mut ground = Ground::new().await;
    ground.url.push_str("&application_name=raced");
    let scene = Scene::planned(ground.lab().await, 0, 10, 10).await;
    let lease = scene.claim_one(at(0)).await.lease;
    let connections = "SELECT pid FROM pg_stat_activity WHERE application_name = 'raced' ORDER BY pid";
    let before = ground.cells(connections).await;
    let bring = "BEGIN; INSERT INTO hn_items (id, first_seen_at, last_fetched_at, last_changed_at, row_check)
                 VALUES (1, now(), now(), now(), 0)";
    ground.beside.batch_execute(bring).await.unwrap();
    let mut commit = scene.store().commit(scene.commit_of(&lease, vec![item(1, "", &[2, 3])], vec![]).into());
    while !is_waiting(&ground, "raced").await {
        assert!(poll!(&mut commit).is_pending());
    }
    ground.beside.batch_execute("COMMIT").await.unwrap();
    commit.await.unwrap();
    scene.commit(&lease, vec![item(4, "", &[5])], vec![], at(1)).await.unwrap();
    assert_eq!(ground.cells("SELECT item, kid FROM hn_kids ORDER BY 1, 2").await, ["1|2", "1|3", "4|5"]);
    assert_eq!(ground.cells(connections).await, before);
    drop(scene);
    ground.leave().await;
}

#[tokio::test]
async fn segments_that_end_while_rows_come_in_are_closed_together() {
    let mut ground = Ground::new().await;
    ground.url.push_str("&application_name=busy");
    let scene = Scene::planned(ground.lab().await, 0, 40, 10).await;
    let mut claimed = scene.claim("worker", 4, at(0)).await;
    let last = claimed.pop().unwrap();
    for segment in &claimed {
        scene.store_all_but(segment, &[], at(0)).await;
    }
    let lock = format!("BEGIN; SELECT 1 FROM ingest_segments WHERE start_pos = {} FOR UPDATE", last.span.start().0);
    ground.beside.batch_execute(&lock).await.unwrap();
    let mut writing = Box::pin(scene.store_all_but(&last, &[], at(1)));
    while !is_waiting(&ground, "busy").await {
        assert!(poll!(&mut writing).is_pending());
    }
    try_join_all(claimed.iter().map(|one| scene.close(&one.lease, DeadLetterPolicy::Hold, at(2)))).await.unwrap();
    ground.beside.batch_execute("ROLLBACK").await.unwrap();
    writing.await;
    assert_eq!(ground.cells("SELECT count(*), count(DISTINCT xmin::text) FROM ledger").await, ["3|1"]);
    drop(scene);
    ground.leave().await;
}

/// Whether a transaction of that name waits for a lock.
pub(crate) async fn is_waiting(ground: &Ground, name: &str) -> bool {
    let waiting =
        format!("SELECT count(*) FROM pg_stat_activity WHERE application_name = '{name}' AND wait_event_type = 'Lock'");
    ground.cells(&waiting).await == ["1"]
}

#[tokio::test]
async fn a_connection_cut_in_the_middle_of_a_commit_heals() {
    let mut ground = Ground::new().await;
    ground.url.push_str("&application_name=cut");
    let scene = Scene::planned(ground.lab().await, 0, 10, 10).await;
    let lease = scene.claim_one(at(0)).await.lease;
    let cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'cut'";
    ground.cells(cut).await;
    while let Err(error) = scene.store().streams().await {
        assert_eq!(error.kind, ErrorKind::Unavailable);
    }

    ground.beside.batch_execute("BEGIN; SELECT 1 FROM ingest_segments FOR UPDATE").await.unwrap();
    let commit = || scene.commit(&lease, vec![item(1, "", &[])], vec![], at(1));
    let cutting = async {
        while !is_waiting(&ground, "cut").await {
            tokio::task::yield_now().await;
        }
        ground.cells(cut).await;
    };
    let (outcome, ()) = tokio::join!(commit(), cutting);
    assert_eq!(outcome.unwrap_err().kind, ErrorKind::Unavailable);
    ground.beside.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(scene.row().await.stored, 0);
    commit().await.unwrap();
    assert_eq!(scene.close(&lease, DeadLetterPolicy::Hold, at(2)).await.unwrap_err().kind, ErrorKind::Unaccounted);
    assert_eq!((scene.row().await.stored, scene.row().await.frontier), (1, Position(0)));
    drop(scene);
    ground.leave().await;
}

#[tokio::test]
async fn who_falls_asleep_in_the_middle_of_a_copy_is_parted_from_its_segments() {
    let ground = Ground::new().await;
    let scene = Scene::planned(ground.lab().await, 0, 10, 10).await;
    let lease = scene.claim_one(at(0)).await.lease;
    let asleep = connect(&highwater_pg_server::url_for_tests()).await;
    let [path] = ground.cells("SHOW search_path").await.try_into().unwrap();
    let lock = format!("SET search_path = {path}; BEGIN; SELECT 1 FROM ingest_segments FOR UPDATE");
    asleep.batch_execute(&lock).await.unwrap();
    let copy = format!("COPY {} FROM STDIN", ITEMS.name);
    let sink = asleep.copy_in::<_, bytes::Bytes>(&copy).await.unwrap();

    assert_eq!(scene.claim("other", 1, at(59)).await, [], "a lease that holds parts nobody from anything");
    assert!(!asleep.is_closed());
    let taken = tokio::time::timeout(Duration::from_secs(20), async {
        loop {
            if let Some(taken) = scene.claim("other", 1, at(0) + TTL).await.pop() {
                return taken;
            }
        }
    });
    let taken = taken.await.expect("the sleeper's session is ended");
    assert_eq!((taken.lease.segment, taken.lease.epoch.0), (lease.segment, lease.epoch.0 + 1));
    drop(sink);
    assert!(asleep.batch_execute("SELECT 1").await.is_err(), "its session has ended");
    drop(scene);
    ground.leave().await;
}
