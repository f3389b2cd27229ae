//! What this key may not see, wholly or in part: it is named, and nothing is taken for deleted because of it.

use super::{Strange, ids, world::World};
use crate::support::Reply;

const GRANTS: &str = "content_metadata_access";

#[test]
fn grants_of_dashboards_that_may_not_be_seen_any_more_are_not_deleted() {
    let desk = Strange::new(World::granted(), "types = ['content_metadata_access']\n");
    desk.sync().exits(0);
    assert_eq!(desk.live(GRANTS), ids([1, 2]));
    desk.refuse(&["dashboards"], 403);
    desk.sync().exits(3);
    assert_eq!(desk.live(GRANTS), ids([1, 2]));
}

#[test]
fn queries_of_content_that_may_not_be_seen_are_not_called_complete() {
    let world = World::granted().with_looks(5);
    let desk = Strange::new(world, "types = ['queries', 'merge_queries', 'content_metadata']\n");
    desk.refuse(&["dashboards", "looks"], 403);
    desk.sync().exits(3);
    for kind in ["queries", "merge_queries"] {
        assert_eq!(desk.reasons(kind), ["forbidden"], "{kind}");
        assert!(!desk.is_complete(kind), "{kind}");
    }
    assert!(desk.live("content_metadata").is_superset(&ids(101..=103)), "those of folders can be had");
}

#[test]
fn metadata_of_content_whose_list_fails_is_told_though_the_content_is_mirrored() {
    let desk = Strange::new(World::granted(), "types = ['dashboards', 'folders', 'content_metadata']\n");
    desk.sync().exits(0);
    let all = desk.live("content_metadata");
    desk.stage.rule(|ask, _| {
        let is_for_metadata = ask.word("fields").is_some_and(|fields| fields.contains("content_metadata_id"));
        (ask.path == "dashboards" && is_for_metadata).then(|| Reply::status(500))
    });
    desk.sync().exits(3);
    assert_eq!(desk.reasons("content_metadata"), ["server"]);
    assert_eq!(desk.live("content_metadata"), all, "nothing is taken for deleted");
    desk.stage.rule(|_, _| None);
    desk.sync().exits(0);
}

#[test]
fn where_pages_may_not_be_seen_objects_are_asked_for_one_by_one() {
    let desk = Strange::new(World::default().with_dashboards(12), "types = ['dashboards']\n");
    desk.stage.rule(|ask, _| {
        let is_page = ask.path == "dashboards/search" && ask.word("deleted") != Some("true");
        (is_page && ask.word("fields").is_none()).then(|| Reply::status(403))
    });
    desk.sync().exits(0);
    assert_eq!(desk.live("dashboards"), ids(1..=12));
}

#[test]
fn grants_that_cannot_be_had_cost_no_others() {
    for status in [403, 404, 500] {
        let desk = Strange::new(World::granted(), "types = ['content_metadata_access']\n");
        desk.stage.rule(move |ask, _| {
            let is_meant = ask.path == GRANTS && ask.word("content_metadata_id") == Some("1005");
            is_meant.then(|| Reply::status(status))
        });
        desk.sync().exits(3);
        assert_eq!(desk.live(GRANTS), ids([1]), "{status}");
    }
}
