//! Mailboxes that differ from the simulator: their listings lag behind, labels vanish, history is refused, and things
//! happen in an order that nobody promised.

mod post;
mod tests;

use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::Value as Json;

use self::post::{Letter, Post};
use crate::support::{Ask, Database, Done, Home, Reply, listen};

/// What fails is not tried for long.
const BRIEF: &str = "[sources.mail.limits]\nrate = \"unlimited\"\nattempts = 3\nretry_patience = \"3s\"\n";

type Rule = Box<dyn Fn(&Ask, &Post) -> Option<Reply> + Send>;

/// Something that happens to the mailbox before a path is answered for the n-th time.
struct Cue {
    path: &'static str,
    time: usize,
    change: Box<dyn FnOnce(&mut Post) + Send>,
}

/// Something that is done before a path is answered for the n-th time, while others may ask.
struct Interlude {
    path: &'static str,
    time: usize,
    act: Box<dyn FnOnce() + Send>,
}

#[derive(Default)]
struct State {
    post: Post,
    /// Answers before the mailbox does.
    rule: Option<Rule>,
    cue: Option<Cue>,
    interlude: Option<Interlude>,
    /// The path of every request.
    asked: Vec<String>,
}

impl State {
    fn times(&self, path: &str) -> usize {
        self.asked.iter().filter(|asked| *asked == path).count()
    }

    fn interlude(&mut self, ask: &Ask) -> Option<Interlude> {
        let time = self.times(&ask.path) + 1;
        self.interlude.take_if(|interlude| interlude.path == ask.path && interlude.time == time)
    }

    fn answer(&mut self, ask: &Ask) -> Reply {
        self.asked.push(ask.path.clone());
        let times = self.times(&ask.path);
        if let Some(cue) = self.cue.take_if(|cue| cue.path == ask.path && cue.time == times) {
            (cue.change)(&mut self.post);
        }
        let ruled = self.rule.as_ref().and_then(|rule| rule(ask, &self.post));
        ruled.unwrap_or_else(|| self.post.answer(ask))
    }
}

/// A strange mailbox, and a folder with a configuration and credentials for it.
struct Strange {
    home: Home,
    store: String,
    url: String,
    /// Shared with the threads that answer.
    state: Arc<Mutex<State>>,
}

impl Strange {
    fn new(post: Post) -> Strange {
        Strange::with_store("sqlite:highwater.db", post)
    }

    fn with_store(store: &str, post: Post) -> Strange {
        let state = Arc::new(Mutex::new(State { post, ..State::default() }));
        let shared = state.clone();
        let url = listen("/gmail/v1/users/me/", move |ask| {
            let interlude = shared.lock().unwrap().interlude(ask);
            if let Some(Interlude { act, .. }) = interlude {
                act();
            }
            shared.lock().unwrap().answer(ask)
        });
        let desk = Strange { home: Home::bare(), store: store.to_owned(), url, state };
        desk.configure("");
        desk.home.write("token", "a-refresh-token");
        desk.home.run(&["auth", "mail", "--refresh-token-file", "token"]).exits(0);
        desk
    }

    /// `keys` go to `[sources.mail]`.
    fn configure(&self, keys: &str) {
        let (url, store) = (&self.url, &self.store);
        let text = format!(
            "[store]\nurl = \"{store}\"\n\n[sources.mail]\nkind = \"gmail\"\naccount = \"ann@example.com\"\n\
             base_url = \"{url}\"\ntoken_url = \"{url}/token\"\nclient_id = \"client\"\nclient_secret = \"secret\"\n\
             {keys}{BRIEF}"
        );
        self.home.write("highwater.toml", &text);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn change(&self, change: impl FnOnce(&mut Post)) {
        change(&mut self.state().post);
    }

    fn change_at(&self, path: &'static str, time: usize, change: impl FnOnce(&mut Post) + Send + 'static) {
        self.state().cue = Some(Cue { path, time, change: Box::new(change) });
    }

    fn rule(&self, rule: impl Fn(&Ask, &Post) -> Option<Reply> + Send + 'static) {
        self.state().rule = Some(Box::new(rule));
    }

    /// How often a message was asked for.
    fn gets(&self, id: &str) -> usize {
        self.state().times(&format!("messages/{id}"))
    }

    /// Before the path is answered for the n-th time from now on, a message arrives and another process syncs.
    fn sync_at(&self, path: &'static str, nth: usize, arriving: Letter) {
        let time = self.state().times(path) + nth;
        let (state, mut sync) = (self.state.clone(), self.home.command(&["sync", "mail", "--quiet"]));
        let act = Box::new(move || {
            state.lock().unwrap().post.arrive(arriving);
            assert!(sync.status().unwrap().success());
        });
        self.state().interlude = Some(Interlude { path, time, act });
    }

    fn sync(&self, more: &[&str]) -> Done {
        self.home.run(&[&["sync", "mail", "--quiet"], more].concat())
    }

    /// The stream's part of the certificate.
    fn proof(&self, code: i32) -> Json {
        self.home.run(&["verify", "mail", "--json"]).exits(code).json()["streams"][0].clone()
    }

    fn database(&self) -> Database {
        self.home.database()
    }

    /// Ids that are stored, in order.
    fn stored(&self) -> Vec<String> {
        self.database().all("SELECT provider_message_id FROM mail_messages ORDER BY 1")
    }

    /// Ids that are marked as deleted, in order.
    fn deleted(&self) -> Vec<String> {
        let deleted = "SELECT provider_message_id FROM mail_messages WHERE deleted_remotely_at IS NOT NULL ORDER BY 1";
        self.database().all(deleted)
    }

    fn labels(&self, id: &str) -> Vec<String> {
        let labels = format!("SELECT label_ids FROM mail_messages WHERE provider_message_id = '{id}'");
        serde_json::from_str(&self.database().one::<String>(&labels)).unwrap()
    }
}
