//! The simulated Gmail carried out: in process on virtual time, and over HTTP/2.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use highwater_core::Timestamp;
use highwater_sim::{GmailPlan, GmailSim, Seed, SimTransport, gmail, server};
use highwater_sources::{Clock, Request, Transport};
use http::{HeaderValue, Method, header};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::START;

const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");

fn sim(plan: &str) -> Arc<GmailSim> {
    Arc::new(GmailSim::new(Seed(4), 40, GmailPlan::parse(plan).unwrap(), START))
}

#[tokio::test(start_paused = true)]
async fn a_transport_brings_methods_bodies_and_credentials() {
    let sim = sim("[token]\nlifetime_s = 100");
    let clock = Clock::simulated(Timestamp::from_millis(START));
    let transport = SimTransport::new(sim, clock.clone(), Duration::ZERO).allowing(64 << 20);
    let form = "grant_type=refresh_token&client_id=sim-client&client_secret=sim-secret&refresh_token=sim-refresh-token";
    let token = transport.send(Request::post("/token", FORM, form)).await.unwrap();
    let token: Value = serde_json::from_slice(&token.body).unwrap();
    let mut request = Request::get("/gmail/v1/users/me/profile");
    let bearer = format!("Bearer {}", token["access_token"].as_str().unwrap());
    request.headers.insert(header::AUTHORIZATION, bearer.parse().unwrap());
    assert_eq!(transport.send(request.clone()).await.unwrap().status, 200);
    clock.sleep(Duration::from_secs(100)).await;
    let expired = transport.send(request).await.unwrap();
    assert_eq!(expired.status, 401);
    assert!(expired.headers.contains_key(header::WWW_AUTHENTICATE));
    let page = "/o/oauth2/v2/auth?client_id=sim-client&redirect_uri=http://127.0.0.1:9/&response_type=code\
        &scope=https://mail.google.com/&state=s&code_challenge=c";
    let sent_on = transport.send(Request::get(page)).await.unwrap();
    assert!(sent_on.headers[header::LOCATION].to_str().unwrap().starts_with("http://127.0.0.1:9/?code=4%2F"));
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_are_taken_over_http2() {
    let sim = sim("");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let serving = tokio::spawn(server::serve(listener, Arc::clone(&sim), shutdown.clone()));
    let io = TokioIo::new(TcpStream::connect(address).await.unwrap());
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
    let connection = tokio::spawn(connection);
    let id = sim.truth(0, 1, Duration::ZERO)[0].id.clone();
    let mut ask = async |method: Method, target: &str, body: String| {
        let request = http::Request::builder()
            .method(method)
            .uri(format!("http://{address}{target}"))
            .header(header::AUTHORIZATION, format!("Bearer {}", gmail::ACCESS_TOKEN));
        let answer = sender.send_request(request.body(Full::new(Bytes::from(body))).unwrap()).await.unwrap();
        (answer.status(), answer.into_body().collect().await.unwrap().to_bytes())
    };
    let body = format!("{{\"ids\":[\"{id}\"],\"addLabelIds\":[\"STARRED\"]}}");
    let (status, empty) = ask(Method::POST, "/gmail/v1/users/me/messages/batchModify", body).await;
    assert_eq!((status.as_u16(), empty.len()), (204, 0));
    assert!(sim.truth(0, 1, Duration::ZERO)[0].label_ids.contains(&"STARRED".to_owned()));
    let target = format!("/gmail/v1/users/me/messages/{id}");
    assert_eq!(ask(Method::DELETE, &target, String::new()).await.0, 204);
    assert_eq!(ask(Method::OPTIONS, &target, String::new()).await.0, 405);
    drop(sender);
    shutdown.cancel();
    serving.await.unwrap().unwrap();
    connection.await.unwrap().ok();
}
