//! The order of a list: as asked for, or else another one with every request.

use std::cmp::Ordering;

use serde_json::Value;

use super::Row;
use crate::{
    looker::{
        error::ApiError,
        kind::LookerType,
        plan::{IdOrder, ListPlan, Unsorted},
        route::{Action, Call},
    },
    params::hash_text,
    rng::{Purpose, Seed},
};

/// What the published document lets searches sort by; `updated_at` is not among it for dashboards.
const fn sortable(kind: LookerType) -> &'static [&'static str] {
    match kind {
        LookerType::Dashboards => &[
            "title",
            "user_id",
            "id",
            "created_at",
            "folder_id",
            "description",
            "view_count",
            "favorite_count",
            "slug",
            "content_favorite_id",
            "content_metadata_id",
            "deleted",
            "deleted_at",
            "last_viewed_at",
            "last_accessed_at",
            "certification_status",
        ],
        LookerType::LookmlDashboards => {
            &["title", "id", "folder_id", "content_favorite_id", "content_metadata_id", "certification_status"]
        }
        LookerType::Looks => &[
            "title",
            "user_id",
            "id",
            "created_at",
            "folder_id",
            "description",
            "updated_at",
            "last_updater_id",
            "view_count",
            "favorite_count",
            "content_favorite_id",
            "deleted",
            "deleted_at",
            "last_viewed_at",
            "last_accessed_at",
            "query_id",
            "content_metadata_id",
        ],
        LookerType::Folders => &["name", "id", "parent_id", "creator_id", "created_at"],
        LookerType::Boards => &["title", "id", "created_at", "updated_at", "user_id"],
        LookerType::Users => &["id", "first_name", "last_name", "email", "is_disabled", "display_name"],
        LookerType::UserAttributes => &["name", "label"],
        _ => &["id", "name", "external_group_id", "built_in", "begin_at", "end_at"],
    }
}

pub(super) fn apply(rows: &mut [Row<'_>], call: &Call, plan: &ListPlan, seed: Seed, tick: u64) -> Result<(), ApiError> {
    let Some(sorts) = call.params.first("sorts").filter(|sorts| !sorts.trim().is_empty()) else {
        match plan.unsorted {
            Unsorted::ById => sort_by_id(rows, plan.ids),
            Unsorted::Shuffled => shuffle(rows, seed, tick),
        }
        return Ok(());
    };
    let sorts = parse(sorts, call.operation.action)?;
    if let [("id", Direction::Up)] = sorts[..] {
        sort_by_id(rows, plan.ids);
        return Ok(());
    }
    // What ties on everything that was asked for comes in any order.
    shuffle(rows, seed, tick);
    for (name, direction) in sorts.into_iter().rev() {
        sort_by(rows, name, direction, plan.ids);
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

fn parse(sorts: &str, action: Action) -> Result<Vec<(&str, Direction)>, ApiError> {
    let kind = action.shows().unwrap_or(LookerType::Users);
    let one = |sort: &'_ str| -> Option<Direction> {
        match sort.to_ascii_lowercase().as_str() {
            "" | "asc" => Some(Direction::Up),
            "desc" => Some(Direction::Down),
            _ => None,
        }
    };
    let parsed = sorts.split(',').map(|sort| {
        let (name, direction) = sort.trim().split_once(' ').unwrap_or((sort.trim(), ""));
        let known = sortable(kind).contains(&name);
        one(direction.trim()).filter(|_| known).map(|direction| (name, direction)).ok_or(sort)
    });
    let bad = |sort: &str| ApiError::invalid("sorts", "invalid", format!("{sort} cannot be sorted by"));
    parsed.collect::<Result<_, _>>().map_err(bad)
}

fn sort_by_id(rows: &mut [Row<'_>], order: IdOrder) {
    rows.sort_by(|one, other| by_id(&one.record.id, &other.record.id, order));
}

fn by_id(one: &str, other: &str, order: IdOrder) -> Ordering {
    match (order, one.parse::<u64>(), other.parse::<u64>()) {
        (IdOrder::Number, Ok(one), Ok(other)) => one.cmp(&other),
        (IdOrder::Number, Ok(_), Err(_)) => Ordering::Less,
        (IdOrder::Number, Err(_), Ok(_)) => Ordering::Greater,
        _ => one.cmp(other),
    }
}

fn sort_by(rows: &mut [Row<'_>], name: &str, direction: Direction, ids: IdOrder) {
    rows.sort_by_cached_key(|row| Key { value: row.record.template.get(name).unwrap_or(Value::Null), ids });
    if direction == Direction::Down {
        rows.reverse();
    }
}

struct Key {
    value: Value,
    ids: IdOrder,
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        by_id(&text(&self.value), &text(&other.value), self.ids)
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Key {}

fn shuffle(rows: &mut [Row<'_>], seed: Seed, tick: u64) {
    rows.sort_by_cached_key(|row| seed.hash_nth(Purpose::LookerOrder, hash_text(7, &row.record.id), tick));
}
