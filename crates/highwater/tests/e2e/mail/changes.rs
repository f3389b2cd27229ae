//! What happens to a mailbox after it was mirrored.

use serde_json::Value as Json;

use super::{
    desk::{Desk, FAST},
    mirror::assert_mail,
};
use crate::support::{Sim, Tables};

const MESSAGES: u32 = 400;

/// A message whose labels fit.
fn find(sim: &Sim, fits: impl Fn(&[&str]) -> bool, nth: usize) -> String {
    let labels = |line: &Json| -> Vec<String> { serde_json::from_value(line["labelIds"].clone()).unwrap() };
    let messages = sim.messages();
    let fitting = messages.iter().filter(|line| line["state"] == "present").filter(|line| {
        let labels = labels(line);
        fits(&labels.iter().map(String::as_str).collect::<Vec<_>>())
    });
    let found = fitting.map(|line| line["id"].as_str().unwrap().to_owned()).nth(nth);
    found.expect("a mailbox of this size has such a message")
}

fn is_plain(labels: &[&str]) -> bool {
    labels.contains(&"INBOX")
}

/// Some of everything that can happen; how many messages may be asked for: those new to the mirror, and the draft that was
/// left out and is another now.
fn change(sim: &Sim) -> u64 {
    sim.act("arrive?count=3");
    sim.act("import?at=1400000000");
    sim.act("draft");
    let [deleted, filed, trashed] = [0, 1, 2].map(|nth| find(sim, is_plain, nth));
    sim.act(&format!("delete?id={deleted}"));
    sim.act(&format!("label?id={filed}&add=STARRED,Label_1&remove=INBOX"));
    sim.act(&format!("label?id={trashed}&add=TRASH&remove=INBOX"));
    let rescued = find(sim, |labels| labels.contains(&"TRASH") && !labels.contains(&"STARRED"), 0);
    sim.act(&format!("label?id={rescued}&remove=TRASH&add=INBOX"));
    let is_new = rescued != trashed;
    5 + u64::from(is_new)
}

#[test]
fn changes_are_followed_and_only_what_is_new_is_fetched() {
    let desk = Desk::new(Sim::gmail(MESSAGES, "none"), FAST);
    desk.sync().exits(0);
    for _ in 0..3 {
        let before = desk.gets();
        let new = change(&desk.sim);
        desk.sync().exits(0);
        let expected = assert_mail(&desk.database(), &desk.sim, &[]);
        assert!(expected.gone > 0);
        assert!(desk.gets() - before <= new, "{} gets where {new} may be", desk.gets() - before);
    }
}

#[test]
fn a_history_that_was_forgotten_is_made_up_for_by_comparing_everything() {
    let desk = Desk::new(Sim::gmail(MESSAGES, "none"), FAST);
    desk.sync().exits(0);
    let before = desk.gets();
    let new = change(&desk.sim);
    desk.sim.act("expire_history");
    desk.sync().exits(0);
    assert_mail(&desk.database(), &desk.sim, &[]);
    assert!(desk.gets() - before <= new, "{} gets where {new} may be", desk.gets() - before);
    let reasons = desk.database().cells("SELECT payload FROM ledger WHERE event_type = 'RECONCILED' ORDER BY seq");
    let reasons: Vec<_> = reasons.iter().map(|row| row[0].to_string()).collect();
    assert!(reasons.len() == 2 && reasons[1].contains("expired"), "{reasons:?}");
}

#[test]
fn mail_imported_into_the_past_is_found_without_history() {
    // Large enough to be surveyed.
    let desk = Desk::new(Sim::gmail(2_100, "none"), FAST);
    desk.sync().exits(0);
    desk.sim.act("import?at=100000000");
    desk.sim.act("expire_history");
    desk.sync().exits(0);
    assert_mail(&desk.database(), &desk.sim, &[]);
    let oldest: i64 = desk.database().one("SELECT min(internal_date) FROM mail_messages");
    assert_eq!(oldest, 100_000_000_000);
    desk.home.run(&["verify", "mail", "--quiet"]).exits(0);
}

#[test]
fn mail_that_was_trashed_or_deleted_stays_in_the_mirror() {
    let desk = Desk::new(Sim::gmail(MESSAGES, "none"), FAST);
    desk.sync().exits(0);
    let [deleted, trashed] = [0, 1].map(|nth| find(&desk.sim, is_plain, nth));
    desk.sim.act(&format!("label?id={trashed}&add=TRASH&remove=INBOX"));
    desk.sync().exits(0);
    desk.sim.act(&format!("delete?id={trashed}"));
    desk.sim.act(&format!("delete?id={deleted}"));
    desk.sync().exits(0);
    let kept = format!(
        "SELECT count(*) FROM mail_messages m JOIN mail_raw r ON r.message_id = m.id
         WHERE m.provider_message_id IN ('{deleted}', '{trashed}') AND m.deleted_remotely_at IS NOT NULL"
    );
    assert_eq!(desk.database().one::<i64>(&kept), 2);
}
