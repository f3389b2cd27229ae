//! A folder with a configuration and a store, and the commands run in it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use serde_json::Value as Json;
use tempfile::TempDir;

use super::{Database, Done, Running, program, until};

/// What the environment may tell the binary.
const TOLD: [&str; 21] = [
    "HIGHWATER_CONFIG",
    "HIGHWATER_STORE",
    "HIGHWATER_LOG",
    "HIGHWATER_KEY",
    "HIGHWATER_NEW_KEY",
    "BROWSER",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "HIGHWATER_STORE_PATIENCE",
    "HIGHWATER_LEASE_TTL",
    "LOOKERSDK_BASE_URL",
    "LOOKERSDK_CLIENT_ID",
    "LOOKERSDK_CLIENT_SECRET",
    "LOOKERSDK_VERIFY_SSL",
    "LOOKERSDK_TIMEOUT",
    "PGHOST",
    "PGPORT",
    "PGUSER",
    "PGDATABASE",
    "PGPASSWORD",
    "PGSSLMODE",
];

pub(crate) struct Home {
    folder: TempDir,
    /// As the configuration names it.
    store: String,
    commands: AtomicU32,
}

impl Home {
    /// Without a configuration.
    pub(crate) fn bare() -> Home {
        let folder = TempDir::with_prefix("highwater-e2e-").unwrap();
        Home { folder, store: "sqlite:highwater.db".into(), commands: AtomicU32::new(0) }
    }

    pub(crate) fn new(base_url: &str, limits: &str) -> Home {
        let home = Home::bare();
        home.configure(base_url, limits);
        home
    }

    /// With another store than a file of its own.
    pub(crate) fn with_store(store: &str, base_url: &str, limits: &str) -> Home {
        let home = Home { store: store.to_owned(), ..Home::bare() };
        home.configure(base_url, limits);
        home
    }

    pub(crate) fn configure(&self, base_url: &str, limits: &str) {
        let text = format!(
            "[store]\nurl = \"{}\"\n\n[sources.hn]\nkind = \"hn\"\nbase_url = \"{base_url}\"\n\n\
             [sources.hn.limits]\n{limits}\n",
            self.store
        );
        self.write("highwater.toml", &text);
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn database(&self) -> Database {
        Database::open(&self.path("highwater.db"))
    }

    /// As soon as a process has made it.
    pub(crate) fn database_when_there(&self) -> Database {
        let made = "SELECT count(*) FROM sqlite_master WHERE name = 'hn_story_history'";
        until("the database", Duration::from_secs(30), || {
            let path = self.path("highwater.db");
            (path.exists() && Database::open(&path).one::<i64>(made) == 1).then(|| self.database())
        })
    }

    /// A second home with the same configuration and a copy of the store, which nobody may be using.
    pub(crate) fn copied(&self) -> Home {
        let copy = Home::bare();
        for name in ["highwater.toml", "highwater.db", "highwater.db-wal"] {
            if self.path(name).exists() {
                fs::copy(self.path(name), copy.path(name)).unwrap();
            }
        }
        copy
    }

    /// `highwater` in this folder, shielded from the configuration of whoever runs the tests.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        self.shielded(&program(), args)
    }

    pub(crate) fn shielded(&self, program: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).current_dir(self.folder.path());
        command.env("HOME", self.folder.path()).env("XDG_CONFIG_HOME", self.folder.path());
        for name in TOLD {
            command.env_remove(name);
        }
        command
    }

    pub(crate) fn start(&self, args: &[&str]) -> Running {
        self.launch(self.command(args))
    }

    pub(crate) fn launch(&self, command: Command) -> Running {
        let number = self.commands.fetch_add(1, Ordering::Relaxed);
        Running::start(command, &self.path(&format!("command-{number}")))
    }

    pub(crate) fn run(&self, args: &[&str]) -> Done {
        self.start(args).wait()
    }

    /// The one stream of `status --json`.
    pub(crate) fn status(&self) -> Json {
        let status = self.run(&["status", "--json"]).exits(0).json();
        status["sources"][0]["streams"][0].clone()
    }
}
