//! A schema made by any of the earlier steps, opened by what we are now.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio_postgres::NoTls;

use super::{LeaseClock, PostgresOptions, PostgresStore};
use crate::{
    migrations::{MIGRATIONS, Migration, POSTGRES},
    suite::{Lab, Scene, upgraded},
};

#[tokio::test]
async fn a_schema_of_any_earlier_step_is_brought_up_to_date() {
    let server = highwater_pg_server::url_for_tests();
    let schema = format!("upgrade_{}", std::process::id());
    let url = format!("{server}{}schema={schema}", if server.contains('?') { "&" } else { "?" });
    let (client, connection) = tokio_postgres::connect(&server, NoTls).await.unwrap();
    tokio::spawn(connection);
    for steps in (1..MIGRATIONS.len()).map(|count| &MIGRATIONS[..count]) {
        client.batch_execute(&made_by(steps, &schema)).await.unwrap();
        let older = PostgresStore::open(PostgresOptions::read_only(&url)).await.err().unwrap();
        let told = format!("it has schema version {}, not yet {}", steps.len(), MIGRATIONS.len());
        assert!(older.doing.contains(&told), "{older}");
        let options = PostgresOptions { clock: LeaseClock::Caller, ..PostgresOptions::new(&url) };
        let store = Arc::new(PostgresStore::open(options).await.unwrap());
        let query = |_: &str| -> BoxFuture<'static, Vec<String>> { Box::pin(async { Vec::new() }) };
        upgraded::goes_on(Scene::new(Lab { store, query: Box::new(query) }).await).await;
    }
    client.batch_execute(&format!("DROP SCHEMA {schema} CASCADE")).await.unwrap();
}

fn made_by(steps: &[Migration], schema: &str) -> String {
    let step = |step: &Migration| {
        let Migration { version, name, .. } = step;
        let note = format!("INSERT INTO highwater_schema VALUES ({version}, '{name}', '{}')", step.checksum());
        format!("{};\n{note};", step.sql_in(POSTGRES))
    };
    format!(
        "DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}; SET search_path = {schema};
         CREATE TABLE highwater_schema (version BIGINT PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL);
         {} {}",
        steps.iter().map(step).collect::<String>(),
        upgraded::first_rows("to_timestamp(1700000000)")
    )
}
