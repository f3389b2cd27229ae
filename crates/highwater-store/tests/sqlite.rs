//! The suite on SQLite, run on the runtime's threads and inline, and what only a file can show.

#![expect(clippy::unwrap_used, reason = "a step that fails is a failed test")]

use std::{future::Future, path::Path, sync::Arc};

use futures_util::future::BoxFuture;
use highwater_core::planted::{Bug, with_planted};
use highwater_store::{
    Durability, Execution, OpenOptions, Result, SearchIndex, Sharding, SqliteIndex, SqliteStore,
    suite::{Lab, Library, Scene, frontier, item, leases, rows, scene::at},
};
use proptest::prelude::*;
use rusqlite::{Connection, types::ValueRef};
use tempfile::TempDir;

type Case = fn(Lab) -> BoxFuture<'static, ()>;

mod blocking {
    fn run(case: super::Case) {
        super::run(super::Execution::Blocking, case);
    }
    highwater_store::store_suite!(run);
}

mod inline {
    fn run(case: super::Case) {
        super::run(super::Execution::Inline, case);
    }
    highwater_store::store_suite!(run);
}

mod sharded {
    fn run(case: super::Case) {
        super::run_with(super::Execution::Inline, super::Sharding::Year, case);
    }
    highwater_store::store_suite!(run);
}

mod searching {
    fn run(case: super::SearchCase) {
        super::search(super::Sharding::None, case);
    }
    highwater_store::search_suite!(run);
}

mod searching_shards {
    fn run(case: super::SearchCase) {
        super::search(super::Sharding::Year, case);
    }
    highwater_store::search_suite!(run);
}

type SearchCase = fn(Library) -> BoxFuture<'static, ()>;

fn search(sharding: Sharding, case: SearchCase) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.db");
    let execution = Execution::Inline;
    let options = OpenOptions { execution, durability: Durability::Off, sharding, ..OpenOptions::new(&path) };
    let store = Arc::new(SqliteStore::open(options).unwrap());
    let index = move |opening| -> BoxFuture<'static, Result<Arc<dyn SearchIndex>>> {
        let index = SqliteIndex::open(&path, opening, execution);
        Box::pin(async move { Ok(Arc::new(index?) as Arc<dyn SearchIndex>) })
    };
    let lab = Lab { store: store.clone(), query: Box::new(|_| Box::pin(async { Vec::new() })) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(case(Library { lab, texts: store, index: Box::new(index) }));
}

fn run<F: Future<Output = ()>>(execution: Execution, case: impl FnOnce(Lab) -> F) {
    run_with(execution, Sharding::None, case);
}

fn run_with<F: Future<Output = ()>>(execution: Execution, sharding: Sharding, case: impl FnOnce(Lab) -> F) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.db");
    let options = OpenOptions { execution, durability: Durability::Off, sharding, ..OpenOptions::new(&path) };
    let store = Arc::new(SqliteStore::open(options).unwrap());
    let beside = Arc::new(std::sync::Mutex::new(Connection::open(&path).unwrap()));
    let shard = path.with_file_name(format!("store-mail-{YEAR}.db"));
    let query = move |sql: &str| -> BoxFuture<'static, Vec<String>> {
        let cells = everywhere(&beside.lock().unwrap(), &shard, sql);
        Box::pin(async move { cells })
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(case(Lab { store, query: Box::new(query) }));
}

/// In which the cases play.
const YEAR: u32 = 2023;

/// Bytes of messages lie in the store, in the shard, or some in each.
fn everywhere(db: &Connection, shard: &Path, sql: &str) -> Vec<String> {
    if !sql.contains("mail_raw") || !shard.exists() {
        return cells(db, sql);
    }
    db.execute("ATTACH ?1 AS shard", [shard.to_str()]).unwrap();
    let all = format!(
        "(SELECT * FROM main.mail_raw UNION ALL SELECT * FROM shard.mail_raw WHERE message_id IN
             (SELECT message_id FROM mail_places WHERE shard = {YEAR}))"
    );
    let found = if sql.starts_with("SELECT") {
        cells(db, &sql.replace("mail_raw", &all))
    } else {
        ["main.mail_raw", "shard.mail_raw"]
            .into_iter()
            .flat_map(|table| cells(db, &sql.replace("mail_raw", table)))
            .collect()
    };
    db.execute("DETACH shard", []).unwrap();
    found
}

fn cells(db: &Connection, sql: &str) -> Vec<String> {
    let mut statement = db.prepare(sql).unwrap();
    let width = statement.column_count();
    let mut rows = statement.query([]).unwrap();
    let mut lines = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        let cells = (0..width).map(|index| match row.get_ref(index).unwrap() {
            ValueRef::Null => String::new(),
            ValueRef::Integer(number) => number.to_string(),
            ValueRef::Real(number) => number.to_string(),
            ValueRef::Text(text) | ValueRef::Blob(text) => String::from_utf8_lossy(text).into_owned(),
        });
        lines.push(cells.collect::<Vec<_>>().join("|"));
    }
    lines
}

/// A suite that finds nothing proves nothing: it must find each of the bugs a store can have.
#[test]
fn planted_bugs_are_found() {
    let found = |bug, case: Case| {
        let played = || with_planted(Some(bug), || run(Execution::Inline, case));
        assert!(std::panic::catch_unwind(played).is_err(), "{bug:?} went unnoticed");
    };
    found(Bug::FenceSkipped, |lab| Box::pin(leases::a_late_commit_is_fenced_off(lab)));
    found(Bug::TwoWorkersOneLease, |lab| Box::pin(leases::a_silent_segment_is_taken_over_after_its_ttl(lab)));
    found(Bug::FrontierOverGap, |lab| Box::pin(frontier::the_frontier_crosses_only_a_gap_free_prefix(lab)));
    found(Bug::KidsNotReplaced, |lab| Box::pin(rows::edges_that_are_gone_are_gone(lab)));
    found(Bug::StateBeforeData, |lab| Box::pin(rows::a_commit_broken_off_is_whole_or_absent(lab)));
}

/// Other programs may write to the file, and to a column of text whatever they like.
#[test]
fn a_list_that_is_none_is_noticed_and_repaired() {
    run(Execution::Inline, |lab| async {
        let scene = Scene::planned(lab, 0, 10, 10).await;
        let lease = scene.claim_one(at(0)).await.lease;
        scene.commit(&lease, vec![item(1, "", &[])], vec![], at(0)).await.unwrap();
        scene.query("UPDATE hn_items SET parts = '[1'").await;
        let damaged = scene.stored(1).await.unwrap();
        assert_ne!(damaged.row_check, damaged.body.checksum());
        scene.commit(&lease, vec![item(1, "", &[])], vec![], at(1)).await.unwrap();
        assert_eq!(scene.stored(1).await.unwrap().body, item(1, "", &[]).body);
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_frontier_is_the_cores_frontier_in_any_order(
        order in (1usize..14).prop_flat_map(|n| (Just((0..n).collect::<Vec<_>>()).prop_shuffle(), prop::collection::vec(prop::bool::weighted(0.3), n)))
    ) {
        let order: Vec<(usize, bool)> = order.0.into_iter().zip(order.1).collect();
        run(Execution::Inline, |lab| async move { frontier::frontier_follows_the_model(lab, &order).await });
    }
}
