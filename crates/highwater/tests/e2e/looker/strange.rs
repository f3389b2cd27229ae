//! Servers that differ from the simulator: they leave things out of lists, cut pages short, refuse some requests and not
//! others, and change at a given request.

mod faults;
mod lists;
mod refusals;
mod runs;
mod world;

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard},
};

use serde_json::Value as Json;

use self::world::World;
use super::mirror::rows;
use crate::support::{Ask, Database, Done, Home, Reply, listen};

/// What fails is not tried for long.
const BRIEF: &str = "[sources.bi.limits]\nrate = \"unlimited\"\nattempts = 3\nretry_patience = \"3s\"\n";

type Rule = Box<dyn Fn(&Ask, &World) -> Option<Reply> + Send>;

/// Something that happens to the instance before a path is answered for the n-th time.
struct Cue {
    path: &'static str,
    time: usize,
    change: Box<dyn FnOnce(&mut World) + Send>,
}

#[derive(Default)]
struct State {
    world: World,
    /// Answers before the instance does.
    rule: Option<Rule>,
    cue: Option<Cue>,
    /// The path of every request.
    asked: Vec<String>,
}

impl State {
    fn answer(&mut self, ask: &Ask) -> Reply {
        self.asked.push(ask.path.clone());
        let times = self.asked.iter().filter(|path| **path == ask.path).count();
        if let Some(cue) = self.cue.take_if(|cue| cue.path == ask.path && cue.time == times) {
            (cue.change)(&mut self.world);
        }
        let ruled = self.rule.as_ref().and_then(|rule| rule(ask, &self.world));
        ruled.unwrap_or_else(|| self.world.answer(ask))
    }
}

/// A strange server, and a folder with a configuration for it.
struct Strange {
    home: Home,
    url: String,
    /// Shared with the threads that answer.
    state: Arc<Mutex<State>>,
}

impl Strange {
    /// `keys` go to `[sources.bi]`.
    fn new(world: World, keys: &str) -> Strange {
        let state = Arc::new(Mutex::new(State { world, ..State::default() }));
        let shared = state.clone();
        let url = listen("/api/4.0/", move |ask| shared.lock().unwrap().answer(ask));
        let desk = Strange { home: Home::bare(), url, state };
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

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn change(&self, change: impl FnOnce(&mut World)) {
        change(&mut self.state().world);
    }

    fn change_at(&self, path: &'static str, time: usize, change: impl FnOnce(&mut World) + Send + 'static) {
        self.state().cue = Some(Cue { path, time, change: Box::new(change) });
    }

    fn rule(&self, rule: impl Fn(&Ask, &World) -> Option<Reply> + Send + 'static) {
        self.state().rule = Some(Box::new(rule));
    }

    /// Every path that begins like this.
    fn refuse(&self, beginnings: &'static [&'static str], status: u16) {
        self.rule(move |ask, _| {
            let is_meant = beginnings.iter().any(|beginning| ask.path.starts_with(*beginning));
            is_meant.then(|| Reply::status(status))
        });
    }

    /// Every page of dashboards that has this one fails, be it for its id alone.
    fn spoil_pages(&self, deleted: &'static str, id: &'static str) {
        self.rule(move |ask, world| {
            let is_page = ask.path == "dashboards/search" && ask.word("deleted").unwrap_or("false") == deleted;
            (is_page && world.shows(ask, id)).then(|| Reply::status(500))
        });
    }

    /// Requests but logins and logouts.
    fn calls(&self) -> usize {
        self.state().asked.iter().filter(|path| !["login", "logout"].contains(&path.as_str())).count()
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
