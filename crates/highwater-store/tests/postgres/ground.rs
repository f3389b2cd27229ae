//! A schema of its own on the server for tests, and a connection beside the store's to look at it.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use futures_util::future::BoxFuture;
use highwater_store::{Execution, LeaseClock, PostgresOptions, PostgresStore, suite::Lab};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage, types::Type};

pub(crate) struct Ground {
    pub(crate) url: String,
    pub(crate) execution: Execution,
    pub(crate) beside: Arc<Client>,
    schema: String,
}

impl Ground {
    pub(crate) async fn new() -> Ground {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let server = highwater_pg_server::url_for_tests();
        let schema = format!("test_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let beside = connect(&server).await;
        beside.batch_execute(&format!("DROP SCHEMA IF EXISTS {schema} CASCADE")).await.unwrap();
        let url = format!("{server}{}schema={schema}", if server.contains('?') { "&" } else { "?" });
        Ground { url, execution: Execution::Blocking, beside: Arc::new(beside), schema }
    }

    pub(crate) fn options(&self) -> PostgresOptions {
        PostgresOptions { clock: LeaseClock::Caller, execution: self.execution, ..PostgresOptions::new(&self.url) }
    }

    pub(crate) async fn store(&self) -> PostgresStore {
        PostgresStore::open(self.options()).await.unwrap()
    }

    pub(crate) async fn lab(&self) -> Lab {
        let store = Arc::new(self.store().await);
        self.beside.batch_execute(&format!("SET search_path = {}", self.schema)).await.unwrap();
        let beside = self.beside.clone();
        let query = move |sql: &str| -> BoxFuture<'static, Vec<String>> {
            let (beside, sql) = (beside.clone(), sql.to_owned());
            Box::pin(async move { cells(&beside, &sql).await })
        };
        Lab { store, query: Box::new(query) }
    }

    pub(crate) async fn cells(&self, sql: &str) -> Vec<String> {
        cells(&self.beside, sql).await
    }

    pub(crate) async fn leave(self) {
        self.beside.batch_execute(&format!("DROP SCHEMA IF EXISTS {} CASCADE", self.schema)).await.unwrap();
    }
}

pub(crate) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// The cells of each row as SQLite would show them, joined by `|`.
async fn cells(client: &Client, sql: &str) -> Vec<String> {
    let statement = client.prepare(sql).await.unwrap();
    let is_flag: Vec<_> = statement.columns().iter().map(|column| *column.type_() == Type::BOOL).collect();
    let messages = client.simple_query(sql).await.unwrap();
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let cell = |text: Option<&str>, is_flag: &bool| match text {
        Some(flag) if *is_flag => u8::from(flag == "t").to_string(),
        text => text.unwrap_or_default().to_owned(),
    };
    rows.map(|row| (0..).zip(&is_flag).map(|(index, flag)| cell(row.get(index), flag)).collect::<Vec<_>>().join("|"))
        .collect()
}
