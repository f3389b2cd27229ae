//! Mistakes of the operator: each is refused with what is wrong and what to do, and with its exit code.

use std::{fs, time::Duration};

use serde_json::Value as Json;

use crate::support::{Database, FAST, Home, Reply, Server, Sim, item, until};

/// Nobody listens there.
const NOWHERE: &str = "http://127.0.0.1:1";

/// A remote of 20 items.
fn small() -> Server {
    Server::start(|asked, _| Some(Reply::ok(asked.map_or_else(|| "20".to_owned(), item))))
}

#[test]
fn bad_usage_is_refused_with_what_is_wrong() {
    let home = Home::new(NOWHERE, FAST);
    home.run(&["sync", "hm"]).exits(2).complains(&["hm", "hn"]);
    for command in [&["status"][..], &["verify"], &["ledger"], &["dead-letters", "list"], &["dead-letters", "replay"]] {
        home.run(&[command, &["hm"]].concat()).exits(2).complains(&["hm", "hn"]);
    }
    home.run(&["sync", "hn", "--from", "1", "--last", "5"]).exits(2).complains(&["--from", "--last"]);
    home.run(&["sync", "hn", "--last", "0"]).exits(2);
    home.run(&["sync", "hn", "--from", "9", "--to", "5"]).exits(2).complains(&["--from 9", "--to 5"]);
    for date in ["yesterday", "2024-02-30", "2024-01", "2024-01-31T10:00", "20240131", ""] {
        home.run(&["sync", "hn", "--since", date]).exits(2).complains(&[&format!("'{date}'"), "2024-01-31"]);
    }
    home.run(&["sync", "hn", "--since", "2999-12-31"]).exits(2).complains(&["2999-12-31 lies in the future"]);
    for other in [["--from", "5"], ["--last", "5"]] {
        home.run(&["sync", "hn", "--since", "2024-01-31", other[0], other[1]])
            .exits(2)
            .complains(&["--since", other[0]]);
    }
    home.run(&["sync", "hn", "--store"]).exits(2).complains(&["--store <URL>"]);
    home.run(&["sync", "hn", "--store", "mongodb://x"]).exits(2).complains(&["mongodb://x", "sqlite:"]);
    home.run(&["sync", "hn", "--store", "sqlite:no/such/folder/x.db"]).exits(2).complains(&["no/such/folder", "hint"]);
    home.run(&["verify"]).exits(2);
    home.run(&["frobnicate"]).exits(2);
    home.run(&["simulate", "hn", "--faults", "mild"]).exits(2).complains(&["mild", "calm"]);
    home.run(&["simulate", "gmail", "--faults", "chaos"]).exits(2).complains(&["chaos", "penalty, expiry or broken"]);
    home.run(&["simulate", "gmail", "--load", "x.jsonl"]).exits(2).complains(&["--load"]);
    home.run(&["simulate", "looker", "--faults", "penalty"]).exits(2).complains(&["penalty", "calm, storm or chaos"]);
    home.run(&["simulate", "looker", "--load", "x.jsonl"]).exits(2).complains(&["--load"]);
    home.run(&["simulate", "hn", "--items", "0"]).exits(2).complains(&["--items"]);
    home.run(&["simulate", "hn", "--items", "1000000000000"]).exits(2).complains(&["--items"]);
    home.run(&["simulate", "hn", "--listen", "8733"]).exits(2).complains(&["127.0.0.1:8722"]);
    home.run(&["sync", "hn", "--config", "nowhere.toml"]).exits(2).complains(&["nowhere.toml"]);
    home.run(&["status"]).exits(2).complains(&["hint"]);
    assert!(!home.path("highwater.db").exists(), "what was refused leaves nothing behind");
}

#[test]
fn a_bad_configuration_is_refused_by_key() {
    let home = Home::new(NOWHERE, "in_fligth = 3");
    home.run(&["sync"]).exits(2).complains(&["sources.hn.limits.in_fligth", "did you mean 'in_flight'"]);
    home.configure(NOWHERE, "retry_patience = \"2 minutes\"");
    home.run(&["sync"]).exits(2).complains(&["sources.hn.limits.retry_patience", "\"10m\""]);
    home.configure("ftp://example.com", "");
    home.run(&["sync"]).exits(2).complains(&["sources.hn.base_url: only http"]);
    home.configure("http://127.0.0.1:99999", "");
    home.run(&["sync"]).exits(2).complains(&["sources.hn.base_url: the port"]);
    home.run(&["status"]).exits(2).complains(&["sources.hn.base_url: the port"]);
    home.write("highwater.toml", "[store\n");
    home.run(&["status"]).exits(2).complains(&["highwater.toml"]);
    assert!(!home.path("highwater.db").exists(), "what was refused leaves nothing behind");
}

#[test]
fn a_database_from_the_future_is_left_alone() {
    let server = small();
    let home = Home::new(&server.url(), FAST);
    home.run(&["sync", "hn"]).exits(0);
    let path = home.path("highwater.db");
    Database::meddle(&path, "INSERT INTO highwater_schema (version, name, checksum) VALUES (9999, 'later', 'x')");
    for args in [&["sync", "hn"][..], &["status"], &["verify", "hn"], &["ledger"], &["search", "word"]] {
        home.run(args).exits(2).complains(&["version 9999", "newer"]);
    }
    home.write("highwater.db", "this is no database, and no highwater should write over it");
    fs::remove_file(home.path("highwater.db-wal")).ok();
    home.run(&["sync", "hn"]).exits(2).complains(&["not a SQLite database", "hint: check store.url"]);
    for args in [&["sync", "hn"][..], &["status"]] {
        let args = [args, &["--store", "sqlite:."]].concat();
        home.run(&args).exits(2).complains(&["it is a folder", "hint: check store.url"]);
    }
    Database::make(&home.path("other.db"), "CREATE TABLE hn_items (id INTEGER PRIMARY KEY, by TEXT)");
    let before = fs::read(home.path("other.db")).unwrap();
    let strange = home.run(&["sync", "hn", "--store", "sqlite:other.db"]).exits(2);
    strange.complains(&["it is the database of another program"]);
    assert_eq!(fs::read(home.path("other.db")).unwrap(), before);
}

#[test]
fn a_remote_that_is_not_there_is_a_failure_with_a_hint() {
    let home = Home::new(NOWHERE, "retry_patience = \"1s\"");
    home.run(&["sync", "hn"])
        .exits(1)
        .complains(&[&format!("hn at {NOWHERE}: the source cannot be reached"), "hint: check base_url"]);
    let outcome: String = home.database().one("SELECT outcome FROM ingest_runs");
    assert_eq!(outcome, "failed");
}

#[test]
fn global_flags_stand_before_or_after_the_command_and_json_stands_alone() {
    let server = small();
    let home = Home::new(&server.url(), FAST);
    for args in [
        &["--json", "sync", "hn"][..],
        &["sync", "--json", "hn"],
        &["sync", "hn", "--json", "--force"],
        &["-v", "-v", "sync", "hn", "--json"],
        &["status", "--json"],
        &["--json", "verify", "hn"],
        &["verify", "--store", "--json"],
        &["dead-letters", "list", "--json"],
        &["ledger", "--verify", "--json"],
        &["search", "word", "--json"],
        &["--json", "search", "word"],
        &["dead-letters", "replay", "--json"],
        &["dead-letters", "replay", "--now", "--json"],
    ] {
        home.run(args).exits(0).json();
    }
    let synced = home.run(&["sync", "--json"]).exits(0).json();
    assert_eq!((&synced["streams"][0]["outcome"], &synced["streams"][0]["stored"]), (&"complete".into(), &20.into()));
    let lines = home.run(&["ledger", "hn", "--json", "--last", "3"]).exits(0);
    let lines: Vec<Json> = lines.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    let quiet = home.run(&["--quiet", "sync", "hn"]).exits(0);
    assert_eq!((quiet.out.as_str(), quiet.err.as_str()), ("", ""));
}

#[test]
fn the_store_is_where_the_flag_the_environment_or_the_file_says() {
    let server = small();
    let home = Home::new(&server.url(), FAST);
    home.run(&["--store", "sqlite:flag.db", "sync", "hn"]).exits(0);
    let mut command = home.command(&["sync", "hn"]);
    command.env("HIGHWATER_STORE", "sqlite:environment.db");
    home.launch(command).wait().exits(0);
    let mut both = home.command(&["sync", "hn", "--store", "sqlite:stronger.db"]);
    both.env("HIGHWATER_STORE", "sqlite:weaker.db");
    home.launch(both).wait().exits(0);
    let checked = home.run(&["--store", "sqlite:flag.db", "verify", "--store"]).exits(0);
    assert_eq!(checked.out, "sqlite:flag.db: sound\n");
    let both = home.run(&["verify", "--store", "hn", "--store", "sqlite:flag.db"]).exits(0);
    assert!(both.out.starts_with("sqlite:flag.db: sound\nhn/items 1..20: complete"), "{}", both.out);
    let made = |name: &str| home.path(name).exists();
    assert_eq!(["flag.db", "environment.db", "stronger.db"].map(made), [true; 3]);
    assert_eq!(["weaker.db", "highwater.db"].map(made), [false; 2]);

    let elsewhere = Home::bare();
    fs::rename(home.path("highwater.toml"), elsewhere.path("named.toml")).unwrap();
    elsewhere.run(&["sync", "--config", "named.toml"]).exits(0);
    let mut command = elsewhere.command(&["status", "--json"]);
    command.env("HIGHWATER_CONFIG", "named.toml");
    assert_eq!(elsewhere.launch(command).wait().exits(0).json()["sources"][0]["streams"][0]["stored"], 20);
    let mut command = elsewhere.command(&["ledger", "hm"]);
    command.env("HIGHWATER_CONFIG", "");
    elsewhere.launch(command).wait().exits(2).complains(&["known sources: hn"]);
    let plain = elsewhere.run(&["status", "--store", "sqlite:highwater.db"]).exits(0);
    assert!(plain.out.contains("hn/items: complete"), "{}", plain.out);
}

#[test]
fn a_store_is_not_mistaken_for_that_of_another_source() {
    let server = small();
    let home = Home::new(&server.url(), FAST);
    home.run(&["sync", "hn"]).exits(0);
    let text = fs::read_to_string(home.path("highwater.toml")).unwrap().replace("sources.hn", "sources.news");
    home.write("highwater.toml", &text);
    for args in [&["sync", "news"][..], &["serve", "news", "--listen", "127.0.0.1:0"]] {
        home.run(args).exits(2).complains(&["as source 'hn', not 'news'", "hint: name the source"]);
    }
}

#[test]
fn a_source_named_twice_is_synced_once() {
    let server = small();
    let home = Home::new(&server.url(), FAST);
    let done = home.run(&["sync", "hn", "hn", "--json"]).exits(0).json();
    assert_eq!(done["streams"].as_array().map(Vec::len), Some(1));
}

#[test]
fn what_is_fetched_beside_the_range_that_was_asked_for_is_said() {
    let server = small();
    let home = Home::new(&server.url(), FAST);
    home.run(&["sync", "hn", "--last", "5"]).exits(0);
    home.run(&["sync", "hn", "--from", "1", "--to", "3"])
        .exits(0)
        .complains(&["hn: 4 to 15 lie between that and what"]);
    assert_eq!(home.status()["stored"], 20);
}

#[test]
fn init_writes_a_configuration_once() {
    let home = Home::bare();
    home.run(&["init"]).exits(0);
    let written = fs::read_to_string(home.path("highwater.toml")).unwrap();
    home.run(&["ledger", "hm"]).exits(2).complains(&["hm", "hn"]);
    home.run(&["init"]).exits(2).complains(&["exists already", "--force"]);
    home.write("highwater.toml", "");
    home.run(&["init", "--force"]).exits(0);
    assert_eq!(fs::read_to_string(home.path("highwater.toml")).unwrap(), written);
    home.run(&["init", "--config", "other.toml"]).exits(0);
    assert_eq!(fs::read_to_string(home.path("other.toml")).unwrap(), written);
}

#[test]
fn a_rehearsal_prints_a_plan_it_understands() {
    let home = Home::bare();
    let plan = home.run(&["simulate", "--print-plan"]).exits(0).out;
    Sim::planned(100, &plan);
    let simulating = home.start(&["simulate", "hn", "--items", "100", "--listen", "127.0.0.1:0", "--json"]);
    let said =
        until("a line of JSON", Duration::from_secs(10), || serde_json::from_str::<Json>(&simulating.out()).ok());
    assert!(said["listening"].as_str().unwrap().starts_with("http://127.0.0.1:"), "{said}");
    let plan = home.write("gmail.toml", &home.run(&["simulate", "gmail", "--print-plan"]).exits(0).out);
    assert_eq!(Sim::gmail(50, plan.to_str().unwrap()).stats()["messages_present"], 50);
    let plan = home.write("looker.toml", &home.run(&["simulate", "looker", "--print-plan"]).exits(0).out);
    let plan = plan.to_str().unwrap();
    let simulating = home.start(&["simulate", "looker", "--items", "20", "--listen", "127.0.0.1:0", "--faults", plan]);
    until("an instance", Duration::from_secs(10), || simulating.out().contains("listening on").then_some(()));
    assert!(home.run(&["completions", "bash"]).exits(0).out.contains("dead-letters"));
}
