//! What an event of Firebase writes, and where: `put` replaces the value at a path, `patch` one for each of its names.
//! Everything written counts as changed, whether or not it was there before: a list that names an id once more says
//! that it may have changed once more.

use std::borrow::Cow;

use highwater_core::{Key, StreamName};
use serde_json::value::RawValue;

use crate::{
    hn::{field, members, user},
    text::{self, Text},
};

/// A value, as its JSON, and the place where it now is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Write<'a> {
    path: Vec<String>,
    raw: &'a str,
}

/// None if the data is not what the protocol promises.
pub(super) fn put(data: &str) -> Option<Vec<Write<'_>>> {
    let (path, raw) = envelope(data)?;
    Some(vec![Write { path: parts(&path).collect(), raw }])
}

/// Names may be paths themselves.
pub(super) fn patch(data: &str) -> Option<Vec<Write<'_>>> {
    let (path, raw) = envelope(data)?;
    if raw == "null" {
        return Some(Vec::new());
    }
    let below = |name: Cow<'_, str>| parts(&path).chain(parts(&name)).collect();
    Some(children(raw)?.into_iter().map(|(name, raw)| Write { path: below(name), raw }).collect())
}

impl<'a> Write<'a> {
    /// The value, if it is all there is to the feed. Null is nothing.
    pub(super) fn of_root(&self) -> Option<&'a str> {
        (self.path.is_empty() && self.raw != "null").then_some(self.raw)
    }

    /// The objects named by what is written. What makes no sense is passed over.
    pub(super) fn changed(&self, items: &StreamName, users: &StreamName) -> Vec<(StreamName, Key)> {
        let part = |index: usize| self.path.get(index).map(String::as_str);
        match (part(0), part(1), part(2)) {
            (None, ..) => {
                let below = children(self.raw).unwrap_or_default().into_iter();
                let below = below.map(|(name, raw)| Write { path: vec![name.into_owned()], raw });
                below.flat_map(|write| write.changed(items, users)).collect()
            }
            (Some("items"), place, None) => self.keys(place, item).map(|key| (items.clone(), key)).collect(),
            (Some("profiles"), place, None) => self.keys(place, profile).map(|key| (users.clone(), key)).collect(),
            _ => Vec::new(),
        }
    }

    /// Of one place in a list, or of the whole list. A list of one may come as what it holds.
    fn keys(&self, place: Option<&str>, key: fn(&str) -> Option<Key>) -> impl Iterator<Item = Key> + use<> {
        let list = if place.is_none() { children(self.raw) } else { None };
        let values: Vec<&str> = match list {
            Some(list) => list.into_iter().map(|(_, raw)| raw).collect(),
            None => vec![self.raw],
        };
        values.into_iter().filter_map(key).collect::<Vec<_>>().into_iter()
    }
}

fn item(raw: &str) -> Option<Key> {
    field::int(raw).filter(|id| *id > 0).map(Key::Number)
}

fn profile(raw: &str) -> Option<Key> {
    match text::read(raw)? {
        Text::Plain(name) if user::is_name(&name) => Some(Key::from(&*name)),
        _ => None,
    }
}

/// Path and data of an event. Of members with the same name the last one counts.
fn envelope(data: &str) -> Option<(String, &str)> {
    let members = children(data).filter(|_| data.trim_start().starts_with('{'))?;
    let find = |wanted: &str| members.iter().rev().find(|(name, _)| name == wanted).map(|(_, raw)| *raw);
    Some((text::read(find("path")?)?.shown().to_owned(), find("data")?))
}

fn parts(path: &str) -> impl Iterator<Item = String> {
    path.split('/').filter(|part| !part.is_empty()).map(str::to_owned)
}

/// What a list or an object holds, by name; none of anything else. Firebase has no lists: what looks like one is an
/// object whose names are numbers, and comes as either.
fn children(raw: &str) -> Option<Vec<(Cow<'_, str>, &str)>> {
    if raw.starts_with('[') {
        let list: Vec<&RawValue> = serde_json::from_str(raw).ok()?;
        return Some(list.into_iter().enumerate().map(|(index, raw)| (index.to_string().into(), raw.get())).collect());
    }
    let members = members::all(raw).ok()?;
    let named = members.into_iter().map(|(name, raw)| Some((shown(text::read(name)?), raw)));
    named.collect()
}

fn shown(text: Text<'_>) -> Cow<'_, str> {
    match text {
        Text::Plain(text) => text,
        Text::Mended { shown, .. } => shown.into(),
    }
}
