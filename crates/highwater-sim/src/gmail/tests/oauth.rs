//! Credentials: every way to a token, and every way to be refused one.

use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::{Bench, START};
use crate::{Reply, SimRequest, Verb};

const READONLY: &str = "https://www.googleapis.com/auth/gmail.readonly";
const REDIRECT: &str = "http://127.0.0.1:9/";

fn token(bench: &Bench, form: &str) -> (u16, Value) {
    bench.ask(Verb::Post, "/token", form)
}

fn refresh(bench: &Bench, more: &str) -> (u16, Value) {
    token(bench, &format!("grant_type=refresh_token&client_id=x&client_secret=y&refresh_token=sim-refresh-token{more}"))
}

#[test]
fn a_refreshed_token_works_until_it_expires() {
    let mut bench = Bench::new(5, "[token]\nlifetime_s = 100");
    let (status, answer) = refresh(&bench, "");
    assert_eq!((status, &answer["expires_in"], &answer["token_type"]), (200, &json!(100), &json!("Bearer")));
    assert!(answer.get("refresh_token").is_none());
    bench.token = answer["access_token"].as_str().unwrap().to_owned();
    bench.now = Duration::from_secs(99);
    bench.get("profile");
    bench.now = Duration::from_secs(100);
    assert_eq!(bench.error("profile").1, "authError");
    bench.token = refresh(&bench, "").1["access_token"].as_str().unwrap().to_owned();
    bench.get("profile");
    bench.page("expire_tokens");
    assert_eq!(bench.error("profile").0, 401);
}

#[test]
fn a_revoked_grant_is_invalid() {
    let mut bench = Bench::new(5, "[token]\nrevoked_after_s = 50");
    assert_eq!(refresh(&bench, "").0, 200);
    bench.now = Duration::from_secs(50);
    let dead = (400, json!({ "error": "invalid_grant", "error_description": "Token has been expired or revoked." }));
    assert_eq!(refresh(&bench, ""), dead);
    let bench = Bench::new(5, "");
    assert_eq!(token(&bench, "grant_type=refresh_token&client_id=x&refresh_token=nope"), dead);
    bench.page("revoke");
    assert_eq!(refresh(&bench, ""), dead);
    assert_eq!(token(&bench, "grant_type=refresh_token&refresh_token=sim-refresh-token").0, 401);
    assert_eq!(token(&bench, "grant_type=password").1["error"], "unsupported_grant_type");
}

/// Asks for consent, and gives the address the user is sent to.
fn consent(bench: &Bench, scope: &str, challenge: &str) -> String {
    let target = format!(
        "/o/oauth2/v2/auth?client_id=x&redirect_uri=http%3A%2F%2F127.0.0.1%3A9%2F&response_type=code&scope={scope}\
         &state=a%26b&code_challenge={challenge}&code_challenge_method=S256"
    );
    match bench.sim.answer(&SimRequest::get(&target), bench.now).reply {
        Reply::Found { location } => location,
        other => panic!("{other:?}"),
    }
}

#[test]
fn consent_gives_a_code_and_the_code_a_token_once() {
    let mut bench = Bench::new(5, "");
    let verifier = "a-verifier-of-at-least-forty-three-characters-x";
    let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()));
    let exchange = |bench: &Bench, verifier: &str| {
        let location = consent(bench, READONLY, &challenge);
        assert!(location.starts_with(REDIRECT) && location.contains("&state=a%26b"), "{location}");
        let code = location.split_once("code=").unwrap().1.split('&').next().unwrap().to_owned();
        let form = format!(
            "grant_type=authorization_code&client_id=x&code={code}&redirect_uri={REDIRECT}&code_verifier={verifier}"
        );
        (token(bench, &form), form)
    };
    let ((status, answer), form) = exchange(&bench, verifier);
    assert_eq!((status, &answer["scope"]), (200, &json!(READONLY)));
    assert_eq!(token(&bench, &form).1["error"], "invalid_grant", "a code is good once");
    assert_eq!(exchange(&bench, "wrong").0.1["error_description"], "Invalid code verifier.");
    bench.token = answer["access_token"].as_str().unwrap().to_owned();
    bench.get("messages?q=in:inbox");
    let (status, body) = bench.post("messages/batchDelete", r#"{"ids":["aa"]}"#);
    assert_eq!((status, &body["error"]["details"][0]["reason"]), (403, &json!("ACCESS_TOKEN_SCOPE_INSUFFICIENT")));
    let again =
        format!("grant_type=refresh_token&client_id=x&refresh_token={}", answer["refresh_token"].as_str().unwrap());
    assert_eq!(token(&bench, &again).1["scope"], READONLY);
}

#[test]
fn the_user_may_untick_what_was_asked_for() {
    let bench = Bench::new(5, &format!("[token]\nscopes = ['{READONLY}']"));
    let modify = "https://www.googleapis.com/auth/gmail.modify";
    assert!(consent(&bench, modify, "x").contains("error=access_denied"));
    assert!(consent(&bench, &format!("{modify}%20{READONLY}"), "x").ends_with("gmail.readonly"));
    assert_eq!(refresh(&bench, "").1["scope"], READONLY);
}

#[test]
fn the_metadata_scope_reads_neither_searches_nor_bodies() {
    let metadata = "https://www.googleapis.com/auth/gmail.metadata";
    let mut bench = Bench::new(5, &format!("[token]\nscopes = ['{metadata}', '{READONLY}']"));
    bench.token = refresh(&bench, "").1["access_token"].as_str().unwrap().to_owned();
    assert_eq!(bench.error("messages?q=in:inbox").2, "Metadata scope does not support 'q' parameter");
    let id = bench.truth()[0].id.clone();
    assert_eq!(bench.error(&format!("messages/{id}?format=raw")).0, 403);
    bench.get(&format!("messages/{id}?format=metadata"));
}

#[test]
fn a_service_account_is_believed_when_its_claims_are_right() {
    let mut bench = Bench::new(5, "");
    let now = START / 1_000;
    let assert = |bench: &Bench, claims: Value| {
        let part = |text: String| URL_SAFE_NO_PAD.encode(text);
        let jwt = format!("{}.{}.c2ln", part(r#"{"alg":"RS256"}"#.to_owned()), part(claims.to_string()));
        token(bench, &format!("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion={jwt}"))
    };
    let claims = json!({
        "iss": "robot@project.iam", "sub": "ann@example.com", "scope": READONLY,
        "aud": "http://127.0.0.1:9/token", "iat": now, "exp": now + 3_600,
    });
    let (status, answer) = assert(&bench, claims.clone());
    assert_eq!(status, 200, "{answer}");
    for (key, value, error) in [
        ("sub", json!("bob@example.com"), "invalid_grant"),
        ("exp", json!(now + 9_000), "invalid_grant"),
        ("exp", json!(now - 1), "invalid_grant"),
        ("aud", json!("elsewhere"), "invalid_grant"),
        ("scope", json!("calendar"), "unauthorized_client"),
    ] {
        let mut wrong = claims.clone();
        wrong[key] = value;
        assert_eq!(assert(&bench, wrong).1["error"], error, "{key}");
    }
    let mut nobody = claims;
    nobody.as_object_mut().unwrap().remove("sub");
    bench.token = assert(&bench, nobody).1["access_token"].as_str().unwrap().to_owned();
    assert_eq!(bench.error("profile").1, "failedPrecondition", "a robot has no mailbox");
}
