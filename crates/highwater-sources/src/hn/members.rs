//! A JSON object as it was written: its members in order, names and values raw. Nothing inside a value is looked at,
//! so that neither its shape nor its depth matters.

use std::fmt;

use serde::{
    Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// Shows every member to `visit`, also those before one that cannot be read.
pub(super) fn each<'a>(json: &'a str, visit: impl FnMut(&'a str, &'a str)) -> serde_json::Result<()> {
    let mut parser = serde_json::Deserializer::from_str(json);
    parser.deserialize_map(Each(visit))?;
    parser.end()
}

pub(super) fn all(json: &str) -> serde_json::Result<Vec<(&str, &str)>> {
    let mut members = Vec::new();
    each(json, |name, value| members.push((name, value)))?;
    Ok(members)
}

struct Each<V>(V);

impl<'de, V: FnMut(&'de str, &'de str)> Visitor<'de> for Each<V> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some((name, value)) = map.next_entry::<&RawValue, &RawValue>()? {
            (self.0)(name.get(), value.get());
        }
        Ok(())
    }
}
