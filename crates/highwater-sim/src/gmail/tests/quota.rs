//! The quota, on a time of our own.

use std::time::Duration;

use super::Bench;

fn gets_until_refused(bench: &Bench) -> (u32, (u16, String, String)) {
    let id = bench.truth()[0].id.clone();
    let path = format!("/gmail/v1/users/me/messages/{id}?format=minimal");
    for count in 0.. {
        let answer = bench.ask(crate::Verb::Get, &path, "");
        if answer.0 != 200 {
            return (count, super::refused(answer));
        }
    }
    unreachable!("a quota ends")
}

#[test]
fn a_minute_of_the_new_table_is_300_gets_and_of_the_old_3000() {
    let new = Bench::new(3, "[quota]\nper_minute = 6000");
    assert_eq!(gets_until_refused(&new).0, 300);
    let old = Bench::new(3, "[quota]\ntable = 'old'\nper_minute = 15000");
    assert_eq!(gets_until_refused(&old).0, 3_000);
    assert_eq!(old.sim.counts(old.now).quota_units, 15_000);
}

#[test]
fn cheap_calls_cost_little() {
    let bench = Bench::new(600, "");
    bench.get("profile");
    bench.get("labels");
    bench.get("messages?maxResults=500");
    bench.get(&format!("history?startHistoryId={}", bench.get("profile")["historyId"].as_str().unwrap()));
    let counts = bench.sim.counts(bench.now);
    assert_eq!((counts.quota_units, counts.requests), (1 + 1 + 5 + 1 + 2, 5));
    assert_eq!(counts.by_method["getProfile"], 2);
    assert_eq!((counts.units_by_method["getProfile"], counts.units_by_method["messages.list"]), (2, 5));
}

#[test]
fn the_window_slides_and_the_shapes_take_turns() {
    let plan = "[quota]\nper_minute = 40\nshapes = ['backend', 'modern', 'user', 'project', 'retry-after']";
    let mut bench = Bench::new(3, plan);
    assert_eq!(gets_until_refused(&bench), (2, throttled(429, "Resource has been exhausted (e.g. check quota).")));
    bench.now = Duration::from_secs(59);
    let (count, modern) = gets_until_refused(&bench);
    assert_eq!((count, modern.0), (0, 403));
    assert_eq!(gets_until_refused(&bench).1.1, "userRateLimitExceeded");
    assert_eq!(gets_until_refused(&bench).1.2, "Rate Limit Exceeded");
    let (_, named) = gets_until_refused(&bench);
    assert_eq!(named, throttled(429, "User-rate limit exceeded.  Retry after 2026-01-01T00:01:00.000Z"));
    bench.now = Duration::from_secs(60);
    assert_eq!(gets_until_refused(&bench).0, 2);
}

#[test]
fn who_goes_on_asking_goes_to_the_penalty_box_and_stays_longer() {
    let plan = "[quota]\nper_minute = 20\n[penalty]\nafter = 3\nfor_s = 900\nextend_s = 60";
    let mut bench = Bench::new(3, plan);
    gets_until_refused(&bench);
    gets_until_refused(&bench);
    let (_, boxed) = gets_until_refused(&bench);
    assert_eq!(boxed, throttled(429, "User-rate limit exceeded.  Retry after 2026-01-01T00:15:00.000Z"));
    bench.now = Duration::from_secs(300);
    let (_, longer) = gets_until_refused(&bench);
    assert_eq!(longer, throttled(429, "User-rate limit exceeded.  Retry after 2026-01-01T00:16:00.000Z"));
    let counts = bench.sim.counts(bench.now);
    assert_eq!(counts.requests_in_penalty, 1);
    assert_eq!((counts.throttled["modern"], counts.throttled["penalty"]), (2, 2));
    bench.now = Duration::from_secs(960);
    assert_eq!(gets_until_refused(&bench).0, 1);
}

#[test]
fn requests_at_once_are_those_whose_latencies_overlap() {
    let mut bench = Bench::new(3, "[quota]\nconcurrent = 2\n[latency]\nfixed_ms = 100");
    bench.get("labels");
    bench.now = Duration::from_millis(50);
    bench.get("labels");
    assert_eq!(bench.error("labels"), throttled(429, "Too many concurrent requests for user"));
    bench.now = Duration::from_millis(100);
    bench.get("labels");
}

#[test]
fn the_penalty_box_can_be_entered_by_hand() {
    let mut bench = Bench::new(3, "[penalty]\nstatus = 403");
    bench.page("penalty?for_s=30");
    let text = "User-rate limit exceeded.  Retry after 2026-01-01T00:01:30.000Z";
    assert_eq!(bench.error("labels"), throttled(403, text), "and asking makes it a minute longer");
    bench.now = Duration::from_secs(90);
    bench.get("labels");
}

#[test]
fn a_day_has_so_many_bytes() {
    let mut bench = Bench::new(30, "[quota]\nbytes_per_day = 20000");
    let (_, refusal) = gets_until_refused(&bench);
    assert_eq!((refusal.0, refusal.1.as_str()), (403, "dailyLimitExceeded"));
    bench.now = Duration::from_secs(86_400);
    bench.get("labels");
}

fn throttled(status: u16, text: &str) -> (u16, String, String) {
    (status, "rateLimitExceeded".to_owned(), text.to_owned())
}
