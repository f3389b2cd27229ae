//! `highwater simulate` as a child process.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use serde_json::Value as Json;

use super::{Home, http, program};

pub(crate) struct Sim {
    child: Child,
    address: String,
}

/// Whether the feed tells of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Publish {
    Yes,
    No,
}

impl Sim {
    /// Hacker News, with `--items`, `--seed` and the like; `faults` is a preset or a file.
    pub(crate) fn start(items: u32, faults: &str) -> Sim {
        Sim::of("hn", items, faults)
    }

    pub(crate) fn gmail(items: u32, faults: &str) -> Sim {
        Sim::of("gmail", items, faults)
    }

    pub(crate) fn looker(dashboards: u32, faults: &str) -> Sim {
        Sim::of("looker", dashboards, faults)
    }

    pub(crate) fn looker_planned(dashboards: u32, plan: &str) -> Sim {
        let folder = Home::bare();
        let path = folder.write("plan.toml", plan);
        Sim::looker(dashboards, path.to_str().unwrap())
    }

    /// Every object by type and id.
    pub(crate) fn looker_truth(&self) -> Json {
        self.act("truth")
    }

    fn of(api: &str, items: u32, faults: &str) -> Sim {
        let mut command = Command::new(program());
        command.args(["simulate", api, "--listen", "127.0.0.1:0", "--quiet", "--faults", faults]);
        command.args(["--items", &items.to_string(), "--seed", "7"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://").unwrap_or_else(|| panic!("{line:?}"));
        Sim { address: address.to_owned(), child }
    }

    /// With a plan of its own.
    pub(crate) fn planned(items: u32, plan: &str) -> Sim {
        let folder = Home::bare();
        let path = folder.write("plan.toml", plan);
        Sim::start(items, path.to_str().unwrap())
    }

    pub(crate) fn gmail_planned(items: u32, plan: &str) -> Sim {
        let folder = Home::bare();
        let path = folder.write("plan.toml", plan);
        Sim::gmail(items, path.to_str().unwrap())
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn stats(&self) -> Json {
        serde_json::from_slice(&http::get(&self.address, "/_sim/stats").unwrap()).unwrap()
    }

    pub(crate) fn requests(&self) -> u64 {
        self.stats()["requests"].as_u64().unwrap()
    }

    pub(crate) fn item_requests(&self) -> u64 {
        self.stats()["by_endpoint"]["item"].as_u64().unwrap()
    }

    /// One of the pages by which the world is changed by hand.
    pub(crate) fn act(&self, page: &str) -> Json {
        serde_json::from_slice(&http::get(&self.address, &format!("/_sim/{page}")).unwrap()).unwrap()
    }

    /// Edits the first item from `id` on that can be edited; its id, and its body from now on.
    pub(crate) fn edit(&self, id: i64, publish: Publish) -> (i64, Json) {
        for id in id..id + 100 {
            let page = format!("/_sim/mutate?id={id}&kind=text&publish={}", publish == Publish::Yes);
            let host = format!("Host: {}\r\n", self.address);
            let (status, answer) = http::ask(&self.address, &page, &host).unwrap();
            if status == 200 {
                return (id, serde_json::from_slice::<Json>(&answer).unwrap()["body"].clone());
            }
        }
        panic!("nothing from {id} on can be edited");
    }

    /// The truth of every message there is or was.
    pub(crate) fn messages(&self) -> Vec<Json> {
        let mut messages: Vec<Json> = Vec::new();
        loop {
            let page = http::get(&self.address, &format!("/_sim/truth?from={}", messages.len())).unwrap();
            let before = messages.len();
            messages.extend(String::from_utf8(page).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()));
            if messages.len() == before {
                return messages;
            }
        }
    }

    /// How often a method of Gmail's was called.
    pub(crate) fn calls(&self, method: &str) -> u64 {
        self.stats()["by_method"][method].as_u64().unwrap_or(0)
    }

    /// A page of the truth, as lines of JSON.
    pub(super) fn truth(&self, from: i64, to: i64) -> String {
        let page = http::get(&self.address, &format!("/_sim/truth?from={from}&to={to}")).unwrap();
        String::from_utf8(page).unwrap()
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
