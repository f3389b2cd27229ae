//! The simulator's own pages: the truth, the counters, and changes by hand.

use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use http::StatusCode;
use serde_json::{Value, json};

use super::{
    GmailCounts, GmailSim, Inside,
    labels::{Catalogue, Labels},
    letter::Author,
    mailbox::{Entry, State, hex},
    message::size_estimate,
    params::Params,
};
use crate::answer::{JSON, JSON_LINES, Message};

/// Lines in one answer of the truth page; their bodies are made to be hashed.
pub const GMAIL_TRUTH_LINES_MAX: usize = 5_000;

/// What a correct mirror knows of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageTruth {
    /// Its place in this simulation, for the next page of the truth.
    pub n: usize,
    pub id: String,
    pub thread_id: String,
    pub label_ids: Vec<String>,
    /// Milliseconds since 1970.
    pub internal_date: i64,
    pub sha256: String,
    pub size: usize,
    pub size_estimate: u64,
    /// Of its last change.
    pub history_id: u64,
    pub state: MessageState,
    /// How often it was asked for.
    pub gets: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageState {
    Present,
    /// For good, at this time (milliseconds since 1970); the rest is as it was before.
    Deleted(i64),
    /// Listed, and never to be had: a dead letter is right. The fault is what every late request meets.
    Unreachable(super::GmailFault),
}

impl MessageTruth {
    fn line(&self) -> Value {
        let mut line = json!({
            "n": self.n, "id": self.id, "threadId": self.thread_id, "labelIds": self.label_ids,
            "internalDate": self.internal_date.to_string(), "sha256": self.sha256, "size": self.size,
            "sizeEstimate": self.size_estimate, "historyId": self.history_id.to_string(), "gets": self.gets,
        });
        match self.state {
            MessageState::Present => line["state"] = json!("present"),
            MessageState::Deleted(at) => {
                line["state"] = json!("deleted");
                line["deletedAt"] = json!(at.to_string());
            }
            MessageState::Unreachable(fault) => {
                line["state"] = json!("unreachable");
                line["reason"] = json!(fault.as_str());
            }
        }
        line
    }
}

type Done = Result<Value, String>;

impl GmailSim {
    /// The truth of `count` messages from the `from`th on, those that are gone among them.
    pub fn truth(&self, from: usize, count: usize, now: Duration) -> Vec<MessageTruth> {
        let inside = self.inside(now);
        let author = inside.mailbox.author.clone();
        let chosen: Vec<(usize, Entry, Vec<String>)> = inside
            .mailbox
            .entries()
            .iter()
            .enumerate()
            .skip(from)
            .take(count)
            .map(|(n, entry)| (n, entry.clone(), inside.mailbox.catalogue.ids(entry.labels)))
            .collect();
        drop(inside);
        chosen.into_iter().map(|(n, entry, labels)| self.truth_of(n, &entry, labels, &author)).collect()
    }

    fn truth_of(&self, n: usize, entry: &Entry, label_ids: Vec<String>, author: &Author) -> MessageTruth {
        let raw = entry.raw(author);
        let hash = digest(&SHA256, &raw);
        let state = match (entry.state, self.dice.lasting(entry.id)) {
            (State::Deleted(at), _) => MessageState::Deleted(self.wall(at)),
            (State::Present, Some(fault)) => MessageState::Unreachable(fault),
            (State::Present, None) => MessageState::Present,
        };
        MessageTruth {
            n,
            id: hex(entry.id),
            thread_id: hex(entry.thread),
            label_ids,
            internal_date: entry.date(),
            sha256: highwater_core::hex(hash.as_ref()),
            size: raw.len(),
            size_estimate: size_estimate(self.seed, entry, raw.len()),
            history_id: entry.history,
            state,
            gets: entry.gets,
        }
    }

    pub fn counts(&self, now: Duration) -> GmailCounts {
        let inside = self.inside(now);
        let mut counts = inside.counts.clone();
        let gets = || inside.mailbox.entries().iter().map(|entry| u64::from(entry.gets));
        counts.messages_got = gets().filter(|gets| *gets > 0).count() as u64;
        counts.messages_got_again = gets().filter(|gets| *gets > 1).count() as u64;
        counts.gets_per_message_max = gets().max().unwrap_or(0);
        counts.history_id = inside.mailbox.history.current();
        counts.messages_present = inside.mailbox.listed(..).count() as u64;
        [counts.connections, counts.connections_peak] = self.connections.readings();
        [_, counts.in_flight_peak] = self.in_flight.readings();
        counts
    }

    pub(super) fn page(&self, page: &str, params: &Params, now: Duration) -> Message {
        let done = match page {
            "stats" => serde_json::to_value(self.counts(now)).map_err(|error| error.to_string()),
            "truth" => match number(params, "from") {
                Ok(from) => return self.truth_page(from.unwrap_or(0) as usize, now),
                Err(why) => Err(why),
            },
            _ => self.act(page, params, now),
        };
        match done {
            Ok(done) => Message::json(done.to_string().into()),
            Err(why) => Message::new(StatusCode::BAD_REQUEST, JSON, json!({ "error": why }).to_string().into()),
        }
    }

    fn truth_page(&self, from: usize, now: Duration) -> Message {
        let lines = self.truth(from, GMAIL_TRUTH_LINES_MAX, now);
        let text: String = lines.iter().map(|truth| format!("{}\n", truth.line())).collect();
        Message::new(StatusCode::OK, JSON_LINES, text.into())
    }

    fn act(&self, page: &str, params: &Params, now: Duration) -> Done {
        let mut inside = self.inside(now);
        let inside = &mut *inside;
        match page {
            "arrive" => {
                let count = number(params, "count")?.unwrap_or(1);
                Ok(json!({ "ids": (0..count).map(|_| hex(self.arrive(inside, now))).collect::<Vec<_>>() }))
            }
            "import" => {
                let at = number(params, "at")?.map(|second| second as i64 * 1_000);
                Ok(json!({ "id": hex(self.import(inside, at, now)) }))
            }
            "draft" => Ok(json!({ "id": hex(self.save_draft(inside, now)) })),
            "delete" => {
                let id = message(params)?;
                if inside.mailbox.delete(id, now) { Ok(json!({ "id": hex(id) })) } else { Err(gone()) }
            }
            "label" => self.act_label(inside, params, now),
            "expire_history" => {
                inside.mailbox.history.forget();
                Ok(json!({ "history_id": inside.mailbox.history.current().to_string() }))
            }
            "expire_tokens" => {
                inside.keys.expire();
                Ok(json!({ "done": page }))
            }
            "revoke" => {
                inside.keys.revoke();
                Ok(json!({ "done": page }))
            }
            "penalty" => {
                let until = now + Duration::from_secs(number(params, "for_s")?.unwrap_or(900));
                inside.meter.punish(until);
                Ok(json!({ "until": self.clock(until) }))
            }
            "down" => {
                let ms = number(params, "for_ms")?.ok_or("`for_ms` is missing")?;
                inside.down_until = now + Duration::from_millis(ms);
                Ok(json!({ "down_for_ms": ms }))
            }
            _ => Err(format!("there is no page `/_sim/{page}`")),
        }
    }

    fn act_label(&self, inside: &mut Inside, params: &Params, now: Duration) -> Done {
        let id = message(params)?;
        let add = labels(params, "add", &inside.mailbox.catalogue)?;
        let remove = labels(params, "remove", &inside.mailbox.catalogue)?;
        if !inside.mailbox.relabel(id, add, remove, now) {
            return Err(gone());
        }
        let entry = inside.mailbox.find(id).ok_or_else(gone)?;
        Ok(json!({ "id": hex(id), "labelIds": inside.mailbox.catalogue.ids(entry.labels) }))
    }
}

fn gone() -> String {
    "there is no such message".to_owned()
}

fn message(params: &Params) -> Result<u64, String> {
    let id = params.first("id").ok_or("`id` is missing")?;
    u64::from_str_radix(id, 16).map_err(|_| "`id` must be 16 hex digits".to_owned())
}

/// With commas between.
fn labels(params: &Params, key: &str, catalogue: &Catalogue) -> Result<Labels, String> {
    let ids = params.first(key).unwrap_or("").split(',').filter(|id| !id.is_empty());
    ids.map(|id| catalogue.by_id(id).ok_or_else(|| format!("unknown label `{id}`")))
        .try_fold(Labels::NONE, |labels, label| Ok(labels | label?))
}

fn number(params: &Params, key: &str) -> Result<Option<u64>, String> {
    params.first(key).map(|text| text.parse().map_err(|_| format!("`{key}` must be a number"))).transpose()
}
