//! A mirror that outgrew its file moves to PostgreSQL, and the sync goes on there.

use std::time::Duration;

use crate::support::{Home, Schema, Signal, Sim, until};

#[test]
fn a_mirror_moves_to_the_server_and_the_sync_goes_on_there() {
    let sim = Sim::start(3000, "calm");
    let home = Home::new(&sim.url(), "rate = \"unlimited\"\nsegment = 100");
    let schema = Schema::new();
    let url = schema.url();
    home.run(&["sync", "hn", "--to", "1200"]).exits(0);
    let asked = sim.item_requests();

    let copy = home.run(&["store", "copy", "--to", &url, "--json"]).exits(0).json();
    let tables = copy["tables"].as_array().unwrap();
    assert!(tables.iter().all(|table| table["same"] == true && table["digest"].as_str().unwrap().len() == 64));
    let items = tables.iter().find(|table| table["name"] == "hn_items").unwrap();
    let stored: u32 = home.database().one("SELECT count(*) FROM hn_items");
    assert_eq!(items["rows"], stored);
    assert_eq!(copy["rows"].as_u64().unwrap(), tables.iter().map(|table| table["rows"].as_u64().unwrap()).sum::<u64>());
    assert!(copy["seconds"].as_f64().unwrap() > 0.0);
    home.run(&["store", "copy", "--to", &url]).exits(2).complains(&["is not empty", "hint"]);

    let there = ["--store", &url];
    home.run(&[&["ledger", "hn", "--verify"][..], &there].concat()).exits(0);
    home.run(&[&["sync", "hn"][..], &there].concat()).exits(0);
    home.run(&[&["verify", "hn", "--sample", "all"][..], &there].concat()).exits(0);
    home.run(&[&["ledger", "hn", "--verify"][..], &there].concat()).exits(0);
    let status = home.run(&[&["status", "--json"][..], &there].concat()).exits(0).json();
    let stream = &status["sources"][0]["streams"][0];
    assert_eq!((&stream["origin"], &stream["frontier"], &stream["complete"]), (&1.into(), &3001.into(), &true.into()));
    let after: u32 = home.database().one("SELECT count(*) FROM hn_items");
    assert_eq!((after, sim.item_requests() > asked), (stored, true), "the file stays as it was");

    let back = home.path("back.db");
    let back = format!("sqlite:{}", back.display());
    let text = home.run(&["store", "copy", "--from", &url, "--to", &back]).exits(0).out;
    assert!(text.contains("hn_items") && text.contains("same") && !text.contains("DIFFERS"), "{text}");
    home.run(&["verify", "hn", "--store", &back]).exits(0);
}

#[test]
fn a_copy_stopped_or_killed_goes_on_with_the_same_command() {
    let sim = Sim::start(2000, "none");
    let home = Home::new(&sim.url(), "rate = \"unlimited\"\nsegment = 100");
    home.run(&["sync", "hn"]).exits(0);
    let schema = Schema::new();
    let url = schema.url();
    home.run(&["dead-letters", "replay", "--store", &url]).exits(0);
    // The copy gets as far as this table, and waits.
    let session = schema.session();
    session.run("BEGIN; LOCK TABLE hn_kids IN EXCLUSIVE MODE");
    let command = ["store", "copy", "--to", &url];
    let half_way = || {
        let running = home.start(&command);
        let is_waiting = || running.err().contains("copying hn_kids").then_some(());
        until("the copy to be half-way", Duration::from_secs(15), is_waiting);
        running
    };

    half_way().kill();
    home.run(&["sync", "hn", "--store", &url]).exits(2).complains(&["unfinished copy", "store copy", "hint"]);
    home.run(&["status", "--store", &url]).exits(2).complains(&["unfinished copy"]);
    for (signal, code) in [(Signal::Interrupt, 130), (Signal::Terminate, 143)] {
        let running = half_way();
        running.signal(signal);
        running.wait_within(Duration::from_secs(5)).exits(code).complains(&["run the same command again"]);
    }
    session.run("ROLLBACK");
    home.run(&command).exits(0);
    home.run(&["verify", "hn", "--sample", "all", "--store", &url]).exits(0);
}

#[test]
fn a_copy_that_cannot_be_is_refused() {
    let sim = Sim::start(50, "none");
    let home = Home::new(&sim.url(), "rate = \"unlimited\"");
    home.run(&["store", "copy", "--to", "sqlite:new.db"]).exits(2).complains(&["no such file"]);
    assert!(!home.path("highwater.db").exists() && !home.path("new.db").exists());
    home.run(&["sync", "hn"]).exits(0);
    home.run(&["store", "copy"]).exits(2).complains(&["--to"]);
    home.run(&["store", "copy", "--to", "sqlite:highwater.db"]).exits(2).complains(&["same store"]);
    home.run(&["store", "copy", "--to", "sqlite:./highwater.db"]).exits(2).complains(&["same store"]);
    home.run(&["store", "copy", "--to", "mongodb://x"]).exits(2).complains(&["mongodb://x"]);
    home.run(&["store", "copy", "--to", "postgres://nobody@127.0.0.1:1/none"]).exits(2);
    home.run(&["store", "copy", "--to", "sqlite:new.db"]).exits(0);
    home.run(&["verify", "hn", "--store", "sqlite:new.db"]).exits(0);
}
