//! What seeds have found, each in the smallest scene that shows it.

use std::time::Duration;

use highwater_core::throttle::{InFlight, Rate, Settings};
use highwater_sim::{FaultPlan, HnSim, Publicity, StreamOrder};

use super::{
    books::all,
    history::Histories,
    scene::{Act, End, Life, Scene},
    stage::{EPOCH, Stage},
    truth,
};
use crate::oracle;

const MINUTE: Duration = Duration::from_secs(60);

fn life(lasts: Duration, acts: Vec<(Duration, Act)>) -> Life {
    Life { lasts, end: End::Killed, acts, away: Duration::ZERO }
}

/// Plays lives of a calm world, and checks after each that whatever the mirror lacks has a reason in its books.
fn play(scene: Scene, lives: &[Life]) -> Stage {
    let mut stage = Stage::new(scene);
    let mut histories = Histories::new(stage.sim.clone());
    for life in lives {
        stage.live(life);
        histories.grow(&stage);
        truth::check_any_time(&stage.database(), &histories);
        stage.age += life.away;
    }
    stage
}

fn told(below: u64) -> Act {
    Act::Mutate(below, Publicity::Published)
}

#[test]
fn a_stored_item_that_was_told_of_in_an_outage_is_not_given_up() {
    let acts = vec![(MINUTE, Act::Down(5 * MINUTE)), (MINUTE, told(3))];
    play(Scene::calm(), &[life(10 * MINUTE, acts)]);
}

/// A row that changes before its segment is planned, in a way that the store cannot hold.
#[test]
fn what_the_store_refuses_before_it_is_planned_is_told_of_later() {
    let mut stage = play(Scene::calm(), &[life(2 * MINUTE, Vec::new())]);
    let new = stage.sim.max_item(stage.age) + 1;
    let refuse = format!(
        "CREATE TRIGGER refused BEFORE UPDATE ON hn_items WHEN new.id = {new} BEGIN SELECT RAISE(ABORT, 'no'); END"
    );
    rusqlite::Connection::open(stage.database()).unwrap().execute_batch(&refuse).unwrap();
    let acts = vec![(MINUTE, Act::Grow(1)), (MINUTE + Duration::from_millis(300), told(0))];
    stage.live(&life(2 * MINUTE, acts));
    let listed = format!("SELECT state FROM ingest_exceptions WHERE stream = 'items' AND item_key = '{new}'");
    let listed: Vec<String> = all(&oracle::open(&stage.database()), &listed, |row| row.get(0));
    assert_eq!(listed, ["dead_letter"], "tried as often as any other, and listed");
}

/// In a pass, where most of a job is confirmed by its marks and little comes as a body.
#[test]
fn what_came_with_a_row_that_the_store_refuses_is_written() {
    // The first pass learns the marks that the next one shows.
    let away = || Life { away: 10 * MINUTE, ..life(10 * MINUTE, Vec::new()) };
    let mut stage = play(Scene::calm(), &[away(), away()]);
    let id = stage.sim.max_item(stage.age) - 5;
    stage.sim.mutate(id, None, Publicity::Unpublished, stage.age).unwrap();
    let forget = format!(
        "UPDATE hn_items SET last_fetched_at = 0;
         CREATE TRIGGER refused BEFORE UPDATE ON hn_items WHEN new.id = {id} BEGIN SELECT RAISE(ABORT, 'no'); END"
    );
    rusqlite::Connection::open(stage.database()).unwrap().execute_batch(&forget).unwrap();
    stage.live(&life(2 * MINUTE, Vec::new()));
    let near = format!("SELECT id FROM hn_items WHERE last_fetched_at = 0 AND abs(id - {id}) <= 5");
    let near: Vec<i64> = all(&oracle::open(&stage.database()), &near, |row| row.get(0));
    assert_eq!(near, [id as i64], "its neighbours are confirmed");
}

/// Of something older than what is looked at again after a short blindness.
#[test]
fn what_was_told_is_forgotten_neither_by_a_stop_nor_by_a_kill() {
    for end in [End::Stopped, End::Killed] {
        for (queue, below) in [(2, vec![3, 30, 31]), (20, vec![3, 30, 31, 35, 38])] {
            let mut scene = Scene::calm();
            scene.live.queue = queue;
            scene.plan.latency.fixed_ms = 5_000;
            let acts = below.into_iter().map(|below| (10 * MINUTE, told(below))).collect();
            let mut stage = play(scene, &[Life { end, ..life(10 * MINUTE + Duration::from_secs(1), acts) }]);
            // The remote tells of no more than the last changes to whoever comes back.
            for nth in 0..200 {
                let id = stage.sim.max_item(stage.age) - nth % 3;
                stage.sim.mutate(id, None, Publicity::Published, stage.age).unwrap();
            }
            stage.live(&life(15 * MINUTE, Vec::new()));
            let mut histories = Histories::new(stage.sim.clone());
            histories.grow(&stage);
            truth::check_any_time(&stage.database(), &histories);
        }
    }
}

#[test]
fn a_pass_is_not_put_off_by_starting_anew() {
    let mut scene = Scene::calm();
    scene.live.rescan.every = 180 * MINUTE;
    let lives: Vec<Life> = (0..5).map(|_| Life { away: MINUTE, ..life(60 * MINUTE, Vec::new()) }).collect();
    let stage = play(scene, &lives);
    let scheduled = "SELECT began_at FROM ingest_rescans WHERE reason = 'scheduled'";
    let scheduled: Vec<i64> = all(&oracle::open(&stage.database()), scheduled, |row| row.get(0));
    assert_eq!(scheduled.len(), 1);
}

/// What was told and not read yet is no younger for being read late.
#[test]
pub(crate) fn what_waited_in_the_feed_while_the_queue_was_full_is_owed_since_it_was_told() {
    let mut acts = vec![(MINUTE, Act::Down(2 * MINUTE))];
    acts.extend((0..40).map(|nth| (MINUTE + Duration::from_secs(nth), told(nth))));
    let mut scene = Scene::calm();
    scene.plan.latency.fixed_ms = 1_500;
    for lasts in (180..220).step_by(5) {
        play(scene.clone(), &[life(Duration::from_secs(lasts), acts.clone())]);
    }
}

#[test]
pub(crate) fn an_item_that_is_named_while_it_is_fetched_is_fetched_again() {
    let mut scene = Scene::calm();
    scene.plan.latency.fixed_ms = 1_500;
    let acts = vec![(MINUTE, told(3)), (MINUTE + Duration::from_millis(500), told(3))];
    play(scene, &[life(10 * MINUTE, acts)]);
}

/// Answers overtake each other: what is told of, what is looked at again, and changes that nobody tells of.
#[test]
pub(crate) fn an_answer_that_comes_late_undoes_nothing() {
    let publicity = |nth| if nth % 2 == 0 { Publicity::Published } else { Publicity::Unpublished };
    let act = |nth: u64| (Duration::from_millis(500 * nth), Act::Mutate(nth % 7, publicity(nth)));
    for seed in 1..=8 {
        let mut scene = Scene { seed, ..Scene::calm() };
        scene.plan.latency.jitter_ms = 5_000;
        let first = Life { away: 60 * MINUTE, ..life(2 * MINUTE, Vec::new()) };
        play(scene, &[first, life(3 * MINUTE, (0..120).map(act).collect())]);
    }
}

/// The author of what is new, whose name has long been known, is known again only when that has come.
#[test]
fn a_profile_that_changed_unheard_is_found_by_what_is_new() {
    let mut scene = Scene::calm();
    // What ends the window goes ahead of what is new.
    scene.throttle = Settings::new(Rate::Unlimited, InFlight { start: 1, max: 1 });
    scene.plan.latency.fixed_ms = 1_000;
    scene.live.rescan.window = 120 * MINUTE;
    let mut stage = play(scene, &[Life { away: 36 * 60 * MINUTE, ..life(15 * MINUTE, Vec::new()) }]);
    let name = author(&stage.sim, stage.sim.max_item(stage.age));
    stage.sim.mutate_profile(&name, Publicity::Published, stage.age - MINUTE).unwrap();
    stage.live(&life(15 * MINUTE, Vec::new()));
    let mut histories = Histories::new(stage.sim.clone());
    histories.grow(&stage);
    truth::check_end(&stage.database(), &stage.sim, &histories);
}

/// Two workers, two requests without an answer, and something else to fetch.
#[test]
fn what_is_told_does_not_wait_for_requests_that_nobody_answers() {
    let mut scene = Scene::calm();
    scene.live.queue = 20;
    let silent = "[[script]]\nids = [110, 111]\nreplies = ['normal', 'hang']";
    scene.plan.scripts = FaultPlan::parse(silent).unwrap().scripts;
    let after = |seconds| MINUTE + Duration::from_secs(seconds);
    let acts = vec![(after(0), told(10)), (after(2), told(9)), (after(4), told(5))];
    let stage = play(scene, &[life(5 * MINUTE, acts)]);
    let db = oracle::open(&stage.database());
    let changed = "SELECT last_changed_at FROM hn_items WHERE id IN (110, 111, 115) ORDER BY id";
    let changed: Vec<i64> = all(&db, changed, |row| row.get(0));
    let seconds: Vec<_> = changed.iter().map(|at| (at - EPOCH.as_millis()) / 1000).collect();
    let [first, second, answered] = seconds[..] else { panic!("{seconds:?}") };
    assert!(first >= 90 && second >= 92, "both were asked for again: {seconds:?}");
    assert!(answered < 75, "{seconds:?}");
}

#[test]
fn a_window_closes_long_before_a_first_catch_up_under_a_quota_ends() {
    let mut scene = Scene::calm();
    scene.items = 4_000;
    scene.throttle = Settings::new(Rate::Limited { start: 2.0, max: 2.0 }, InFlight { start: 8, max: 8 });
    let acts = vec![(2 * MINUTE, Act::Order(StreamOrder::Drop))];
    let stage = play(scene, &[life(6 * MINUTE, acts)]);
    let db = oracle::open(&stage.database());
    let windows = "SELECT rescan_id, sealed_at IS NOT NULL, names_at IS NOT NULL, closed_at IS NOT NULL
                   FROM ingest_blind_windows JOIN ingest_rescans USING (rescan_id)";
    let windows: Vec<[i64; 4]> = all(&db, windows, |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]));
    assert_eq!(windows, [[1, 1, 1, 1]], "which pass, and whether it, the profiles and the window are done");
    let stream = "SELECT frontier, target FROM ingest_streams WHERE stream = 'items'";
    let stream: Vec<(i64, i64)> = all(&db, stream, |row| Ok((row.get(0)?, row.get(1)?)));
    let (frontier, target) = stream[0];
    assert!(1 < frontier && frontier < target / 2, "{frontier} of {target}");
}

/// Bodies come seconds after their ids, and there is more to do than the quota allows for.
fn busy(behind: u32, every_ms: u32) -> Scene {
    let mut scene = Scene::calm();
    let now = EPOCH.as_millis() / 1000;
    let plan = format!(
        "[clock]\nnow = {now}\nseconds_per_id = 60\n[latency]\nfixed_ms = 20\n[stream]\nkeep_alive_ms = 300000
         [head]\nbehind = {behind}\nevery_ms = {every_ms}\njump_max = 1\nlag_ms = 3000"
    );
    scene.plan = FaultPlan::parse(&plan).unwrap();
    (scene.items, scene.live.queue) = (4_000, 50);
    scene.throttle = limited(20.0);
    scene
}

fn limited(rate: f64) -> Settings {
    Settings::new(Rate::Limited { start: rate, max: rate }, InFlight { start: 8, max: 8 })
}

fn stream(stage: &Stage) -> (i64, i64) {
    let stream = "SELECT frontier, target FROM ingest_streams WHERE stream = 'items'";
    all(&oracle::open(&stage.database()), stream, |row| Ok((row.get(0)?, row.get(1)?)))[0]
}

#[test]
fn what_is_new_is_stored_within_seconds_during_a_first_catch_up() {
    let scene = busy(1_000, 2_000);
    let first =
        HnSim::new(highwater_sim::World::generated(highwater_sim::Seed(scene.seed), scene.items), scene.plan.clone());
    let first = first.max_item(Duration::ZERO) + 1;
    let stage = play(scene, &[life(MINUTE, Vec::new())]);
    let newest = stage.sim.max_item(stage.age - Duration::from_secs(12));
    let stored = format!("SELECT count(*) FROM hn_items WHERE id BETWEEN {first} AND {newest}");
    let stored: Vec<i64> = all(&oracle::open(&stage.database()), &stored, |row| row.get(0));
    assert!(newest > first + 15, "{first} to {newest}");
    assert_eq!(stored, [(newest - first + 1) as i64]);
    assert!(stream(&stage).0 < 2_000, "the catch-up is far from its end");
}

#[test]
fn the_frontier_moves_on_during_a_pass() {
    let mut scene = busy(1_000, 2_000);
    // So that there is always more at hand than is asked for in a minute.
    scene.engine.sizes.job = Some(1);
    scene.throttle = Settings::new(Rate::Unlimited, InFlight { start: 8, max: 8 });
    let mut stage = play(scene, &[Life { away: 10 * MINUTE, ..life(2 * MINUTE, Vec::new()) }]);
    assert!(stream(&stage).0 + 15 >= stream(&stage).1, "all is there but what is still to come");
    stage.scene.throttle = limited(20.0);
    stage.live(&life(Duration::from_secs(90), Vec::new()));
    let open = "SELECT count(*) FROM ingest_rescans WHERE reason = 'blind' AND sealed_at IS NULL";
    let open: Vec<i64> = all(&oracle::open(&stage.database()), open, |row| row.get(0));
    assert_eq!(open, [1], "the pass goes on");
    let (frontier, newest) = (stream(&stage).0, stage.sim.max_item(stage.age) as i64);
    assert!(frontier + 5 >= newest, "{frontier} of {newest}, which grows by one in two seconds");
}

#[test]
fn profiles_are_verified_once_somebody_has_served() {
    let stage = play(Scene::calm(), &[life(10 * MINUTE, Vec::new())]);
    let users = || {
        let [items, users] = &stage.verify().streams[..] else { panic!("two streams") };
        assert_eq!((items.differs, items.unexplained), (0, 0));
        users.clone()
    };
    let sound = users();
    assert_eq!(sound.book_errors, [""; 0]);
    assert!(sound.complete && sound.stored > 10 && sound.checked == sound.stored, "{sound:?}");
    let db = rusqlite::Connection::open(stage.database()).unwrap();
    let damage = "UPDATE hn_users SET karma = karma + 1 WHERE id = (SELECT min(id) FROM hn_users);
                  DELETE FROM hn_users WHERE id = (SELECT max(id) FROM hn_users)";
    db.execute_batch(damage).unwrap();
    let damaged = users();
    assert_eq!((damaged.differs, damaged.unexplained, damaged.moved), (1, 1, 1));
    assert_eq!((damaged.stored, damaged.complete), (sound.stored - 1, false));
}

fn author(sim: &HnSim, id: u64) -> String {
    let (body, _) = sim.item_versions(id, Duration::ZERO).unwrap();
    let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
    body["by"].as_str().unwrap().to_owned()
}
