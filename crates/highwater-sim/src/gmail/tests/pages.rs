//! The simulator's own pages: the truth as a test outside reads it, and what it counts.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Bench, START};
use crate::{Reply, Verb};

fn lines(bench: &Bench, query: &str) -> Vec<Value> {
    let Reply::Full(message) = bench.reply(Verb::Get, &format!("/_sim/truth{query}"), "") else { panic!() };
    let text = String::from_utf8(message.body.to_vec()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_truth_is_a_line_a_message() {
    let bench = Bench::new(12, "");
    let all = lines(&bench, "");
    assert_eq!((all.len(), lines(&bench, "?from=9")), (12, all[9..].to_vec()));
    let first = bench.get(&format!("messages/{}?format=minimal", all[0]["id"].as_str().unwrap()));
    for key in ["id", "threadId", "internalDate", "sizeEstimate", "historyId"] {
        assert_eq!(all[0][key], first[key], "{key}");
    }
    assert_eq!((&all[0]["state"], all[0]["sha256"].as_str().unwrap().len()), (&json!("present"), 64));
}

#[test]
fn what_was_deleted_stays_in_the_truth_with_its_time() {
    let mut bench = Bench::new(12, "");
    let before = lines(&bench, "");
    bench.now = Duration::from_secs(7);
    bench.page(&format!("delete?id={}", before[3]["id"].as_str().unwrap()));
    let after = lines(&bench, "");
    assert_eq!(after[3]["state"], "deleted");
    assert_eq!(after[3]["deletedAt"], (START + 7_000).to_string());
    assert_eq!(after[3]["sha256"], before[3]["sha256"]);
    assert_eq!(after[3].get("reason"), None);
}

#[test]
fn gets_are_counted_by_message() {
    let bench = Bench::new(12, "");
    let ids: Vec<String> = bench.truth().into_iter().map(|truth| truth.id).collect();
    for id in [&ids[0], &ids[0], &ids[0], &ids[1], &ids[1], &ids[2]] {
        bench.get(&format!("messages/{id}?format=raw"));
    }
    let stats = bench.page("stats");
    assert_eq!(
        json!([stats["messages_got"], stats["messages_got_again"], stats["gets_per_message_max"]]),
        json!([3, 2, 3])
    );
    assert_eq!(stats["units_by_method"], json!({ "messages.get": 120 }));
    assert_eq!(lines(&bench, "")[0]["gets"], 3);
}
