//! Mail found by its words: wherever its texts lie, while it is synced, and whatever becomes of the index.

use std::{fs, time::Duration};

use serde_json::Value as Json;

use super::desk::{Desk, FAST};
use crate::support::{Database, Schema, Signal, Sim, until};

const ALL: &[&str] = &["--limit", "1000", "--json"];

impl Desk {
    fn search(&self, args: &[&str]) -> Json {
        self.home.run(&[&["search"], args, ALL].concat()).exits(0).json()
    }

    /// How many messages have this in what is searched of them, by SQL.
    fn holding(&self, word: &str) -> u64 {
        let count = format!(
            "SELECT count(*) FROM mail_messages WHERE coalesce(subject, '') || ' ' || coalesce(nullif(body_plain, ''), body_html, '')
             LIKE '%{word}%'"
        );
        self.database().one::<i64>(&count).cast_unsigned()
    }
}

/// What was found, in the order of its keys.
fn hits(found: &Json) -> Vec<Json> {
    let mut hits = found["hits"].as_array().unwrap().clone();
    hits.sort_by_key(|hit| hit["key"].as_str().unwrap().to_owned());
    hits
}

#[test]
fn mail_is_found_alike_in_one_file_in_shards_and_on_a_server() {
    let desk = Desk::new(Sim::gmail(250, "none"), FAST);
    desk.sync().exits(0);
    let schema = Schema::new();
    let queries = [
        "harbour",
        "\"next winter\" OR kern*",
        "invoice -budget",
        "from:otto",
        "to:ann@example.com subject:uebersicht OR subject:ubersicht",
        "muller",
        "cafe um vier",
        "subject:zum report OR quarter* -the",
    ];
    let here: Vec<_> = queries.iter().map(|query| desk.search(&[query])).collect();
    assert_eq!(here[0]["total"], desk.holding("harbour"), "every message, and no other");
    for (query, found) in queries.iter().zip(&here) {
        let (total, shown) = (found["total"].as_u64().unwrap(), hits(found).len() as u64);
        assert!(total > 0 && total == shown, "{query}: {total} and {shown}");
    }
    let hit = &here[0]["hits"][0];
    let texts = format!("{} {}", hit["title"], hit["snippet"]).to_lowercase();
    assert!(texts.contains("harbour") && hit["thread"].is_string() && hit["at"].is_i64(), "{hit}");
    assert_eq!((&hit["source"], &hit["kind"], &hit["stream"]), (&"mail".into(), &"gmail".into(), &"messages".into()));

    for (store, shards) in [("sqlite:sharded.db", "shards = \"year\"\n"), (schema.url().as_str(), "")] {
        desk.configure(store, &format!("{shards}{FAST}"));
        desk.authorize("mail").exits(0);
        desk.sync().exits(0);
        for (query, expected) in queries.iter().zip(&here) {
            let found = desk.search(&[query]);
            assert_eq!(hits(&found), hits(expected), "{query} in {store}");
            assert_eq!(found["total"], expected["total"]);
        }
    }
    desk.home.run(&["verify", "mail"]).exits(0);
    desk.home.run(&["verify", "--store"]).exits(0);
    desk.home.run(&["store", "copy", "--from", &schema.url(), "--to", "sqlite:back.db"]).exits(0);
    let back = desk.search(&["harbour", "--store", "sqlite:back.db"]);
    assert_eq!(hits(&back), hits(&here[0]));
}

#[test]
fn what_comes_and_changes_later_is_found_as_it_is_then() {
    let desk = Desk::new(Sim::gmail(120, "none"), FAST);
    desk.sync().exits(0);
    let first = desk.search(&["the OR and OR invoice"]);
    let documents = first["indexed"]["documents"].as_u64().unwrap();
    assert_eq!((first["indexed"]["added"].as_u64(), first["indexed"]["changed"].as_u64()), (Some(documents), Some(0)));
    let again = desk.search(&["the OR and OR invoice"]);
    assert_eq!((&again["indexed"]["added"], hits(&again)), (&0.into(), hits(&first)));

    let gone = first["hits"][0]["key"].as_str().unwrap().to_owned();
    desk.sim.act("arrive?count=4");
    desk.sim.act(&format!("delete?id={gone}"));
    desk.sync().exits(0);
    let late = desk.search(&["the OR and OR invoice", "--as-is"]);
    assert_eq!((late["indexed"]["documents"].as_u64(), &late["indexed"]["added"]), (Some(documents), &0.into()));
    let now = desk.search(&["the OR and OR invoice"]);
    assert_eq!((&now["indexed"]["added"], &now["indexed"]["changed"]), (&4.into(), &1.into()), "{}", now["indexed"]);
    let deleted = hits(&now).into_iter().find(|hit| hit["key"] == gone.as_str()).unwrap();
    assert_eq!(deleted["deleted_remotely"], true, "it stays, and is found");

    let path = desk.home.path("highwater.db");
    Database::meddle(&path, &format!("DELETE FROM mail_messages WHERE provider_message_id = '{gone}'"));
    let without = desk.search(&["the OR and OR invoice"]);
    assert_eq!(without["indexed"]["removed"], 1);
    assert!(!hits(&without).iter().any(|hit| hit["key"] == gone.as_str()));
}

#[test]
fn a_search_needs_nothing_of_a_sync_that_runs() {
    let plan = "[latency]\nfixed_ms = 20";
    let limits = "[sources.mail.limits]\nrate = 4000\nin_flight = 4\n";
    let desk = Desk::new(Sim::gmail_planned(600, plan), &format!("shards = \"year\"\n{limits}"));
    let mut running = desk.start();
    let stored = || {
        desk.home.path("highwater.db").exists() && desk.database().one::<i64>("SELECT count(*) FROM mail_messages") > 50
    };
    until("some mail", Duration::from_secs(60), || (stored() || running.has_ended()).then_some(()));
    running.signal(Signal::Stop);
    assert!(!running.has_ended(), "the sync was too quick: {}", running.err());
    let found = desk.search(&["the OR and OR invoice"]);
    assert!(
        found["total"].as_u64().unwrap() > 10 && found["indexed"]["added"].as_u64().unwrap() > 50,
        "{}",
        found["indexed"]
    );
    running.signal(Signal::Continue);
    running.wait().exits(0);
    let whole = desk.search(&["the OR and OR invoice"]);
    assert!(whole["total"].as_u64() > found["total"].as_u64());
}

#[test]
fn an_index_that_is_lost_or_damaged_is_made_again() {
    let desk = Desk::new(Sim::gmail(120, "none"), FAST);
    desk.sync().exits(0);
    let index = desk.home.path("highwater-search.db");
    let before = desk.search(&["harbour OR kernel"]);
    let is_made_again = || {
        let after = desk.search(&["harbour OR kernel"]);
        assert_eq!((hits(&after), &after["indexed"]["added"]), (hits(&before), &before["indexed"]["added"]));
    };
    fs::remove_file(&index).unwrap();
    is_made_again();
    fs::write(&index, "no database").unwrap();
    desk.home.run(&["search", "harbour", "--as-is"]).exits(1).complains(&["search index", "without --as-is"]);
    is_made_again();
    // Its words, and what it knows of rows: damage that shows only in the middle of the work.
    for damage in ["DROP TABLE search_words", "DELETE FROM search_words_data", "DROP TABLE search_documents"] {
        rusqlite::Connection::open(&index).unwrap().execute_batch(damage).unwrap();
        is_made_again();
    }
}

#[test]
fn searches_at_once_do_not_disturb_each_other() {
    let desk = Desk::new(Sim::gmail(300, "none"), FAST);
    desk.sync().exits(0);
    let schema = Schema::new();
    desk.home.run(&["store", "copy", "--to", &schema.url()]).exits(0);
    for store in ["sqlite:highwater.db", &schema.url()] {
        let search = [&["search", "harbour", "--store", store], ALL].concat();
        let running: Vec<_> = (0..4).map(|_| desk.home.start(&search)).collect();
        let found: Vec<_> = running.into_iter().map(|one| one.wait().exits(0).json()).collect();
        assert!(found.iter().all(|one| hits(one) == hits(&found[0])), "{store}");
        assert_eq!(found[0]["total"], desk.holding("harbour"));
    }
}

#[test]
fn nothing_of_mail_is_told_but_what_was_asked_for() {
    let desk = Desk::new(Sim::gmail(120, "none"), FAST);
    desk.sync().exits(0);
    for args in [&["search", "harbour", "-v", "-v"][..], &["search", "harbour", "--as-is", "--limit", "2"]] {
        let done = desk.home.run(args).exits(0);
        let told = done.err.lines().filter(|line| !line.ends_with("matches") && !line.ends_with("--limit shows more"));
        assert_eq!(told.collect::<Vec<_>>(), Vec::<&str>::new());
        assert!(done.out.to_lowercase().contains("harbour") && !done.out.contains('\u{1b}'), "{}", done.out);
    }
    let quiet = desk.home.run(&["search", "harbour", "--quiet"]).exits(0);
    assert!(quiet.err.is_empty() && quiet.out.contains("mail/messages "), "{}{}", quiet.err, quiet.out);
    fs::write(desk.home.path("highwater-search.db"), "no database").unwrap();
    let failed = desk.home.run(&["search", "harbour", "--as-is"]).exits(1);
    assert!(!failed.err.contains("harbour"), "{}", failed.err);
}
