//! A mailbox from nothing to mirrored, on both stores, on good days and bad ones.

use std::time::Duration;

use super::{
    desk::{Desk, FAST},
    mirror::{assert_mail, assert_mail_since},
};
use crate::support::{Deadline, Schema, Sim, Tables, until};

const CALM: u32 = 1_200;

fn is_mirrored_once<T: Tables>(desk: &Desk, store: impl Fn() -> T) {
    desk.sync().exits(0);
    let expected = assert_mail(&store(), &desk.sim, &[]);
    assert!(expected.excluded > 0 && expected.stored > u64::from(CALM) * 8 / 10, "{expected:?}");
    let fetched = desk.gets();
    assert_eq!(fetched, expected.stored, "each message is fetched once, and what is left out is not");
    desk.sync().exits(0);
    assert_eq!(desk.gets(), fetched, "nothing has changed");
    desk.home.run(&["ledger", "mail", "--verify"]).exits(0);
    let status = desk.home.status();
    assert_eq!(status["complete"], true, "{status}");
    assert_eq!(status["stored"], expected.stored, "{status}");
    assert_eq!(status["excluded"], expected.excluded, "{status}");
}

#[test]
fn a_mailbox_is_mirrored_and_then_asked_only_for_news() {
    let desk = Desk::new(Sim::gmail(CALM, "calm"), FAST);
    is_mirrored_once(&desk, || desk.database());
}

#[test]
fn a_mailbox_is_mirrored_into_postgres() {
    let schema = Schema::new();
    let desk = Desk::with_store(&schema.url(), Sim::gmail(CALM, "calm"), FAST);
    is_mirrored_once(&desk, || schema.session());
}

/// More messages than are listed at once, so that the axis is cut into slices.
#[test]
fn a_larger_mailbox_is_mirrored_slice_by_slice() {
    let desk = Desk::new(Sim::gmail_planned(2_300, "[size]\nsize_kb = 1\n[list]\ninversions = 0.05"), FAST);
    desk.sync().exits(0);
    assert_mail(&desk.database(), &desk.sim, &[]);
    let slices: i64 = desk.database().one("SELECT count(*) FROM ingest_segments WHERE purpose = 'catchup'");
    assert!(slices > 10, "{slices} slices");
}

/// The storm of the presets, over sooner.
const STORM: &str = r#"
[shares]
odd = 0.05
[latency]
fixed_ms = 5
[quota]
per_minute = 60000
concurrent = 40
shapes = ["backend", "modern", "user", "project"]
[penalty]
after = 20
for_s = 2
extend_s = 1
[history]
bare = 0.2
swapped = 0.1
[token]
lifetime_s = 5
failures = 0.05
[mutations]
arrive_every_ms = 100
delete_every_ms = 300
label_every_ms = 50
import_every_ms = 400
draft_every_ms = 200
stop_after_ms = 8000
[rates]
500 = 0.004
503 = 0.004
429 = 0.002
403-rate = 0.002
401 = 0.002
failed-precondition = 0.01
empty-page = 0.05
invalid-page-token = 0.02
raw-missing = 0.004
raw-truncated = 0.004
html = 0.002
cut-json = 0.002
reset = 0.004
truncated = 0.002
"#;

#[test]
fn a_stormy_mailbox_is_mirrored_whole() {
    let sim = Sim::gmail_planned(1_500, STORM);
    let lasts = Deadline::after(Duration::from_secs(9));
    let desk = Desk::new(sim, "[sources.mail.limits]\nrate = 2000\nrate_max = 4000");
    until("the end of the storm", Duration::from_secs(120), || {
        desk.sync();
        lasts.has_passed().then_some(())
    });
    desk.sync().exits(0);
    assert_mail(&desk.database(), &desk.sim, &[]);
    assert_eq!(desk.sim.stats()["requests_in_penalty"], 0, "nothing is sent while Gmail asks for silence");
}

#[test]
fn what_is_included_is_mirrored_as_well() {
    let keys = format!("include = [\"trash\", \"spam\"]\n{FAST}");
    let desk = Desk::new(Sim::gmail(500, "calm"), &keys);
    desk.sync().exits(0);
    let expected = assert_mail(&desk.database(), &desk.sim, &["trash", "spam"]);
    let trashed: i64 = desk.database().one("SELECT count(*) FROM mail_messages WHERE label_ids LIKE '%\"TRASH\"%'");
    assert!(trashed > 0 && expected.excluded > 0, "{expected:?}");
}

/// 2024-01-01, in milliseconds.
const NEW_YEAR: i64 = 1_704_067_200_000;

#[test]
fn since_leaves_older_mail_alone_until_it_is_asked_for() {
    let desk = Desk::new(Sim::gmail(600, "none"), FAST);
    desk.home.run(&["sync", "mail", "--quiet", "--since", "2024-01-01"]).exits(0);
    let recent = assert_mail_since(&desk.database(), &desk.sim, &[], NEW_YEAR);
    assert!(recent.stored > 20 && desk.gets() < 200, "{recent:?}");
    desk.home.run(&["sync", "mail", "--quiet", "--since", "1970-01-01"]).exits(0);
    let all = assert_mail(&desk.database(), &desk.sim, &[]);
    assert_eq!(desk.gets(), all.stored, "what was there is not fetched again");
}
