//! Lists that come page by page, while their rows move or their pages are not those that were asked for.

use std::sync::atomic::{AtomicUsize, Ordering};

use highwater_sources::Roll;
use serde_json::{Value as Json, json};

use super::remote::{Ask, Desk, ids, row};

/// Rows in a page, whatever is asked for.
const CAP: usize = 10;

/// Alerts, in an order that depends on how many requests were made before.
fn alerts(order: impl Fn(usize, &Ask) -> Vec<u32> + Send + Sync + 'static) -> Desk {
    let asked = AtomicUsize::new(0);
    Desk::new(move |ask| {
        assert_eq!(ask.path, "alerts/search");
        ask.page(order(asked.fetch_add(1, Ordering::Relaxed), ask), CAP)
    })
}

/// As often as this the last row became the first.
fn rotated(rows: u32, times: usize) -> Vec<u32> {
    let mut ids = all(rows);
    ids.rotate_right(times % rows as usize);
    ids
}

fn all(last: u32) -> Vec<u32> {
    (1..=last).collect()
}

fn parts(roll: &Roll) -> Vec<&str> {
    roll.unlisted.iter().map(|one| one.part.as_str()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_list_whose_rows_moved_is_walked_again() {
    let desk = alerts(|asked, _| rotated(25, asked.min(3)));
    let roll = desk.list("alerts").await.unwrap();
    assert_eq!((ids(&roll), parts(&roll)), (all(25), vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_list_that_never_rests_is_told_of_and_what_it_showed_is_taken() {
    // What is shown next is always what was shown before.
    let desk = alerts(|asked, ask| if ask.offset() == 0 { all(25) } else { rotated(25, asked + 7) });
    let roll = desk.list("alerts").await.unwrap();
    assert_eq!(parts(&roll), ["rows that move"]);
    assert!(ids(&roll).len() >= 10, "{:?}", roll.keys);
    assert!(desk.asked() < 40, "{} requests", desk.asked());
}

#[tokio::test(start_paused = true)]
async fn a_row_that_goes_between_two_pages_that_the_server_cuts_costs_no_other() {
    let without = |ids: Vec<u32>| ids.into_iter().filter(|id| *id != 3).collect::<Vec<_>>();
    let desk = alerts(move |asked, _| if asked == 0 { all(25) } else { without(all(25)) });
    let roll = desk.list("alerts").await.unwrap();
    assert_eq!((without(ids(&roll)), parts(&roll)), (without(all(25)), vec![]));
}

#[tokio::test(start_paused = true)]
async fn pages_that_the_server_cuts_are_read_to_the_end() {
    for (rows, requests) in [(1, 2), (2, 2), (9, 2), (10, 2), (11, 3), (30, 5)] {
        let desk = alerts(move |_, _| all(rows));
        let roll = desk.list("alerts").await.unwrap();
        assert_eq!((ids(&roll), parts(&roll)), (all(rows), vec![]));
        assert_eq!(desk.asked(), requests, "{rows} rows");
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_in_another_order_at_every_look_is_whole_if_it_fits_a_page() {
    for rows in [1, 2, 8] {
        let desk = alerts(move |asked, _| rotated(rows, asked));
        let roll = desk.list("alerts").await.unwrap();
        assert_eq!((ids(&roll), parts(&roll)), (all(rows), vec![]));
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_does_not_heed_the_offset_ends() {
    for (rows, most) in [(1, CAP), (5, CAP), (600, usize::MAX)] {
        let desk = Desk::new(move |ask| {
            let shown = all(rows).into_iter().take(ask.number("limit").unwrap().min(most));
            shown.map(row).collect::<Vec<Json>>().into()
        });
        let roll = desk.list("alerts").await.unwrap();
        assert_eq!(ids(&roll).len(), (rows as usize).min(most).min(500), "{rows} rows");
        assert_eq!(roll.unlisted.len(), 1, "{rows} rows");
        assert!(desk.asked() < 40, "{} requests", desk.asked());
    }
}

#[tokio::test(start_paused = true)]
async fn explores_and_models_without_a_name_are_told_of() {
    let desk = Desk::new(|ask| {
        assert_eq!(ask.path, "lookml_models");
        json!([
            {"name": "m", "explores": [{"name": "a"}, {"name": null}, {"label": "x"}, {"name": "b"}]},
            {"label": "nameless", "explores": [{"name": "c"}]},
            {"name": "n", "explores": {"name": "d"}},
            {"name": "empty", "explores": []},
            {"name": "none", "explores": null},
        ])
    });
    let roll = desk.list("explores").await.unwrap();
    let keys: Vec<_> = roll.keys.iter().map(ToString::to_string).collect();
    assert_eq!(keys, ["m::a", "m::b"]);
    let nameless = "an explore of m without a name";
    assert_eq!(parts(&roll), [nameless, nameless, "a row without an id", "the explores of n"]);
}
