//! Credentials: every way to a token, and every way to be refused one.

use std::time::Duration;

use aws_lc_rs::{
    digest::{SHA256, digest},
    encoding::{AsDer, PublicKeyX509Der},
    rand::SystemRandom,
    rsa::{KeyPair as RsaKeyPair, KeySize},
    signature::{KeyPair as _, RSA_PKCS1_SHA256},
};
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use serde_json::{Value, json};

use super::{Bench, START};
use crate::{Reply, SimRequest, Verb};

const READONLY: &str = "https://www.googleapis.com/auth/gmail.readonly";
const REDIRECT: &str = "http://127.0.0.1:9/";

fn token(bench: &Bench, form: &str) -> (u16, Value) {
    bench.ask(Verb::Post, "/token", form)
}

const CLIENT: &str = "client_id=sim-client&client_secret=sim-secret";

fn refresh(bench: &Bench, more: &str) -> (u16, Value) {
    token(bench, &format!("grant_type=refresh_token&{CLIENT}&refresh_token=sim-refresh-token{more}"))
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
    assert_eq!(token(&bench, &format!("grant_type=refresh_token&{CLIENT}&refresh_token=nope")), dead);
    bench.page("revoke");
    assert_eq!(refresh(&bench, ""), dead);
    for client in
        ["client_id=sim-client", "client_id=x&client_secret=sim-secret", "client_id=sim-client&client_secret=x"]
    {
        let (status, answer) =
            token(&bench, &format!("grant_type=refresh_token&refresh_token=sim-refresh-token&{client}"));
        assert_eq!((status, &answer["error"]), (401, &json!("invalid_client")), "{client}");
    }
    assert_eq!(token(&bench, "grant_type=password").1["error"], "unsupported_grant_type");
}

/// Asks for consent, and gives the address the user is sent to.
fn consent(bench: &Bench, scope: &str, challenge: &str) -> String {
    let target = format!(
        "/o/oauth2/v2/auth?client_id=sim-client&redirect_uri=http%3A%2F%2F127.0.0.1%3A9%2F&response_type=code&scope={scope}\
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
            "grant_type=authorization_code&{CLIENT}&code={code}&redirect_uri={REDIRECT}&code_verifier={verifier}"
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
        format!("grant_type=refresh_token&{CLIENT}&refresh_token={}", answer["refresh_token"].as_str().unwrap());
    assert_eq!(token(&bench, &again).1["scope"], READONLY);
}

#[test]
fn an_improper_question_is_not_sent_back() {
    let bench = Bench::new(5, "");
    let good =
        "client_id=sim-client&redirect_uri=http://localhost:9/x&response_type=code&scope=a&state=s&code_challenge=c";
    let ask = |query: &str| bench.sim.answer(&SimRequest::get(&format!("/o/oauth2/v2/auth?{query}")), bench.now).reply;
    assert!(matches!(ask(good), Reply::Found { .. }));
    for (part, instead) in [
        ("sim-client", "x"),
        ("http://localhost:9/x", "https://example.com/"),
        ("http://localhost:9/x", "http://localhost.example.com/"),
        ("response_type=code", "response_type=token"),
        ("&state=s", ""),
        ("&code_challenge=c", ""),
    ] {
        assert!(matches!(ask(&good.replace(part, instead)), Reply::Full(message) if message.status.is_client_error()));
    }
}

#[test]
fn what_is_revoked_is_gone_and_consent_gives_anew() {
    let mut bench = Bench::new(5, "");
    bench.token = refresh(&bench, "").1["access_token"].as_str().unwrap().to_owned();
    bench.get("profile");
    assert_eq!(bench.ask(Verb::Post, "/revoke", "token=nonsense").1["error"], "invalid_token");
    assert_eq!(bench.ask(Verb::Post, "/revoke?token=sim-refresh-token", "").0, 200);
    assert_eq!(bench.error("profile").0, 401);
    assert_eq!(refresh(&bench, "").1["error"], "invalid_grant");
    let location = consent(&bench, READONLY, &URL_SAFE_NO_PAD.encode(digest(&SHA256, b"v")));
    let code = location.split_once("code=").unwrap().1.split('&').next().unwrap().to_owned();
    let form = format!("grant_type=authorization_code&{CLIENT}&code={code}&redirect_uri={REDIRECT}&code_verifier=v");
    bench.token = token(&bench, &form).1["access_token"].as_str().unwrap().to_owned();
    bench.get("profile");
    let grants = bench.sim.counts(bench.now).tokens_by_grant;
    assert_eq!((grants["refresh_token"], grants["authorization_code"]), (1, 1));
}

#[test]
fn a_token_may_be_of_another_account() {
    let mut bench = Bench::new(5, "[token]\naccount = 'bob@example.com'");
    bench.token = refresh(&bench, "").1["access_token"].as_str().unwrap().to_owned();
    assert_eq!(bench.get("profile")["emailAddress"], "bob@example.com");
    let (status, body) = bench.ask(Verb::Get, "/gmail/v1/users/ann@example.com/profile", "");
    assert_eq!(super::refused((status, body)).2, "Delegation denied for bob@example.com");
}

#[test]
fn the_endpoint_fails_now_and_then_and_never_twice() {
    let bench = Bench::new(5, "[token]\nfailures = 1");
    assert_eq!(refresh(&bench, "").1["error"], "internal_failure");
    assert_eq!(refresh(&bench, "").0, 200);
    assert_eq!(refresh(&bench, "").0, 500);
}

#[test]
fn the_user_may_untick_what_was_asked_for() {
    let bench = Bench::new(5, &format!("[token]\nscopes = ['{READONLY}']"));
    let modify = "https://www.googleapis.com/auth/gmail.modify";
    assert!(consent(&bench, modify, "x").contains("error=access_denied"));
    assert!(consent(&bench, &format!("{modify}%20{READONLY}"), "x").contains("gmail.readonly&state"));
    let denying = Bench::new(5, "[client]\nconsent = 'denied'");
    assert_eq!(consent(&denying, READONLY, "x"), format!("{REDIRECT}?error=access_denied&state=a%26b"));
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
    let assert = |bench: &Bench, claims: Value| bearer(bench, &format!("{}.c2ln", unsigned(&claims)));
    let claims = claims();
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

fn claims() -> Value {
    let now = START / 1_000;
    json!({
        "iss": "robot@project.iam", "sub": "ann@example.com", "scope": READONLY,
        "aud": "http://127.0.0.1:9/token", "iat": now, "exp": now + 3_600,
    })
}

fn unsigned(claims: &Value) -> String {
    let part = |text: String| URL_SAFE_NO_PAD.encode(text);
    format!("{}.{}", part(r#"{"alg":"RS256"}"#.to_owned()), part(claims.to_string()))
}

fn bearer(bench: &Bench, jwt: &str) -> (u16, Value) {
    token(bench, &format!("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion={jwt}"))
}

#[test]
fn a_service_account_with_a_key_must_sign() {
    let key = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
    let der: PublicKeyX509Der<'_> = key.public_key().as_der().unwrap();
    let pem = format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----", STANDARD.encode(der.as_ref()));
    let bench = Bench::new(5, &format!("[client]\npublic_key = \"\"\"{pem}\"\"\""));
    let unsigned = unsigned(&claims());
    let mut signature = vec![0; key.public_modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), unsigned.as_bytes(), &mut signature).unwrap();
    let jwt = format!("{unsigned}.{}", URL_SAFE_NO_PAD.encode(&signature));
    assert_eq!(bearer(&bench, &jwt).0, 200);
    signature[9] ^= 1;
    let jwt = format!("{unsigned}.{}", URL_SAFE_NO_PAD.encode(&signature));
    assert_eq!(bearer(&bench, &jwt).1["error_description"], "Invalid JWT Signature.");
}
