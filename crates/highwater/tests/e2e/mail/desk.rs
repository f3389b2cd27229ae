//! A folder with a configuration for mailboxes, and credentials in the store.

use crate::support::{Database, Done, Home, Running, Sim};

/// Requests go out as fast as they can.
pub(super) const FAST: &str = "[sources.mail.limits]\nrate = \"unlimited\"\nin_flight = 16\n";

pub(super) struct Desk {
    pub(super) home: Home,
    pub(super) sim: Sim,
}

impl Desk {
    /// `keys` go to `[sources.mail]`, and sections may follow them.
    pub(super) fn new(sim: Sim, keys: &str) -> Desk {
        Desk::with_store("sqlite:highwater.db", sim, keys)
    }

    pub(super) fn with_store(store: &str, sim: Sim, keys: &str) -> Desk {
        let desk = Desk { home: Home::bare(), sim };
        desk.configure(store, keys);
        desk.authorize("mail").exits(0);
        desk
    }

    pub(super) fn configure(&self, store: &str, keys: &str) {
        let text = format!(
            "[store]\nurl = \"{store}\"\nblobs = \"file:blobs\"\n\n{}\n",
            source("mail", "ann@example.com", &self.sim, keys)
        );
        self.home.write("highwater.toml", &text);
    }

    pub(super) fn authorize(&self, source: &str) -> Done {
        self.home.write("token", "sim-refresh-token");
        self.home.run(&["auth", source, "--refresh-token-file", "token"])
    }

    pub(super) fn sync(&self) -> Done {
        self.home.run(&["sync", "mail", "--quiet"])
    }

    pub(super) fn start(&self) -> Running {
        self.home.start(&["sync", "mail", "--quiet"])
    }

    pub(super) fn database(&self) -> Database {
        self.home.database()
    }

    pub(super) fn gets(&self) -> u64 {
        self.sim.calls("messages.get")
    }
}

/// The section of one mailbox.
pub(super) fn source(name: &str, account: &str, sim: &Sim, keys: &str) -> String {
    let url = sim.url();
    format!(
        "[sources.{name}]\nkind = \"gmail\"\naccount = \"{account}\"\nbase_url = \"{url}\"\ntoken_url = \"{url}/token\"\n\
         client_id = \"sim-client\"\nclient_secret = \"sim-secret\"\n{keys}\n"
    )
}
