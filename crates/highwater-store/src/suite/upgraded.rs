//! A store of the first step of the schema, and what is asked of it after it was brought up to date.

use highwater_core::{Key, KeySet, Record};

use super::scene::{Scene, at, span};
use super::{ITEMS, item};

/// One item and its sealed segment, as SQL that fills the tables of the first step. `time` is a time as the dialect
/// spells it.
pub fn first_rows(time: &str) -> String {
    format!(
        "INSERT INTO ingest_streams (source, stream, axis, origin, frontier, target, stored)
             VALUES ('hn', 'items', 'id', 1, 2, 2, 1);
         INSERT INTO ingest_segments (source, stream, purpose, start_pos, end_pos, status, stored_count)
             VALUES ('hn', 'items', 'catchup', 1, 2, 'sealed', 1);
         INSERT INTO hn_items (id, type, text, first_seen_at, last_fetched_at, last_changed_at, row_check)
             VALUES (1, 'comment', 'old', {time}, {time}, {time}, 0)"
    )
}

/// What was stored is there, and everything new works on it.
pub async fn goes_on(scene: Scene) {
    assert_eq!((scene.row().await.span, scene.frontier().await), (span(1, 2), 2));
    let keys = KeySet::Range(span(1, 2));
    assert_eq!(scene.store().tags(&ITEMS, &keys).await.unwrap().len(), 0);
    let told = scene.tell(vec![Record { tag: Some("mark".into()), ..item(1, "new", &[]) }], at(1)).await;
    assert_eq!((told.batch.changed, told.ages.counts.total()), (1, 1));
    assert_eq!(scene.store().tags(&ITEMS, &keys).await.unwrap()[&Key::Number(1)], "mark");
    let plan = scene.rescan_of(highwater_core::RescanReason::Scheduled, 1, 2, at(2));
    scene.store().begin_rescan(&plan).await.unwrap();
    scene.finish_all(at(3)).await;
    let settled = scene.store().settle_live(&scene.stream, at(4)).await.unwrap();
    assert_eq!((settled.rescans.len(), settled.rescans[0].items, settled.rescans[0].changed), (1, 1, 1));
    assert_eq!(scene.store().integrity().await.unwrap(), [""; 0]);
}
