//! Who leads, who follows, who leaves.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{
    future::{BoxFuture, join_all},
    poll,
};
use rusqlite::Connection;
use tempfile::TempDir;
use tokio::time::timeout;

use super::script::options;
use crate::{
    ErrorKind, Execution, OpenOptions, Result, SqliteStore,
    sqlite::{
        error::Fault,
        writer::{Haste, Weight},
    },
};

struct Group {
    store: SqliteStore,
    beside: Connection,
    _folder: TempDir,
}

impl Group {
    fn new(execution: Execution) -> Group {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("store.db");
        let store = SqliteStore::open(OpenOptions { execution, ..options(&path) }).unwrap();
        let beside = Connection::open(path).unwrap();
        beside.execute_batch("CREATE TABLE written (name TEXT)").unwrap();
        Group { store, beside, _folder: folder }
    }

    fn write(&self, name: &'static str, rows: usize, haste: Haste) -> BoxFuture<'_, Result<()>> {
        let weight = Weight { rows, haste, ..Weight::default() };
        Box::pin(self.store.write("writing", weight, move |session| {
            session.db.execute("INSERT INTO written (name) VALUES (?1)", [name])?;
            Ok(())
        }))
    }

    fn written(&self) -> Vec<String> {
        let mut names = self.beside.prepare("SELECT name FROM written ORDER BY rowid").unwrap();
        names.query_map([], |row| row.get(0)).unwrap().collect::<rusqlite::Result<_>>().unwrap()
    }

    /// Counts transactions from now on.
    fn transactions(&self) -> Arc<AtomicUsize> {
        let count = Arc::new(AtomicUsize::new(0));
        let seen = count.clone();
        let writer = self.store.writer.as_ref().unwrap();
        let hook = move || seen.fetch_add(1, Ordering::Relaxed) == usize::MAX;
        writer.session.try_lock().unwrap().db.commit_hook(Some(hook)).unwrap();
        count
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_leaves_while_gathering_takes_only_its_own_along() {
    let group = Group::new(Execution::Inline);
    let mut leader = group.write("leader", 1, Haste::Gather);
    let mut follower = group.write("follower", 1, Haste::Gather);
    assert!(poll!(&mut leader).is_pending() && poll!(&mut follower).is_pending());
    drop(leader);
    follower.await.unwrap();
    assert_eq!(group.written(), ["follower"]);
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_leaves_harms_nobody() {
    let group = Group::new(Execution::Inline);
    let mut leader = group.write("leader", 1, Haste::Gather);
    let mut follower = group.write("follower", 1, Haste::Gather);
    let mut last = group.write("last", 1, Haste::Gather);
    assert!(poll!(&mut leader).is_pending() && poll!(&mut follower).is_pending() && poll!(&mut last).is_pending());
    drop(follower);
    leader.await.unwrap();
    last.await.unwrap();
    assert_eq!(group.written(), ["leader", "last"]);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_leaves_while_writing_is_not_missed() {
    let group = Group::new(Execution::Blocking);
    let mut leader = group.write("leader", 1, Haste::Gather);
    let mut follower = group.write("follower", 1, Haste::Gather);
    assert!(poll!(&mut leader).is_pending() && poll!(&mut follower).is_pending());
    while !group.store.writer.as_ref().unwrap().queue.lock().unwrap().waiting.is_empty() {
        assert!(poll!(&mut leader).is_pending());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    drop(leader);
    follower.await.unwrap();
    group.write("next", 1, Haste::AtOnce).await.unwrap();
    // The leader's own was begun or not, as the thread was quicker or it.
    assert!(group.written().ends_with(&["follower".into(), "next".into()]), "{:?}", group.written());
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_long_for_company_that_does_not_come() {
    let group = Group::new(Execution::Inline);
    let alone = group.write("alone", 1, Haste::Gather);
    timeout(Duration::from_millis(6), alone).await.unwrap().unwrap();
    let (gathering, urgent) = (group.write("gathering", 1, Haste::Gather), group.write("urgent", 1, Haste::AtOnce));
    timeout(Duration::from_millis(1), join_all([gathering, urgent])).await.unwrap();
    let full = timeout(Duration::from_millis(1), group.write("a thousand", 1_000, Haste::Gather)).await;
    full.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_trickle_of_company_is_waited_for_only_so_long() {
    let group = Group::new(Execution::Inline);
    let transactions = group.transactions();
    let trickle = (0..100).map(|number| {
        let group = &group;
        async move {
            tokio::time::sleep(Duration::from_millis(3 * number)).await;
            group.write("drop", 1, Haste::Gather).await.unwrap();
        }
    });
    join_all(trickle).await;
    let transactions = transactions.load(Ordering::Relaxed);
    assert!((6..=8).contains(&transactions), "300 ms in groups of 50 ms: {transactions} transactions");
}

#[tokio::test(start_paused = true)]
async fn those_who_come_together_share_a_transaction() {
    for execution in [Execution::Inline, Execution::Blocking] {
        let group = Group::new(execution);
        let transactions = group.transactions();
        for round in 0..5 {
            let written = join_all((0..30).map(|_| group.write("row", 10, Haste::Gather))).await;
            assert!(written.into_iter().all(|end| end.is_ok()));
            assert!(transactions.load(Ordering::Relaxed) <= 2 + round, "{transactions:?} in round {round}");
        }
        let written = join_all((0..30).map(|_| group.write("row", 100, Haste::Gather))).await;
        assert!(written.into_iter().all(|end| end.is_ok()));
        assert!((8..=12).contains(&transactions.load(Ordering::Relaxed)), "{transactions:?}: a thousand rows each");
        assert_eq!(group.written().len(), 180);
    }
}

#[tokio::test]
async fn one_that_is_refused_half_way_leaves_the_others_written_once() {
    let group = Group::new(Execution::Inline);
    let transactions = group.transactions();
    let weight = Weight { rows: 1, haste: Haste::Gather, ..Weight::default() };
    let refused: BoxFuture<'_, Result<()>> = Box::pin(group.store.write("writing", weight, |session| {
        session.db.execute("INSERT INTO written (name) VALUES ('refused')", [])?;
        Err(Fault::refused("too odd"))
    }));
    let (first, last) = (group.write("first", 1, Haste::Gather), group.write("last", 1, Haste::AtOnce));
    let outcomes = join_all([first, refused, last]).await;
    let kinds = outcomes.into_iter().map(|outcome| outcome.map_err(|error| error.kind));
    assert_eq!(kinds.collect::<Vec<_>>(), [Ok(()), Err(ErrorKind::Refused), Ok(())]);
    assert_eq!(group.written(), ["first", "last"]);
    assert_eq!(transactions.load(Ordering::Relaxed), 1);
}
