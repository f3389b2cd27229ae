//! An instance out of a seed: so many dashboards, and everything else in proportion. Objects that come later are made
//! by the same functions.

mod access;
mod boards;
mod content;
mod delivery;
mod folders;
mod models;
mod people;
mod queries;
mod settings;
mod tiles;
mod words;

use serde_json::{Value, json};

use super::{
    instance::Instance,
    kind::LookerType,
    plan::InstancePlan,
    template::{Moving, iso},
};
use crate::rng::{Seed, Share, SplitMix64};

pub(super) use self::{
    folders::LOOKML,
    models::{INTERNAL, SELF_SERVICE},
    people::ME,
};

const YEAR_MS: u64 = 31_556_952_000;

impl Instance {
    /// So many dashboards, those in the trash among them.
    pub(super) fn generated(seed: Seed, dashboards: u64, plan: &InstancePlan) -> Self {
        let mut instance = Instance::empty(seed, plan.clone());
        let scale = |per_thousand: u64, least: u64| {
            least + (dashboards as f64 * per_thousand as f64 * plan.others / 1_000.0) as u64
        };
        instance.settings(scale(2, 3));
        instance.people(scale(8, 5), scale(100, 12));
        instance.folders(scale(80, 6));
        instance.models(scale(2, 3));
        (0..scale(600, 6)).for_each(|_| drop(instance.add_look()));
        (0..dashboards).for_each(|_| drop(instance.add_dashboard()));
        (0..scale(40, 3)).for_each(|_| drop(instance.add_lookml_dashboard()));
        (0..scale(15, 2)).for_each(|_| drop(instance.add_board()));
        (0..scale(120, 5)).for_each(|_| drop(instance.add_plan()));
        (0..scale(60, 4)).for_each(|_| drop(instance.add_alert()));
        instance.fill_trash();
        instance
    }

    /// Another object, with all that comes with it, made at this time; `None` where nobody can make one.
    pub(super) fn insert(&mut self, kind: LookerType, at: i64) -> Option<String> {
        let id = self.made(kind)?;
        self.change(kind, &id, |body| {
            for name in ["created_at", "updated_at"] {
                body.entry(name).and_modify(|known| {
                    if known.is_string() {
                        *known = time(at);
                    }
                });
            }
        });
        Some(id)
    }

    fn made(&mut self, kind: LookerType) -> Option<String> {
        Some(match kind {
            LookerType::Dashboards => self.add_dashboard(),
            LookerType::LookmlDashboards => self.add_lookml_dashboard(),
            LookerType::Looks => self.add_look(),
            LookerType::Folders => self.add_folder(),
            LookerType::Boards => self.add_board(),
            LookerType::Users => self.add_user(),
            LookerType::Groups => self.add_group(),
            LookerType::Roles => self.add_role(),
            LookerType::PermissionSets => self.add_permission_set(),
            LookerType::ModelSets => self.add_model_set(),
            LookerType::LookmlModels => self.add_model(),
            LookerType::ScheduledPlans => self.add_plan(),
            LookerType::Alerts => self.add_alert(),
            LookerType::Themes => self.add_theme(),
            LookerType::Connections => self.add_connection(),
            LookerType::Projects => self.add_project(),
            LookerType::Datagroups => self.add_datagroup(),
            LookerType::UserAttributes => self.add_user_attribute(),
            LookerType::Explores
            | LookerType::ContentMetadata
            | LookerType::ContentAccess
            | LookerType::Queries
            | LookerType::MergeQueries => return None,
        })
    }

    /// A time in the years before the newest.
    fn past(&self, rng: &mut SplitMix64) -> i64 {
        self.plan.newest * 1_000 - rng.below(u64::from(self.plan.years) * YEAR_MS) as i64
    }

    fn fill_trash(&mut self) {
        let share = Share::new(self.plan.trash).unwrap_or(Share::NONE);
        for kind in [LookerType::Dashboards, LookerType::Looks, LookerType::Boards] {
            let chosen = |id: &u64| share.hit(self.rng(kind, *id | 1 << 40).next_u64());
            let ids = self.all(kind).iter().map(|record| record.id.clone());
            let ids: Vec<String> = ids.filter(|id| id.parse().is_ok_and(|number| chosen(&number))).collect();
            let at = self.plan.newest * 1_000;
            ids.iter().for_each(|id| self.trash(kind, id, at));
        }
    }
}

fn can(number: u64) -> Value {
    Moving::Can.at(number)
}

fn count(rng: &mut SplitMix64, below: u64) -> Value {
    Moving::Count.at(rng.below(below))
}

/// A time that moves on, from a time that does not.
fn lately(since: i64) -> Value {
    Moving::Time.at(since.max(0) as u64)
}

fn time(millis: i64) -> Value {
    json!(iso(millis))
}
