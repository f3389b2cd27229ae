//! The suite on SQLite, run on the runtime's threads and inline, and what only a file can show.

use std::{future::Future, sync::Arc};

use futures_util::future::BoxFuture;
use highwater_store::{
    Durability, Execution, OpenOptions, SqliteStore,
    suite::{Lab, frontier},
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

fn run<F: Future<Output = ()>>(execution: Execution, case: impl FnOnce(Lab) -> F) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.db");
    let options = OpenOptions { execution, durability: Durability::Off, ..OpenOptions::new(&path) };
    let store = Arc::new(SqliteStore::open(options).unwrap());
    let beside = Arc::new(std::sync::Mutex::new(Connection::open(path).unwrap()));
    let query = move |sql: &str| -> BoxFuture<'static, Vec<String>> {
        let rows = rows(&beside.lock().unwrap(), sql);
        Box::pin(async move { rows })
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(case(Lab { store, query: Box::new(query) }));
}

fn rows(db: &Connection, sql: &str) -> Vec<String> {
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
