//! The simulator's own pages: the truth, the counters, and changes by hand.

mod truth;

use std::time::Duration;

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::{
    Inside, LookerCounts, LookerSim,
    instance::{Record, Sight},
    kind::LookerType,
    plan::Denial,
    route,
};
use crate::{
    answer::{JSON, Message},
    params::Params,
};

type Done = Result<Value, String>;

/// What a page was told, by its query or by JSON.
struct Order {
    params: Params,
    set: Option<Map<String, Value>>,
}

impl Order {
    fn parse(params: &Params, body: &[u8]) -> Result<Self, String> {
        let mut order = Order { params: params.clone(), set: None };
        if body.is_empty() {
            return Ok(order);
        }
        let body: Map<String, Value> =
            serde_json::from_slice(body).map_err(|error| format!("no JSON object: {error}"))?;
        for (name, value) in body {
            match value {
                Value::Object(set) if name == "set" => order.set = Some(set),
                Value::String(text) => order.params.push(&name, text),
                other => order.params.push(&name, other.to_string()),
            }
        }
        Ok(order)
    }

    fn kind(&self) -> Result<LookerType, String> {
        let name = self.params.first("type").ok_or("`type` is missing")?;
        name.parse().map_err(|unknown: super::UnknownLookerType| unknown.to_string())
    }

    /// Without a type all of them.
    fn kinds(&self) -> Result<Vec<LookerType>, String> {
        if self.params.first("type").is_some() { Ok(vec![self.kind()?]) } else { Ok(LookerType::ALL.to_vec()) }
    }

    fn id(&self) -> Result<&str, String> {
        self.params.first("id").ok_or_else(|| "`id` is missing".to_owned())
    }

    fn number(&self, name: &str) -> Result<Option<u64>, String> {
        let parse = |text: &str| text.parse().map_err(|_| format!("`{name}` must be a number"));
        self.params.first(name).map(parse).transpose()
    }
}

impl LookerSim {
    pub fn counts(&self, now: Duration) -> LookerCounts {
        let inside = self.inside(now);
        let mut counts = inside.counts.clone();
        let records = LookerType::ALL.into_iter().flat_map(|kind| inside.instance.all(kind));
        let gets: Vec<u32> = records.map(|record| record.gets).collect();
        counts.objects_got = gets.iter().filter(|gets| **gets > 0).count() as u64;
        counts.gets_per_object_max = gets.into_iter().max().unwrap_or(0).into();
        counts.tokens_live = inside.tokens.live(now);
        [counts.connections, counts.connections_peak] = self.connections.readings();
        [_, counts.in_flight_peak] = self.in_flight.readings();
        counts
    }

    pub(super) fn page(&self, page: &str, params: &Params, body: &[u8], now: Duration) -> Message {
        let done = match page {
            "stats" => serde_json::to_value(self.counts(now)).map_err(|error| error.to_string()),
            "truth" => match Order::parse(params, body).and_then(|order| order.kinds()) {
                Ok(kinds) => return Message::json(self.truth_text(&kinds, now).into()),
                Err(why) => Err(why),
            },
            "operations" => Ok(route::operations()),
            _ => Order::parse(params, body).and_then(|order| self.act(page, &order, now)),
        };
        match done {
            Ok(done) => Message::json(done.to_string().into()),
            Err(why) => Message::new(StatusCode::BAD_REQUEST, JSON, json!({ "error": why }).to_string().into()),
        }
    }

    fn act(&self, page: &str, order: &Order, now: Duration) -> Done {
        let mut inside = self.inside(now);
        let inside = &mut *inside;
        match page {
            "edit" | "delete" | "restore" | "purge" | "hide" | "show" => self.act_on_one(inside, page, order, now),
            "insert" => {
                let kind = order.kind()?;
                let made =
                    (0..order.number("count")?.unwrap_or(1)).map(|_| inside.instance.insert(kind, self.wall(now)));
                let ids: Option<Vec<String>> = made.collect();
                Ok(json!({ "ids": ids.ok_or("nobody can make one of these alone")? }))
            }
            "forbid" => {
                let status = order.params.first("status").unwrap_or("403");
                let denial = match status {
                    "403" => Denial::Forbidden,
                    "404" => Denial::NotFound,
                    _ => return Err("`status` must be 403 or 404".to_owned()),
                };
                inside.forbidden.insert(order.kind()?, denial);
                Ok(json!({ "forbidden": order.kind()?, "status": status }))
            }
            "allow" => {
                inside.forbidden.remove(&order.kind()?);
                Ok(json!({ "allowed": order.kind()? }))
            }
            "revoke" => {
                inside.tokens.revoke_all();
                Ok(json!({ "done": page }))
            }
            "credentials" => {
                inside.tokens.change_secret(order.params.first("client_secret").ok_or("`client_secret` is missing")?);
                Ok(json!({ "done": page }))
            }
            "down" => {
                let ms = order.number("for_ms")?.ok_or("`for_ms` is missing")?;
                inside.down_until = now + Duration::from_millis(ms);
                Ok(json!({ "down_for_ms": ms }))
            }
            _ => Err(format!("there is no page `/_sim/{page}`")),
        }
    }

    fn act_on_one(&self, inside: &mut Inside, page: &str, order: &Order, now: Duration) -> Done {
        let (kind, wall) = (order.kind()?, self.wall(now));
        let id = order.id()?;
        if inside.instance.find(kind, id).is_none() {
            return Err(format!("there is no {kind} `{id}`"));
        }
        match page {
            "edit" if kind.edited().is_none() => return Err("queries never change".to_owned()),
            "edit" => inside.instance.edit(kind, id, order.set.as_ref(), wall),
            "delete" => inside.instance.trash(kind, id, wall),
            "restore" => inside.instance.restore(kind, id),
            "purge" => inside.instance.purge(kind, id),
            _ => {
                let sight = if page == "hide" { Sight::Hidden } else { Sight::Open };
                if let Some(record) = inside.instance.find_mut(kind, id) {
                    record.sight = sight;
                }
            }
        }
        let body = |record: &Record| record.template.value(inside.tick());
        Ok(json!({ "type": kind, "id": id, "body": inside.instance.find(kind, id).map(body) }))
    }
}
