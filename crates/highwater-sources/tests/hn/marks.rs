//! Marks of bodies: when they are asked for, shown and taken.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use futures_util::{FutureExt, future::BoxFuture};
use highwater_core::{Failure, FailureKind, Key};
use highwater_sources::{Call, Fetched, Request, Response, Source, Tags, Transport};
use http::{HeaderMap, HeaderValue, StatusCode};

/// Answers 304 to whoever shows the mark; gives it out with every body.
struct Marked {
    mark: HeaderValue,
    body: &'static str,
    seen: Mutex<Vec<HeaderMap>>,
}

impl Transport for Marked {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, Failure>> {
        let is_known = request.headers.get("if-none-match") == Some(&self.mark);
        self.seen.lock().unwrap().push(request.headers);
        let headers = HeaderMap::from_iter([(http::header::ETAG, self.mark.clone())]);
        let status = if is_known { StatusCode::NOT_MODIFIED } else { StatusCode::OK };
        let body = if is_known { Bytes::new() } else { Bytes::from_static(self.body.as_bytes()) };
        async move { Ok(Response::new(status, headers, body)) }.boxed()
    }
}

const ITEM: &str = r#"{"id":7,"type":"story"}"#;

fn marked(mark: &str, body: &'static str) -> Arc<Marked> {
    Arc::new(Marked { mark: HeaderValue::from_bytes(mark.as_bytes()).unwrap(), body, seen: Mutex::default() })
}

fn asked<'a>(known: impl IntoIterator<Item = (i64, &'a str)>) -> Tags {
    let known = known.into_iter().map(|(id, tag)| (Key::Number(id), tag.to_owned()));
    Tags::Asked(Arc::new(known.collect::<BTreeMap<_, _>>()))
}

async fn fetch(remote: &Arc<Marked>, tags: Tags) -> Fetched {
    let (hn, call) = crate::hn(remote.clone());
    let call = Call { tags, ..call };
    let answers = hn.fetch(&hn.streams()[0].name, &[Key::Number(7)], &call).await.unwrap();
    answers.into_iter().next().unwrap().fetched
}

fn tag(fetched: Fetched) -> Option<String> {
    match fetched {
        Fetched::Found(record) | Fetched::Delayed { record, .. } => record.tag,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn nobody_who_does_not_ask_gets_a_mark() {
    let remote = marked("m", ITEM);
    assert_eq!(tag(fetch(&remote, Tags::NotAsked).await), None);
    assert_eq!(*remote.seen.lock().unwrap(), [HeaderMap::new()]);
}

#[tokio::test]
async fn a_mark_is_taken_and_shown_and_spares_the_body() {
    let remote = marked("ViJFJowpbyRvgGNPzPJdGeN+mCY=", ITEM);
    let mark = tag(fetch(&remote, asked([(8, "other")])).await).unwrap();
    assert_eq!(mark, "ViJFJowpbyRvgGNPzPJdGeN+mCY=");
    assert!(matches!(fetch(&remote, asked([(7, mark.as_str())])).await, Fetched::Unchanged));
    assert_eq!(tag(fetch(&remote, asked([(7, "older")])).await), Some(mark.clone()));
    let seen = remote.seen.lock().unwrap();
    let shown: Vec<_> =
        seen.iter().map(|headers| headers.get("if-none-match").map(|tag| tag.to_str().unwrap())).collect();
    assert_eq!(shown, [None, Some(mark.as_str()), Some("older")]);
    assert!(seen.iter().all(|headers| headers["x-firebase-etag"] == "true"));
}

#[tokio::test]
async fn what_is_no_mark_is_neither_taken_nor_shown() {
    for mark in ["x".repeat(257), "é".into(), String::new()] {
        assert_eq!(tag(fetch(&marked(&mark, ITEM), asked([])).await), None, "{mark}");
    }
    assert_eq!(tag(fetch(&marked(&"x".repeat(256), ITEM), asked([])).await), Some("x".repeat(256)));
    let remote = marked("m", ITEM);
    fetch(&remote, asked([(7, "a\nb")])).await;
    assert!(!remote.seen.lock().unwrap()[0].contains_key("if-none-match"));
}

#[tokio::test]
async fn a_text_held_back_is_never_recognised() {
    assert_eq!(tag(fetch(&marked("m", r#"{"id":7,"text":"[delayed]"}"#), asked([])).await), None);
}

#[tokio::test]
async fn unchanged_is_no_answer_to_those_who_showed_nothing() {
    for tags in [Tags::NotAsked, asked([])] {
        let world = crate::world([("/v0/item/7.json", 304, "")]);
        let call = Call { tags, ..world.call.clone() };
        let answers = world.hn.fetch(&world.hn.streams()[0].name, &[Key::Number(7)], &call).await.unwrap();
        let Fetched::Failed(failure) = &answers[0].fetched else { panic!("{answers:?}") };
        assert_eq!(failure.kind, FailureKind::Status);
    }
}
