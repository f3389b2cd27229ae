//! A schema made by the first step, opened by what we are now.

use std::sync::Arc;

use tokio_postgres::NoTls;

use super::{LeaseClock, PostgresOptions, PostgresStore};
use crate::{
    migrations::{MIGRATIONS, POSTGRES},
    suite::{Lab, Scene, upgraded},
};

#[tokio::test]
async fn a_schema_of_the_first_step_is_brought_up_to_date() {
    let server = highwater_pg_server::url_for_tests();
    let schema = format!("upgrade_{}", std::process::id());
    let (client, connection) = tokio_postgres::connect(&server, NoTls).await.unwrap();
    tokio::spawn(connection);
    let made = format!(
        "DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}; SET search_path = {schema}; {};
         CREATE TABLE highwater_schema (version BIGINT PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL);
         INSERT INTO highwater_schema VALUES (1, 'first', '{}'); {}",
        MIGRATIONS[0].sql_in(POSTGRES),
        MIGRATIONS[0].checksum(),
        upgraded::first_rows("to_timestamp(1700000000)")
    );
    client.batch_execute(&made).await.unwrap();
    let url = format!("{server}{}schema={schema}", if server.contains('?') { "&" } else { "?" });
    let older = PostgresStore::open(PostgresOptions::read_only(&url)).await.err().unwrap();
    assert!(older.doing.contains("it has schema version 1, not yet 3"), "{older}");
    let options = PostgresOptions { clock: LeaseClock::Caller, ..PostgresOptions::new(&url) };
    let store = Arc::new(PostgresStore::open(options).await.unwrap());
    let query = |_: &str| -> futures_util::future::BoxFuture<'static, Vec<String>> { Box::pin(async { Vec::new() }) };
    upgraded::goes_on(Scene::new(Lab { store, query: Box::new(query) }).await).await;
    client.batch_execute(&format!("DROP SCHEMA {schema} CASCADE")).await.unwrap();
}
