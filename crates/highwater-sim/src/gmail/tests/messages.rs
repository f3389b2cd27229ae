//! Messages, attachments and the methods that change them.

use aws_lc_rs::digest::{SHA256, digest};
use base64::{
    Engine as _,
    engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD},
};
use serde_json::{Value, json};

use super::Bench;
use crate::{
    answer::{Reply, SimRequest, Verb},
    gmail::mime,
};

fn sha256(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn raw_is_what_the_truth_says_padded_or_not() {
    for padded in [false, true] {
        let bench = Bench::new(60, &format!("[body]\npadded = {padded}\n[shares]\nodd = 0.5"));
        for truth in bench.truth() {
            let message = bench.get(&format!("messages/{}?format=raw&prettyPrint=false", truth.id));
            let text = message["raw"].as_str().unwrap();
            let raw = if padded { URL_SAFE.decode(text) } else { URL_SAFE_NO_PAD.decode(text) }.unwrap();
            assert_eq!((sha256(&raw), raw.len()), (truth.sha256, truth.size));
            assert_eq!(message["internalDate"], truth.internal_date.to_string());
            assert_eq!(message["threadId"], truth.thread_id);
            assert_eq!(message["sizeEstimate"], truth.size_estimate);
            assert_eq!(message["historyId"], truth.history_id.to_string());
            assert_eq!(message["labelIds"].as_array().map_or(0, Vec::len), truth.label_ids.len());
            assert!(message.get("payload").is_none());
        }
    }
}

/// Every leaf below a payload, with its path.
fn leaves(part: &Value) -> Vec<&Value> {
    match part["parts"].as_array() {
        None => vec![part],
        Some(parts) => parts.iter().flat_map(leaves).collect(),
    }
}

#[test]
fn the_parts_of_full_are_those_of_raw() {
    let bench = Bench::new(400, "[shares]\nodd = 0.5");
    let mut attachments = 0;
    for truth in bench.truth() {
        let raw = bench.get(&format!("messages/{}?format=raw", truth.id));
        let parsed = mime::parse(&URL_SAFE_NO_PAD.decode(raw["raw"].as_str().unwrap()).unwrap());
        let full = bench.get(&format!("messages/{}", truth.id));
        for leaf in leaves(&full["payload"]) {
            let part = parsed.at(leaf["partId"].as_str().unwrap()).unwrap();
            assert_eq!(leaf["body"]["size"], part.body.len());
            let data = match leaf["body"]["attachmentId"].as_str() {
                None => leaf["body"]["data"].as_str().unwrap_or("").to_owned(),
                Some(id) => {
                    attachments += 1;
                    let got = bench.get(&format!("messages/{}/attachments/{id}", truth.id));
                    got["data"].as_str().unwrap().to_owned()
                }
            };
            assert_eq!(URL_SAFE_NO_PAD.decode(data).unwrap(), part.body, "{}", truth.id);
        }
    }
    assert!(attachments > 50, "{attachments}");
}

#[test]
fn attachment_ids_change_from_call_to_call_and_stay_good() {
    let bench = Bench::new(200, "");
    let ids = |bench: &Bench, id: &str| -> Vec<String> {
        let full = bench.get(&format!("messages/{id}"));
        leaves(&full["payload"])
            .iter()
            .filter_map(|leaf| leaf["body"]["attachmentId"].as_str().map(str::to_owned))
            .collect()
    };
    let truth = bench.truth().into_iter().find(|truth| !ids(&bench, &truth.id).is_empty()).unwrap();
    let (first, second) = (ids(&bench, &truth.id), ids(&bench, &truth.id));
    assert_ne!(first, second);
    let get = |id: &str| bench.get(&format!("messages/{}/attachments/{id}", truth.id));
    assert_eq!(get(&first[0]), get(&second[0]));
    assert_eq!(bench.error(&format!("messages/{}/attachments/nonsense", truth.id)).0, 400);
    let mut bench = Bench::new(200, "[body]\nattachment_id_s = 60");
    let path = format!("messages/{}/attachments/{}", truth.id, ids(&bench, &truth.id)[0]);
    bench.now = std::time::Duration::from_secs(59);
    bench.get(&path);
    bench.now = std::time::Duration::from_secs(60);
    assert_eq!(bench.error(&path).0, 400, "ids end");
}

#[test]
fn metadata_shows_the_headers_asked_for() {
    let bench = Bench::new(20, "");
    let id = &bench.truth()[0].id;
    let path = format!("messages/{id}?format=metadata&metadataHeaders=subject&metadataHeaders=DATE");
    let names: Vec<String> = bench.get(&path)["payload"]["headers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|header| header["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["Subject", "Date"]);
    assert!(bench.get(&format!("messages/{id}?format=minimal")).get("payload").is_none());
}

#[test]
fn labels_trash_and_deletion_do_what_they_say() {
    let bench = Bench::new(200, "");
    let inbox = bench.truth().into_iter().find(|truth| truth.label_ids.contains(&"INBOX".to_owned())).unwrap();
    let path = |verb: &str| format!("messages/{}/{verb}", inbox.id);
    let (status, changed) = bench.post(&path("modify"), r#"{"addLabelIds":["STARRED"],"removeLabelIds":["INBOX"]}"#);
    assert_eq!(status, 200);
    let labels = |value: &Value| value["labelIds"].to_string();
    assert!(labels(&changed).contains("STARRED") && !labels(&changed).contains("INBOX"), "{changed}");
    assert!(labels(&bench.post(&path("trash"), "").1).contains("TRASH"));
    assert!(!labels(&bench.post(&path("untrash"), "").1).contains("TRASH"));
    let delete = format!("/gmail/v1/users/me/messages/{}", inbox.id);
    assert_eq!(bench.ask(Verb::Delete, &delete, ""), (204, Value::Null));
    assert_eq!(bench.error(&format!("messages/{}", inbox.id)).1, "notFound");
    assert_eq!(bench.ask(Verb::Delete, &delete, "").0, 404);
}

#[test]
fn batches_pass_over_unknown_ids_and_have_a_limit() {
    let bench = Bench::new(1_500, "");
    let ids: Vec<String> = bench.truth().into_iter().map(|truth| truth.id).collect();
    let body = |ids: &[String]| json!({ "ids": ids, "addLabelIds": ["TRASH"] }).to_string();
    let with_unknown = [&ids[..5], &["00000000000000aa".to_owned()]].concat();
    assert_eq!(bench.post("messages/batchModify", &body(&with_unknown)), (204, Value::Null));
    let trashed = bench.truth().iter().take(5).all(|truth| truth.label_ids.contains(&"TRASH".to_owned()));
    assert!(trashed);
    let (status, error) = bench.post("messages/batchModify", &body(&ids[..1_001]));
    assert_eq!((status, &error["error"]["message"]), (400, &json!("Number of ids cannot exceed 1000")));
    assert_eq!(bench.post("messages/batchDelete", &body(&ids[..1_000])).0, 204);
    assert_eq!(bench.present().len(), 500);
}

#[test]
fn uploads_are_kept_byte_for_byte_and_dated_as_asked() {
    let bench = Bench::new(10, "");
    let raw = "Date: Tue, 14 Nov 2023 22:13:20 +0000\r\nSubject: kept\r\n\r\nbody\r\n";
    let body = json!({ "raw": URL_SAFE.encode(raw), "labelIds": ["INBOX"] }).to_string();
    let (_, imported) = bench.post("messages/import", &body);
    let (_, inserted) = bench.post("messages", &body);
    let media = bench.ask(Verb::Post, "/upload/gmail/v1/users/me/messages?uploadType=media", raw).1;
    let related = "--x\r\nContent-Type: application/json\r\n\r\n{\"labelIds\":[\"STARRED\"]}\r\n--x\r\n\
        Content-Type: message/rfc822\r\n\r\n"
        .to_owned()
        + raw
        + "\r\n--x--\r\n";
    let target = "/upload/gmail/v1/users/me/messages/import?uploadType=multipart";
    let request =
        SimRequest::get(target).sending(Verb::Post, related.as_bytes()).typed("multipart/related; boundary=x");
    let Reply::Full(both) = bench.sim.answer(&request.authorized("Bearer sim-access-token"), bench.now).reply else {
        panic!("an upload is answered")
    };
    let both = super::json_of(&both);
    let truth = bench.present();
    let of = |message: &Value| &truth[message["id"].as_str().unwrap()];
    for message in [&imported, &inserted, &media, &both] {
        assert_eq!((of(message).sha256.clone(), of(message).size), (sha256(raw.as_bytes()), raw.len()));
    }
    assert_eq!(of(&both).label_ids, ["STARRED"]);
    assert_eq!(of(&imported).internal_date, 1_700_000_000_000);
    assert_eq!(of(&inserted).internal_date, super::START);
    assert_eq!(bench.post("messages/import", "{}").0, 400);
}
