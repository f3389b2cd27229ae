//! The simulated Looker carried out in process, on virtual time.

use std::{sync::Arc, time::Duration};

use highwater_core::Timestamp;
use highwater_sim::{LookerPlan, LookerSim, Seed, SimTransport};
use highwater_sources::{Clock, Request, Response, Transport};
use http::{HeaderValue, header};
use serde_json::Value;

use super::START;

const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");

fn transport(plan: &str) -> (SimTransport<LookerSim>, Clock) {
    let sim = Arc::new(LookerSim::new(Seed(4), 40, LookerPlan::parse(plan).unwrap(), START));
    let clock = Clock::simulated(Timestamp::from_millis(START));
    (SimTransport::new(sim, clock.clone(), Duration::ZERO).allowing(64 << 20), clock)
}

async fn login(transport: &SimTransport<LookerSim>) -> String {
    let form = "client_id=sim-client&client_secret=sim-secret";
    let answer = transport.send(Request::post("/api/4.0/login", FORM, form)).await.unwrap();
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    format!("Bearer {}", body["access_token"].as_str().unwrap())
}

async fn get(transport: &SimTransport<LookerSim>, token: &str, path: &str) -> Response {
    let mut request = Request::get(path);
    request.headers.insert(header::AUTHORIZATION, token.parse().unwrap());
    transport.send(request).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn tokens_end_on_virtual_time_and_pages_say_how_many_there_are() {
    let (transport, clock) = transport("[instance]\ntrash = 0\n[login]\nlifetime_s = 100\n[list]\nheaders = true");
    let token = login(&transport).await;
    let page = get(&transport, &token, "/api/4.0/dashboards/search?sorts=id&limit=15&offset=15").await;
    assert_eq!(page.status, 200);
    assert_eq!(page.headers["x-total-count"], "40");
    let link = page.headers[header::LINK].to_str().unwrap();
    for (name, offset) in [("first", 0), ("prev", 0), ("next", 30), ("last", 30)] {
        assert!(link.contains(&format!("<?limit=15&offset={offset}>; rel=\"{name}\"")), "{link}");
    }
    clock.sleep(Duration::from_secs(100)).await;
    assert_eq!(get(&transport, &token, "/api/4.0/user").await.status, 401);
}

#[tokio::test(start_paused = true)]
async fn a_gateway_timeout_takes_its_time() {
    let plan = "[body]\ngateway_timeout_ms = 20000\n[[script]]\npath = '/looks'\nreplies = ['504']";
    let (transport, clock) = transport(plan);
    let token = login(&transport).await;
    let before = clock.now();
    assert_eq!(get(&transport, &token, "/api/4.0/looks").await.status, 504);
    assert_eq!(clock.now().as_millis() - before.as_millis(), 20_000);
}
