//! The simulated Looker asked in process, on a time that the tests make.

mod changes;
mod errors;
mod faults;
mod lists;
mod logins;
mod singles;

use std::{collections::BTreeSet, time::Duration};

use serde_json::{Map, Value, json};

use super::{LookerPlan, LookerSim};
use crate::{
    answer::{Message, Reply, SimRequest, Verb},
    rng::Seed,
};

/// 1 January 2026.
const START: i64 = 1_767_225_600_000;

/// A simulation, the time in it, and a token.
struct Bench {
    sim: LookerSim,
    now: Duration,
    token: String,
}

impl Bench {
    fn new(dashboards: u64, plan: &str) -> Self {
        let sim = LookerSim::new(Seed(5), dashboards, LookerPlan::parse(plan).unwrap(), START);
        let mut bench = Bench { sim, now: Duration::ZERO, token: String::new() };
        bench.login();
        bench
    }

    fn login(&mut self) {
        let (status, body) = self.ask(Verb::Post, "/api/4.0/login", "client_id=sim-client&client_secret=sim-secret");
        assert_eq!(status, 200, "{body}");
        self.token = body["access_token"].as_str().unwrap().to_owned();
    }

    fn reply(&self, verb: Verb, target: &str, body: &str) -> Reply {
        let authorization = format!("token {}", self.token);
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
        let (status, body) = self.ask(Verb::Get, &format!("/api/4.0{path}"), "");
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    fn status(&self, path: &str) -> u16 {
        self.ask(Verb::Get, &format!("/api/4.0{path}"), "").0
    }

    /// The ids of a list, in its order.
    fn ids(&self, path: &str) -> Vec<String> {
        let list = self.get(path);
        list.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
    }

    fn set(&self, path: &str) -> BTreeSet<String> {
        self.ids(path).into_iter().collect()
    }

    /// A page of the simulator, told by JSON.
    fn tell(&self, page: &str, order: &Value) -> Value {
        let (status, body) = self.ask(Verb::Post, &format!("/_sim/{page}"), &order.to_string());
        assert_eq!(status, 200, "{page}: {body}");
        body
    }

    /// What there is of a type.
    fn truth(&self, kind: &str) -> Map<String, Value> {
        self.sim.truth(self.now)["types"][kind].as_object().unwrap().clone()
    }

    fn true_ids(&self, kind: &str, deleted: bool) -> BTreeSet<String> {
        self.truth(kind).into_iter().filter(|(_, entry)| entry["deleted"] == deleted).map(|(id, _)| id).collect()
    }
}

fn json_of(message: &Message) -> Value {
    if message.body.is_empty() {
        return Value::Null;
    }
    serde_json::from_slice(&message.body)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&message.body).into()))
}

/// Without what moves by itself.
fn still(mut body: Value) -> Value {
    const MOVING: [&str; 17] = [
        "can",
        "view_count",
        "favorite_count",
        "usage_count",
        "last_viewed_at",
        "last_accessed_at",
        "content_favorite_id",
        "alert_count",
        "next_run_at",
        "last_run_at",
        "user_count",
        "child_count",
        "sessions",
        "logged_in_at",
        "ui_state",
        "triggered_at",
        "trigger_check_at",
    ];
    match &mut body {
        Value::Object(members) => {
            members.retain(|name, _| !MOVING.contains(&name.as_str()));
            members.values_mut().for_each(|value| *value = still(value.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = still(item.take())),
        _ => {}
    }
    body
}

fn order(kind: &str, id: &str) -> Value {
    json!({ "type": kind, "id": id })
}
