//! The access token of the moment against a scripted token endpoint, on virtual time.

#![expect(clippy::unwrap_used, reason = "a step that fails is a failed test")]

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::future::{BoxFuture, join_all};
use highwater_core::{Failure, FailureKind, Timestamp};
use highwater_sources::{
    Clock, Request, Response, Transport,
    gmail::oauth::{
        Bearer, BearerSettings, Client, Credentials, Grant, Keeper, READONLY, Secret, Token, TokenEndpoint,
    },
};
use http::{HeaderMap, StatusCode};

const HOUR: u64 = 3600;

/// Answers in turn, each after a second; remembers what was asked.
struct Script {
    answers: Mutex<VecDeque<(u16, String)>>,
    asked: Mutex<Vec<String>>,
}

impl Transport for Script {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, Failure>> {
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/token"));
        self.asked.lock().unwrap().push(String::from_utf8(request.body.to_vec()).unwrap());
        let (status, body) = self.answers.lock().unwrap().pop_front().expect("nothing more is asked for");
        Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if status == 0 {
                return Err(Failure::new(FailureKind::Connect, "refused"));
            }
            let status = StatusCode::from_u16(status).unwrap();
            Ok(Response::new(status, HeaderMap::new(), body.into()))
        })
    }
}

/// What several processes share.
#[derive(Default)]
struct Kept {
    credentials: Mutex<Option<Credentials>>,
    is_leased: Mutex<bool>,
}

impl Keeper for Kept {
    fn load(&self) -> BoxFuture<'_, Result<Option<Credentials>, Failure>> {
        Box::pin(async { Ok(self.credentials.lock().unwrap().clone()) })
    }

    fn save<'a>(&'a self, credentials: &'a Credentials) -> BoxFuture<'a, Result<(), Failure>> {
        *self.credentials.lock().unwrap() = Some(credentials.clone());
        Box::pin(async { Ok(()) })
    }

    fn lease(&self, _: Duration) -> BoxFuture<'_, Result<bool, Failure>> {
        let was_leased = std::mem::replace(&mut *self.is_leased.lock().unwrap(), true);
        Box::pin(async move { Ok(!was_leased) })
    }

    fn end(&self) -> BoxFuture<'_, Result<(), Failure>> {
        *self.is_leased.lock().unwrap() = false;
        Box::pin(async { Ok(()) })
    }
}

fn client(secret: &str) -> Client {
    Client { id: "id".into(), secret: Secret::new(secret) }
}

fn token_answer(token: &str) -> (u16, String) {
    let body =
        format!(r#"{{"access_token":"{token}","expires_in":{HOUR},"scope":"{READONLY}","token_type":"Bearer"}}"#);
    (200, body)
}

fn refusal(error: &str) -> (u16, String) {
    (400, format!(r#"{{"error":"{error}","error_description":"canary"}}"#))
}

/// Processes that share an account.
struct Stage {
    script: Arc<Script>,
    kept: Arc<Kept>,
    clock: Clock,
}

impl Stage {
    fn new(answers: impl IntoIterator<Item = (u16, String)>) -> Stage {
        let answers = Mutex::new(answers.into_iter().collect());
        let grant = Grant::RefreshToken { refresh_token: Secret::new("1//refresh"), client: client("old") };
        let kept = Kept { credentials: Mutex::new(Some(Credentials { grant, access: None })), ..Kept::default() };
        let clock = Clock::simulated(Timestamp::from_millis(1_700_000_000_000));
        Stage { script: Arc::new(Script { answers, asked: Mutex::default() }), kept: Arc::new(kept), clock }
    }

    fn process(&self) -> Bearer {
        let endpoint = TokenEndpoint::over(self.script.clone(), "https://t.example/token", self.clock.clone());
        let remedy = "run 'highwater auth mail'".to_owned();
        let settings = BearerSettings { account: "ann@example.com".into(), client: Some(client("new")), remedy };
        Bearer::new(self.kept.clone(), endpoint, self.clock.clone(), settings)
    }

    fn asked(&self) -> usize {
        self.script.asked.lock().unwrap().len()
    }

    async fn pass(&self, seconds: u64) {
        self.clock.sleep(Duration::from_secs(seconds)).await;
    }
}

fn shown(token: &Token) -> String {
    String::from_utf8(token.authorization().as_bytes().to_vec()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_token_is_renewed_at_three_quarters_of_its_life() {
    let stage = Stage::new([token_answer("first"), token_answer("second")]);
    let bearer = stage.process();
    assert_eq!(shown(&bearer.token().await.unwrap()), "Bearer first");
    let form = "grant_type=refresh_token&client_id=id&client_secret=new&refresh_token=1%2F%2Frefresh";
    assert_eq!(stage.script.asked.lock().unwrap()[0], form, "with the secret that is configured now");
    stage.pass(HOUR * 3 / 4 - 2).await;
    assert_eq!((shown(&bearer.token().await.unwrap()).as_str(), stage.asked()), ("Bearer first", 1));
    stage.pass(2).await;
    assert_eq!((shown(&bearer.token().await.unwrap()).as_str(), stage.asked()), ("Bearer second", 2));
}

#[tokio::test(start_paused = true)]
async fn however_many_ask_in_however_many_processes_one_renews() {
    let stage = Stage::new([token_answer("only")]);
    let processes = [stage.process(), stage.process(), stage.process()];
    let all = processes.iter().flat_map(|bearer| (0..20).map(|_| bearer.token()));
    let tokens = join_all(all).await;
    assert!(tokens.iter().all(|token| shown(token.as_ref().unwrap()) == "Bearer only"));
    assert_eq!(stage.asked(), 1);
    assert_eq!(shown(&stage.process().token().await.unwrap()), "Bearer only", "a process that comes later shares it");
}

#[tokio::test(start_paused = true)]
async fn a_refused_token_is_renewed_once_for_all_who_were_refused() {
    let stage = Stage::new([token_answer("first"), token_answer("second")]);
    let (here, there) = (stage.process(), stage.process());
    let refused = here.token().await.unwrap();
    assert_eq!(there.token().await.unwrap(), refused);
    let renewed = join_all((0..10).map(|_| here.refused(&refused))).await;
    assert!(renewed.iter().all(|token| shown(token.as_ref().unwrap()) == "Bearer second"));
    assert_eq!(shown(&there.refused(&refused).await.unwrap()), "Bearer second");
    assert_eq!(stage.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_passes_is_tried_again_and_a_token_that_still_works_is_used_meanwhile() {
    let busy = || (503, "busy".to_owned());
    let stage = Stage::new([busy(), (0, String::new()), token_answer("first"), busy(), token_answer("second")]);
    let bearer = stage.process();
    assert_eq!(shown(&bearer.token().await.unwrap()), "Bearer first");
    assert_eq!(stage.asked(), 3);
    stage.pass(HOUR * 3 / 4).await;
    assert_eq!(shown(&bearer.token().await.unwrap()), "Bearer first", "it is good for another quarter");
    assert_eq!(shown(&bearer.token().await.unwrap()), "Bearer first");
    assert_eq!(stage.asked(), 4, "nobody asks again at once");
    stage.pass(10).await;
    assert_eq!(shown(&bearer.token().await.unwrap()), "Bearer second");
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_has_ended_is_told_with_what_to_do_and_not_asked_for_by_everybody() {
    let stage = Stage::new([refusal("invalid_grant"), token_answer("later")]);
    let bearer = stage.process();
    for failure in join_all((0..10).map(|_| bearer.token())).await {
        let failure = failure.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Credentials);
        for part in ["7 days", "password", "revoked", "highwater auth mail"] {
            assert!(failure.message.contains(part), "{failure}");
        }
        assert!(!failure.message.contains("canary"), "{failure}");
    }
    assert_eq!(stage.asked(), 1);
    stage.pass(10).await;
    assert_eq!(shown(&bearer.token().await.unwrap()), "Bearer later", "somebody has mended it");
}

#[tokio::test(start_paused = true)]
async fn without_credentials_or_without_the_scope_nothing_can_be_done() {
    let narrow = r#"{"access_token":"a","expires_in":3600,"scope":"openid","token_type":"Bearer"}"#;
    let stage = Stage::new([(200, narrow.to_owned())]);
    let failure = stage.process().token().await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Credentials);
    assert!(failure.message.contains("gmail.readonly"), "{failure}");
    assert_eq!(stage.kept.credentials.lock().unwrap().as_ref().unwrap().access, None);
    *stage.kept.credentials.lock().unwrap() = None;
    let failure = stage.process().token().await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Credentials);
    assert!(failure.message.contains("there are none yet; run 'highwater auth mail'"), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_makes_no_sense_is_no_token() {
    for body in ["", "{}", r#"{"access_token":"two words","expires_in":3600}"#, r#"{"access_token":"canary"}"#] {
        let stage = Stage::new([(200, body.to_owned())]);
        let failure = stage.process().token().await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Malformed, "{body}");
        assert!(!failure.message.contains("canary"), "{failure}");
    }
}
