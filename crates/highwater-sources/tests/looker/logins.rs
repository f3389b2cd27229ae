//! Signing in to a server that asks to wait with it, or says oddly how long a token lasts.

use std::time::Duration;

use highwater_core::{
    FailureKind,
    throttle::{GateState, PauseReason},
};
use highwater_sources::{Response, Source};
use http::{HeaderValue, header};
use serde_json::{Value as Json, json};

use super::remote::{Ask, Desk, ids, said, token};

fn themes(ask: &Ask) -> Json {
    assert_eq!(ask.path, "themes");
    ask.page(1..=3, usize::MAX)
}

fn throttled(retry_after: Option<&'static str>) -> Response {
    let mut response = said(429, &json!({"message": "Too many requests"}));
    response.headers.extend(retry_after.map(|wait| (header::RETRY_AFTER, HeaderValue::from_static(wait))));
    response
}

#[tokio::test(start_paused = true)]
async fn a_login_is_put_off_for_as_long_as_the_server_asks_for() {
    let desk = Desk::behind(|nth| if nth == 1 { throttled(Some("110")) } else { token(3600.into()) }, themes);
    let (one, other) = desk.driven(async { tokio::join!(desk.list("themes"), desk.list("themes")) }).await;
    assert_eq!((ids(&one.unwrap()), ids(&other.unwrap())), (vec![1, 2, 3], vec![1, 2, 3]));
    assert_eq!(desk.logins().len(), 2, "who waits with others makes no login of its own");
    assert!(desk.logins()[1] >= Duration::from_secs(110), "{:?}", desk.logins());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_a_long_wait_closes_the_gate() {
    let desk = Desk::behind(|_| throttled(Some("7200")), themes);
    let listing = tokio::time::timeout(Duration::from_secs(600), desk.list("themes")).await;
    assert!(listing.is_err(), "{listing:?}");
    assert_eq!(desk.logins().len(), 1);
    let left = match desk.looker.gateway().snapshot().gate {
        GateState::Closed { until, reason: PauseReason::RetryAfter } => until.since_start(),
        open => panic!("{open:?}"),
    };
    assert!(left >= Duration::from_secs(7200), "{left:?}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_say_for_how_long_is_asked_ever_less_often() {
    for said in [None, Some("0"), Some("Sun, 06 Nov 1994 08:49:37 GMT")] {
        let desk = Desk::behind(move |_| throttled(said), themes);
        let listing = tokio::time::timeout(Duration::from_secs(3600), desk.list("themes")).await;
        assert!(listing.is_err(), "{listing:?}");
        let logins = desk.logins();
        assert!((10..20).contains(&logins.len()), "{said:?}: {logins:?}");
        let waits: Vec<_> = logins.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(waits.is_sorted(), "{waits:?}");
        assert_eq!(desk.looker.gateway().traffic().throttled, logins.len() as u64, "so that patience may end");
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_stops_does_not_wait_for_a_login() {
    let desk = Desk::behind(|_| throttled(Some("7200")), themes);
    let stopping = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        desk.looker.gateway().stop();
    };
    let (listed, ()) = tokio::join!(desk.list("themes"), stopping);
    assert!(listed.is_err_and(|failure| failure.kind == FailureKind::Internal));
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_said_to_last_for_ever_is_used() {
    for life in [json!(u64::MAX), json!(1e30), json!("3600"), json!(59.5)] {
        let said = life.clone();
        let desk = Desk::behind(move |_| token(said.clone()), themes);
        assert_eq!(ids(&desk.list("themes").await.unwrap()), [1, 2, 3], "{life}");
    }
}
