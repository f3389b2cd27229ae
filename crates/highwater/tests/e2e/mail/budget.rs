//! A budget of bytes a day: a run ends in order before it is passed, a service waits, and nothing is fetched twice for it.

use std::time::Duration;

use super::{
    desk::{Desk, FAST, source},
    mirror::assert_mail,
};
use crate::support::{Service, Sim};

const MOST: u64 = 1_000_000;
/// About 27 KB each as an answer.
const MESSAGES: u32 = 90;
const PLAN: &str = "[size]\nsize_kb = 20\n[latency]\nfixed_ms = 5\n[body]\ngzip = false\n";

fn keys(size: &str) -> String {
    format!("max_bytes_day = \"{size}\"\n{FAST}")
}

#[test]
fn a_run_ends_before_the_budget_is_passed_and_goes_on_when_there_is_more() {
    let desk = Desk::new(Sim::gmail_planned(MESSAGES, PLAN), &keys("1MB"));
    let why = desk.home.run(&["sync", "mail"]).exits(3).out;
    assert!(why.contains("max_bytes_day") && why.contains("UTC to go on"), "{why}");
    let (got, bytes) = (desk.gets(), desk.sim.stats()["body_bytes"].as_u64().unwrap());
    assert!(bytes <= MOST + MOST / 10 && bytes > MOST / 2, "{bytes} bytes");
    let stored: i64 = desk.database().one("SELECT count(*) FROM mail_messages");
    assert_eq!(stored.cast_unsigned(), got, "what came is kept");
    desk.sync().exits(3);
    assert_eq!(desk.gets(), got, "another run has the same budget");

    let status = desk.home.run(&["status", "--json"]).exits(0).json();
    let mailbox = &status["sources"][0]["mailbox"];
    let day = &mailbox["downloaded_day"];
    assert_eq!((day["most"].as_u64(), mailbox["status"].as_str()), (Some(MOST), Some("connected")), "{status}");
    assert!(day["bytes"].as_u64().is_some_and(|bytes| bytes > MOST / 2 && bytes <= MOST + MOST / 10), "{status}");
    assert!(mailbox["error"].as_str().is_some_and(|why| why.contains("max_bytes_day")), "{status}");
    let text = desk.home.run(&["status"]).exits(0).out;
    assert!(text.contains("of 1,000,000 bytes within 24 hours"), "{text}");

    desk.configure("sqlite:highwater.db", &keys("1GB"));
    desk.sync().exits(0);
    let expected = assert_mail(&desk.database(), &desk.sim, &[]);
    assert_eq!(desk.gets(), expected.stored, "each message is fetched once");
}

#[test]
fn a_service_waits_for_the_budget_of_one_mailbox_and_mirrors_the_other() {
    let other = Sim::gmail_planned(MESSAGES, &format!("[mailbox]\naddress = 'bob@example.com'\n{PLAN}"));
    let limits = FAST.replace("mail", "other");
    let keys = format!("{}\n{}", keys("1MB"), source("other", "bob@example.com", &other, &limits));
    let desk = Desk::new(Sim::gmail_planned(MESSAGES, PLAN), &keys);
    desk.authorize("other").exits(0);
    let mut service = Service::start(&desk.home);
    let database = desk.home.database_when_there();
    let said = "SELECT count(*) FROM mailboxes WHERE source = 'mail' AND status = 'connected'
        AND sync_error_message LIKE 'max_bytes_day is used up%'";
    let stored = |source: &str| {
        let sql = format!(
            "SELECT count(*) FROM mail_messages m JOIN mailboxes b ON b.id = m.mailbox_id WHERE b.source = '{source}'"
        );
        database.one::<i64>(&sql).cast_unsigned()
    };
    let left_out = "SELECT count(*) FROM ingest_exceptions WHERE source = 'other' AND state = 'excluded'";
    service.wait_for("the budget to be used, and the other mailbox", Duration::from_secs(60), |_| {
        let whole = stored("other") + database.one::<i64>(left_out).cast_unsigned();
        database.one::<i64>(said) == 1 && whole == u64::from(MESSAGES)
    });
    assert!(stored("mail") > 0 && stored("mail") == desk.gets(), "what came is kept");
    let bytes = desk.sim.stats()["body_bytes"].as_u64().unwrap();
    assert!(bytes <= MOST + MOST / 10, "{bytes} bytes");
    assert!(service.err().contains("mail: what may be downloaded in a day is"), "{}", service.err());
    service.stop().exits(143);
}
