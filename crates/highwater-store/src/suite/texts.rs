//! The texts of rows, as an index is made from them.

use highwater_core::{
    Key, Record, Value,
    search::{Beside, Entry, Searchable, TEXT_MAX},
};

use super::{
    ITEMS, Library, Scene, item,
    scene::{ALL, at},
    tables::mail::{ANN, ZOE, message},
};
use crate::Page;

static OF_MAIL: Searchable = Searchable {
    columns: &["subject", "label_ids", "body_html", "body_plain", "internal_date"],
    beside: Some(Beside { table: "mail_attachments", owner: "message_id", key: "part_id", text: "mime_type" }),
    read: |_, _| Entry::default(),
};
static OF_ITEMS: Searchable = Searchable { columns: &["text", "by"], beside: None, read: |_, _| Entry::default() };

pub async fn checks_are_those_of_the_rows(library: Library) {
    let Library { lab, texts, .. } = library;
    let keys = ["9", "10", "18c5f", "b"];
    let mut records: Vec<_> = keys.iter().map(|key| message(&ANN, key, "t", &[])).collect();
    records.push(message(&ZOE, "9", "t", &[]));
    let (scene, _) = Scene::with_mail(lab, records).await;
    let rows: Vec<_> = scene.mail(&ANN).await.into_iter().map(|row| (row.key, row.row_check)).collect();
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = texts.checks(&ANN, Page { after, limit: 3 }).await.unwrap();
        let Some((last, _)) = page.last() else { break };
        after = Some(last.clone());
        found.extend(page);
    }
    assert_eq!((found.len(), &found), (4, &rows));
    assert_eq!(texts.checks(&ZOE, Page { after: None, limit: ALL }).await.unwrap().len(), 1);
    assert_eq!(texts.checks(&ITEMS, Page { after: None, limit: ALL }).await.unwrap(), []);
}

pub async fn texts_come_whole_wherever_they_lie(library: Library) {
    let Library { lab, texts, .. } = library;
    let records = vec![message(&ANN, "7", "t", &["A"]), message(&ANN, "x", "t", &[]), message(&ZOE, "7", "t", &[])];
    Scene::with_mail(lab, records).await;
    let keys = ["7", "gone", "x"].map(Key::from);
    let mut found = texts.texts(&ANN, &OF_MAIL, &keys).await.unwrap();
    found.rows.sort_by_key(|row| row.key.to_string());
    assert_eq!((found.looked_at, found.rows.len()), (3, 2));
    let text = |text: &str| Value::Text(text.into());
    let expected = vec![
        text("of 7"),
        Value::Json(r#"["A"]"#.into()),
        text("<p>7</p>"),
        text("plain text of 7"),
        Value::Int(at(7).as_millis()),
    ];
    assert_eq!(found.rows[0].values, expected);
    assert_eq!(found.rows[0].beside, ["image/png"]);
    assert_eq!(found.rows[1].values[2..4], [Value::Null, text("plain text of x")]);
}

pub async fn large_texts_come_a_few_at_a_time(library: Library) {
    let Library { lab, texts, .. } = library;
    let scene = Scene::planned(lab, 0, 30, 30).await;
    let lease = scene.claim_one(at(0)).await.lease;
    let long = "é".repeat(TEXT_MAX + 7);
    let records: Vec<Record> = (1..=20).map(|key| item(key, &long, &[])).collect();
    scene.commit(&lease, records, vec![], at(0)).await.unwrap();
    let keys: Vec<_> = (1..=20).map(Key::Number).collect();
    let (mut rest, mut calls) = (&keys[..], 0);
    while !rest.is_empty() {
        let found = texts.texts(&ITEMS, &OF_ITEMS, rest).await.unwrap();
        assert_eq!(found.rows.len(), found.looked_at);
        for row in &found.rows {
            assert!(matches!(&row.values[0], Value::Text(text) if text.chars().count() == TEXT_MAX));
        }
        rest = &rest[found.looked_at..];
        calls += 1;
    }
    assert!((2..20).contains(&calls), "{calls}");
}
