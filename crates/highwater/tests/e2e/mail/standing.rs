//! How a mailbox fares, as its row and `status` tell: when it was last seen as it is, and what is wrong if something is.

use std::{fs, os::unix::fs::PermissionsExt, time::Duration};

use serde_json::Value as Json;

use super::{
    desk::{Desk, FAST, source},
    mirror::assert_mail,
};
use crate::support::{Schema, Service, Sim, Tables, until};

const PLAN: &str = "[size]\nsize_kb = 1\n[latency]\nfixed_ms = 20\n";
const PATIENCE: Duration = Duration::from_secs(60);
/// What is wrong is told soon.
const HASTY: &str = "rate = \"unlimited\"\nin_flight = 16\nretry_patience = \"1s\"\n";

/// Status, message, and when it was last synced, as a text that grows.
fn standing(tables: &impl Tables, source: &str) -> (String, Option<String>, Option<String>) {
    let sql = format!(
        "SELECT status, sync_error_message, CAST(last_synced_at AS TEXT) FROM mailboxes WHERE source = '{source}'"
    );
    let row = tables.cells(&sql).remove(0);
    let text = |value: &Json| value.as_str().map(str::to_owned);
    (text(&row[0]).unwrap(), text(&row[1]), text(&row[2]))
}

#[test]
fn a_run_that_is_shut_out_has_synced_nothing() {
    let desk = Desk::new(Sim::gmail_planned(50, PLAN), FAST);
    desk.sim.act("penalty?for_s=900");
    desk.sync().exits(3);
    let (status, why, synced_at) = standing(&desk.database(), "mail");
    assert_eq!((status.as_str(), synced_at), ("connected", None));
    let why = why.unwrap();
    assert!(why.contains("left alone until"), "{why}");

    let shown = desk.home.run(&["status", "--json"]).exits(0).json()["sources"][0].clone();
    assert_eq!((&shown["name"], &shown["kind"]), (&"mail".into(), &"gmail".into()), "{shown}");
    assert_eq!((&shown["streams"], shown["mailbox"]["error"].as_str()), (&Json::Array(vec![]), Some(why.as_str())));
    for command in [&["status"][..], &["status", "mail"]] {
        let text = desk.home.run(command).exits(0).out;
        assert!(text.contains("mail: nothing is mirrored yet") && text.contains(&why), "{text}");
    }
}

#[test]
fn a_run_that_meets_an_outage_has_synced_nothing() {
    let desk = Desk::new(Sim::gmail_planned(2_000, PLAN), &format!("[sources.mail.limits]\n{HASTY}"));
    let running = desk.start();
    until("messages", PATIENCE, || (desk.gets() > 50).then_some(()));
    desk.sim.act("down?for_ms=600000");
    running.wait().exits(3);
    let (status, why, synced_at) = standing(&desk.database(), "mail");
    assert_eq!((status.as_str(), synced_at), ("error", None));
    assert!(why.is_some_and(|why| why.contains("does not answer")));

    desk.sim.act("down?for_ms=0");
    desk.sync().exits(0);
    let (status, why, synced_at) = standing(&desk.database(), "mail");
    assert_eq!((status.as_str(), why), ("connected", None));
    assert!(synced_at.is_some());
}

#[test]
fn a_service_tells_of_a_mailbox_that_it_cannot_follow_until_it_can() {
    let other = Sim::gmail_planned(50, &format!("[mailbox]\naddress = 'bob@example.com'\n{PLAN}"));
    let keys = |name: &str| format!("poll_every = \"1s\"\n[sources.{name}.limits]\n{HASTY}");
    let keys = format!("{}\n{}", keys("mail"), source("other", "bob@example.com", &other, &keys("other")));
    let desk = Desk::new(Sim::gmail_planned(50, PLAN), &keys);
    desk.authorize("other").exits(0);
    let mut service = Service::start(&desk.home);
    let database = desk.home.database_when_there();
    let synced = |source: &str| standing(&database, source).2;
    service.wait_for("both mailboxes", PATIENCE, |_| synced("mail").is_some() && synced("other").is_some());
    desk.authorize("mail").exits(1).complains(&["stop it first"]);

    desk.sim.act("down?for_ms=600000");
    service.wait_for("the trouble to be told", PATIENCE, |_| standing(&database, "mail").0 == "error");
    let (_, why, synced_at) = standing(&database, "mail");
    let why = why.unwrap();
    assert!(why.contains("cannot be reached") && !why.contains('@'), "{why}");
    let status = desk.home.run(&["status", "--json"]).exits(0).json();
    let sources = status["sources"].as_array().unwrap();
    let shown = sources.iter().find(|source| source["name"] == "mail").unwrap();
    assert_eq!(
        (&shown["mailbox"]["status"], shown["mailbox"]["error"].as_str()),
        (&"error".into(), Some(why.as_str()))
    );
    let text = desk.home.run(&["status"]).exits(0).out;
    assert!(text.contains(&why), "{text}");
    let (code, reasons) = service.ask("/readyz", &service.host());
    assert!(code == 503 && reasons.contains("\"mail\"") && !reasons.contains("\"other\""), "{code} {reasons}");

    let seen = synced("other");
    other.act("arrive");
    service.wait_for("the other mailbox to go on", PATIENCE, |_| synced("other") > seen);
    assert_eq!(standing(&database, "other").0, "connected");
    assert_eq!(synced("mail"), synced_at, "nothing was seen of it since");

    desk.sim.act("down?for_ms=0");
    service.wait_for("the mailbox to be back", PATIENCE, |_| synced("mail") > synced_at);
    let (status, why, _) = standing(&database, "mail");
    assert_eq!((status.as_str(), why), ("connected", None));
    assert_eq!(service.ask("/readyz", &service.host()).0, 200);
    service.stop().exits(143);
}

/// Looks at the record wait for the end of it as everything does, and so cannot fail.
#[test]
fn a_service_tells_of_an_outage_in_mid_backfill_and_outlives_it() {
    let keys = format!("poll_every = \"1s\"\n[sources.mail.limits]\n{HASTY}");
    let desk = Desk::new(Sim::gmail_planned(3_000, PLAN), &keys);
    let mut service = Service::start(&desk.home);
    let database = desk.home.database_when_there();
    service.wait_for("messages", PATIENCE, |_| desk.gets() > 50);
    desk.sim.act("down?for_ms=600000");
    service.wait_for("the trouble to be told", PATIENCE, |_| standing(&database, "mail").0 == "error");
    desk.sim.act("down?for_ms=0");
    service.wait_for("the mailbox to be complete", PATIENCE, |_| {
        let compared = "SELECT count(*) FROM ledger WHERE event_type = 'RECONCILED'";
        standing(&database, "mail").0 == "connected" && database.one::<i64>(compared) == 1
    });
    service.stop().exits(143);
    assert_mail(&desk.database(), &desk.sim, &[]);
}

#[test]
fn a_service_goes_on_with_a_mailbox_that_has_new_credentials() {
    let (schema, sim) = (Schema::new(), Sim::gmail_planned(50, PLAN));
    let consent_at = format!("auth_url = \"{}/o/oauth2/v2/auth\"", sim.url());
    let keys = format!("{consent_at}\npoll_every = \"1s\"\n[sources.mail.limits]\n{HASTY}");
    let desk = Desk::with_store(&schema.url(), sim, &keys);
    let mut service = Service::start(&desk.home);
    let session = schema.session();
    service.wait_for("the mailbox", PATIENCE, |_| standing(&session, "mail").2.is_some());

    desk.sim.act("revoke");
    service.wait_for("the trouble to be told", PATIENCE, |_| standing(&session, "mail").0 == "error");
    let (_, why, synced_at) = standing(&session, "mail");
    let why = why.unwrap();
    assert!(why.contains("run 'highwater auth mail'") && !why.contains('@'), "{why}");

    let arrived = desk.sim.act("arrive")["ids"][0].as_str().unwrap().to_owned();
    consent(&desk);
    service.wait_for("the mailbox to be back", PATIENCE, |_| standing(&session, "mail").2 > synced_at);
    let (status, why, _) = standing(&session, "mail");
    assert_eq!((status.as_str(), why), ("connected", None));
    let stored = format!("SELECT count(*) FROM mail_messages WHERE provider_message_id = '{arrived}'");
    service.wait_for("what came meanwhile", PATIENCE, |_| session.one::<i64>(&stored) == 1);
    assert_eq!(service.err().matches("not mirrored until").count(), 1, "{}", service.err());
    service.stop().exits(143);
}

/// By a browser that follows where it is led, and knows no other place than the simulation.
fn consent(desk: &Desk) {
    let visit = "exec curl -sSL --max-time 60 -o page.html \"$1\"";
    let script = format!("#!/bin/sh\ncase \"$1\" in {}/*) {visit};; esac\nexit 1\n", desk.sim.url());
    let browser = desk.home.write("browser.sh", &script);
    fs::set_permissions(&browser, fs::Permissions::from_mode(0o700)).unwrap();
    let mut command = desk.home.command(&["auth", "mail"]);
    command.env("BROWSER", browser);
    desk.home.launch(command).wait().exits(0);
}
