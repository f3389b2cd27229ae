//! What of Hacker News can be searched: titles, texts, addresses and who wrote them.

use highwater_core::{
    Timestamp, Value,
    search::{Entry, Field, Searchable},
};
use serde_json::json;

use super::{schema::ITEMS, streams};
use crate::{html, search::Searched};

static SEARCHABLE: Searchable =
    Searchable { columns: &["type", "by", "time", "title", "url", "text", "deleted", "dead"], beside: None, read };

pub fn searched() -> Vec<Searched> {
    vec![Searched { stream: streams::items().name, table: &ITEMS, searchable: &SEARCHABLE }]
}

fn read(values: &[Value], _: &[String]) -> Entry {
    let [kind, by, time, title, url, text, deleted, dead] = values else { return Entry::default() };
    let string = |value: &Value| value.as_text().map(str::to_owned);
    let mut entry = Entry {
        at: if let Value::Int(time) = time { time.checked_mul(1_000).map(Timestamp::from_millis) } else { None },
        title: string(title).map(|title| html::to_text(&title)),
        author: string(by),
        ..Entry::default()
    };
    entry.add(Field::Title, entry.title.clone());
    entry.add(Field::Author, string(by));
    entry.add(Field::Text, string(text).map(|text| html::to_text(&text)));
    entry.add(Field::Text, string(url));
    entry.facts.push(("type", json!(string(kind))));
    entry.facts.push(("deleted", json!([deleted, dead].contains(&&Value::Bool(true)))));
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_found_by_all_its_texts() {
        let text = |text: &str| Value::Text(text.into());
        let values = [
            text("story"),
            text("pg"),
            Value::Int(1_175_714_200),
            text("A &amp; B"),
            text("http://x.org/y"),
            text("It&#x27;s<p>new"),
            Value::Null,
            Value::Null,
        ];
        let entry = read(&values, &[]);
        let texts: Vec<_> = entry.texts.iter().map(|(field, text)| format!("{field}={text}")).collect();
        assert_eq!(texts, ["title=A & B", "author=pg", "text=It's\nnew", "text=http://x.org/y"]);
        assert_eq!(entry.at, Some(Timestamp::from_millis(1_175_714_200_000)));
        assert!(SEARCHABLE.columns.iter().all(|name| ITEMS.position(name).is_some()));
        assert_eq!(values.len(), SEARCHABLE.columns.len());
    }
}
