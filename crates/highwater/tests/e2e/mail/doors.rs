//! Credentials that do not open the mailbox.

use std::time::Duration;

use super::{
    desk::{Desk, FAST, source},
    mirror::assert_mail,
};
use crate::support::{Home, Sim, until};

#[test]
fn a_token_of_another_account_is_refused() {
    let desk = Desk { home: Home::bare(), sim: Sim::gmail_planned(50, "[token]\naccount = 'bob@example.com'") };
    desk.configure("sqlite:highwater.db", FAST);
    desk.authorize("mail").exits(4);
    desk.sync().exits(4);
    assert_eq!(desk.gets(), 0);
}

#[test]
fn a_mailbox_without_credentials_is_told_how_to_get_some() {
    let desk = Desk { home: Home::bare(), sim: Sim::gmail(50, "none") };
    desk.configure("sqlite:highwater.db", FAST);
    desk.sync().exits(4).complains(&["highwater auth mail"]);
}

/// While one mailbox is fetched its consent is taken back; the other is none the worse for it.
#[test]
fn a_grant_that_ends_in_mid_run_stops_that_mailbox_and_no_other() {
    let plan = "[size]\nsize_kb = 1\n[latency]\nfixed_ms = 20\n[token]\nlifetime_s = 3600";
    let other = Sim::gmail_planned(200, "[mailbox]\naddress = 'bob@example.com'");
    let keys = format!("{FAST}\n{}", source("other", "bob@example.com", &other, ""));
    let desk = Desk::new(Sim::gmail_planned(2_000, plan), &keys);
    desk.authorize("other").exits(0);
    let running = desk.home.start(&["sync", "mail", "other", "--quiet"]);
    until("messages", Duration::from_secs(60), || (desk.gets() > 50).then_some(()));
    desk.sim.act("revoke");
    let done = running.wait().exits(4).complains(&["highwater auth mail"]);
    assert!(desk.gets() < 2_000 && !done.err.contains("ann@example.com"), "{}", done.err);
    let state = |source: &str| {
        desk.database().one::<String>(&format!("SELECT status FROM mailboxes WHERE source = '{source}'"))
    };
    assert_eq!((state("mail").as_str(), state("other").as_str()), ("error", "connected"));
    let stored = |source: &str| {
        let sql = format!(
            "SELECT count(*) FROM mail_messages m JOIN mailboxes b ON b.id = m.mailbox_id WHERE b.source = '{source}'"
        );
        desk.database().one::<i64>(&sql).cast_unsigned()
    };
    assert!(stored("other") > 150);
    assert_eq!(Some(stored("mail")), desk.sim.stats()["messages_got"].as_u64(), "what was paid for is kept");
}

#[test]
fn access_tokens_that_end_are_renewed_without_notice() {
    let plan = "[size]\nsize_kb = 1\n[latency]\nfixed_ms = 20\n[token]\nlifetime_s = 2\nfailures = 0.2";
    let desk = Desk::new(Sim::gmail_planned(800, plan), "[sources.mail.limits]\nrate = 4000\nin_flight = 8");
    desk.sync().exits(0);
    assert_mail(&desk.database(), &desk.sim, &[]);
    assert!(desk.sim.stats()["tokens_issued"].as_u64().unwrap() > 2);
}
