//! A mailbox in memory, with a history of what happened to it.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value as Json, json};

use crate::support::{Ask, Reply, Staged};

/// 2020-09-13, in seconds.
pub(super) const LONG_AGO: i64 = 1_600_000_000;
const SCOPE: &str = "https://www.googleapis.com/auth/gmail.readonly";
const FIRST_RECORD: u64 = 100;

#[derive(Clone)]
pub(super) struct Letter {
    id: String,
    date: i64,
    labels: Vec<String>,
}

impl Letter {
    pub(super) fn new(id: &str, date: i64) -> Letter {
        Letter { id: id.to_owned(), date, labels: vec!["INBOX".to_owned()] }
    }

    pub(super) fn labelled(self, labels: &[&str]) -> Letter {
        Letter { labels: labels.iter().map(ToString::to_string).collect(), ..self }
    }

    fn has(&self, label: &str) -> bool {
        self.labels.iter().any(|has| has == label)
    }

    fn named(&self) -> Json {
        json!({ "id": self.id, "threadId": self.id, "labelIds": self.labels })
    }

    fn shown(&self, format: Option<&str>) -> Json {
        let mut shown = self.named();
        shown["internalDate"] = json!((self.date * 1000).to_string());
        shown["historyId"] = json!("1");
        shown["sizeEstimate"] = json!(200);
        if format == Some("raw") {
            let raw = format!("From: ann@example.com\r\nSubject: {}\r\n\r\ntext of {}\r\n", self.id, self.id);
            shown["raw"] = json!(URL_SAFE_NO_PAD.encode(raw));
        }
        shown
    }
}

#[derive(Default)]
pub(super) struct Post {
    pub(super) letters: Vec<Letter>,
    /// Those that can be listed.
    pub(super) labels: Vec<String>,
    /// Those that can be listed as well, though nobody says that they are there.
    pub(super) unnamed: Vec<String>,
    history: Vec<Json>,
    /// Records before are forgotten.
    kept_since: u64,
    /// Listed, and not to be had.
    pub(super) ghosts: Vec<String>,
    /// There, and in no listing.
    pub(super) unlisted: Vec<String>,
    /// In no listing by date.
    pub(super) unsearched: Vec<String>,
}

impl Staged for Post {
    fn answer(&self, ask: &Ask) -> Reply {
        let shown = match ask.path.split('/').collect::<Vec<_>>()[..] {
            ["", "token"] => json!({ "access_token": "access", "expires_in": 3600, "scope": SCOPE }),
            ["profile"] => {
                let (total, record) = (self.letters.len(), self.last_record().to_string());
                json!({ "emailAddress": "ann@example.com", "historyId": record, "messagesTotal": total })
            }
            ["labels"] => json!({ "labels": self.labels.iter().map(|id| json!({ "id": id })).collect::<Vec<_>>() }),
            ["messages"] => return self.list(ask),
            ["messages", id] => match self.letters.iter().find(|letter| letter.id == id) {
                Some(letter) => letter.shown(ask.word("format")),
                None => return not_found(),
            },
            ["history"] => return self.since(ask),
            _ => return Reply::status(404),
        };
        Reply::ok(shown.to_string())
    }
}

fn not_found() -> Reply {
    let error = json!({ "code": 404, "errors": [{ "domain": "global", "reason": "notFound" }], "status": "NOT_FOUND" });
    Reply { body: json!({ "error": error }).to_string(), ..Reply::status(404) }
}

impl Post {
    /// `m1` and so on, a day apart.
    pub(super) fn of(count: i64) -> Post {
        let letters = (1..=count).map(|nth| Letter::new(&format!("m{nth}"), LONG_AGO + nth * 86_400)).collect();
        Post { letters, labels: vec!["INBOX".into(), "Label_1".into()], ..Post::default() }
    }

    fn last_record(&self) -> u64 {
        FIRST_RECORD + self.history.len() as u64
    }

    fn note(&mut self, what: &str, id: &str, labels: &[&str]) {
        let record = self.last_record() + 1;
        let message = self.letters.iter().find(|letter| letter.id == id).map_or(json!({ "id": id }), Letter::named);
        self.history.push(json!({ "id": record.to_string(), what: [{ "message": message, "labelIds": labels }] }));
    }

    pub(super) fn arrive(&mut self, letter: Letter) {
        let id = letter.id.clone();
        self.letters.push(letter);
        self.note("messagesAdded", &id, &[]);
    }

    pub(super) fn delete(&mut self, id: &str) -> Letter {
        let place = self.letters.iter().position(|letter| letter.id == id).unwrap();
        self.note("messagesDeleted", id, &[]);
        self.letters.remove(place)
    }

    pub(super) fn label(&mut self, id: &str, label: &str) {
        let letter = self.letters.iter_mut().find(|letter| letter.id == id).unwrap();
        letter.labels.push(label.to_owned());
        self.note("labelsAdded", id, &[label]);
    }

    /// Nobody tells of it: not even the history.
    pub(super) fn unlabel_silently(&mut self, label: &str) {
        self.labels.retain(|listed| listed != label);
        self.letters.iter_mut().for_each(|letter| letter.labels.retain(|has| has != label));
    }

    /// As above, of one message, and the label goes on.
    pub(super) fn unlabel_one_silently(&mut self, id: &str, label: &str) {
        let letter = self.letters.iter_mut().find(|letter| letter.id == id).unwrap();
        letter.labels.retain(|has| has != label);
    }

    pub(super) fn forget_history(&mut self) {
        self.kept_since = self.last_record() + 1;
        self.note("labelsAdded", "nobody", &[]);
    }

    fn list(&self, ask: &Ask) -> Reply {
        let query = ask.word("q").unwrap_or_default();
        let bound = |name: &str| query.split(' ').find_map(|word| word.strip_prefix(name)?.parse::<i64>().ok());
        let (after, before) = (bound("after:").unwrap_or(i64::MIN), bound("before:").unwrap_or(i64::MAX));
        let label = ask.word("labelIds");
        let mut known = self.labels.iter().chain(&self.unnamed);
        if label.is_some_and(|label| known.all(|known| known != label)) {
            return Reply::status(400);
        }
        let is_hidden = |id: &String| self.unlisted.contains(id) || (!query.is_empty() && self.unsearched.contains(id));
        let within = self.letters.iter().filter(|letter| after < letter.date && letter.date < before);
        let meant = within.filter(|letter| label.is_none_or(|label| letter.has(label)) && !is_hidden(&letter.id));
        let ghosts = self.ghosts.iter().filter(|_| label.is_none());
        let ids: Vec<_> = meant.map(|letter| &letter.id).chain(ghosts).map(|id| json!({ "id": id })).collect();
        Reply::ok(json!({ "messages": ids, "resultSizeEstimate": ids.len() }).to_string())
    }

    fn since(&self, ask: &Ask) -> Reply {
        let start: u64 = ask.word("startHistoryId").unwrap().parse().unwrap();
        if start < self.kept_since {
            return not_found();
        }
        let later = |record: &&Json| record["id"].as_str().unwrap().parse::<u64>().unwrap() > start;
        let records: Vec<_> = self.history.iter().filter(later).collect();
        Reply::ok(json!({ "history": records, "historyId": self.last_record().to_string() }).to_string())
    }
}
