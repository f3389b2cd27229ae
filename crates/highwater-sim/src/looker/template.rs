//! One body, rendered once: its text with the places of members and of what moves by itself, so that a page of a
//! hundred bodies costs little more than copying them.

use std::{io::Write, ops::Range};

use jiff::{Timestamp, tz::TimeZone};
use serde_json::{Map, Value};

use super::fields::Fields;

/// What a moving value starts with where it is kept as text; no name or title has it.
const MARK: &str = "\"\\u0001";

/// Values that differ from one request to the next although nobody has edited anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moving {
    Count,
    /// ISO 8601, from milliseconds since 1970.
    Time,
    /// Seconds since 1970.
    Epoch,
    /// What the caller may do.
    Can,
    /// An id, or null.
    Maybe,
}

impl Moving {
    const ALL: [Moving; 5] = [Moving::Count, Moving::Time, Moving::Epoch, Moving::Can, Moving::Maybe];

    /// The value to put into a body.
    pub(super) fn at(self, base: u64) -> Value {
        Value::String(format!("\u{1}{}{base}", self.letter()))
    }

    const fn letter(self) -> char {
        match self {
            Moving::Count => 'c',
            Moving::Time => 't',
            Moving::Epoch => 'e',
            Moving::Can => 'p',
            Moving::Maybe => 'm',
        }
    }

    fn write(self, base: u64, tick: u64, out: &mut Vec<u8>) {
        let written = match self {
            Moving::Count => write!(out, "{}", base + tick / (1 + base % 5)),
            Moving::Time => write!(out, "\"{}\"", iso((base + 1_000 * tick) as i64)),
            Moving::Epoch => write!(out, "{}", base + tick),
            Moving::Can => {
                write!(out, r#"{{"show":true,"update":{},"destroy":true}}"#, (base + tick).is_multiple_of(3))
            }
            Moving::Maybe if (base + tick).is_multiple_of(4) => write!(out, "\"{base}\""),
            Moving::Maybe => write!(out, "null"),
        };
        written.expect("a Vec takes every byte");
    }
}

/// As Looker writes times: `2018-03-15T23:21:10.000+00:00`.
pub(super) fn iso(millis: i64) -> String {
    let time = Timestamp::from_millisecond(millis).unwrap_or_default().to_zoned(TimeZone::UTC);
    time.strftime("%Y-%m-%dT%H:%M:%S.%3f+00:00").to_string()
}

#[derive(Debug)]
pub(super) struct Template {
    /// The members of an object with commas between.
    text: Box<str>,
    /// Where each member starts.
    members: Box<[u32]>,
    holes: Box<[Hole]>,
}

#[derive(Clone, Copy, Debug)]
struct Hole {
    start: u32,
    end: u32,
    moving: Moving,
    base: u64,
}

impl Template {
    pub(super) fn new(object: &Map<String, Value>) -> Self {
        let (mut text, mut members) = (String::with_capacity(512), Vec::with_capacity(object.len()));
        for (name, value) in object {
            if !members.is_empty() {
                text.push(',');
            }
            members.push(text.len() as u32);
            text.push_str(&Value::from(name.as_str()).to_string());
            text.push(':');
            text.push_str(&value.to_string());
        }
        let holes = holes(&text).into();
        Template { text: text.into(), members: members.into(), holes }
    }

    /// As it was made, moving values as they are kept.
    pub(super) fn object(&self) -> Map<String, Value> {
        serde_json::from_str(&format!("{{{}}}", self.text)).expect("the text is that of an object")
    }

    pub(super) fn len(&self) -> usize {
        self.text.len() + 2
    }

    pub(super) fn render(&self, tick: u64, out: &mut Vec<u8>) {
        out.push(b'{');
        self.write(0..self.text.len(), tick, out);
        out.push(b'}');
    }

    /// The members of `form` only, and of those what `fields` wants.
    pub(super) fn render_part(&self, form: Option<&[&str]>, fields: Option<&Fields>, tick: u64, out: &mut Vec<u8>) {
        if form.is_none() && fields.is_none() {
            return self.render(tick, out);
        }
        out.push(b'{');
        let start = out.len();
        for member in 0..self.members.len() {
            let (name, value) = self.member(member);
            if form.is_some_and(|form| !form.contains(&name)) {
                continue;
            }
            let Some(below) = fields.map_or(Some(None), |fields| fields.wants(name)) else { continue };
            if out.len() > start {
                out.push(b',');
            }
            write!(out, "\"{name}\":").expect("a Vec takes every byte");
            match below {
                None => self.write(value, tick, out),
                Some(below) => {
                    let mut whole = Vec::new();
                    self.write(value, tick, &mut whole);
                    let whole = serde_json::from_slice(&whole).expect("a member is JSON");
                    serde_json::to_writer(&mut *out, &below.apply(whole)).expect("a Vec takes every byte");
                }
            }
        }
        out.push(b'}');
    }

    pub(super) fn value(&self, tick: u64) -> Value {
        let mut text = Vec::with_capacity(self.len());
        self.render(tick, &mut text);
        serde_json::from_slice(&text).expect("the text is that of an object")
    }

    /// One member as it is kept.
    pub(super) fn get(&self, name: &str) -> Option<Value> {
        let found = (0..self.members.len()).map(|member| self.member(member)).find(|(known, _)| *known == name);
        found.map(|(_, value)| serde_json::from_str(&self.text[value]).expect("a member is JSON"))
    }

    /// Its name, and where its value is.
    fn member(&self, at: usize) -> (&str, Range<usize>) {
        let start = self.members[at] as usize;
        let end = self.members.get(at + 1).map_or(self.text.len(), |next| *next as usize - 1);
        let colon = self.text[start..end].find("\":").expect("a member has a name") + start;
        (&self.text[start + 1..colon], colon + 2..end)
    }

    fn write(&self, range: Range<usize>, tick: u64, out: &mut Vec<u8>) {
        let mut done = range.start;
        let first = self.holes.partition_point(|hole| (hole.start as usize) < range.start);
        for hole in self.holes[first..].iter().take_while(|hole| (hole.end as usize) <= range.end) {
            out.extend_from_slice(&self.text.as_bytes()[done..hole.start as usize]);
            hole.moving.write(hole.base, tick, out);
            done = hole.end as usize;
        }
        out.extend_from_slice(&self.text.as_bytes()[done..range.end]);
    }
}

fn holes(text: &str) -> Vec<Hole> {
    let hole = |(start, _): (usize, &str)| {
        let inner = start + MARK.len();
        let end = inner + text[inner..].find('"')?;
        let mut body = text[inner..end].chars();
        let letter = body.next()?;
        let moving = Moving::ALL.into_iter().find(|moving| moving.letter() == letter)?;
        Some(Hole { start: start as u32, end: end as u32 + 1, moving, base: body.as_str().parse().ok()? })
    };
    text.match_indices(MARK).filter_map(hole).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn template(value: &Value) -> Template {
        Template::new(value.as_object().unwrap())
    }

    #[test]
    fn what_moves_moves_and_the_rest_stays() {
        let template = template(&json!({ "id": "7", "n": Moving::Count.at(10), "in": [{ "at": Moving::Time.at(0) }] }));
        assert_eq!(template.value(0), json!({ "id": "7", "n": 10, "in": [{ "at": "1970-01-01T00:00:00.000+00:00" }] }));
        assert_eq!(template.value(3), json!({ "id": "7", "n": 13, "in": [{ "at": "1970-01-01T00:00:03.000+00:00" }] }));
        assert_eq!(Template::new(&template.object()).value(3), template.value(3));
    }

    #[test]
    fn members_are_picked_without_the_rest() {
        let template =
            template(&json!({ "id": "7", "a\"": 1, "query": { "model": "m", "view": "v" }, "title": "t, \"u\":" }));
        let part = |form: Option<&[&str]>, fields: Option<&str>| -> Value {
            let fields = fields.map(|text| Fields::parse(text).unwrap());
            let mut out = Vec::new();
            template.render_part(form, fields.as_ref(), 0, &mut out);
            serde_json::from_slice(&out).unwrap()
        };
        assert_eq!(
            part(None, Some("title,query(view),nothing")),
            json!({ "query": { "view": "v" }, "title": "t, \"u\":" })
        );
        assert_eq!(part(Some(&["id", "title"]), Some("id,query")), json!({ "id": "7" }));
        assert_eq!(template.get("query"), Some(json!({ "model": "m", "view": "v" })));
    }
}
