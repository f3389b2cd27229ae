//! A schema of its own on a PostgreSQL server, through the driver alone, as any other program would see it.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value as Json;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{
    Client, Error, NoTls, Row,
    types::{FromSqlOwned, Type},
};

use super::truth::{self, Tables};

/// Gone with everything in it when dropped.
pub(crate) struct Schema {
    server: String,
    name: String,
}

impl Schema {
    /// On the server that all tests share.
    pub(crate) fn new() -> Schema {
        Schema::on(&highwater_pg_server::url_for_tests())
    }

    pub(crate) fn on(server: &str) -> Schema {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("e2e_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let schema = Schema { server: server.to_owned(), name };
        schema.drop_all().unwrap();
        schema
    }

    /// For the product.
    pub(crate) fn url(&self) -> String {
        self.url_with(&format!("schema={}", self.name))
    }

    /// With another parameter beside the schema.
    pub(crate) fn url_and(&self, parameter: &str) -> String {
        self.url_with(&format!("schema={}&{parameter}", self.name))
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn session(&self) -> Session {
        let session = Session::connect(&self.server).unwrap();
        session.run(&format!("SET search_path = {}", self.name));
        session
    }

    fn url_with(&self, query: &str) -> String {
        format!("{}{}{query}", self.server, if self.server.contains('?') { '&' } else { '?' })
    }

    fn drop_all(&self) -> Result<(), Error> {
        let session = Session::connect(&self.server)?;
        session.try_run(&format!("DROP SCHEMA IF EXISTS {} CASCADE", self.name))
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        // Its server may be stopped already.
        self.drop_all().ok();
    }
}

/// A connection beside the product's.
pub(crate) struct Session {
    runtime: Runtime,
    client: Client,
}

impl Session {
    pub(crate) fn connect(url: &str) -> Result<Session, Error> {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let (client, connection) = runtime.block_on(tokio_postgres::connect(url, NoTls))?;
        // Ends with the client, and runs whenever that is used.
        runtime.spawn(connection);
        Ok(Session { runtime, client })
    }

    pub(crate) fn run(&self, sql: &str) {
        self.try_run(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }

    fn try_run(&self, sql: &str) -> Result<(), Error> {
        self.runtime.block_on(self.client.batch_execute(sql))
    }

    pub(crate) fn one<T: FromSqlOwned>(&self, sql: &str) -> T {
        self.rows(sql)[0].get(0)
    }

    pub(crate) fn all<T: FromSqlOwned>(&self, sql: &str) -> Vec<T> {
        self.rows(sql).iter().map(|row| row.get(0)).collect()
    }

    /// The frontier, after a check that every id before it is accounted for.
    pub(crate) fn checked_frontier(&self) -> i64 {
        truth::checked_frontier(self)
    }

    fn rows(&self, sql: &str) -> Vec<Row> {
        self.runtime.block_on(self.client.query(sql, &[])).unwrap_or_else(|error| panic!("{sql}: {error:?}"))
    }
}

impl Tables for Session {
    fn cells(&self, sql: &str) -> Vec<Vec<Json>> {
        self.rows(sql).iter().map(|row| (0..row.len()).map(|place| json_of(row, place)).collect()).collect()
    }
}

fn json_of(row: &Row, place: usize) -> Json {
    match *row.columns()[place].type_() {
        Type::INT8 => row.get::<_, Option<i64>>(place).into(),
        Type::INT4 => row.get::<_, Option<i32>>(place).into(),
        Type::BOOL => row.get::<_, Option<bool>>(place).into(),
        _ => row.get::<_, Option<String>>(place).into(),
    }
}
