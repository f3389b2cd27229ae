//! A folder with a configuration for a Looker instance.

use serde_json::Value as Json;

use crate::support::{Database, Done, Home, Running, Sim};

/// Requests go out as fast as they can.
pub(super) const FAST: &str = "[sources.bi.limits]\nrate = \"unlimited\"\n";

pub(super) struct Desk {
    pub(super) home: Home,
    pub(super) sim: Sim,
}

impl Desk {
    /// `keys` go to `[sources.bi]`, and sections may follow them.
    pub(super) fn new(sim: Sim, keys: &str) -> Desk {
        Desk::with_store("sqlite:highwater.db", sim, keys)
    }

    pub(super) fn with_store(store: &str, sim: Sim, keys: &str) -> Desk {
        let desk = Desk { home: Home::bare(), sim };
        desk.configure(store, keys);
        desk
    }

    pub(super) fn configure(&self, store: &str, keys: &str) {
        let (url, key) = (self.sim.url(), "client_id = \"sim-client\"\nclient_secret = \"sim-secret\"");
        let text = format!(
            "[store]\nurl = \"{store}\"\n\n[sources.bi]\nkind = \"looker\"\nbase_url = \"{url}/\"\n{key}\n{keys}\n"
        );
        self.home.write("highwater.toml", &text);
    }

    pub(super) fn sync(&self) -> Done {
        self.home.run(&["sync", "bi", "--quiet"])
    }

    pub(super) fn start(&self) -> Running {
        self.home.start(&["sync", "bi", "--quiet"])
    }

    pub(super) fn database(&self) -> Database {
        self.home.database()
    }

    /// One stream of `status --json`.
    pub(super) fn stream(&self, name: &str) -> Json {
        let status = self.home.run(&["status", "bi", "--json"]).exits(0).json();
        let streams = status["sources"][0]["streams"].as_array().unwrap().clone();
        streams.into_iter().find(|stream| stream["name"] == name).unwrap_or_else(|| panic!("no stream {name}"))
    }

    /// Requests but logins and logouts.
    pub(super) fn calls(&self) -> u64 {
        let stats = self.sim.stats();
        let by = |activity: &str| stats["by_activity"][activity].as_u64().unwrap_or(0);
        by("query") + by("non_query")
    }

    /// How often a path of the API was asked for.
    pub(super) fn asked(&self, path: &str) -> u64 {
        self.sim.stats()["by_path"][format!("GET {path}")].as_u64().unwrap_or(0)
    }
}
