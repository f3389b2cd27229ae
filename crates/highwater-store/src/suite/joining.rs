//! Small segments behind the frontier that become one.

use highwater_core::{DeadLetterPolicy, Purpose, Verdict};

use super::item;
use super::scene::{Lab, Scene, at, verdict};

const SEGMENTS: &str = "SELECT start_pos, end_pos, status, stored_count, unresolved_count, scan_cursor
                        FROM ingest_segments WHERE purpose = 'catchup' ORDER BY start_pos";

/// Lays catch-up segments that end there, each planned by itself.
async fn grow(scene: &Scene, start: i64, ends: &[i64]) {
    let mut start = start;
    for end in ends {
        scene.plan(Purpose::Catchup, start, *end, 1_000).await.unwrap();
        start = *end;
    }
}

pub async fn small_segments_become_one(lab: Lab) {
    let scene = Scene::new(lab).await;
    grow(&scene, 1, &[4, 7, 11, 15, 35, 38]).await;
    for segment in scene.claim("worker", 9, at(0)).await {
        let but = if segment.span.start().0 == 4 { &[5, 6][..] } else { &[] };
        scene.store_all_but(&segment, but, at(0)).await;
        let verdicts = but.iter().zip([Verdict::Missing, Verdict::Dead]).map(|(key, fate)| verdict(*key, fate));
        scene.commit(&segment.lease, vec![], verdicts.collect(), at(0)).await.unwrap();
        scene.close(&segment.lease, DeadLetterPolicy::Pass, at(0)).await.unwrap();
    }
    assert_eq!(scene.store().compact(&scene.stream, 10).await.unwrap(), 2);
    let joined = ["1|11|sealed|8|1|11", "11|15|sealed|4|0|15", "15|35|sealed|20|0|35", "35|38|sealed|3|0|38"];
    assert_eq!(scene.query(SEGMENTS).await, joined);
    assert_eq!(scene.store().compact(&scene.stream, 10).await.unwrap(), 0);
    scene.assert_tiled().await;
    let owners = "SELECT e.item_key, s.start_pos FROM ingest_exceptions AS e
                  JOIN ingest_segments AS s ON s.segment_id = e.segment_id ORDER BY e.item_key";
    assert_eq!(scene.query(owners).await, ["5|1", "6|1"]);
    assert_eq!((scene.frontier().await, scene.row().await.stored), (38, 35));

    // Whatever comes back to work finds the whole of it.
    scene.store().replay(&scene.stream, None, at(1)).await.unwrap();
    let again = scene.claim_one(at(1)).await;
    let found = (vec![item(6, "", &[])], vec![verdict(6, Verdict::Stored)]);
    scene.commit(&again.lease, found.0, found.1, at(1)).await.unwrap();
    scene.close(&again.lease, DeadLetterPolicy::Hold, at(1)).await.unwrap();
    assert_eq!(scene.query(SEGMENTS).await[0], "1|11|sealed|9|0|11");
    assert_eq!(scene.store().integrity().await.unwrap(), [""; 0]);
}

pub async fn what_is_at_work_or_before_the_frontier_is_not_joined(lab: Lab) {
    let scene = Scene::new(lab).await;
    grow(&scene, 0, &[10, 20, 30, 40]).await;
    let claimed = scene.claim("worker", 9, at(0)).await;
    scene.finish(&claimed[1], at(0)).await;
    scene.finish(&claimed[2], at(0)).await;
    assert_eq!(scene.store().compact(&scene.stream, 100).await.unwrap(), 0, "the frontier is before them");
    scene.store_all_but(&claimed[0], &[4], at(0)).await;
    scene.commit(&claimed[0].lease, vec![], vec![verdict(4, Verdict::Dead)], at(0)).await.unwrap();
    scene.close(&claimed[0].lease, DeadLetterPolicy::Pass, at(0)).await.unwrap();
    scene.store().replay(&scene.stream, None, at(1)).await.unwrap();
    assert_eq!(scene.frontier().await, 30);
    assert_eq!(scene.store().compact(&scene.stream, 100).await.unwrap(), 1, "one is at work again");
    let segments: Vec<_> = scene.query(SEGMENTS).await;
    assert_eq!(segments.len(), 3);
    assert_eq!(segments[1], "10|30|sealed|20|0|30");
    scene.assert_tiled().await;
}

pub async fn many_small_segments_are_joined_call_by_call(lab: Lab) {
    let scene = Scene::planned(lab, 0, 1_000, 1).await;
    scene.query("UPDATE ingest_segments SET status = 'sealed', scan_cursor = end_pos").await;
    scene.query("UPDATE ingest_streams SET frontier = target").await;
    let youngest = scene.query("SELECT max(segment_id) FROM ingest_segments").await;
    let mut saved = 0;
    loop {
        let joined = scene.store().compact(&scene.stream, 100).await.unwrap();
        scene.assert_tiled().await;
        if joined == 0 {
            break;
        }
        assert!(joined < 200, "{joined} at once");
        saved += joined;
    }
    assert_eq!(saved, 990);
    let sizes = "SELECT count(*), min(end_pos - start_pos), max(end_pos - start_pos) FROM ingest_segments";
    assert_eq!(scene.query(sizes).await, ["10|100|100"]);
    scene.plan(Purpose::Catchup, 1_000, 1_010, 10).await.unwrap();
    let next = scene.query("SELECT max(segment_id) FROM ingest_segments").await;
    assert_eq!(next[0].parse::<i64>().unwrap(), youngest[0].parse::<i64>().unwrap() + 1, "no number is used twice");
}
