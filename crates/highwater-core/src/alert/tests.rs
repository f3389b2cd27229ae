//! The book of alerts on virtual time.

use super::*;

fn at(seconds: u64) -> Timestamp {
    Timestamp::EPOCH + secs(seconds)
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn items(settled: u64, bad: u64) -> Signals {
    Signals { items: ItemSignals { settled, bad }, ..Signals::default() }
}

/// A feed that is well.
fn live() -> LiveSignals {
    LiveSignals { last_event_age: Some(secs(1)), workers_alive: 4, ..LiveSignals::default() }
}

fn fed(live: LiveSignals) -> Signals {
    Signals { live: Some(live), ..Signals::default() }
}

fn down(seconds: u64) -> Signals {
    fed(LiveSignals { down_for: Some(secs(seconds)), ..live() })
}

/// What the book says, in words; what is not to be sent stands in parentheses.
fn told(book: &mut AlertBook, signals: &Signals, seconds: u64) -> Vec<String> {
    let shown = |change: AlertChange| {
        let line = format!("{} {}", change.condition, change.state);
        if change.send { line } else { format!("({line})") }
    };
    book.observe(signals, at(seconds)).into_iter().map(shown).collect()
}

fn conditions(signals: &Signals) -> Vec<&'static str> {
    AlertBook::default().observe(signals, at(0)).iter().map(|change| change.condition.as_str()).collect()
}

#[test]
fn a_share_is_judged_over_ten_thousand_items_and_told_once_an_hour() {
    let mut book = AlertBook::default();
    assert_eq!(book.observe(&items(9_999, 150), at(0)), []);
    let changes = book.observe(&items(10_000, 150), at(1));
    let critical = changes.iter().find(|change| change.send).unwrap();
    assert_eq!(critical.to_string(), "critical: 150 of the last 10000 items became dead letters");
    assert_eq!(changes.iter().filter(|change| change.send).count(), 1, "the warning is part of it: {changes:?}");
    assert_eq!(told(&mut book, &items(20_000, 170), 2), ["bad_share_warn lasting"], "it alone holds now");
    assert_eq!(told(&mut book, &items(30_000, 190), 3), [""; 0]);
    assert_eq!(told(&mut book, &items(40_000, 210), 3_700), ["bad_share_warn lasting", "bad_share_critical resolved"]);
}

#[test]
fn a_share_just_below_the_threshold_is_no_alert() {
    let mut book = AlertBook::default();
    assert_eq!(told(&mut book, &items(10_000, 19), 0), [""; 0]);
    assert_eq!(told(&mut book, &items(20_000, 39), 1), ["bad_share_warn raised"]);
}

#[test]
fn the_hour_forgets() {
    let mut book = AlertBook::default();
    assert_eq!(told(&mut book, &items(1, 200), 0), [""; 0]);
    let changes = book.observe(&items(2, 201), at(10));
    assert_eq!(changes[0].to_string(), "critical: 201 dead letters within an hour");
    let mut patient = AlertBook::default();
    patient.observe(&items(1, 200), at(0));
    assert_eq!(told(&mut patient, &items(2, 201), 3_600), [""; 0]);
}

#[test]
fn what_lasts_is_told_again_every_hour_and_resolved_a_minute_after_its_end() {
    let mut book = AlertBook::default();
    let mut log = Vec::new();
    for minute in 0..=200 {
        let signals = if (1..=150).contains(&minute) { down(60 + minute) } else { fed(live()) };
        let lines = told(&mut book, &signals, minute * 60);
        log.extend(lines.into_iter().map(|line| format!("{minute} {line}")));
    }
    assert_eq!(
        log,
        [
            "1 listener_down raised",
            "61 listener_down lasting",
            "121 listener_down lasting",
            "152 listener_down resolved"
        ]
    );
}

#[test]
fn what_comes_and_goes_is_written_down_but_told_once_an_hour() {
    let mut book = AlertBook::default();
    assert_eq!(told(&mut book, &down(61), 0), ["listener_down raised"]);
    assert_eq!(told(&mut book, &fed(live()), 10), [""; 0]);
    assert_eq!(told(&mut book, &down(61), 69), [""; 0], "less than a minute is no end");
    assert_eq!(told(&mut book, &fed(live()), 70), [""; 0]);
    assert_eq!(told(&mut book, &fed(live()), 130), ["listener_down resolved"]);
    assert_eq!(told(&mut book, &down(61), 600), ["(listener_down raised)"]);
    assert_eq!(told(&mut book, &fed(live()), 700), [""; 0]);
    assert_eq!(told(&mut book, &fed(live()), 760), ["(listener_down resolved)"], "nobody knew of it");
    assert_eq!(told(&mut book, &down(61), 3_599), ["(listener_down raised)"]);
    assert_eq!(told(&mut book, &down(62), 3_600), ["listener_down lasting"]);
}

#[test]
fn one_look_after_a_long_time_is_not_an_end() {
    let mut book = AlertBook::default();
    book.observe(&down(61), at(0));
    assert_eq!(told(&mut book, &fed(live()), 1_000), [""; 0]);
    assert_eq!(told(&mut book, &fed(live()), 1_060), ["listener_down resolved"]);
}

#[test]
fn every_threshold_of_the_feed_is_exclusive() {
    let hour = secs(3_600);
    let shift = |name: &str, quiet: LiveSignals, loud: LiveSignals| {
        assert_eq!(conditions(&fed(quiet)), [""; 0], "{name}");
        assert_eq!(conditions(&fed(loud)), [name]);
    };
    let down_for = |age| LiveSignals { down_for: Some(age), ..live() };
    shift("listener_down", down_for(secs(60)), down_for(secs(61)));
    let heard = |age| LiveSignals { last_event_age: Some(age), ..live() };
    shift("last_event_old", heard(secs(300)), heard(secs(301)));
    let blind = |age| LiveSignals { oldest_window_age: Some(age), ..live() };
    shift("blind_window_open", blind(hour), blind(hour + secs(1)));
    let queue = |queue_depth| LiveSignals { queue_depth, ..live() };
    shift("queue_long", queue(2_000), queue(2_001));
    let workers = |workers_alive| LiveSignals { workers_alive, ..live() };
    shift("no_worker_alive", workers(1), workers(0));
    let reconnects = |reconnects| LiveSignals { reconnects, ..live() };
    shift("reconnecting", reconnects(6), reconnects(7));
    assert_eq!(conditions(&fed(LiveSignals { last_event_age: None, ..live() })), [""; 0]);
}

#[test]
fn a_record_that_cannot_be_read_is_as_bad_as_a_feed_that_is_down() {
    let unheard = |seconds| Signals { unheard_for: Some(secs(seconds)), ..Signals::default() };
    assert_eq!(conditions(&unheard(60)), [""; 0]);
    assert_eq!(conditions(&unheard(61)), ["listener_down"]);
}

#[test]
fn a_lag_counts_only_once_the_mirror_has_caught_up() {
    let lagging = |lag, caught_up_once| {
        let catchup = CatchupSignals { lag, caught_up_once, dead_letters: 0 };
        conditions(&Signals { catchup, ..Signals::default() })
    };
    assert_eq!(lagging(48_000_000, false), [""; 0]);
    assert_eq!(lagging(50_000, true), [""; 0]);
    assert_eq!(lagging(50_001, true), ["lag"]);
}

#[test]
fn dead_letters_old_rescans_and_the_size_of_the_books_are_told() {
    let catchup = CatchupSignals { dead_letters: 1, ..CatchupSignals::default() };
    let changes = AlertBook::default().observe(&Signals { catchup, ..Signals::default() }, at(0));
    assert_eq!(changes[0].to_string(), "warning: 1 dead letter waits for a decision");
    let rescan = |age| conditions(&Signals { rescan_age: Some(age), ..Signals::default() });
    assert_eq!(rescan(secs(12 * 3_600)), [""; 0]);
    assert_eq!(rescan(secs(12 * 3_600 + 1)), ["rescan_old"]);
    let (day, every) = (secs(24 * 3_600), secs(24 * 3_600));
    let daily = |age| conditions(&Signals { rescan_age: Some(age), rescan_every: every, ..Signals::default() });
    assert_eq!((daily(2 * day), daily(2 * day + secs(1))), (vec![], vec!["rescan_old"]));
    let books =
        |bytes, budget| conditions(&Signals { control: ControlSignals { bytes, budget }, ..Signals::default() });
    assert_eq!(books(499, Some(1_000)), [""; 0]);
    assert_eq!(books(500, Some(1_000)), ["control_plane_half"]);
    assert_eq!(books(800, Some(1_000)), ["control_plane_half", "control_plane_near"]);
    assert_eq!(books(u64::MAX, None), [""; 0]);
}

#[test]
fn throttling_is_told_when_it_fills_ten_of_fifteen_minutes() {
    let run = |busy: u64| {
        let mut book = AlertBook::default();
        let mut throttled = Duration::ZERO;
        let mut log = Vec::new();
        for second in 0..1_800 {
            throttled += secs(u64::from(second % 15 < busy));
            log.extend(told(&mut book, &Signals { throttled, ..Signals::default() }, second));
        }
        log
    };
    assert_eq!(run(9), [""; 0]);
    assert_eq!(run(12), ["throttled raised"]);
}

#[test]
fn reconnects_of_more_than_an_hour_ago_do_not_count() {
    let mut book = AlertBook::default();
    for reconnects in 1..=40 {
        let signals = fed(LiveSignals { reconnects, ..live() });
        assert_eq!(told(&mut book, &signals, reconnects * 620), [""; 0]);
    }
}

#[test]
fn an_alert_of_an_earlier_process_is_resolved_by_this_one() {
    let mut book = AlertBook::default();
    book.observe(&down(61), at(0));
    let open = book.open();
    let mut next = AlertBook::default();
    open.iter().cloned().for_each(|alert| next.recall(alert));
    next.recall_told(Condition::ListenerDown, at(0));
    assert_eq!(next.open(), open);
    assert_eq!(told(&mut next, &down(90), 30), [""; 0], "it was told already");
    assert_eq!(told(&mut next, &fed(live()), 40), [""; 0]);
    assert_eq!(told(&mut next, &fed(live()), 100), ["listener_down resolved"]);
    assert_eq!(next.open(), []);
}

#[test]
fn once_an_hour_holds_across_processes() {
    let mut next = AlertBook::default();
    next.recall_told(Condition::ListenerDown, at(100));
    assert_eq!(told(&mut next, &down(61), 600), ["(listener_down raised)"], "the one before it told at 100");
    assert_eq!(told(&mut next, &down(90), 3_699), [""; 0]);
    assert_eq!(told(&mut next, &down(90), 3_700), ["listener_down lasting"]);
}

#[test]
fn an_alert_that_nobody_heard_of_is_recalled_as_such() {
    let mut next = AlertBook::default();
    let (condition, severity) = (Condition::ListenerDown, Severity::Critical);
    next.recall(OpenAlert { condition, severity, message: String::new(), raised_at: at(200) });
    next.recall_told(condition, at(100));
    told(&mut next, &fed(live()), 300);
    assert_eq!(told(&mut next, &fed(live()), 360), ["(listener_down resolved)"]);
}

#[test]
fn what_counts_over_an_hour_is_resolved_only_by_who_has_seen_an_hour() {
    let mut next = AlertBook::default();
    let (condition, severity) = (Condition::Reconnecting, Severity::Warning);
    next.recall(OpenAlert { condition, severity, message: String::new(), raised_at: at(0) });
    next.recall_told(condition, at(0));
    let mut log = Vec::new();
    for minute in 1..=70 {
        let lines = told(&mut next, &fed(live()), minute * 60);
        log.extend(lines.into_iter().map(|line| format!("{minute} {line}")));
    }
    assert_eq!(log, ["62 reconnecting resolved"]);
}

#[test]
fn a_feed_that_is_still_down_after_a_restart_is_not_resolved_in_between() {
    let mut next = AlertBook::default();
    let (condition, severity) = (Condition::ListenerDown, Severity::Critical);
    next.recall(OpenAlert { condition, severity, message: String::new(), raised_at: at(0) });
    next.recall_told(condition, at(0));
    for second in (5..=120).step_by(5) {
        assert_eq!(told(&mut next, &down(second), 1_000 + second), [""; 0]);
    }
}

#[test]
fn a_book_that_others_keep_is_empty() {
    let mut book = AlertBook::default();
    book.observe(&fed(LiveSignals { reconnects: 7, ..live() }), at(0));
    assert_eq!(book.open().len(), 1);
    book.hand_over();
    assert_eq!(book.open(), []);
    assert_eq!(told(&mut book, &fed(LiveSignals { reconnects: 7, ..live() }), 4_000), [""; 0], "none of them is new");
}
