//! A JSON object as it was written: its members in order, names and values raw. Nothing inside a value is looked at,
//! so that neither its shape nor its depth matters.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// More than an item ever has.
const CAPACITY: usize = 16;

pub(super) struct Members<'a>(pub(super) Vec<(&'a str, &'a str)>);

impl<'a> Members<'a> {
    pub(super) fn parse(json: &'a str) -> serde_json::Result<Self> {
        serde_json::from_str(json)
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Collect)
    }
}

struct Collect;

impl<'de> Visitor<'de> for Collect {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::with_capacity(CAPACITY);
        while let Some((name, value)) = map.next_entry::<&RawValue, &RawValue>()? {
            members.push((name.get(), value.get()));
        }
        Ok(Members(members))
    }
}
