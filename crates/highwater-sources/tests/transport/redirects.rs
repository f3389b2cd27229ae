//! Redirects: where to, how often, and with what.

use highwater_core::FailureKind;
use highwater_sources::{HttpTransport, Redirects, Request, Transport, TransportSettings};
use http::{Method, header::AUTHORIZATION};

use crate::{
    get, get_failure,
    server::{Seen, Server, Step, ok, redirect},
    transport,
};

/// `/N` leads to `/N-1`, and `/0` is an answer.
fn countdown(seen: &Seen) -> Vec<Step> {
    let left: u32 = seen.path().trim_start_matches('/').parse().unwrap();
    vec![Step::Send(if left == 0 { ok("there") } else { redirect(&(left - 1).to_string()) })]
}

#[tokio::test]
async fn redirects_on_the_same_host_are_followed_five_times() {
    let server = Server::start(countdown).await;
    let transport = transport(&server.url);
    assert_eq!(get(&transport, "/5").await.unwrap().body, "there");
    let sixth = get(&transport, "/6").await.unwrap_err();
    assert_eq!(sixth.kind, FailureKind::Redirect);
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn redirects_to_elsewhere_are_refused() {
    let elsewhere = Server::replying(ok("secret")).await;
    for location in [format!("{}/x", elsewhere.url), "https://example.com/".into(), "//example.com/".into()] {
        let server = Server::replying(redirect(&location)).await;
        assert_eq!(get_failure(&transport(&server.url)).await, FailureKind::Redirect, "{location}");
    }
    assert_eq!(elsewhere.requests().len(), 0);
}

#[tokio::test]
async fn a_redirect_without_a_destination_is_refused() {
    for answer in ["HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n".into(), redirect("gopher://x/")] {
        let server = Server::replying(answer).await;
        assert_eq!(get_failure(&transport(&server.url)).await, FailureKind::Redirect);
    }
}

#[tokio::test]
async fn only_reads_are_redirected() {
    let server = Server::replying(redirect("/x")).await;
    let write = Request { method: Method::POST, ..Request::get("/") };
    let failure = transport(&server.url).send(write).await.unwrap_err();
    assert_eq!((failure.kind, server.requests().len()), (FailureKind::Redirect, 1));
}

#[tokio::test]
async fn if_allowed_any_host_is_followed_but_credentials_stay_at_home() {
    let elsewhere = Server::replying(ok("there")).await;
    let home = Server::replying(redirect(&format!("{}/x", elsewhere.url))).await;
    let roots = highwater_sources::Roots::Only(vec![crate::secure::Authority::new().root()]);
    let settings = TransportSettings { redirects: Redirects::AnyHost, roots, ..TransportSettings::default() };
    let transport = HttpTransport::new(&home.url, settings).unwrap();
    let mut request = Request::get("/");
    request.headers.insert(AUTHORIZATION, "Bearer secret".parse().unwrap());
    assert_eq!(transport.send(request).await.unwrap().body, "there");
    assert_eq!(home.requests()[0].header("authorization"), Some("Bearer secret"));
    assert_eq!(elsewhere.requests()[0].header("authorization"), None);
}
