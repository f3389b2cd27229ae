//! History: from any point that is remembered to the present.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde_json::Value;

use super::Bench;

const MOVING: &str = "[mutations]\narrive_every_ms = 300\ndelete_every_ms = 1700\nlabel_every_ms = 100\n\
    import_every_ms = 900\ndraft_every_ms = 1100";

type Boxes = BTreeMap<String, BTreeSet<String>>;

fn present(bench: &Bench) -> Boxes {
    bench.present().into_iter().map(|(id, truth)| (id, truth.label_ids.into_iter().collect())).collect()
}

fn set(value: &Value) -> BTreeSet<String> {
    value.as_array().into_iter().flatten().map(|label| label.as_str().unwrap().to_owned()).collect()
}

/// Records from `start` on, applied to what was known then.
fn replay(bench: &Bench, start: u64, mut boxes: Boxes, limit: usize) -> (Boxes, usize) {
    let (mut token, mut pages, mut last) = (String::new(), 0, start);
    loop {
        let page = bench.get(&format!("history?startHistoryId={start}&maxResults={limit}&pageToken={token}"));
        pages += 1;
        for record in page["history"].as_array().into_iter().flatten() {
            let id: u64 = record["id"].as_str().unwrap().parse().unwrap();
            assert!(id > last, "records come in order");
            last = id;
            apply(record, &mut boxes);
        }
        match page["nextPageToken"].as_str() {
            Some(next) => token = next.to_owned(),
            None => {
                assert_eq!(page["historyId"], bench.get("profile")["historyId"]);
                return (boxes, pages);
            }
        }
    }
}

fn apply(record: &Value, boxes: &mut Boxes) {
    let entries = |key: &str| record[key].as_array().cloned().unwrap_or_default();
    let id = |entry: &Value| entry["message"]["id"].as_str().unwrap().to_owned();
    for entry in entries("messagesAdded") {
        boxes.insert(id(&entry), set(&entry["message"]["labelIds"]));
    }
    for entry in entries("labelsAdded") {
        boxes.entry(id(&entry)).or_default().extend(set(&entry["labelIds"]));
    }
    for entry in entries("labelsRemoved") {
        let gone = set(&entry["labelIds"]);
        boxes.entry(id(&entry)).or_default().retain(|label| !gone.contains(label));
    }
    for entry in entries("messagesDeleted") {
        boxes.remove(&id(&entry));
    }
}

fn history_id(bench: &Bench) -> u64 {
    bench.get("profile")["historyId"].as_str().unwrap().parse().unwrap()
}

#[test]
fn history_leads_from_then_to_now() {
    for plan in [MOVING.to_owned(), format!("{MOVING}\n[rates]\nempty-page = 0.4")] {
        let mut bench = Bench::new(400, &plan);
        let mut points = Vec::new();
        for second in [0, 3, 4, 9, 20] {
            bench.now = Duration::from_secs(second);
            points.push((history_id(&bench), present(&bench)));
        }
        let now = present(&bench);
        for (start, known) in points {
            assert_eq!(replay(&bench, start, known, 7).0, now, "from {start}");
        }
    }
}

#[test]
fn an_idle_history_is_empty_and_still_names_its_id() {
    let bench = Bench::new(10, "");
    let id = history_id(&bench);
    let page = bench.get(&format!("history?startHistoryId={id}"));
    assert_eq!(page, serde_json::json!({ "historyId": id.to_string() }));
}

#[test]
fn history_expires_also_between_two_pages() {
    let mut bench = Bench::new(100, &format!("[history]\nexpire_after_s = 30\n{MOVING}"));
    let start = history_id(&bench);
    bench.now = Duration::from_secs(20);
    let page = bench.get(&format!("history?startHistoryId={start}&maxResults=5"));
    let token = page["nextPageToken"].as_str().unwrap().to_owned();
    bench.now = Duration::from_secs(31);
    let next = format!("history?startHistoryId={start}&maxResults=5&pageToken={token}");
    assert_eq!(bench.error(&next).0, 404, "what happened in the first second is forgotten");
    let later = bench.get(&format!("history?startHistoryId={}", history_id(&bench)));
    assert!(later["historyId"].is_string());
    bench.page("expire_history");
    bench.page("arrive");
    assert_eq!(bench.error(&format!("history?startHistoryId={}", start + 1)).1, "notFound");
}

#[test]
fn history_expires_at_a_time_and_may_change_its_order() {
    let plan = format!("[history]\nexpire_at_s = 20\nswapped = 0.3\n{MOVING}");
    let mut bench = Bench::new(100, &plan);
    let start = history_id(&bench);
    bench.now = Duration::from_secs(19);
    let path = format!("history?startHistoryId={start}&maxResults=500");
    let ids: Vec<u64> = bench.get(&path)["history"]
        .as_array()
        .unwrap()
        .iter()
        .map(|record| record["id"].as_str().unwrap().parse().unwrap())
        .collect();
    assert!(!ids.is_sorted());
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
    bench.now = Duration::from_secs(20);
    assert_eq!(bench.error(&path).0, 404);
    let later = history_id(&bench);
    bench.now = Duration::from_secs(500);
    bench.get(&format!("history?startHistoryId={later}"));
}

#[test]
fn later_pages_name_a_newer_id() {
    let bench = Bench::new(50, "");
    let start = history_id(&bench);
    bench.page("arrive?count=4");
    let first = bench.get(&format!("history?startHistoryId={start}&maxResults=3"));
    bench.page("arrive");
    let token = first["nextPageToken"].as_str().unwrap();
    let second = bench.get(&format!("history?startHistoryId={start}&maxResults=3&pageToken={token}"));
    let id = |page: &Value| page["historyId"].as_str().unwrap().parse::<u64>().unwrap();
    assert!(id(&second) > id(&first));
    assert_eq!(second["history"].as_array().unwrap().len(), 2);
}

#[test]
fn types_and_labels_narrow_and_records_may_be_bare() {
    let mut bench = Bench::new(300, &format!("{MOVING}\n[history]\nbare = 0.5"));
    let start = history_id(&bench);
    bench.now = Duration::from_secs(30);
    let deleted = bench.get(&format!("history?startHistoryId={start}&maxResults=500&historyTypes=messageDeleted"));
    let records = deleted["history"].as_array().unwrap();
    assert!(!records.is_empty() && records.iter().all(|record| record.get("messagesDeleted").is_some()));
    let starred = bench.get(&format!("history?startHistoryId={start}&maxResults=500&labelId=STARRED"));
    let count = |page: &Value| page["history"].as_array().unwrap().len();
    let all = bench.get(&format!("history?startHistoryId={start}&maxResults=500"));
    assert!(count(&starred) > 0 && count(&starred) < count(&all));
    let added = bench.get(&format!("history?startHistoryId={start}&maxResults=500&historyTypes=messageAdded"));
    let told = |record: &&Value| record["messagesAdded"][0]["message"].get("labelIds").is_some();
    let telling = added["history"].as_array().unwrap().iter().filter(told).count();
    assert!(telling > 0 && telling < count(&added), "{telling} of {}", count(&added));
}

#[test]
fn a_saved_draft_is_another_message() {
    let bench = Bench::new(1_000, "");
    let drafts = || bench.all("messages?maxResults=500&labelIds=DRAFT", "messages").0;
    let (before, start) = (drafts(), history_id(&bench));
    bench.page("draft");
    let after = drafts();
    assert_eq!(before.len(), after.len());
    assert_ne!(before, after);
    let (boxes, _) = replay(&bench, start, Boxes::new(), 10);
    assert_eq!(boxes.len(), 1);
}

#[test]
fn an_import_lies_in_the_past_and_is_new_in_history() {
    let bench = Bench::new(100, "");
    let start = history_id(&bench);
    let id = bench.page("import?at=1500000000")["id"].as_str().unwrap().to_owned();
    assert_eq!(bench.present()[&id].internal_date, 1_500_000_000_000);
    assert!(bench.all("messages?q=after:1500000000+before:1500000001", "messages").0.contains(&id));
    let (boxes, _) = replay(&bench, start, Boxes::new(), 10);
    assert!(boxes.contains_key(&id));
}
