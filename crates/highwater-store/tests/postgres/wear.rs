//! What a second writing of the same rows costs the server.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use highwater_core::{Record, Timestamp};
use highwater_store::{
    Claimed, Commit,
    suite::{Scene, item, scene::at},
};

use crate::ground::Ground;

/// Like a comment: about half a kilobyte, now and then with answers.
fn comment(id: i64) -> Record {
    let text = format!("{id} ").repeat(20 + usize::try_from(id % 60).unwrap());
    let kids: Vec<_> = (1..=id % 3).map(|kid| id + kid).collect();
    item(id, &text, &kids)
}

/// All rows of these segments in jobs of a hundred, many at a time.
async fn write(scene: &Scene, claimed: &[Claimed], now: Timestamp) {
    let jobs = claimed.iter().flat_map(|segment| {
        let (start, end) = (segment.span.start().0, segment.span.end().0);
        let starts = (start..end).step_by(100);
        starts.map(move |first| (segment.lease.clone(), first, (first + 100).min(end)))
    });
    let jobs: Vec<_> = jobs.collect();
    for wave in jobs.chunks(40) {
        let commits = wave.iter().map(|(lease, first, end)| {
            let commit = scene.commit_of(lease, (*first..*end).map(comment).collect(), vec![]);
            scene.store().commit(Arc::new(Commit { now, asked_at: now, ..commit }))
        });
        for outcome in join_all(commits).await {
            outcome.unwrap();
        }
    }
}

/// Inserted, updated, of these without touching an index, and dead rows of `hn_items`, once so many are counted as
/// inserted and updated: a server tells what a connection did soon after its end.
async fn counted(ground: &Ground, scene: &mut Scene, expected: &str) -> Vec<i64> {
    scene.lab.store = Arc::new(ground.store().await);
    let stats = "SELECT n_tup_ins, n_tup_upd, n_tup_hot_upd, n_dead_tup FROM pg_stat_all_tables
                 WHERE relid = 'hn_items'::regclass";
    for _ in 0..100 {
        let figures = ground.cells(stats).await.remove(0);
        if figures.starts_with(expected) {
            return figures.split('|').map(|cell| cell.parse().unwrap()).collect();
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("expected {expected}, found {:?}", ground.cells(stats).await)
}

#[tokio::test]
async fn the_same_again_rewrites_nothing_and_a_refetch_moves_only_its_time() {
    let ground = Ground::new().await;
    let mut scene = Scene::planned(ground.lab().await, 0, 10_000, 1_000).await;
    ground.beside.batch_execute("ALTER TABLE hn_items SET (autovacuum_enabled = off)").await.unwrap();
    let claimed = scene.claim("worker", 10, at(0)).await;
    write(&scene, &claimed, at(0)).await;
    let first = counted(&ground, &mut scene, "10000|0|").await;
    write(&scene, &claimed, at(0)).await;
    // One row that is new: when it is counted, so is everything before it.
    scene.commit(&claimed[0].lease, vec![comment(20_000)], vec![], at(0)).await.unwrap();
    assert_eq!(counted(&ground, &mut scene, "10001|0|").await[2..], first[2..], "a replay writes nothing");
    write(&scene, &claimed, at(60)).await;
    let refetched = counted(&ground, &mut scene, "10001|10000|").await;
    println!("of 10,000 rows fetched again {} moved without touching an index", refetched[2]);
    assert!(refetched[2] >= 9_500, "{} of 10,000 without touching an index", refetched[2]);
    drop(scene);
    ground.leave().await;
}

#[tokio::test]
async fn long_texts_are_packed_quickly_where_the_server_can() {
    let ground = Ground::new().await;
    let scene = Scene::planned(ground.lab().await, 0, 10, 10).await;
    let claimed = scene.claim("worker", 1, at(0)).await;
    let long = item(1, &"a word ".repeat(2_000), &[]);
    scene.commit(&claimed[0].lease, vec![long], vec![], at(0)).await.unwrap();
    let can = "SELECT 'lz4' = ANY(enumvals) FROM pg_settings WHERE name = 'default_toast_compression'";
    if ground.cells(can).await == ["1"] {
        assert_eq!(ground.cells("SELECT pg_column_compression(text) FROM hn_items").await, ["lz4"]);
    }
    drop(scene);
    ground.leave().await;
}
