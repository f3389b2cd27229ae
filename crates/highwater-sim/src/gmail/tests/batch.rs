//! Many calls in one request.

use super::Bench;
use crate::answer::{Reply, SimRequest, Verb};

/// The parts of an answer: the id of each and its status.
fn batch(bench: &Bench, paths: &[String]) -> (u16, Vec<(String, u16)>, String) {
    let mut body = String::new();
    for (nth, path) in paths.iter().enumerate() {
        body += &format!(
            "--outer\r\nContent-Type: application/http\r\nContent-ID: <part + {nth}>\r\n\r\nGET {path} HTTP/1.1\r\n\r\n\r\n"
        );
    }
    body += "--outer--\r\n";
    let request = SimRequest::get("/batch/gmail/v1").sending(Verb::Post, body.as_bytes());
    let request = request.typed("multipart/mixed; boundary=\"outer\"").authorized("Bearer sim-access-token");
    let Reply::Full(message) = bench.sim.answer(&request, bench.now).reply else { panic!("a batch is answered") };
    let text = String::from_utf8(message.body.to_vec()).unwrap();
    let after = |line: &str, start: &str| line.strip_prefix(start).map(str::to_owned);
    let ids = text.lines().filter_map(|line| after(line, "Content-ID: "));
    let statuses = text.lines().filter_map(|line| after(line, "HTTP/1.1 ")?[..3].parse().ok());
    let parts = ids.zip(statuses).collect();
    (message.status.as_u16(), parts, text)
}

fn gets(bench: &Bench, count: usize) -> Vec<String> {
    let id = bench.truth()[0].id.clone();
    vec![format!("/gmail/v1/users/me/messages/{id}?format=minimal"); count]
}

#[test]
fn every_part_is_answered_for_itself() {
    let bench = Bench::new(5, "");
    let mut paths = gets(&bench, 1);
    paths.push("/gmail/v1/users/me/messages/00000000000000aa".to_owned());
    paths.push("/batch/gmail/v1".to_owned());
    let (status, parts, text) = batch(&bench, &paths);
    let parts: Vec<_> = parts.iter().map(|(id, status)| (id.as_str(), *status)).collect();
    assert_eq!(status, 200);
    assert_eq!(parts, [("<response-part + 0>", 200), ("<response-part + 1>", 404), ("<response-part + 2>", 404)]);
    assert!(text.contains("\"historyId\"") && text.contains("Requested entity was not found."), "{text}");
    let counts = bench.sim.counts(bench.now);
    assert_eq!((counts.batches, counts.requests, counts.quota_units), (1, 2, 40));
}

#[test]
fn parts_cost_what_calls_cost_and_run_at_once() {
    let bench = Bench::new(5, "[quota]\nper_minute = 60");
    let statuses = |bench: &Bench, count| -> Vec<u16> {
        batch(bench, &gets(bench, count)).1.into_iter().map(|(_, status)| status).collect()
    };
    assert_eq!(statuses(&bench, 4), [200, 200, 200, 403]);
    let bench = Bench::new(5, "[quota]\nconcurrent = 2\n[latency]\nfixed_ms = 100");
    assert_eq!(statuses(&bench, 3), [200, 200, 429]);
    let bench = Bench::new(5, "[rates]\nreset = 1");
    assert_eq!(statuses(&bench, 2), [503, 503], "one connection carries all");
}

#[test]
fn a_batch_has_a_hundred_parts_at_most_and_one_at_least() {
    let bench = Bench::new(5, "");
    assert_eq!(batch(&bench, &gets(&bench, 100)).1.len(), 100);
    let (status, _, text) = batch(&bench, &gets(&bench, 101));
    assert_eq!(status, 400);
    assert!(text.contains("Inner request count exceeds the limit. Received: 101, Limit: 100"), "{text}");
    assert_eq!(batch(&bench, &[]).0, 400);
}
