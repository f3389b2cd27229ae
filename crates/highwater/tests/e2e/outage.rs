//! A remote in trouble as a whole, or asking for silence, or hiding its newest items.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use crate::support::{Deadline, FAST, Home, Reply, Server, item, pause};

fn well(asked: Option<i64>, last: i64) -> Option<Reply> {
    Some(Reply::ok(asked.map_or_else(|| last.to_string(), item)))
}

/// Well for 200 requests, and again after three seconds in which everything is answered alike.
fn out_for_a_while(answer: fn() -> Reply) -> Server {
    const LENGTH: Duration = Duration::from_secs(3);
    let over: Mutex<Option<Deadline>> = Mutex::new(None);
    Server::start(move |asked, before| {
        if before < 200 {
            return well(asked, 1500);
        }
        let mut over = over.lock().unwrap();
        let is_out = !over.get_or_insert_with(|| Deadline::after(LENGTH)).has_passed();
        if is_out { Some(answer()) } else { well(asked, 1500) }
    })
}

fn assert_buries_nothing(server: &Server) {
    let home = Home::new(&server.url(), "rate = 1000\nattempts = 2");
    let done = home.run(&["sync", "hn", "--json"]).exits(0).json();
    assert_eq!((&done["streams"][0]["stored"], &done["streams"][0]["run"]["dead_letters"]), (&1500.into(), &0.into()));
}

#[test]
fn an_outage_of_everything_buries_nothing() {
    let server = out_for_a_while(|| Reply::status(500));
    assert_buries_nothing(&server);
    let failed = server.hits().iter().filter(|hit| hit.status == 500).count();
    assert!(failed < 700, "{failed} requests went into an outage, which a pause should have kept few");
}

/// As a proxy that fails does: a sound answer to nobody's question.
#[test]
fn the_same_wrong_answer_to_every_question_buries_nothing() {
    let server = out_for_a_while(|| Reply::ok(r#"{"error":"try again later"}"#));
    assert_buries_nothing(&server);
    assert!(server.hits().len() < 2500, "{} requests, most of which went into an outage", server.hits().len());
}

#[test]
fn refusals_everywhere_are_retried_and_never_taken_for_bad_credentials() {
    let server = Server::start(|asked, _| match asked {
        Some(_) => Some(Reply::status(401)),
        None => well(None, 200),
    });
    let home = Home::new(&server.url(), "rate = 500\nattempts = 2\nretry_patience = \"3s\"");
    let done = home.run(&["sync", "hn"]).exits(3);
    assert!(done.out.contains("does not answer (denied)"), "{}", done.out);
    let status = home.status();
    assert_eq!((&status["dead_letters"], &status["stored"]), (&0.into(), &0.into()), "{status}");
    assert!(status["retrying"].as_u64() > Some(0), "{status}");
}

/// As a proxy does that takes only so many at a time.
#[test]
fn where_only_so_many_requests_are_taken_at_once_fewer_are_made() {
    const TAKEN: usize = 6;
    const TAKES: Duration = Duration::from_millis(50);
    const ITEMS: i64 = 800;
    let under_way = AtomicUsize::new(0);
    let server = Server::start(move |asked, _| {
        let is_taken = under_way.fetch_add(1, Ordering::Relaxed) < TAKEN;
        if is_taken {
            pause(TAKES);
        }
        under_way.fetch_sub(1, Ordering::Relaxed);
        if is_taken { well(asked, ITEMS) } else { Some(Reply::hang_up()) }
    });
    let home = Home::new(&server.url(), "rate = 500");
    home.run(&["sync", "hn"]).exits(0);
    assert_eq!(home.status()["stored"], ITEMS);
    let refused = server.hits().iter().filter(|hit| hit.status == 0).count();
    assert!(refused < 1600, "{refused} requests were refused");
}

#[test]
fn retry_after_silences_the_whole_account() {
    const IN_FLIGHT: usize = 8;
    let server = Server::start(|asked, before| match before {
        100 => Some(Reply { headers: "Retry-After: 2\r\n", ..Reply::status(429) }),
        _ => well(asked, 400),
    });
    let home = Home::new(&server.url(), &format!("rate = 500\nin_flight = {IN_FLIGHT}"));
    home.run(&["sync", "hn"]).exits(0);
    assert_eq!(home.status()["stored"], 400);
    let hits = server.hits();
    let refused = hits.iter().find(|hit| hit.status == 429).unwrap().answered.unwrap();
    let silence = refused..refused + Duration::from_secs(2);
    let within = hits.iter().filter(|hit| silence.contains(&hit.arrived)).count();
    assert!(within < IN_FLIGHT, "{within} requests came in the two seconds, more than can have been on their way");
}

#[test]
fn a_retry_that_is_due_does_not_wait_for_what_was_claimed_for_minutes() {
    const ITEMS: i64 = 6000;
    let failed = AtomicBool::new(false);
    let server = Server::start(move |asked, _| match asked {
        Some(5) if !failed.swap(true, Ordering::Relaxed) => Some(Reply::status(500)),
        _ => well(asked, ITEMS),
    });
    let home = Home::new(&server.url(), "rate = 600\nsegment = 500\njob = 1");
    home.run(&["sync", "hn"]).exits(0);
    let asked: Vec<i64> = server.hits().iter().filter_map(|hit| hit.item).collect();
    let again = asked.iter().rposition(|item| *item == 5).unwrap();
    assert!(again < 3000, "it was tried again after {again} others, which is longer than any wait before a retry");
}

#[test]
fn an_item_held_back_that_then_cannot_be_had_is_not_passed_over() {
    let held_back = AtomicBool::new(true);
    let server = Server::start(move |asked, _| match asked {
        Some(7) if held_back.swap(false, Ordering::Relaxed) => {
            Some(Reply::ok(r#"{"id":7,"type":"comment","by":"ann","text":"[delayed]","parent":1,"time":1700000000}"#))
        }
        Some(7) => Some(Reply::status(404)),
        _ => well(asked, 20),
    });
    let home = Home::new(&server.url(), &format!("{FAST}\nattempts = 2\nretry_patience = \"2m\""));
    home.run(&["sync", "hn"]).exits(3);
    let letters = home.run(&["dead-letters", "list", "hn"]).exits(0);
    assert!(letters.out.contains("hn/items 7  not_found"), "{}", letters.out);
}

#[test]
fn a_null_that_heals_is_stored_and_one_that_was_stored_is_kept() {
    let gone = AtomicBool::new(false);
    let server = Server::start(move |asked, before| match asked {
        Some(10) if before < 150 => Some(Reply::ok("null")),
        Some(20) if gone.swap(true, Ordering::Relaxed) => Some(Reply::ok("null")),
        _ => well(asked, 200),
    });
    let home = Home::new(&server.url(), FAST);
    home.run(&["sync", "hn"]).exits(0);
    assert_eq!((&home.status()["stored"], &home.status()["missing"]), (&200.into(), &0.into()));
    home.run(&["sync", "hn", "--force", "--from", "1", "--to", "30"]);
    let text: String = home.database().one("SELECT text FROM hn_items WHERE id = 20");
    assert_eq!(text, "comment 20", "an absence does not overwrite a body");
}

#[test]
fn a_newest_item_that_does_not_appear_is_waited_for_and_then_reported() {
    let server = Server::start(|asked, _| match asked {
        Some(98) => Some(Reply::ok("null")),
        _ => well(asked, 100),
    });
    let home = Home::new(&server.url(), FAST);
    let done = home.run(&["sync", "hn"]).exits(3);
    assert!(done.out.contains("1 to be tried again, the next at"), "{}", done.out);
    let status = home.status();
    assert_eq!((&status["retrying"], &status["missing"], &status["stored"]), (&1.into(), &0.into(), &99.into()));
    let asked = server.hits().iter().filter(|hit| hit.item == Some(98)).count();
    assert!((5..=20).contains(&asked), "30 s of patience are some twelve looks, not {asked}");
}
