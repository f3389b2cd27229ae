//! A throw-away PostgreSQL for tests and benchmarks, from the server programs of the system: own folder, free port,
//! Unix socket, deleted when dropped. `HIGHWATER_TEST_POSTGRES` names a server that is there already instead.

mod port;
mod programs;
mod server;

pub use programs::{Missing, PACKAGE};
pub use server::{Durability, Server, Stop, USER};

use std::{env, sync::OnceLock};

/// Names the server that tests use, as a URL whose user may create schemas and databases.
pub const VARIABLE: &str = "HIGHWATER_TEST_POSTGRES";

/// The URL of the server for tests: the one that `HIGHWATER_TEST_POSTGRES` names, else one of this process's own.
pub fn url_for_tests() -> String {
    static OWN: OnceLock<Server> = OnceLock::new();
    match env::var(VARIABLE) {
        Ok(url) if !url.is_empty() => url,
        _ => OWN.get_or_init(|| Server::start_orphan(Durability::Off)).url(),
    }
}
