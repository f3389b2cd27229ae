//! Mailboxes that differ from the simulator: their listings lag behind, labels vanish, history is refused, and things
//! happen in an order that nobody promised.

mod post;
mod tests;

use serde_json::Value as Json;

use self::post::{Letter, Post};
use crate::support::{Database, Done, Home, Stage};

/// What fails is not tried for long.
const BRIEF: &str = "[sources.mail.limits]\nrate = \"unlimited\"\nattempts = 3\nretry_patience = \"3s\"\n";

/// A strange mailbox, and a folder with a configuration and credentials for it.
struct Strange {
    home: Home,
    store: String,
    url: String,
    stage: Stage<Post>,
}

impl Strange {
    fn new(post: Post) -> Strange {
        Strange::with_store("sqlite:highwater.db", post)
    }

    fn with_store(store: &str, post: Post) -> Strange {
        let stage = Stage::new(post);
        let url = stage.listen("/gmail/v1/users/me/");
        let desk = Strange { home: Home::bare(), store: store.to_owned(), url, stage };
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

    /// How often a message was asked for.
    fn gets(&self, id: &str) -> usize {
        self.stage.times(&format!("messages/{id}"))
    }

    /// Before the path is answered for the n-th time from now on, a message arrives and another process syncs.
    fn sync_at(&self, path: &'static str, nth: usize, arriving: Letter) {
        let (stage, mut sync) = (self.stage.clone(), self.home.command(&["sync", "mail", "--quiet"]));
        self.stage.interrupt_at(path, self.stage.times(path) + nth, move || {
            stage.change(|post| post.arrive(arriving));
            assert!(sync.status().unwrap().success());
        });
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
