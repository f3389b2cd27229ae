//! A schema of a test's own on the PostgreSQL server for tests, and a connection beside the product's.

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, NoTls};

pub(crate) struct Schema {
    pub(crate) url: String,
    name: String,
    runtime: Runtime,
    client: Client,
}

impl Schema {
    /// `name` is unlike that of any other test.
    pub(crate) fn new(name: &str) -> Schema {
        let server = highwater_pg_server::url_for_tests();
        let name = format!("e2e_{}_{name}", std::process::id());
        let url = format!("{server}{}schema={name}", if server.contains('?') { '&' } else { '?' });
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let (client, connection) = runtime.block_on(tokio_postgres::connect(&server, NoTls)).unwrap();
        runtime.spawn(connection);
        let schema = Schema { url, name, runtime, client };
        schema.run(&format!("DROP SCHEMA IF EXISTS {0} CASCADE; SET search_path = {0}", schema.name));
        schema
    }

    pub(crate) fn run(&self, sql: &str) {
        self.runtime.block_on(self.client.batch_execute(sql)).unwrap();
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        // The server goes with the tests, and with it what could not be dropped.
        let drop = format!("ROLLBACK; DROP SCHEMA IF EXISTS {} CASCADE", self.name);
        self.runtime.block_on(self.client.batch_execute(&drop)).ok();
    }
}
