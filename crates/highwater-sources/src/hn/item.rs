//! Items: how one is asked for, and what the answer says about it.

use std::time::Duration;

use highwater_core::{Body, Failure, FailureKind, Key, Record, Timestamp, Value};

use super::{
    decode,
    schema::{self, ITEMS},
};
use crate::{Fetched, Request};

const DELAYED: &str = "[delayed]";
/// Held-back texts were seen to appear within minutes; what is older than this hardly changes any more.
const DELAY_IS_OLD: Duration = Duration::from_secs(24 * 3600);
const LOOKS_WHEN_OLD: u32 = 3;
const LOOKS_WHEN_NEW: u32 = 8;

pub(super) fn request(id: i64) -> Request {
    Request::get(format!("/v0/item/{id}.json"))
}

pub(super) fn read(id: i64, body: &[u8], now: Timestamp) -> Result<Fetched, Failure> {
    let Some(body) = decode::decode(body, &ITEMS)? else { return Ok(Fetched::Absent) };
    if number(&body, schema::ID) != Some(id) {
        return Err(Failure::new(FailureKind::WrongIdentity, wrong_identity(&body)));
    }
    let looks = looks(&body, now);
    let record = Record::new(Key::Number(id), &ITEMS, body);
    Ok(match looks {
        Some(looks) => Fetched::Delayed { record, looks },
        None => Fetched::Found(record),
    })
}

/// The time of a sound item, in seconds.
pub(super) fn time(id: i64, body: &[u8]) -> Result<Option<i64>, Failure> {
    let body = decode::decode(body, &ITEMS)?.filter(|body| number(body, schema::ID) == Some(id));
    Ok(body.and_then(|body| number(&body, schema::TIME)))
}

fn number(body: &Body, place: usize) -> Option<i64> {
    match body.values[place] {
        Value::Int(number) => Some(number),
        _ => None,
    }
}

fn wrong_identity(body: &Body) -> String {
    match number(body, schema::ID) {
        Some(id) => format!("the body is about item {id}"),
        None => "the body has no id".into(),
    }
}

/// How often to look again, if the text is a placeholder: the remote holds the real one back.
fn looks(body: &Body, now: Timestamp) -> Option<u32> {
    let text = body.values[schema::TEXT].as_text()?;
    if text != DELAYED {
        return None;
    }
    let age = |time: i64| now.since(Timestamp::from_millis(time.saturating_mul(1000)));
    let is_new = number(body, schema::TIME).is_some_and(|time| age(time) <= DELAY_IS_OLD);
    Some(if is_new { LOOKS_WHEN_NEW } else { LOOKS_WHEN_OLD })
}
