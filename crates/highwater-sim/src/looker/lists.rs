//! Lists: which objects are meant, in which order, and which page of them is shown.

mod filters;
mod order;

use std::sync::Arc;

use super::{
    Inside, LookerSim,
    build::{INTERNAL, ME, SELF_SERVICE},
    error::ApiError,
    instance::{Record, Sight, State},
    kind::LookerType,
    plan::Sieve,
    reply::Shown,
    route::{Action, Call},
    template::Template,
};

/// What Looker leaves of a dashboard where it abbreviates.
pub(super) const DASHBOARD_BASE: [&str; 16] = [
    "can",
    "content_favorite_id",
    "content_metadata_id",
    "description",
    "hidden",
    "id",
    "model",
    "query_timezone",
    "readonly",
    "refresh_interval",
    "refresh_interval_to_i",
    "folder",
    "title",
    "user_id",
    "slug",
    "preferred_viewer",
];

/// Everything but the query; what is unknown to clients is not among it either.
pub(super) const LOOK: [&str; 29] = [
    "can",
    "content_metadata_id",
    "id",
    "title",
    "user_id",
    "content_favorite_id",
    "created_at",
    "deleted",
    "deleted_at",
    "deleter_id",
    "description",
    "embed_url",
    "favorite_count",
    "is_run_on_load",
    "last_accessed_at",
    "last_updater_id",
    "last_viewed_at",
    "model",
    "public",
    "public_slug",
    "query_id",
    "short_url",
    "folder",
    "folder_id",
    "updated_at",
    "user_name",
    "view_count",
    "usage_count",
    "is_owner_disabled",
];

/// One object of a list, and how much of it is shown.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    pub(super) kind: LookerType,
    pub(super) record: &'a Record,
    form: Option<&'static [&'static str]>,
}

impl LookerSim {
    /// A page of what was asked for.
    pub(super) fn list(&self, inside: &Inside, call: &Call) -> Result<Shown, ApiError> {
        let mut rows = self.rows(inside, call)?;
        if matches!(call.operation.action, Action::Search(_) | Action::All(_)) {
            filters::apply(&mut rows, call, &self.plan.list);
        }
        let visible = |row: &Row<'_>| row.record.sight == Sight::Open;
        if self.plan.list.sieve == Sieve::Before {
            rows.retain(visible);
        }
        order::apply(&mut rows, call, &self.plan.list, self.seed, inside.tick())?;
        let total = rows.len();
        let mut page = self.cut(rows, call);
        page.retain(visible);
        if call.params.first("fields").is_none() && self.dice.may_spoil_lists() {
            let whole = page.iter().filter(|row| row.form.is_none());
            if let Some(fault) = whole.filter_map(|row| self.dice.spoils_lists(row.kind, &row.record.id)).next() {
                return Ok(Shown::Spoiled(fault));
            }
        }
        let templates = page.iter().map(|row| (Arc::clone(&row.record.template), row.form)).collect();
        Ok(Shown::List { templates, total })
    }

    fn rows<'a>(&self, inside: &'a Inside, call: &Call) -> Result<Vec<Row<'a>>, ApiError> {
        let of = |kind, fits: &dyn Fn(&Record) -> bool| -> Vec<Row<'a>> {
            let fitting = inside.instance.existing(kind).filter(|record| fits(record));
            fitting.map(|record| Row { kind, record, form: None }).collect()
        };
        let present = |record: &Record| record.state == State::Present;
        let tied = |kind, other, id: &str| {
            let owner = inside.instance.find(other, id).filter(|owner| owner.sight == Sight::Open);
            owner.ok_or_else(ApiError::not_found)?;
            Ok(of(kind, &|record| present(record) && record.is_tied(other, id)))
        };
        Ok(match call.operation.action {
            Action::All(LookerType::Dashboards) => {
                let mut rows = of(LookerType::Dashboards, &present);
                if !inside.forbidden.contains_key(&LookerType::LookmlDashboards) {
                    rows.extend(of(LookerType::LookmlDashboards, &present));
                }
                shown_as(rows, &DASHBOARD_BASE)
            }
            Action::All(LookerType::Looks) => shown_as(of(LookerType::Looks, &present), &LOOK),
            Action::Search(kind @ (LookerType::Dashboards | LookerType::Looks)) => {
                let wanted = if call.is_set("deleted") { State::Trashed } else { State::Present };
                let rows = of(kind, &|record| record.state == wanted);
                if kind == LookerType::Looks { shown_as(rows, &LOOK) } else { rows }
            }
            Action::All(LookerType::LookmlModels) => of(LookerType::LookmlModels, &|model| is_listed(model, call)),
            Action::All(LookerType::ScheduledPlans) => {
                of(LookerType::ScheduledPlans, &|plan| is_own(plan, call, "all_users"))
            }
            Action::Search(LookerType::Alerts) => of(LookerType::Alerts, &|alert| is_own(alert, call, "all_owners")),
            Action::All(kind) | Action::Search(kind) => of(kind, &present),
            Action::Of(kind, other) => {
                let mut rows = tied(kind, other, call.name(0))?;
                if kind == LookerType::ScheduledPlans {
                    rows.retain(|row| is_own(row.record, call, "all_users"));
                }
                rows
            }
            Action::OfParameter(kind, other, name) => {
                let missing = || ApiError::invalid(name, "missing_field", format!("{name} is required"));
                tied(kind, other, call.params.first(name).ok_or_else(missing)?)?
            }
            other => unreachable!("{other:?} is no list"),
        })
    }

    /// The page by `limit` and `offset`, or by `page` and `per_page`, which those win over.
    fn cut<'a>(&self, rows: Vec<Row<'a>>, call: &Call) -> Vec<Row<'a>> {
        let (limit, offset) = window(call);
        let most = self.plan.list.limit_max.filter(|_| limit.is_some()).map(|max| max.get() as usize);
        let limit = limit.unwrap_or(usize::MAX).min(most.unwrap_or(usize::MAX));
        rows.into_iter().skip(offset).take(limit).collect()
    }
}

/// Limit and offset.
pub(super) fn window(call: &Call) -> (Option<usize>, usize) {
    let number = |name| call.number(name).map(|number| number as usize);
    if let Some(limit) = number("limit") {
        return (Some(limit), number("offset").unwrap_or(0));
    }
    if let Some(offset) = number("offset") {
        return (None, offset);
    }
    let per_page = number("per_page");
    (per_page, per_page.unwrap_or(0) * number("page").unwrap_or(1).saturating_sub(1))
}

fn shown_as<'a>(mut rows: Vec<Row<'a>>, form: &'static [&'static str]) -> Vec<Row<'a>> {
    rows.iter_mut().for_each(|row| row.form = Some(form));
    rows
}

fn is_listed(model: &Record, call: &Call) -> bool {
    let explores = || model.template.get("explores");
    let empty = || explores().is_some_and(|explores| explores.as_array().is_none_or(Vec::is_empty));
    let hidden = |explore: &serde_json::Value| explore["hidden"] == true;
    let all_hidden = || explores().is_some_and(|all| all.as_array().is_some_and(|all| all.iter().all(hidden)));
    (model.id != INTERNAL || call.is_set("include_internal"))
        && (!model.id.starts_with(SELF_SERVICE) || call.is_set("include_self_service"))
        && !(call.is_set("exclude_empty") && empty())
        && !(call.is_set("exclude_hidden") && all_hidden())
}

/// Only what belongs to the caller, unless everything or somebody else's is asked for.
fn is_own(record: &Record, call: &Call, everything: &str) -> bool {
    let whose = call.params.first("user_id").unwrap_or(ME);
    call.is_set(everything) || record.is_tied(LookerType::Users, whose)
}

pub(super) type Part = (Arc<Template>, Option<&'static [&'static str]>);
