//! Servers that differ from the simulator: they leave things out of lists, cut pages short, refuse some requests and not
//! others, and change at a given request.

mod faults;
mod lists;
mod refusals;
mod runs;
mod world;

use std::collections::BTreeSet;

use serde_json::Value as Json;

use self::world::World;
use super::mirror::rows;
use crate::support::{Database, Done, Home, Reply, Stage};

/// What fails is not tried for long.
const BRIEF: &str = "[sources.bi.limits]\nrate = \"unlimited\"\nattempts = 3\nretry_patience = \"3s\"\n";

/// A strange server, and a folder with a configuration for it.
struct Strange {
    home: Home,
    url: String,
    stage: Stage<World>,
}

impl Strange {
    /// `keys` go to `[sources.bi]`.
    fn new(world: World, keys: &str) -> Strange {
        let stage = Stage::new(world);
        let url = stage.listen("/api/4.0/");
        let desk = Strange { home: Home::bare(), url, stage };
        desk.configure(&format!("{keys}{BRIEF}"));
        desk
    }

    /// `keys` go to `[sources.bi]`, and sections may follow them.
    fn configure(&self, keys: &str) {
        let key = "client_id = \"client\"\nclient_secret = \"secret\"";
        let text = format!(
            "[store]\nurl = \"sqlite:highwater.db\"\n\n[sources.bi]\nkind = \"looker\"\nbase_url = \"{}\"\n{key}\n{keys}",
            self.url
        );
        self.home.write("highwater.toml", &text);
    }

    /// Every path that begins like this.
    fn refuse(&self, beginnings: &'static [&'static str], status: u16) {
        self.stage.rule(move |ask, _| {
            let is_meant = beginnings.iter().any(|beginning| ask.path.starts_with(*beginning));
            is_meant.then(|| Reply::status(status))
        });
    }

    /// Every page of dashboards that has this one fails, be it for its id alone.
    fn spoil_pages(&self, deleted: &'static str, id: &'static str) {
        self.stage.rule(move |ask, world| {
            let is_page = ask.path == "dashboards/search" && ask.word("deleted").unwrap_or("false") == deleted;
            (is_page && world.shows(ask, id)).then(|| Reply::status(500))
        });
    }

    /// Requests but logins and logouts.
    fn calls(&self) -> usize {
        self.stage.requests_but(&["login", "logout"])
    }

    fn sync(&self) -> Done {
        self.home.run(&["sync", "bi", "--quiet"])
    }

    fn verify(&self) -> Done {
        self.home.run(&["verify", "bi", "--quiet"])
    }

    fn database(&self) -> Database {
        self.home.database()
    }

    fn body(&self, kind: &str, id: &str) -> Json {
        let mut rows = rows(&self.database());
        let row = rows.remove(&(kind.to_owned(), id.to_owned()));
        row.unwrap_or_else(|| panic!("{kind} {id} is not there")).0
    }

    /// Ids that are stored and not marked as deleted.
    fn live(&self, kind: &str) -> BTreeSet<String> {
        self.stored(kind, |is_deleted| !is_deleted)
    }

    /// Ids that are marked as deleted.
    fn deleted(&self, kind: &str) -> BTreeSet<String> {
        self.stored(kind, |is_deleted| is_deleted)
    }

    fn stored(&self, kind: &str, is_meant: impl Fn(bool) -> bool) -> BTreeSet<String> {
        let rows = rows(&self.database()).into_iter();
        let meant = rows.filter(|((of, _), (_, is_deleted))| of == kind && is_meant(*is_deleted));
        meant.map(|((_, id), _)| id).collect()
    }

    /// Why objects of a type, or the type itself, are not there.
    fn reasons(&self, kind: &str) -> Vec<String> {
        self.database().all(&format!("SELECT DISTINCT reason FROM ingest_exceptions WHERE stream = '{kind}'"))
    }

    /// As `status --json` says.
    fn is_complete(&self, kind: &str) -> bool {
        let status = self.home.run(&["status", "bi", "--json"]).exits(0).json();
        let streams = status["sources"][0]["streams"].as_array().unwrap().clone();
        let stream = streams.into_iter().find(|stream| stream["name"] == kind);
        stream.unwrap_or_else(|| panic!("no stream {kind}"))["complete"] == true
    }
}

/// Ids as they are stored.
fn ids(numbers: impl IntoIterator<Item = u32>) -> BTreeSet<String> {
    numbers.into_iter().map(|number| number.to_string()).collect()
}
