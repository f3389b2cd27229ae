//! The simulated Gmail asked in process, on a time that the tests make.

mod batch;
mod errors;
mod faults;
mod history;
mod labels;
mod lists;
mod messages;
mod oauth;
mod pages;
mod quota;

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value;

use super::{ACCESS_TOKEN, GmailPlan, GmailSim, MessageState, MessageTruth};
use crate::{
    answer::{Message, Reply, SimRequest, Verb},
    rng::Seed,
};

/// 1 January 2026.
const START: i64 = 1_767_225_600_000;

/// A simulation and the time in it.
struct Bench {
    sim: GmailSim,
    now: Duration,
    token: String,
}

impl Bench {
    fn new(messages: u64, plan: &str) -> Self {
        let plan = GmailPlan::parse(plan).unwrap();
        Bench {
            sim: GmailSim::new(Seed(5), messages, plan, START),
            now: Duration::ZERO,
            token: ACCESS_TOKEN.to_owned(),
        }
    }

    fn reply(&self, verb: Verb, target: &str, body: &str) -> Reply {
        let authorization = format!("Bearer {}", self.token);
        let request = SimRequest::get(target).sending(verb, body.as_bytes()).authorized(&authorization);
        self.sim.answer(&request, self.now).reply
    }

    fn ask(&self, verb: Verb, target: &str, body: &str) -> (u16, Value) {
        match self.reply(verb, target, body) {
            Reply::Full(message) => (message.status.as_u16(), json_of(&message)),
            other => panic!("{target}: {other:?}"),
        }
    }

    fn get(&self, path: &str) -> Value {
        let (status, body) = self.ask(Verb::Get, &format!("/gmail/v1/users/me/{path}"), "");
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    fn post(&self, path: &str, body: &str) -> (u16, Value) {
        self.ask(Verb::Post, &format!("/gmail/v1/users/me/{path}"), body)
    }

    /// Status, reason and text of an error.
    fn error(&self, path: &str) -> (u16, String, String) {
        refused(self.ask(Verb::Get, &format!("/gmail/v1/users/me/{path}"), ""))
    }

    fn page(&self, page: &str) -> Value {
        let (status, body) = self.ask(Verb::Get, &format!("/_sim/{page}"), "");
        assert_eq!(status, 200, "{page}: {body}");
        body
    }

    fn truth(&self) -> Vec<MessageTruth> {
        self.sim.truth(0, usize::MAX, self.now)
    }

    fn present(&self) -> BTreeMap<String, MessageTruth> {
        let present = self.truth().into_iter().filter(|truth| !matches!(truth.state, MessageState::Deleted(_)));
        present.map(|truth| (truth.id.clone(), truth)).collect()
    }

    /// Every id of a list, page by page, and how many pages it took.
    fn all(&self, list: &str, key: &str) -> (Vec<String>, usize) {
        let (mut ids, mut pages, mut token) = (Vec::new(), 0, None::<String>);
        loop {
            let mark = if list.contains('?') { '&' } else { '?' };
            let next = token.map(|token| format!("{mark}pageToken={token}")).unwrap_or_default();
            let page = self.get(&format!("{list}{next}"));
            pages += 1;
            let entries = page[key].as_array().cloned().unwrap_or_default();
            ids.extend(entries.iter().map(|entry| entry["id"].as_str().unwrap().to_owned()));
            token = page["nextPageToken"].as_str().map(str::to_owned);
            if token.is_none() {
                return (ids, pages);
            }
        }
    }
}

fn json_of(message: &Message) -> Value {
    if message.body.is_empty() {
        return Value::Null;
    }
    serde_json::from_slice(&message.body)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&message.body).into()))
}

fn refused((status, body): (u16, Value)) -> (u16, String, String) {
    let first = &body["error"]["errors"][0];
    assert_eq!(body["error"]["code"], status, "{body}");
    assert_eq!(body["error"]["message"], first["message"], "{body}");
    (status, first["reason"].as_str().unwrap().to_owned(), first["message"].as_str().unwrap().to_owned())
}
