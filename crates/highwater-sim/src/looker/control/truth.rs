//! What a correct mirror ends up with.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
    time::Duration,
};

use serde_json::{Value, json};

use crate::looker::{
    Inside, LookerSim,
    instance::{Record, Sight, State},
    kind::LookerType,
    plan::Denial,
};

impl LookerSim {
    /// Every object by type and id, and what stands in the way of having it: `types` with `deleted`, `body` and, where
    /// they apply, `members`, `hidden` and `broken`; `purged`, ids by type; `forbidden`, statuses by type.
    ///
    /// Values that move by themselves are as they would be served now. Queries are those that content refers to.
    pub fn truth(&self, now: Duration) -> Value {
        serde_json::from_slice(&self.truth_text(&LookerType::ALL, now)).expect("the truth is JSON")
    }

    /// Written object by object: as values a large instance would take gigabytes.
    pub(super) fn truth_text(&self, kinds: &[LookerType], now: Duration) -> Vec<u8> {
        let inside = self.inside(now);
        let used = used_queries(&inside);
        let mut out = b"{\"types\":{".to_vec();
        let mut types = Separated::default();
        for kind in kinds {
            types.next(kind.as_str(), &mut out);
            out.push(b'{');
            let mut objects = Separated::default();
            for record in inside.instance.existing(*kind).filter(|record| counts(*kind, record, &used)) {
                objects.next(&record.id, &mut out);
                self.write_entry(&inside, *kind, record, &mut out);
            }
            out.push(b'}');
        }
        let purged = kinds.iter().map(|kind| {
            let gone = inside.instance.all(*kind).iter().filter(|record| !record.exists());
            (kind.as_str(), gone.map(|record| record.id.as_str()).collect::<Vec<_>>())
        });
        let purged = json!(purged.collect::<BTreeMap<_, _>>());
        let forbidden = json!(inside.forbidden.iter().map(refusal).collect::<BTreeMap<_, _>>());
        write!(out, "}},\"purged\":{purged},\"forbidden\":{forbidden}}}").expect("a Vec takes every byte");
        out
    }

    fn write_entry(&self, inside: &Inside, kind: LookerType, record: &Record, out: &mut Vec<u8>) {
        write!(out, "{{\"deleted\":{},\"body\":", record.state == State::Trashed).expect("a Vec takes every byte");
        record.template.render(inside.tick(), out);
        if record.sight == Sight::Hidden {
            out.extend_from_slice(b",\"hidden\":true");
        }
        if let Some(fault) = self.dice.lasting(kind, &record.id) {
            write!(out, ",\"broken\":\"{fault}\"").expect("a Vec takes every byte");
        }
        if matches!(kind, LookerType::Groups | LookerType::Roles) {
            let members = json!({
                "users": tied(inside, LookerType::Users, kind, &record.id),
                "groups": tied(inside, LookerType::Groups, kind, &record.id),
            });
            write!(out, ",\"members\":{members}").expect("a Vec takes every byte");
        }
        out.push(b'}');
    }
}

/// Commas between, none before the first.
#[derive(Default)]
struct Separated {
    begun: bool,
}

impl Separated {
    fn next(&mut self, name: &str, out: &mut Vec<u8>) {
        if self.begun {
            out.push(b',');
        }
        self.begun = true;
        write!(out, "{}:", Value::from(name)).expect("a Vec takes every byte");
    }
}

fn refusal((kind, denial): (&LookerType, &Denial)) -> (&'static str, &'static str) {
    match denial {
        Denial::Forbidden => (kind.as_str(), "403"),
        Denial::NotFound => (kind.as_str(), "404"),
    }
}

fn tied<'a>(inside: &'a Inside, kind: LookerType, other: LookerType, id: &str) -> Vec<&'a str> {
    let tied = inside.instance.existing(kind).filter(|record| record.is_tied(other, id));
    tied.map(|record| record.id.as_str()).collect()
}

fn counts(kind: LookerType, record: &Record, used: &BTreeSet<(LookerType, &str)>) -> bool {
    match kind {
        LookerType::Queries | LookerType::MergeQueries => used.contains(&(kind, record.id.as_str())),
        _ => true,
    }
}

/// Those of dashboards and looks, in the trash or not, and those that merged ones are made of.
fn used_queries(inside: &Inside) -> BTreeSet<(LookerType, &str)> {
    let mut used = BTreeSet::new();
    for kind in [LookerType::Dashboards, LookerType::Looks] {
        for record in inside.instance.existing(kind) {
            for query in [LookerType::Queries, LookerType::MergeQueries] {
                used.extend(record.tied(query).map(|id| (query, id)));
            }
        }
    }
    for record in inside.instance.existing(LookerType::MergeQueries) {
        if used.contains(&(LookerType::MergeQueries, record.id.as_str())) {
            used.extend(record.tied(LookerType::Queries).map(|id| (LookerType::Queries, id)));
        }
    }
    used
}
