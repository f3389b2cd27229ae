//! What the remote tells arrives at once; what it does not tell is found by looking again.

use super::{PATIENCE, caught_up, ends_equal, hears, home, limits, plan, same};
use crate::support::{Publish, Service, Sim, Tables};

const ITEMS: u32 = 1_500;

#[test]
fn what_is_told_arrives_while_everything_else_is_still_being_fetched() {
    let sim = Sim::planned(
        ITEMS + 20,
        &plan("[quota]\nper_second = 150\nburst = 20\n[head]\nbehind = 20\nevery_ms = 4000000000"),
    );
    let home = home(&sim, &limits("rate = 140\nin_flight = 16", ""));
    let mut service = Service::start(&home);
    service.wait_to_listen();
    let database = home.database();
    service.wait_for("the first rows", PATIENCE, |_| database.number("SELECT count(*) FROM hn_items") > 100);
    for id in [1_440, 1_450, 1_460] {
        hears(&mut service, &database, &sim, id);
    }
    let frontier = database.checked_frontier();
    assert!(frontier < i64::from(ITEMS), "the catch-up had ended before the updates came: {frontier}");
    caught_up(&mut service, i64::from(ITEMS));
    sim.act("grow?by=7");
    caught_up(&mut service, i64::from(ITEMS) + 7);
    let author = database.cells("SELECT \"by\" FROM hn_items WHERE id = 1490")[0][0].as_str().unwrap().to_owned();
    service.wait_for("a profile", PATIENCE, |_| {
        database.number(&format!("SELECT count(*) FROM hn_users WHERE id = '{author}'")) == 1
    });
    let truth = &sim.act(&format!("profile?name={author}"))["body"];
    service.wait_for("a changed profile", PATIENCE, |_| {
        let found = database.cells(&format!("SELECT karma FROM hn_users WHERE id = '{author}'"));
        found[0][0] == truth["karma"]
    });
    let unknown = "SELECT count(*) FROM (SELECT DISTINCT \"by\" FROM hn_items WHERE \"by\" IS NOT NULL
         EXCEPT SELECT id FROM hn_users) AS unknown";
    service.wait_for("all profiles", PATIENCE, |_| database.number(unknown) == 0);
    ends_equal(&mut service, &database, &sim, i64::from(ITEMS) + 7);
    assert_eq!(service.metric("catchup_dead_letters_total"), Some(0.0));
    assert!(service.metric("realtime_items_updated_total") >= Some(3.0));
    assert_eq!(service.ask("/readyz", &service.host()).0, 200);
    assert_eq!(database.number("SELECT count(*) FROM ingest_blind_windows"), 0, "nobody was ever blind");
    service.stop().exits(143);
    home.run(&["verify", "hn"]).exits(0);
}

#[test]
fn what_is_not_told_is_found_by_looking_again() {
    let sim = Sim::planned(600, &plan(""));
    let home = home(&sim, &limits("rate = \"unlimited\"", "rescan_every = \"1s\""));
    let mut service = Service::start(&home);
    let database = home.database_when_there();
    caught_up(&mut service, 600);
    for (id, truth) in [17, 300, 590].map(|id| sim.edit(id, Publish::No)) {
        service.wait_for("a silent change", PATIENCE, |_| same(&database, id, &truth));
    }
    service.wait_for("a pass that found it", PATIENCE, |service| {
        service.metric("rescan_items_changed_total") >= Some(3.0)
            && service.metric("rescan_last_run_age_seconds").is_some()
    });
    let known = sim.stats()["not_modified"].as_u64().unwrap();
    service.wait_for("bodies that are not sent again", PATIENCE, |_| {
        sim.stats()["not_modified"].as_u64().unwrap() > known
    });
    ends_equal(&mut service, &database, &sim, 600);
    service.stop().exits(143);
    let status = home.run(&["status", "--json"]).exits(0).json();
    assert!(status["sources"][0]["live"]["differed"].as_u64().unwrap() >= 3, "{status}");
}

#[test]
fn a_story_can_be_watched_rising() {
    let sim = Sim::planned(300, &plan(""));
    let home = home(&sim, &limits("rate = \"unlimited\"", ""));
    let mut service = Service::start(&home);
    let database = home.database_when_there();
    caught_up(&mut service, 300);
    let story = database.number("SELECT max(id) FROM hn_items WHERE type = 'story' AND title IS NOT NULL");
    let mut scores = database.cells(&format!("SELECT score FROM hn_items WHERE id = {story}")).remove(0);
    for _ in 0..3 {
        let truth = sim.act(&format!("mutate?id={story}&kind=score"))["body"].clone();
        service.wait_for("an update", PATIENCE, |_| same(&database, story, &truth));
        scores.push(truth["score"].clone());
    }
    let history = format!("SELECT score FROM hn_story_history WHERE id = {story} ORDER BY seen_at");
    let seen: Vec<_> = database.cells(&history).into_iter().map(|mut row| row.remove(0)).collect();
    assert_eq!(seen, scores);
}
