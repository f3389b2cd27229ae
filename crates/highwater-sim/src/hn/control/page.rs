//! The same by GET, under `/_sim/`. Each page says in JSON what was done.

use std::{str::FromStr, time::Duration};

use bytes::Bytes;
use http::StatusCode;
use serde_json::json;

use super::StreamOrder;
use crate::{
    answer::{JSON, Message},
    hn::{HnSim, life::Publicity, living::MutationKind, route::value},
};

/// A page that changes something, its query not yet read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::hn) enum Act {
    Mutate,
    Profile,
    Burst,
    Grow,
    Stream,
    Down,
}

impl Act {
    pub(in crate::hn) fn named(page: &str) -> Option<Act> {
        Some(match page {
            "mutate" => Act::Mutate,
            "profile" => Act::Profile,
            "burst" => Act::Burst,
            "grow" => Act::Grow,
            "stream" => Act::Stream,
            "down" => Act::Down,
            _ => return None,
        })
    }
}

type Done = Result<serde_json::Value, String>;

impl HnSim {
    pub(in crate::hn) fn act(&self, act: Act, query: &str, now: Duration) -> Message {
        let done = match act {
            Act::Mutate => self.act_mutate(query, now),
            Act::Profile => self.act_profile(query, now),
            Act::Burst => number(query, "count").map(|count| json!({ "ids": self.burst(count as usize, now) })),
            Act::Grow => number(query, "by").map(|by| json!({ "maxitem": self.grow(by, now) })),
            Act::Stream => self.act_stream(query, now),
            Act::Down => number(query, "for_ms").map(|ms| {
                self.go_down(now + Duration::from_millis(ms));
                json!({ "down_for_ms": ms })
            }),
        };
        match done {
            Ok(done) => Message::json(done.to_string().into()),
            Err(why) => Message::new(StatusCode::BAD_REQUEST, JSON, json!({ "error": why }).to_string().into()),
        }
    }

    fn act_mutate(&self, query: &str, now: Duration) -> Done {
        let id = number(query, "id")?;
        let kind = optional::<MutationKind>(query, "kind")?;
        let body = self.mutate(id, kind, publicity(query)?, now).map_err(|error| error.to_string())?;
        Ok(json!({ "id": id, "body": shown(&body) }))
    }

    fn act_profile(&self, query: &str, now: Duration) -> Done {
        let name = value(query, "name").ok_or("`name` is missing")?;
        let body = self.mutate_profile(name, publicity(query)?, now).map_err(|error| error.to_string())?;
        Ok(json!({ "name": name, "body": shown(&body) }))
    }

    fn act_stream(&self, query: &str, now: Duration) -> Done {
        let order = optional::<StreamOrder>(query, "do")?.ok_or("`do` is missing")?;
        self.order(order, now);
        Ok(json!({ "done": value(query, "do") }))
    }
}

/// `null` for the few bodies that are no valid Unicode.
fn shown(body: &Bytes) -> Option<serde_json::Value> {
    serde_json::from_slice(body).ok()
}

fn publicity(query: &str) -> Result<Publicity, String> {
    match value(query, "publish") {
        None | Some("true") => Ok(Publicity::Published),
        Some("false") => Ok(Publicity::Unpublished),
        Some(_) => Err("`publish` must be `true` or `false`".to_owned()),
    }
}

fn number(query: &str, key: &str) -> Result<u64, String> {
    optional(query, key)?.ok_or_else(|| format!("`{key}` is missing"))
}

fn optional<T: FromStr<Err: ToString>>(query: &str, key: &str) -> Result<Option<T>, String> {
    value(query, key).map(|text| text.parse().map_err(|error: T::Err| error.to_string())).transpose()
}
