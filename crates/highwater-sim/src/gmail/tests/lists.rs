//! Listing: complete, filtered, in pages, and what disturbs it.

use std::collections::BTreeSet;

use super::Bench;

fn hidden(labels: &[String]) -> bool {
    labels.iter().any(|label| label == "SPAM" || label == "TRASH")
}

#[test]
fn the_same_seed_gives_the_same_mailbox() {
    let [first, again] = [(); 2].map(|()| Bench::new(300, "[shares]\nodd = 0.3").truth());
    assert_eq!(first, again);
    let ids: BTreeSet<_> = first.iter().map(|truth| &truth.id).collect();
    let hashes: BTreeSet<_> = first.iter().map(|truth| &truth.sha256).collect();
    assert_eq!([ids.len(), hashes.len()], [300, 300]);
}

#[test]
fn a_page_has_at_most_500() {
    let bench = Bench::new(700, "");
    let count = |query: &str| bench.get(&format!("messages{query}"))["messages"].as_array().unwrap().len();
    assert_eq!([count(""), count("?maxResults=9999"), count("?maxResults=1")], [100, 500, 1]);
}

#[test]
fn every_page_together_lists_everything_once() {
    for plan in ["", "[list]\ntokens = 'offset'", "[list]\ninversions = 0.5", "[rates]\nempty-page = 0.5"] {
        let bench = Bench::new(1_300, plan);
        let (mut ids, pages) = bench.all("messages?maxResults=100&includeSpamTrash=true", "messages");
        assert!(pages >= 13, "{plan}: {pages}");
        ids.sort_unstable();
        assert!(ids.iter().eq(bench.present().keys()), "{plan}");
    }
}

#[test]
fn order_is_newest_first_unless_the_plan_inverts_it() {
    let sorted = |plan: &str| {
        let bench = Bench::new(20_000, plan);
        let dates = bench.present();
        let (ids, _) = bench.all("messages?maxResults=500", "messages");
        ids.is_sorted_by_key(|id| -dates[id].internal_date)
    };
    assert!(sorted(""));
    assert!(!sorted("[list]\ninversions = 0.5"));
}

#[test]
fn labels_dates_and_searches_filter() {
    let bench = Bench::new(2_000, "");
    let present = bench.present();
    let with = |wanted: &dyn Fn(&super::MessageTruth) -> bool| -> BTreeSet<String> {
        present.values().filter(|truth| wanted(truth)).map(|truth| truth.id.clone()).collect()
    };
    let has = |truth: &super::MessageTruth, label: &str| truth.label_ids.iter().any(|known| known == label);
    let listed =
        |query: &str| bench.all(&format!("messages?maxResults=500&{query}"), "messages").0.into_iter().collect();
    let middle = present.values().nth(1_000).unwrap().internal_date / 1_000;
    let check = |query: &str, wanted: &dyn Fn(&super::MessageTruth) -> bool| {
        let listed: BTreeSet<String> = listed(query);
        assert!(!listed.is_empty(), "{query}");
        assert_eq!(listed, with(wanted), "{query}");
    };
    check("", &|truth| !hidden(&truth.label_ids));
    check("labelIds=INBOX&labelIds=UNREAD", &|truth| has(truth, "INBOX") && has(truth, "UNREAD"));
    check("labelIds=SPAM", &|truth| has(truth, "SPAM"));
    check("q=in:trash", &|truth| has(truth, "TRASH"));
    check("q=in:sent+-is:unread", &|truth| has(truth, "SENT"));
    check("q=label:Label_3+in:anywhere", &|truth| has(truth, "Label_3"));
    let query = format!("q=in:anywhere+after:{middle}+before:{}", middle + 40_000_000);
    check(&query, &|truth| (middle..middle + 40_000_000).contains(&truth.internal_date.div_euclid(1_000)));
    check(&format!("q=in:anywhere+older:{middle}"), &|truth| truth.internal_date.div_euclid(1_000) < middle);
}

#[test]
fn arrivals_shift_pages_by_number_and_not_pages_by_place() {
    for (style, repeated) in [("key", 0), ("offset", 3)] {
        let bench = Bench::new(50, &format!("[list]\ntokens = '{style}'\n[shares]\nspam = 0\ntrash = 0"));
        let first = bench.get("messages?maxResults=20");
        bench.page("arrive?count=3");
        let token = first["nextPageToken"].as_str().unwrap();
        assert_eq!(token.len(), 20);
        let second = bench.get(&format!("messages?maxResults=20&pageToken={token}"));
        let ids = |page: &serde_json::Value| -> Vec<String> {
            page["messages"].as_array().unwrap().iter().map(|entry| entry["id"].to_string()).collect()
        };
        let again = ids(&second).iter().filter(|id| ids(&first).contains(id)).count();
        assert_eq!(again, repeated, "{style}");
    }
}

#[test]
fn searches_look_into_messages() {
    let bench = Bench::new(300, "");
    let listed = |query: &str| bench.all(&format!("messages?maxResults=500&q=in:anywhere+{query}"), "messages").0;
    let truth = bench.present();
    let large: Vec<_> = truth.values().filter(|truth| truth.size > 8 << 10).map(|truth| truth.id.clone()).collect();
    let mut found = listed("larger:8K");
    found.sort_unstable();
    assert!(!large.is_empty() && found == large);
    assert_eq!(listed("larger:8K").len() + listed("smaller:8193").len(), 300);
    assert!(listed("filename:.pdf").iter().all(|id| listed("has:attachment").contains(id)));
    let header = |id: &str, name: &str| {
        let path = format!("messages/{id}?format=metadata&metadataHeaders={name}");
        bench.get(&path)["payload"]["headers"][0]["value"].as_str().unwrap().to_owned()
    };
    let id = truth.keys().next().unwrap();
    let message_id = header(id, "Message-ID").replace(['<', '>'], "");
    assert_eq!(listed(&format!("rfc822msgid:{message_id}")), std::slice::from_ref(id));
}

#[test]
fn only_the_fields_asked_for_are_sent() {
    let bench = Bench::new(30, "");
    let page = bench.get("messages?maxResults=2&fields=messages/id,nextPageToken");
    assert_eq!(page.as_object().unwrap().keys().collect::<Vec<_>>(), ["messages", "nextPageToken"]);
    assert_eq!(page["messages"][0].as_object().unwrap().keys().collect::<Vec<_>>(), ["id"]);
}

#[test]
fn threads_come_once_each() {
    let bench = Bench::new(900, "");
    let (ids, _) = bench.all("threads?maxResults=100&includeSpamTrash=true", "threads");
    let listed: BTreeSet<String> = ids.iter().cloned().collect();
    let known: BTreeSet<String> = bench.truth().into_iter().map(|truth| truth.thread_id).collect();
    assert_eq!((ids.len(), &listed), (listed.len(), &known));
    let thread = bench.get(&format!("threads/{}?format=minimal", ids[5]));
    let members = bench.truth().iter().filter(|truth| truth.thread_id == ids[5]).count();
    assert_eq!(thread["messages"].as_array().unwrap().len(), members);
}

#[test]
fn labels_are_counted() {
    let bench = Bench::new(800, "[shares]\nunlisted_label = 0.2");
    let count = |label: &str| bench.truth().iter().filter(|t| t.label_ids.iter().any(|known| known == label)).count();
    assert_eq!(bench.get("labels/INBOX")["messagesTotal"], count("INBOX"));
    let listed = bench.get("labels")["labels"].as_array().unwrap().len();
    assert_eq!(listed, 14 + 12);
    assert!(count("Label_9000") > 0, "messages know labels that the list does not");
    assert_eq!(bench.error("labels/Label_9000").0, 404);
}
