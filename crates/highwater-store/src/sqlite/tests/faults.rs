//! Whatever fails, nothing acknowledged is lost and nothing is half written.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use tempfile::TempDir;

use super::script::{STEPS, Script, dump, options};
use crate::{ErrorKind, SqliteStore, sqlite::session::Session};

fn with_session<T>(store: &SqliteStore, change: impl FnOnce(&mut Session) -> T) -> T {
    let writer = store.writer.as_ref().unwrap();
    change(&mut writer.session.try_lock().unwrap())
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(work)
}

type SetUp<'a> = &'a dyn Fn(&mut Session, i64);
type Lift<'a> = &'a dyn Fn(&mut Session);

/// Plays the script with a fault set up before the first step and lifted when it strikes, for every strength of the
/// fault until it strikes no more. Returns how often it struck.
fn strike(kind: ErrorKind, set_up: SetUp<'_>, lift: Lift<'_>) -> i64 {
    let sound = play_undisturbed();
    for strength in 0.. {
        if !play(&sound, kind, strength, set_up, lift) {
            return strength;
        }
    }
    unreachable!("a run is finite")
}

/// The whole database before the first step and after each.
fn play_undisturbed() -> Vec<String> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.db");
    let store = SqliteStore::open(options(&path)).unwrap();
    let mut script = Script::new();
    let mut states = vec![dump(&path).unwrap()];
    for step in 0..STEPS {
        block_on(script.play(&store, step)).unwrap();
        states.push(dump(&path).unwrap());
    }
    states
}

/// Whether the fault struck.
fn play(sound: &[String], kind: ErrorKind, strength: i64, set_up: SetUp<'_>, lift: Lift<'_>) -> bool {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.db");
    let store = SqliteStore::open(options(&path)).unwrap();
    let mut script = Script::new();
    let mut struck = false;
    with_session(&store, |session| set_up(session, strength));
    for step in 0..STEPS {
        if let Err(error) = block_on(script.play(&store, step)) {
            assert!(!struck, "a fault strikes once");
            assert_eq!(error.kind, kind, "{error:?}");
            struck = true;
            with_session(&store, lift);
            let state = dump(&path).unwrap();
            if state == sound[step + 1] {
                // Struck between the commit and the word that it was done: durable, though nobody was told.
                return true;
            }
            assert_eq!(state, sound[step], "step {step} struck at {strength} left traces");
            block_on(script.play(&store, step)).unwrap();
        }
    }
    with_session(&store, lift);
    assert_eq!(dump(&path).unwrap(), sound[STEPS], "the run ends the same, struck at {strength}");
    struck
}

#[test]
fn any_statement_may_be_interrupted() {
    let count = |session: &mut Session, strength: i64| {
        let seen = Arc::new(AtomicI64::new(0));
        // A step of one passes as well, and takes thirty-one times as long.
        let strike_at = strength * 31;
        session.db.progress_handler(1, Some(move || seen.fetch_add(1, Ordering::Relaxed) == strike_at)).unwrap();
    };
    let struck = strike(ErrorKind::Unavailable, &count, &|session| {
        session.db.progress_handler(0, None::<fn() -> bool>).unwrap();
    });
    assert!(struck > 100, "{struck} strikes");
}

#[test]
fn any_commit_may_fail() {
    let count = |session: &mut Session, strength: i64| {
        let seen = AtomicI64::new(0);
        let strikes = move || seen.fetch_add(1, Ordering::Relaxed) == strength;
        session.db.commit_hook(Some(strikes)).unwrap();
    };
    let struck = strike(ErrorKind::Refused, &count, &|session| {
        session.db.commit_hook(None::<fn() -> bool>).unwrap();
    });
    assert!(struck >= i64::try_from(STEPS).unwrap(), "{struck} strikes");
}

#[test]
fn the_disk_may_be_full_at_any_page() {
    let limit = |session: &mut Session, max: i64| {
        session.db.pragma_update_and_check(None, "max_page_count", max, |_| Ok(())).unwrap();
    };
    let leave_room = |session: &mut Session, pages: i64| {
        let used: i64 = session.db.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
        limit(session, used + pages);
    };
    let struck = strike(ErrorKind::Full, &leave_room, &|session| limit(session, 1 << 30));
    assert!(struck > 3, "{struck} strikes");
}
