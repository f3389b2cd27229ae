//! Streams on virtual time: what a client hears, in every form, and how it ends.

use std::sync::Arc;

use super::*;
use crate::hn::{Publicity::Published, StreamOrder, StreamStep, StreamTurn};

const fn at(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn shared(plan: &str) -> Arc<HnSim> {
    Arc::new(sim(1_000, plan))
}

fn open(sim: &Arc<HnSim>, node: &str, now: Duration) -> EventStream {
    match sim.open_stream(&SimRequest::get(&format!("/v0/{node}.json")).streamed(), now) {
        Opening::Stream { stream, .. } => stream,
        other => panic!("{other:?}"),
    }
}

/// What a stream does until `end`, without waiting for real.
fn run(stream: &mut EventStream, from: Duration, end: Duration) -> (Vec<Bytes>, Option<StreamStep>) {
    let (mut now, mut pieces) = (from, Vec::new());
    while now <= end {
        match stream.poll(now) {
            StreamTurn::Now(StreamStep::Send(piece)) => pieces.push(piece),
            StreamTurn::Now(step) => return (pieces, Some(step)),
            StreamTurn::Wait { until: None } => break,
            StreamTurn::Wait { until: Some(until) } => {
                assert!(until > now, "a stream that waits must not spin");
                now = until;
            }
        }
    }
    (pieces, None)
}

fn text(pieces: &[Bytes]) -> String {
    String::from_utf8(pieces.concat()).unwrap()
}

/// A client's copy of the node, by the rules of the protocol.
fn tree(text: &str) -> Value {
    let mut tree = Value::Null;
    for frame in text.split_terminator("\n\n") {
        let (name, data) = frame.strip_prefix("event: ").unwrap().split_once("\ndata: ").unwrap();
        let message: Value = serde_json::from_str(data).unwrap();
        let path: Vec<&str> =
            message["path"].as_str().unwrap_or("").split('/').filter(|step| !step.is_empty()).collect();
        match name {
            "put" => put(&mut tree, &path, message["data"].clone()),
            "patch" => {
                assert!(path.is_empty());
                message["data"]
                    .as_object()
                    .unwrap()
                    .iter()
                    .for_each(|(key, value)| put(&mut tree, &[key], value.clone()));
            }
            "keep-alive" => assert_eq!(data, "null"),
            other => panic!("{other}"),
        }
    }
    tree
}

fn put(node: &mut Value, path: &[&str], value: Value) {
    match (path, node) {
        ([], node) => *node = value,
        ([at], Value::Array(list)) if value.is_null() => {
            assert_eq!(at.parse::<usize>().unwrap() + 1, list.len(), "lists have no holes");
            list.pop();
        }
        ([at, rest @ ..], Value::Array(list)) => {
            let at: usize = at.parse().unwrap();
            list.resize(list.len().max(at + 1), Value::Null);
            put(&mut list[at], rest, value);
        }
        ([key], Value::Object(map)) if value.is_null() => drop(map.remove(*key)),
        ([key, rest @ ..], Value::Object(map)) => put(map.entry(*key).or_insert(Value::Null), rest, value),
        (_, node) => panic!("no path into {node}"),
    }
}

const MOVING: &str = "mutations = { every_ms = 300, updates_every_ms = 1000, profiles = 0.5 }";

#[test]
fn every_form_and_every_split_leaves_the_client_with_the_node() {
    let forms = ["put", "put-path", "put-index", "patch", "put-null"].map(|form| format!("'{form}'"));
    for forms in forms.iter().cloned().chain([forms.join(",")]) {
        let whole = shared(&format!("{MOVING}\nstream.forms = [{forms}]"));
        let (pieces, _) = run(&mut open(&whole, "updates", at(0)), at(0), at(20_500));
        let heard = text(&pieces);
        assert!(pieces.len() > 20, "a write each second");
        assert_eq!(tree(&heard), json(ask(&whole, "/v0/updates.json", at(20_500))), "{forms}");
        assert_eq!(whole.stats().report().stream_events as usize, pieces.len());
        for split in 1..=80 {
            let sim = shared(&format!("{MOVING}\n[stream]\nforms = [{forms}]\nsplit = {split}"));
            let (pieces, _) = run(&mut open(&sim, "updates", at(0)), at(0), at(20_500));
            assert!(pieces.iter().all(|piece| piece.len() <= split));
            assert_eq!(text(&pieces), heard, "{forms} in pieces of {split}");
        }
    }
}

#[test]
fn an_item_that_changes_twice_is_named_twice_in_every_form() {
    for form in ["put", "put-path", "put-index", "patch", "put-null"] {
        let sim = shared(&format!("stream.forms = ['{form}']"));
        let mut stream = open(&sim, "updates", at(0));
        run(&mut stream, at(0), at(1));
        for millis in [2, 3, 4] {
            sim.mutate(777, None, Published, at(millis)).unwrap();
            let heard = text(&run(&mut stream, at(millis), at(millis)).0);
            assert!(heard.contains("777"), "{form}: {heard}");
        }
    }
}

#[test]
fn maxitem_is_told_at_each_growth() {
    let sim = shared("head = { behind = 50, jump_max = 9, every_ms = 500 }");
    let (pieces, _) = run(&mut open(&sim, "maxitem", at(0)), at(0), at(29_999));
    let grown: Vec<String> =
        (0..40).map(|step| good(ask(&sim, "/v0/maxitem.json", at(500 * step)))).fold(Vec::new(), |mut seen, max| {
            let frame = format!("event: put\ndata: {{\"path\":\"/\",\"data\":{}}}\n\n", str::from_utf8(&max).unwrap());
            if seen.last() != Some(&frame) {
                seen.push(frame);
            }
            seen
        });
    assert!(grown.len() > 5);
    assert_eq!(text(&pieces), grown.concat());
}

#[test]
fn keep_alives_come_each_half_minute() {
    let sim = shared("");
    let (pieces, _) = run(&mut open(&sim, "maxitem", at(500)), at(500), at(95_000));
    let expected = "event: put\ndata: {\"path\":\"/\",\"data\":1000}\n\n".to_owned()
        + &"event: keep-alive\ndata: null\n\n".repeat(3);
    assert_eq!(text(&pieces), expected);
    assert_eq!(sim.stats().report().stream_keep_alives, 3);
}

#[test]
fn items_profiles_and_lists_stream_too() {
    let sim = shared("");
    let name = sim.world().author(7).unwrap();
    for (node, changes) in
        [("item/7".to_owned(), true), (format!("user/{name}"), true), ("topstories".to_owned(), false)]
    {
        let mut stream = open(&sim, &node, at(1));
        let (mut pieces, _) = run(&mut stream, at(1), at(2));
        sim.mutate(7, None, Published, at(3)).unwrap();
        sim.mutate_profile(&name, Published, at(3)).unwrap();
        pieces.extend(run(&mut stream, at(3), at(4)).0);
        assert_eq!(pieces.len(), if changes { 2 } else { 1 }, "{node}");
        assert_eq!(tree(&text(&pieces)), json(ask(&sim, &format!("/v0/{node}.json"), at(4))));
    }
}

#[test]
fn streams_are_cut_dropped_and_silenced_by_plan() {
    for (plan, events, end) in [
        ("stream.drop_after_events = 3", 3, Some(StreamStep::End)),
        ("stream.cut_after_events = 3", 3, Some(StreamStep::Reset)),
        ("stream.silent_after_events = 3", 3, None),
        ("stream.silent_after_events = 0", 0, None),
    ] {
        let sim = shared(&format!("{MOVING}\n{plan}"));
        let (pieces, ended) = run(&mut open(&sim, "updates", at(0)), at(0), at(300_000));
        let heard = text(&pieces);
        let whole = heard.rfind("\n\n").map_or(0, |end| end + 2);
        assert_eq!((heard[..whole].matches("\n\n").count(), ended), (events, end.clone()), "{plan}");
        assert_eq!(heard.len() > whole, end == Some(StreamStep::Reset), "{plan}: a cut leaves half a frame");
    }
}

#[test]
fn orders_reach_open_streams_and_spare_new_ones() {
    for (order, end, last) in [
        (StreamOrder::Drop, StreamStep::End, "put"),
        (StreamOrder::Cut, StreamStep::Reset, "put"),
        (StreamOrder::Cancel, StreamStep::End, "cancel"),
        (StreamOrder::AuthRevoked, StreamStep::End, "auth_revoked"),
    ] {
        let sim = shared("");
        let mut stream = open(&sim, "updates", at(0));
        run(&mut stream, at(0), at(1));
        sim.order(StreamOrder::Silence, at(2));
        sim.order(order, at(2));
        let (pieces, ended) = run(&mut stream, at(2), at(3));
        assert_eq!(ended, Some(end), "{order:?}");
        assert!(order == StreamOrder::Drop || text(&pieces).starts_with(&format!("event: {last}")[..7]), "{order:?}");
        sim.order(StreamOrder::Restore, at(3));
        let (pieces, ended) = run(&mut open(&sim, "updates", at(4)), at(4), at(5));
        assert_eq!((pieces.len(), ended), (1, None), "{order:?}");
    }
}

#[test]
fn what_silence_holds_back_comes_when_it_ends() {
    let sim = shared("");
    let mut old = open(&sim, "updates", at(0));
    run(&mut old, at(0), at(1));
    sim.order(StreamOrder::Silence, at(2));
    let mut new = open(&sim, "updates", at(2));
    for id in [5, 6] {
        sim.mutate(id, None, Published, at(3)).unwrap();
        assert_eq!(run(&mut old, at(3), at(90_000)), (Vec::new(), None));
        assert_eq!(run(&mut new, at(3), at(90_000)), (Vec::new(), None));
    }
    sim.order(StreamOrder::Restore, at(90_000));
    let puts = |stream: &mut EventStream| text(&run(stream, at(90_000), at(90_001)).0).matches("event: put").count();
    assert_eq!([puts(&mut old), puts(&mut new)], [2, 3], "the new one begins with what it was opened on");
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let plan = "[mutations]\nevery_ms = 70\n[stream]\nforms = ['patch', 'put-index']\nsplit = 11\ncut_after_events = 9";
    let heard = || {
        let sim = shared(plan);
        let streams = (0..3).map(|nth| run(&mut open(&sim, "updates", at(nth * 100)), at(nth * 100), at(60_000)));
        streams.collect::<Vec<_>>()
    };
    let (one, two) = (heard(), heard());
    assert_eq!(one, two);
    assert!(one.iter().all(|(_, ended)| *ended == Some(StreamStep::Reset)));
}

#[test]
fn attempts_are_refused_and_sent_on_by_plan() {
    let sim = shared("stream = { status_first = [503, 401], redirect = 'path' }");
    let request = SimRequest::get("/v0/updates.json").streamed();
    for status in [503, 401] {
        let Opening::Answer(answer) = sim.open_stream(&request, at(0)) else { panic!() };
        assert_eq!(answer.reply.status().unwrap(), status);
    }
    let Opening::Moved { moved, .. } = sim.open_stream(&request, at(0)) else { panic!() };
    let location = moved.location("nowhere");
    let there = sim.open_stream(&SimRequest::get(&location).streamed(), at(0));
    assert!(matches!(there, Opening::Stream { .. }), "{location}");
    assert_eq!(sim.stats().report().streams_open, 1);
    drop(there);
    let report = sim.stats().report();
    assert_eq!([report.streams_opened, report.streams_open, report.by_endpoint["updates"]], [1, 0, 4]);
}

#[test]
fn nothing_opens_while_the_api_is_down() {
    let sim = shared("");
    sim.go_down(at(100));
    let request = SimRequest::get("/v0/updates.json").streamed();
    let Opening::Answer(answer) = sim.open_stream(&request, at(99)) else { panic!() };
    assert_eq!(answer.reply, Reply::Reset);
    assert!(matches!(sim.open_stream(&request, at(100)), Opening::Stream { .. }));
}
