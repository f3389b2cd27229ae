//! The search parameters: texts with wildcards, lists of ids, flags, and whether all of them or any must fit.

use serde_json::Value;

use super::Row;
use crate::looker::{kind::LookerType, plan::ListPlan, route::Call};

/// Parameters that say how to answer, or that are understood elsewhere.
const NO_FILTERS: [&str; 19] = [
    "fields",
    "page",
    "per_page",
    "limit",
    "offset",
    "sorts",
    "filter_or",
    "deleted",
    "curate",
    "not_owned_by",
    "favorited",
    "group_by",
    "all_users",
    "all_owners",
    "exclude_empty",
    "exclude_hidden",
    "include_internal",
    "include_self_service",
    "get_all_support_roles",
];

pub(super) fn apply(rows: &mut Vec<Row<'_>>, call: &Call, plan: &ListPlan) {
    let given: Vec<(&str, &str)> = call.params.pairs().filter(|(name, _)| !NO_FILTERS.contains(name)).collect();
    if given.is_empty() {
        return;
    }
    let any = call.is_set("filter_or");
    rows.retain(|row| {
        let mut fits = given.iter().map(|(name, wanted)| matches(row, name, wanted, plan));
        if any { fits.any(|fits| fits) } else { fits.all(|fits| fits) }
    });
}

fn matches(row: &Row<'_>, name: &str, wanted: &str, plan: &ListPlan) -> bool {
    match name {
        "ids" => return wanted.split(',').any(|id| id == row.record.id),
        "id" if plan.id_lists => return wanted.split(',').any(|id| like(&row.record.id, id.trim())),
        "id" => return like(&row.record.id, wanted),
        _ => {}
    }
    let member = match name {
        "disabled" => "is_disabled",
        "creator_id" if row.record.template.get("creator_id").is_none() => "user_id",
        "full_name" => "display_name",
        "group_id" => return row.record.is_tied(LookerType::Groups, wanted),
        name => name,
    };
    let Some(value) = row.record.template.get(member) else { return true };
    match (wanted.to_ascii_uppercase().as_str(), &value) {
        ("IS NULL", value) => value.is_null(),
        ("NOT NULL", value) => !value.is_null(),
        (_, Value::Null) => false,
        (_, Value::String(text)) => like(text, wanted),
        (_, other) => {
            let shown = other.to_string();
            wanted.split(',').any(|one| one == shown)
        }
    }
}

/// `%` stands for anything, `_` for any one character; case makes no difference.
fn like(text: &str, pattern: &str) -> bool {
    let (text, pattern) = (text.to_lowercase(), pattern.to_lowercase());
    let (text, pattern): (Vec<char>, Vec<char>) = (text.chars().collect(), pattern.chars().collect());
    let (mut at, mut wanted, mut star) = (0, 0, None);
    while at < text.len() {
        match pattern.get(wanted) {
            Some('%') => {
                star = Some((wanted, at));
                wanted += 1;
            }
            Some(next) if *next == '_' || *next == text[at] => (at, wanted) = (at + 1, wanted + 1),
            _ => match star {
                Some((back, from)) => {
                    star = Some((back, from + 1));
                    (wanted, at) = (back + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[wanted..].iter().all(|left| *left == '%')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_fit() {
        for (text, pattern) in
            [("Revenue by Region", "rev%region"), ("abc", "a_c"), ("abc", "%"), ("a%b", "a%b"), ("", "%%")]
        {
            assert!(like(text, pattern), "{text} {pattern}");
        }
        for (text, pattern) in [("abc", "ab"), ("abc", "a_"), ("abc", "%d"), ("", "_")] {
            assert!(!like(text, pattern), "{text} {pattern}");
        }
    }
}
