//! Labels that are made, renamed and deleted.

use serde_json::json;

use super::Bench;
use crate::answer::Verb;

fn write(bench: &Bench, verb: Verb, id: &str, body: &str) -> (u16, serde_json::Value) {
    bench.ask(verb, &format!("/gmail/v1/users/me/labels{id}"), body)
}

#[test]
fn a_label_is_made_renamed_and_deleted() {
    let bench = Bench::new(300, "[mailbox]\nuser_labels = 2");
    let (status, made) = write(&bench, Verb::Post, "", r#"{"name":"Taxes/2024"}"#);
    assert_eq!((status, &made["id"], &made["type"]), (200, &json!("Label_3"), &json!("user")));
    let id = bench.truth()[0].id.clone();
    bench.post(&format!("messages/{id}/modify"), r#"{"addLabelIds":["Label_3"]}"#);
    assert_eq!(write(&bench, Verb::Patch, "/Label_3", r#"{"name":"Taxes"}"#).1["name"], "Taxes");
    assert_eq!(write(&bench, Verb::Put, "/Label_3", r#"{"id":"Label_3","name":"Tax"}"#).1["name"], "Tax");
    assert_eq!(bench.all("messages?q=label:tax+in:anywhere", "messages").0, std::slice::from_ref(&id));
    let start = bench.get("profile")["historyId"].as_str().unwrap().to_owned();
    assert_eq!(write(&bench, Verb::Delete, "/Label_3", "").0, 204);
    let told = bench.get(&format!("history?startHistoryId={start}"));
    assert_eq!(told["history"][0]["labelsRemoved"][0]["labelIds"], json!(["Label_3"]));
    assert!(!bench.present()[&id].label_ids.contains(&"Label_3".to_owned()));
    assert_eq!(bench.error("labels/Label_3").0, 404);
    assert_eq!(bench.get("labels")["labels"].as_array().unwrap().len(), 14 + 2);
}

#[test]
fn names_are_taken_once_and_system_labels_stay() {
    let bench = Bench::new(3, "");
    let refused = |verb, id: &str, body: &str| super::refused(write(&bench, verb, id, body));
    write(&bench, Verb::Post, "", r#"{"name":"Once"}"#);
    let (status, reason, text) = refused(Verb::Post, "", r#"{"name":"once"}"#);
    assert_eq!((status, reason.as_str(), text.as_str()), (409, "aborted", "Label name exists or conflicts"));
    assert_eq!(refused(Verb::Post, "", "{}").0, 400);
    assert_eq!(refused(Verb::Delete, "/INBOX", "").0, 400);
    assert_eq!(refused(Verb::Patch, "/Label_77", r#"{"name":"x"}"#).0, 404);
}
