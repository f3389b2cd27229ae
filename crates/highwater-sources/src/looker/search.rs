//! What of Looker's content can be searched: its name, and what people wrote into it.

use highwater_core::{
    Timestamp, Value,
    search::{Entry, Field, Searchable},
};
use serde_json::{Value as Json, json};

use super::{
    kinds::KINDS,
    schema::{BODY, DELETED, content},
};
use crate::search::Searched;

static SEARCHABLE: Searchable =
    Searchable { columns: &["name", "created_at", "updated_at", DELETED, BODY], beside: None, read };

/// The members of a body that people write, wherever they stand in it.
const WRITTEN: [&str; 14] = [
    "title",
    "name",
    "description",
    "label",
    "title_text",
    "subtitle_text",
    "body_text",
    "note_text",
    "display_name",
    "first_name",
    "last_name",
    "email",
    "custom_title",
    "message",
];
/// Of one body; an index holds fewer words.
const TEXTS_MAX: usize = 2_000;
/// Deeper than any body, and than a parser goes.
const DEPTH_MAX: u32 = 64;

/// All types, also those that are no longer mirrored.
pub fn searched(source: &str) -> Vec<Searched> {
    let one = |kind: &super::Kind| Searched {
        stream: kind.name.parse().expect("a type is a name"),
        table: content(source, kind.name),
        searchable: &SEARCHABLE,
    };
    KINDS.iter().map(one).collect()
}

fn read(values: &[Value], _: &[String]) -> Entry {
    let [name, created, updated, deleted, body] = values else { return Entry::default() };
    let title = name.as_text().map(str::to_owned);
    let mut entry = Entry { at: time(updated).or_else(|| time(created)), title, ..Entry::default() };
    entry.add(Field::Title, entry.title.clone());
    let mut texts = Vec::new();
    if let Value::Json(body) = body {
        gather(&serde_json::from_str(body).unwrap_or_default(), DEPTH_MAX, &mut texts);
    }
    texts.retain(|text| Some(text) != entry.title.as_ref());
    texts.into_iter().for_each(|text| entry.add(Field::Text, Some(text)));
    entry.facts.push(("deleted", json!(*deleted != Value::Null)));
    entry
}

fn time(value: &Value) -> Option<Timestamp> {
    if let Value::Time(at) = value { Some(*at) } else { None }
}

fn gather(json: &Json, depth: u32, texts: &mut Vec<String>) {
    if depth == 0 {
        return;
    }
    match json {
        Json::Object(members) => {
            for (name, member) in members {
                match member {
                    Json::String(text) if WRITTEN.contains(&name.as_str()) && texts.len() < TEXTS_MAX => {
                        texts.push(text.clone());
                    }
                    member => gather(member, depth - 1, texts),
                }
            }
        }
        Json::Array(members) => members.iter().for_each(|member| gather(member, depth - 1, texts)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_found_by_what_people_wrote_into_it() {
        let body =
            r#"{"title":"Sales","description":"By region","slug":"x9","dashboard_elements":[{"body_text":"Note"}]}"#;
        let values = [
            Value::Text("Sales".into()),
            Value::Null,
            Value::Time(Timestamp::EPOCH),
            Value::Null,
            Value::Json(body.into()),
        ];
        let entry = read(&values, &[]);
        let texts: Vec<_> = entry.texts.iter().map(|(field, text)| format!("{field}={text}")).collect();
        assert_eq!(texts, ["title=Sales", "text=Note", "text=By region"]);
        assert_eq!(entry.at, Some(Timestamp::EPOCH));
        let all = searched("bi");
        assert!(all.iter().all(|one| SEARCHABLE.columns.iter().all(|name| one.table.position(name).is_some())));
    }
}
