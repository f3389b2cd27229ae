//! Every exchange has a permit of its own and is counted, also one that repeats another or goes where it was led.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use highwater_core::{
    Lane, Timestamp,
    throttle::{InFlight, PauseReason, Rate, Settings},
};
use highwater_sources::{Beat, Call, Clock, Gateway, Request};

use crate::{
    server::{Seen, Server, Step, ok, redirect},
    transport,
};

fn gateway(url: &str) -> Arc<Gateway> {
    let settings = Settings::new(Rate::Unlimited, InFlight { start: 4, max: 4 });
    let clock = Clock::simulated(Timestamp::from_millis(1_000_000));
    Arc::new(Gateway::new(Arc::new(transport(url)), settings, clock, Box::new(|| 0.0)))
}

/// Asks for `/`, twice if a connection is to have been used before, of a server that has the gate closed while it
/// answers the last of these. Says how many requests came before the gate was opened again, and how many in all.
async fn asked(warm: bool, last: fn() -> Step) -> (usize, usize) {
    let gate: Arc<OnceLock<Arc<Gateway>>> = Arc::default();
    let closed = gate.clone();
    let closes_at = usize::from(warm);
    let server = Server::start(move |seen: &Seen| {
        if seen.number != closes_at {
            return vec![Step::Send(ok("x"))];
        }
        let gateway = closed.get().unwrap();
        gateway.pause(gateway.clock().moment() + Duration::from_secs(3600), PauseReason::Outage);
        vec![last()]
    })
    .await;
    let gateway = gateway(&server.url);
    gate.set(gateway.clone()).ok().unwrap();
    let driver = tokio::spawn({
        let gateway = gateway.clone();
        async move { gateway.drive().await }
    });
    let call = Call::new(Lane::Backfill, Beat::new(gateway.clock().clone()));
    let request = Request::get("/");
    if warm {
        gateway.get(&request, &call, 1.0).await.unwrap();
    }
    let before = {
        let mut asking = std::pin::pin!(gateway.get(&request, &call, 1.0));
        let before = loop {
            tokio::select! {
                biased;
                _ = &mut asking => panic!("it was answered although the gate is closed"),
                () = tokio::task::yield_now() => {}
            }
            if gateway.snapshot().waiting[Lane::Backfill.index()] > 0 {
                break server.requests().len();
            }
        };
        gateway.resume();
        assert_eq!(asking.await.unwrap().body, "x");
        before
    };
    assert_eq!(gateway.traffic().requests, server.requests().len() as u64, "what is sent is counted");
    driver.abort();
    (before, server.requests().len())
}

#[tokio::test]
async fn what_a_redirect_leads_to_waits_for_a_permit() {
    assert_eq!(asked(false, || Step::Send(redirect("/elsewhere"))).await, (1, 2));
}

#[tokio::test]
async fn what_is_sent_once_more_waits_for_a_permit() {
    assert_eq!(asked(true, || Step::Close).await, (2, 3));
}
