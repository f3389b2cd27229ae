//! What a correct mirror ends up with.

use std::{collections::BTreeSet, time::Duration};

use serde_json::{Map, Value, json};

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
        let inside = self.inside(now);
        let used = used_queries(&inside);
        let of = |kind: LookerType| -> Map<String, Value> {
            let counts = |record: &&Record| match kind {
                LookerType::Queries | LookerType::MergeQueries => used.contains(&(kind, record.id.as_str())),
                _ => true,
            };
            let existing = inside.instance.existing(kind).filter(counts);
            existing.map(|record| (record.id.clone(), self.entry(&inside, kind, record))).collect()
        };
        let purged = |kind: LookerType| -> Vec<&str> {
            let gone = inside.instance.all(kind).iter().filter(|record| !record.exists());
            gone.map(|record| record.id.as_str()).collect()
        };
        let forbidden = inside.forbidden.iter().map(|(kind, denial)| match denial {
            Denial::Forbidden => (kind.to_string(), json!("403")),
            Denial::NotFound => (kind.to_string(), json!("404")),
        });
        json!({
            "types": LookerType::ALL.into_iter().map(|kind| (kind.to_string(), of(kind).into())).collect::<Map<_, _>>(),
            "purged": LookerType::ALL.into_iter().map(|kind| (kind.to_string(), purged(kind).into())).collect::<Map<_, _>>(),
            "forbidden": forbidden.collect::<Map<_, _>>(),
        })
    }

    fn entry(&self, inside: &Inside, kind: LookerType, record: &Record) -> Value {
        let deleted = record.state == State::Trashed;
        let mut entry = json!({ "deleted": deleted, "body": record.template.value(inside.tick()) });
        if record.sight == Sight::Hidden {
            entry["hidden"] = json!(true);
        }
        if let Some(fault) = self.dice.lasting(kind, &record.id) {
            entry["broken"] = json!(fault.as_str());
        }
        if matches!(kind, LookerType::Groups | LookerType::Roles) {
            entry["members"] = json!({
                "users": tied(inside, LookerType::Users, kind, &record.id),
                "groups": tied(inside, LookerType::Groups, kind, &record.id),
            });
        }
        entry
    }
}

fn tied<'a>(inside: &'a Inside, kind: LookerType, other: LookerType, id: &str) -> Vec<&'a str> {
    let tied = inside.instance.existing(kind).filter(|record| record.is_tied(other, id));
    tied.map(|record| record.id.as_str()).collect()
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
