//! Google's own client (google-api-python-client) calls every simulated method as it calls Gmail, and understands what
//! it is told. It is installed from PyPI on first use, into the target folder.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod carried;
mod client;
mod discovery;
#[path = "../clients/python.rs"]
mod python;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use highwater_sim::{GmailPlan, GmailSim, MessageState, MessageTruth, Seed, server};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Only a failing test waits this long.
const PATIENCE: Duration = Duration::from_secs(120);

/// 1 January 2026.
const START: i64 = 1_767_225_600_000;

const PLAN: &str = "[shares]\nodd = 0.2\n[list]\ninversions = 0.2\n[rates]\nempty-page = 0.2";

#[tokio::test(flavor = "multi_thread")]
async fn the_vendors_client_calls_every_method_and_learns_the_truth() {
    if std::env::var_os("HIGHWATER_SKIP_CLIENTS").is_some() {
        eprintln!("skipped: HIGHWATER_SKIP_CLIENTS is set");
        return;
    }
    let python = client::install();
    let sim = Arc::new(GmailSim::new(Seed(4), 250, GmailPlan::parse(PLAN).unwrap(), START));
    let before = sim.truth(0, usize::MAX, Duration::ZERO);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let serving = tokio::spawn(server::serve(listener, Arc::clone(&sim), shutdown.clone()));
    let found = tokio::time::timeout(PATIENCE, client::report(&python, address)).await.expect("the client ends");
    shutdown.cancel();
    serving.await.unwrap().unwrap();
    reads_are_true(&found, &before);
    writes_are_true(&found, &sim);
    errors_are_understood(&found["errors"]);
    let methods = sim.counts(Duration::ZERO).by_method.len();
    assert_eq!(methods, 21, "every method was called");
}

fn set(ids: &Value) -> BTreeSet<&str> {
    ids.as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect()
}

fn reads_are_true(found: &Value, before: &[MessageTruth]) {
    assert_eq!(found["profile"]["messagesTotal"], before.len());
    assert_eq!(set(&found["messages"]), before.iter().map(|truth| truth.id.as_str()).collect());
    assert_eq!(set(&found["threads"]), before.iter().map(|truth| truth.thread_id.as_str()).collect());
    let labelled = |label: &str| -> BTreeSet<&str> {
        let with = before.iter().filter(|truth| truth.label_ids.iter().any(|known| known == label));
        with.map(|truth| truth.id.as_str()).collect()
    };
    assert_eq!(set(&found["sent"]), labelled("SENT"));
    assert_eq!(found["inbox"]["messagesTotal"], labelled("INBOX").len());
    assert_eq!(found["labels"].as_array().unwrap().len(), 26);
    for truth in before {
        let expected =
            json!([truth.sha256, truth.size, truth.thread_id, truth.label_ids, truth.internal_date.to_string()]);
        assert_eq!(found["raw"][&truth.id], expected, "{}", truth.id);
    }
    let minimal = json!(["historyId", "id", "internalDate", "labelIds", "sizeEstimate", "snippet", "threadId"]);
    assert_eq!(found["formats"]["minimal"], minimal);
    assert!(set(&found["formats"]["raw"]).contains("raw") && set(&found["formats"]["full"]).contains("payload"));
    let attachments = found["attachments"].as_array().unwrap();
    assert!(!attachments.is_empty() && attachments.iter().all(|sizes| sizes[0] == sizes[1]));
    assert_eq!(found["thread"], found["threads"][0]);
    let batched = found["batched"].as_object().unwrap();
    assert_eq!((batched.len(), &batched["unknown"]), (6, &json!(404)));
    assert!((0..5).all(|nth| batched[&format!("n{nth}")] == found["messages"][nth]));
}

fn writes_are_true(found: &Value, sim: &GmailSim) {
    let after: BTreeMap<String, MessageTruth> =
        sim.truth(0, usize::MAX, Duration::ZERO).into_iter().map(|truth| (truth.id.clone(), truth)).collect();
    let of = |id: &Value| &after[id.as_str().unwrap()];
    assert_eq!(found["trash"], json!([true, false]));
    assert_eq!(found["label"], "Again");
    assert!(set(&found["modified"]).contains("STARRED"));
    assert!(of(&found["messages"][1]).label_ids.contains(&"Label_1".to_owned()));
    assert!(matches!(of(&found["messages"][2]).state, MessageState::Deleted(_)));
    assert!(matches!(of(&found["messages"][3]).state, MessageState::Deleted(_)));
    for id in [&found["imported"], &found["inserted"], &found["uploaded"]] {
        assert_eq!(json!(of(id).sha256), found["sha256"]);
    }
    assert_eq!(of(&found["imported"]).internal_date, 1_700_000_000_000);
    let history = &found["history"];
    assert_eq!(history["messagesAdded"], json!([found["imported"], found["inserted"], found["uploaded"]]));
    assert_eq!(history["messagesDeleted"], json!([found["messages"][2], found["messages"][3]]));
    assert!(set(&history["labelsAdded"]).contains(found["messages"][1].as_str().unwrap()));
    assert_eq!(found["tokens"], 3, "one for each set of credentials, and one after the first had ended");
}

fn errors_are_understood(errors: &Value) {
    let not_found = json!([404, "notFound", "Requested entity was not found."]);
    assert_eq!([&errors["gone"], &errors["history"]], [&not_found; 2]);
    assert_eq!(errors["page"], json!([400, "invalidArgument", "Invalid pageToken"]));
    assert_eq!(errors["ids"], json!([400, "invalidArgument", "Number of ids cannot exceed 1000"]));
    assert_eq!(errors["other"], json!([403, "forbidden", "Delegation denied for ann@example.com"]));
    assert_eq!(errors["scope"][0], 403);
    assert_eq!(errors["revoked"], "invalid_grant");
}
