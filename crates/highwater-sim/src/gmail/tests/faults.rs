//! Faults strike by seed, heal, and leave the truth alone.

use std::collections::BTreeSet;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use super::{Bench, MessageState};
use crate::{GmailPreset, Reply, Verb};

#[test]
fn the_same_seed_replays_the_same_answers() {
    let run = || {
        let bench = Bench::new(80, GmailPreset::Storm.text());
        let ids: Vec<String> = bench.truth().into_iter().map(|truth| truth.id).collect();
        let ask = |id: &String| bench.reply(Verb::Get, &format!("/gmail/v1/users/me/messages/{id}?format=raw"), "");
        ids.iter().chain(&ids).map(|id| format!("{:?}", ask(id))).collect::<Vec<_>>()
    };
    assert_eq!(run(), run());
}

#[test]
fn a_patient_client_gets_everything_through_a_storm() {
    let plan = GmailPreset::Storm.text().replace("per_minute = 60000\n", "").replace("concurrent = 40\n", "");
    let bench = Bench::new(2_000, &plan);
    let patient = |target: &str| -> serde_json::Value {
        for _ in 0..12 {
            if let Reply::Full(message) = bench.reply(Verb::Get, target, "") {
                let body = super::json_of(&message);
                let whole = !target.contains("format=raw")
                    || body["raw"].as_str().is_some_and(|raw| URL_SAFE_NO_PAD.decode(raw).is_ok());
                if message.status.as_u16() == 200 && body.is_object() && whole {
                    return body;
                }
            }
        }
        panic!("{target} never heals")
    };
    let (mut ids, mut token) = (BTreeSet::new(), String::new());
    loop {
        let page = patient(&format!("/gmail/v1/users/me/messages?includeSpamTrash=true&pageToken={token}"));
        let entries = page["messages"].as_array().into_iter().flatten();
        ids.extend(entries.map(|entry| entry["id"].as_str().unwrap().to_owned()));
        let Some(next) = page["nextPageToken"].as_str() else { break };
        token = next.to_owned();
    }
    assert!(ids.iter().eq(bench.present().keys()));
    for truth in bench.truth() {
        let message = patient(&format!("/gmail/v1/users/me/messages/{}?format=raw", truth.id));
        assert_eq!(URL_SAFE_NO_PAD.decode(message["raw"].as_str().unwrap()).unwrap().len(), truth.size);
    }
    let counts = bench.sim.counts(bench.now);
    assert!(counts.by_fault.len() >= 12, "{:?}", counts.by_fault);
    assert!(counts.messages_got_again > 0 && counts.gets_per_message_max <= 5, "{counts:?}");
}

#[test]
fn a_script_that_lasts_is_part_of_the_truth() {
    let bench = Bench::new(400, "[[script]]\nshare = 0.1\nreplies = ['500']\nthen = 'raw-missing'");
    let poisoned: Vec<_> = bench.truth().into_iter().filter(|truth| truth.state != MessageState::Present).collect();
    assert!((20..60).contains(&poisoned.len()), "{}", poisoned.len());
    assert_eq!(poisoned[0].state, MessageState::Unreachable(crate::GmailFault::RawMissing));
    let path = format!("messages/{}?format=raw", poisoned[0].id);
    assert_eq!(bench.error(&path).0, 500);
    for _ in 0..9 {
        assert!(bench.get(&path).get("raw").is_none());
    }
}

#[test]
fn a_spoiled_raw_can_be_seen() {
    for (fault, shorter) in [("raw-truncated", true), ("raw-undecodable", false)] {
        let bench = Bench::new(40, &format!("[rates]\n{fault} = 1"));
        for truth in bench.truth() {
            let raw = bench.get(&format!("messages/{}?format=raw", truth.id))["raw"].as_str().unwrap().to_owned();
            assert!(URL_SAFE_NO_PAD.decode(&raw).is_err(), "{fault}");
            assert_eq!(raw.len() < truth.size, shorter, "{fault}");
        }
    }
}

#[test]
fn connections_break_as_planned() {
    let reply = |fault: &str| {
        let bench = Bench::new(5, &format!("[rates]\n{fault} = 1"));
        bench.reply(Verb::Get, "/gmail/v1/users/me/labels", "")
    };
    assert!(matches!(reply("reset"), Reply::Reset));
    assert!(matches!(reply("hang"), Reply::Hang));
    assert!(matches!(reply("reset-body"), Reply::ResetBody { .. }));
    assert!(matches!(reply("truncated"), Reply::Truncated { .. }));
    assert!(matches!(reply("cut-json"), Reply::Truncated { .. }));
    assert!(matches!(reply("slow"), Reply::Slow { .. }));
    let bench = Bench::new(5, "");
    bench.page("down?for_ms=1000");
    assert!(matches!(bench.reply(Verb::Get, "/gmail/v1/users/me/labels", ""), Reply::Reset));
}

#[test]
fn a_page_token_may_be_refused_or_grow_old() {
    let mut bench = Bench::new(300, "[list]\ntoken_lifetime_s = 60");
    let token = bench.get("messages?maxResults=10")["nextPageToken"].as_str().unwrap().to_owned();
    bench.now = std::time::Duration::from_secs(59);
    bench.get(&format!("messages?maxResults=10&pageToken={token}"));
    assert_eq!(bench.error(&format!("messages?maxResults=10&q=in:sent&pageToken={token}")).0, 400, "another question");
    bench.now = std::time::Duration::from_secs(60);
    assert_eq!(bench.error(&format!("messages?maxResults=10&pageToken={token}")).2, "Invalid pageToken");
    let faulty = Bench::new(300, "[rates]\ninvalid-page-token = 1");
    let token = faulty.get("messages")["nextPageToken"].as_str().unwrap().to_owned();
    assert_eq!(faulty.error(&format!("messages?pageToken={token}")).2, "Invalid pageToken");
}
