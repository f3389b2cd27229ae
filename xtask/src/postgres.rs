//! The one PostgreSQL server that all tests of a run share: each test is a process of its own, and none should start a
//! server for itself.

use std::{env, fs, os::unix::fs::MetadataExt, process::Command};

use anyhow::{Context, anyhow};
use highwater_pg_server::{Durability, Missing, PACKAGE, Server, VARIABLE};

use crate::workspace::run;

/// Started when it is first needed, gone with this value.
#[derive(Default)]
pub(crate) struct TestServer {
    own: Option<Server>,
}

impl TestServer {
    /// Of the server that `HIGHWATER_TEST_POSTGRES` names, else of our own.
    pub(crate) fn url(&mut self) -> anyhow::Result<String> {
        if let Ok(url) = env::var(VARIABLE)
            && !url.is_empty()
        {
            return Ok(url);
        }
        if self.own.is_none() {
            self.own = Some(start()?);
        }
        Ok(self.own.as_ref().expect("started just now").url())
    }
}

fn start() -> anyhow::Result<Server> {
    match Server::start(Durability::Off) {
        Err(error) if error.is::<Missing>() && is_root() => {
            install().with_context(|| format!("{error}; installing it failed"))?;
            Server::start(Durability::Off).map_err(|error| anyhow!(error))
        }
        started => started.map_err(|error| anyhow!(error)),
    }
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

fn install() -> anyhow::Result<()> {
    let apt = |args: &[&str]| {
        let mut command = Command::new("apt-get");
        command.arg("-qq").args(args).env("DEBIAN_FRONTEND", "noninteractive");
        run(&mut command)
    };
    apt(&["update"])?;
    apt(&["install", "--yes", "--no-install-recommends", PACKAGE])
}
