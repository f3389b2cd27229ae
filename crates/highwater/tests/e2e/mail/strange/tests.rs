//! What such a mailbox must not do to its mirror.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::{
    Strange,
    post::{LONG_AGO, Letter, Post},
};
use crate::support::{Database, Reply, Schema, Tables};

const DAY: i64 = 86_400;

#[test]
fn what_a_search_does_not_find_is_not_taken_for_deleted() {
    let desk = Strange::new(Post::of(10));
    desk.sync(&["--since", "2020-09-15"]).exits(0);
    assert_eq!(desk.stored().len(), 9, "the oldest is left alone");
    desk.stage.change(|post| {
        post.unsearched = vec!["m5".into()];
        post.delete("m7");
        post.forget_history();
    });
    desk.sync(&[]).exits(0);
    assert_eq!(desk.deleted(), ["m7"]);
    desk.proof(0);
}

#[test]
fn mail_older_than_what_is_mirrored_is_left_alone_whatever_happens_to_it() {
    let desk = Strange::new(Post::of(10));
    desk.sync(&["--since", "2020-09-18"]).exits(0);
    let stored = desk.stored();
    desk.stage.change(|post| post.label("m2", "Label_1"));
    desk.sync(&[]).exits(0);
    desk.stage.change(Post::forget_history);
    desk.sync(&[]).exits(0);
    assert_eq!((desk.stored(), desk.gets("m2")), (stored, 0));
    desk.proof(0);
}

#[test]
fn mail_that_arrived_with_an_old_date_is_followed_like_any() {
    let desk = Strange::new(Post::of(10));
    desk.sync(&["--since", "2020-09-18"]).exits(0);
    desk.stage.change(|post| post.arrive(Letter::new("import", LONG_AGO)));
    desk.sync(&[]).exits(0);
    assert!(desk.stored().contains(&"import".to_owned()));
    desk.stage.change(|post| {
        post.delete("import");
        post.forget_history();
    });
    desk.sync(&[]).exits(0);
    assert_eq!(desk.deleted(), ["import"]);
    desk.proof(0);
}

#[test]
fn labels_that_no_longer_exist_leave_the_rows() {
    let labels = ["INBOX", "Label_1", "Hidden"];
    let mut post = Post::of(3);
    post.letters.push(Letter::new("m4", LONG_AGO).labelled(&labels));
    let desk = Strange::new(post);
    desk.sync(&[]).exits(0);
    assert_eq!(desk.labels("m4"), ["Hidden", "INBOX", "Label_1"]);
    desk.stage.change(|post| {
        post.unlabel_silently("Label_1");
        post.forget_history();
    });
    desk.proof(3);
    desk.sync(&[]).exits(0);
    assert_eq!(desk.labels("m4"), ["Hidden", "INBOX"], "what cannot be listed may still be there");
    desk.proof(0);
}

#[test]
fn a_label_that_one_message_has_lost_stays_on_others_though_it_cannot_be_listed() {
    let mut post = Post::of(1);
    let labelled = ["m2", "m3"].map(|id| Letter::new(id, LONG_AGO).labelled(&["INBOX", "Hidden"]));
    post.letters.extend(labelled);
    let desk = Strange::new(post);
    desk.sync(&[]).exits(0);
    desk.stage.change(|post| {
        post.unlabel_one_silently("m2", "Hidden");
        post.forget_history();
    });
    desk.sync(&[]).exits(0);
    assert_eq!(desk.labels("m3"), ["Hidden", "INBOX"]);
}

#[test]
fn an_answer_that_lists_nothing_by_mistake_deletes_nothing() {
    let desk = Strange::new(Post::of(5));
    desk.sync(&[]).exits(0);
    desk.stage.change(|post| {
        post.delete("m2");
        post.forget_history();
    });
    let is_first = AtomicBool::new(true);
    desk.stage.rule(move |ask, _| {
        let is_plain = ask.path == "messages" && ask.word("labelIds").is_none();
        (is_plain && is_first.swap(false, Ordering::Relaxed)).then(|| Reply::ok("{}"))
    });
    desk.sync(&[]).exits(0);
    assert_eq!(desk.deleted(), ["m2"]);
}

#[test]
fn a_comparison_that_another_process_outran_is_made_again() {
    let schema = Schema::new();
    let mut post = Post::of(3);
    post.letters.push(Letter::new("m4", LONG_AGO).labelled(&["INBOX", "Label_1"]));
    let desk = Strange::with_store(&schema.url(), post);
    desk.sync(&[]).exits(0);
    desk.stage.change(|post| post.unlabel_one_silently("m4", "Label_1"));
    desk.sync_at("labels", 1, Letter::new("new", LONG_AGO));
    desk.sync(&["--force"]).exits(0);
    let labels = "SELECT CAST(label_ids AS TEXT) FROM mail_messages WHERE provider_message_id = 'm4'";
    assert_eq!(schema.session().cells(labels)[0][0], "[\"INBOX\"]");
    let stored = "SELECT provider_message_id FROM mail_messages ORDER BY 1";
    assert_eq!(schema.session().cells(stored).len(), 5);
}

#[test]
fn a_proof_beside_a_service_is_not_misled_by_what_that_stores() {
    let schema = Schema::new();
    let desk = Strange::with_store(&schema.url(), Post::of(3));
    desk.sync(&[]).exits(0);
    // Each census lists everything twice, and then by two labels that are named and four that may be.
    desk.sync_at("messages", 9, Letter::new("new", LONG_AGO));
    assert_eq!(desk.proof(0)["moved"], 1);
}

/// Far more than a listing of a few letters takes, however often it is tried.
const LONG: usize = 2_000;

/// Every page of it names another as the next, and the third is the first again.
fn circle(desk: &Strange, path: &'static str) {
    let pages = AtomicUsize::new(0);
    desk.stage.rule(move |ask, _| {
        let next = if ask.word("pageToken") == Some("a") { "b" } else { "a" };
        let goes_on = ask.path == path && pages.fetch_add(1, Ordering::Relaxed) < LONG;
        goes_on.then(|| Reply::ok(format!("{{\"nextPageToken\":\"{next}\",\"historyId\":\"100\"}}")))
    });
}

#[test]
fn pages_that_lead_back_to_each_other_are_not_walked_for_ever() {
    for path in ["messages", "history"] {
        let desk = Strange::new(Post::of(3));
        if path == "history" {
            desk.sync(&[]).exits(0);
        }
        circle(&desk, path);
        desk.sync(&[]).complains(&["the listing leads back to a page that it has come from"]);
        assert!(desk.stage.times(path) < LONG, "{path}");
        desk.stage.rule(|_, _| None);
        desk.sync(&[]).exits(0);
        desk.proof(0);
    }
}

#[test]
fn what_only_history_tells_is_not_passed_by() {
    let desk = Strange::new(Post::of(5));
    desk.stage.change_at("messages/m5", 1, |post| {
        post.unlisted = vec!["late".into()];
        post.arrive(Letter::new("late", LONG_AGO + 20 * DAY));
    });
    desk.sync(&[]).exits(0);
    assert!(desk.stored().contains(&"late".to_owned()), "{:?}", desk.stored());
}

#[test]
fn what_is_listed_and_cannot_be_had_is_missing_and_no_contradiction() {
    let mut post = Post::of(5);
    post.ghosts = vec!["ghost".into()];
    let desk = Strange::new(post);
    desk.sync(&[]).exits(0);
    assert_eq!(desk.proof(0)["missing"], 1);
    desk.stage.change(|post| {
        post.ghosts.clear();
        post.letters.push(Letter::new("ghost", LONG_AGO));
    });
    assert_eq!(desk.proof(3)["differs"], 1);
    desk.sync(&["--force"]).exits(0);
    assert!(desk.stored().contains(&"ghost".to_owned()));
    desk.proof(0);
}

#[test]
fn what_something_before_the_remote_cannot_find_is_not_missing() {
    let desk = Strange::new(Post::of(3));
    desk.stage
        .rule(|ask, _| (ask.path == "messages/m2").then(|| Reply { body: "<html>".into(), ..Reply::status(404) }));
    desk.sync(&[]).exits(3);
    assert_eq!(desk.home.status()["missing"], 0);
    desk.stage.rule(|_, _| None);
    desk.home.run(&["dead-letters", "replay", "mail"]).exits(0);
    desk.sync(&[]).exits(0);
    assert_eq!(desk.stored(), ["m1", "m2", "m3"]);
    desk.proof(0);
}

#[test]
fn a_history_that_refuses_its_own_mark_is_made_up_for() {
    let desk = Strange::new(Post::of(5));
    desk.sync(&[]).exits(0);
    desk.stage.change(|post| {
        post.delete("m2");
        post.arrive(Letter::new("new", LONG_AGO + 30 * DAY));
    });
    desk.stage.rule(|ask, _| {
        let is_old = ask.word("startHistoryId") == Some("100");
        (ask.path == "history" && is_old).then(|| Reply::status(400))
    });
    desk.sync(&[]).exits(0);
    assert_eq!(desk.deleted(), ["m2"]);
    assert!(desk.stored().contains(&"new".to_owned()));
    desk.proof(0);
}

#[test]
fn what_was_deleted_and_came_back_is_there() {
    let desk = Strange::new(Post::of(5));
    desk.sync(&[]).exits(0);
    desk.stage.change(|post| {
        let letter = post.delete("m2");
        post.arrive(letter);
    });
    desk.sync(&[]).exits(0);
    assert_eq!(desk.deleted(), [""; 0]);
    desk.proof(0);
}

#[test]
fn what_is_no_longer_left_out_is_fetched() {
    let mut post = Post::of(5);
    post.labels.push("TRASH".into());
    post.letters.push(Letter::new("trashed", LONG_AGO).labelled(&["TRASH"]));
    let desk = Strange::new(post);
    desk.sync(&[]).exits(0);
    assert!(!desk.stored().contains(&"trashed".to_owned()));
    desk.configure("include = [\"trash\"]\n");
    desk.sync(&[]).exits(0);
    assert!(desk.stored().contains(&"trashed".to_owned()));
    desk.proof(0);
}

#[test]
fn what_was_left_out_and_is_gone_is_counted_as_missing() {
    let mut post = Post::of(3);
    post.labels.push("TRASH".into());
    post.letters.extend(["t1", "t2", "t3"].map(|id| Letter::new(id, LONG_AGO).labelled(&["TRASH"])));
    let desk = Strange::new(post);
    desk.sync(&[]).exits(0);
    let counted = |excluded: u64, missing: u64| {
        let status = desk.home.status();
        assert_eq!((&status["excluded"], &status["missing"]), (&excluded.into(), &missing.into()), "{status}");
    };
    counted(3, 0);
    desk.stage.change(|post| drop(post.delete("t1")));
    desk.sync(&[]).exits(0);
    counted(2, 1);
    desk.stage.change(|post| {
        post.delete("t2");
        post.forget_history();
    });
    desk.sync(&[]).exits(0);
    counted(1, 2);
    desk.proof(0);
}

#[test]
fn what_is_left_out_by_a_label_that_no_list_of_labels_names_is_no_contradiction() {
    let mut post = Post::of(3);
    post.letters.push(Letter::new("trashed", LONG_AGO).labelled(&["TRASH"]));
    post.unnamed = vec!["TRASH".into()];
    let desk = Strange::new(post);
    desk.sync(&[]).exits(0);
    desk.proof(0);
    desk.sync(&["--force"]).exits(0);
    assert_eq!(desk.gets("trashed"), 0, "it is known to be left out");
    desk.proof(0);
}

#[test]
fn what_is_left_out_by_a_label_that_cannot_be_listed_is_no_contradiction() {
    let mut post = Post::of(3);
    post.letters.push(Letter::new("trashed", LONG_AGO).labelled(&["TRASH"]));
    let desk = Strange::new(post);
    desk.sync(&[]).exits(0);
    assert_eq!(desk.proof(0)["excluded"], 1);
    desk.stage.change(|post| post.unlabel_one_silently("trashed", "TRASH"));
    assert_eq!(desk.proof(3)["differs"], 1);
    desk.sync(&["--force"]).exits(0);
    assert!(desk.stored().contains(&"trashed".to_owned()));
    desk.proof(0);
}

/// `m1` and so on, each ten days older than the one before.
fn of_this_year() -> Post {
    let today = crate::support::unix_seconds().cast_signed();
    let mut post = Post::of(0);
    post.letters = (1..=40).map(|back| Letter::new(&format!("m{back}"), today - back * 10 * DAY)).collect();
    post
}

#[test]
fn more_days_of_backfill_are_made_up_for() {
    let desk = Strange::new(of_this_year());
    for (days, stored) in [(95, 9), (30, 9), (205, 20)] {
        desk.configure(&format!("backfill_days = {days}\n"));
        desk.sync(&[]).exits(0);
        assert_eq!(desk.stored().len(), stored, "of {days} days");
        desk.proof(0);
    }
}

#[test]
fn who_says_since_when_is_not_bound_by_the_days_of_backfill() {
    let desk = Strange::new(of_this_year());
    desk.configure("backfill_days = 30\n");
    desk.sync(&["--since", "2000-01-01"]).exits(0);
    assert_eq!(desk.stored().len(), 40);
    desk.sync(&[]).exits(0);
    desk.proof(0);
}

#[test]
fn rows_of_deleted_mail_are_missed_when_they_vanish() {
    let desk = Strange::new(Post::of(5));
    desk.sync(&[]).exits(0);
    desk.stage.change(|post| drop(post.delete("m2")));
    desk.sync(&[]).exits(0);
    desk.proof(0);
    let file = desk.home.path("highwater.db");
    let row = desk.database().cells("SELECT id FROM mail_messages WHERE provider_message_id = 'm2'");
    for (table, column) in [("mail_raw", "message_id"), ("mail_threads", "provider_thread_id"), ("mail_messages", "id")]
    {
        let id = if table == "mail_threads" { "m2" } else { row[0][0].as_str().unwrap() };
        Database::meddle(&file, &format!("DELETE FROM {table} WHERE {column} = '{id}'"));
    }
    assert_eq!(desk.proof(3)["unexplained"], 1);
}

#[test]
fn mail_without_its_bytes_is_not_stored_as_an_empty_one() {
    let desk = Strange::new(Post::of(3));
    desk.stage.rule(|ask, _| {
        let empty = "{\"id\":\"m2\",\"threadId\":\"m2\",\"internalDate\":\"1600000000000\",\"raw\":\"\"}";
        (ask.path == "messages/m2").then(|| Reply::ok(empty))
    });
    desk.sync(&[]).exits(3);
    assert_eq!(desk.stored(), ["m1", "m3"]);
    desk.stage.rule(|_, _| None);
    desk.home.run(&["dead-letters", "replay", "mail"]).exits(0);
    desk.sync(&[]).exits(0);
    assert_eq!(desk.stored(), ["m1", "m2", "m3"]);
}
