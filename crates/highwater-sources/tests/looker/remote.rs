//! A Looker instance whose every answer the test decides, and the source that reads it.

use std::{
    convert::Infallible,
    future::pending,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::future::BoxFuture;
use highwater_core::{
    Failure, Lane, Position, Span, Timestamp,
    throttle::{InFlight, Rate, Settings},
};
use highwater_sources::{
    Beat, Call, Clock, Decoding, Discovered, Gateway, Request, Response, Roll, Source, Transport,
    gmail::oauth::Secret,
    looker::{ApiKey, Looker, LookerSettings},
};
use http::{HeaderMap, StatusCode};
use serde_json::{Value as Json, json};

/// More requests than any of these tests is about: what passes them would never end.
const ENDLESS: usize = 300;

/// A request for something that is no login.
pub(crate) struct Ask {
    pub(crate) path: String,
    query: String,
}

impl Ask {
    fn read(target: &str) -> Ask {
        let target = target.strip_prefix("/api/4.0/").unwrap();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Ask { path: path.to_owned(), query: query.to_owned() }
    }

    pub(crate) fn number(&self, name: &str) -> Option<usize> {
        let words = self.query.split('&').filter_map(|word| word.split_once('='));
        words.filter(|(known, _)| *known == name).map(|(_, value)| value.parse().unwrap()).next()
    }

    pub(crate) fn offset(&self) -> usize {
        self.number("offset").unwrap_or(0)
    }

    /// A page of rows with these ids, of a server that gives no more than `most` at once.
    pub(crate) fn page(&self, ids: impl IntoIterator<Item = u32>, most: usize) -> Json {
        let limit = self.number("limit").unwrap_or(usize::MAX).min(most);
        ids.into_iter().skip(self.offset()).take(limit).map(row).collect()
    }
}

pub(crate) fn row(id: u32) -> Json {
    json!({"id": id.to_string(), "name": format!("N{id}")})
}

type Answer = Box<dyn Fn(&Ask) -> Json + Send + Sync>;
/// Of the n-th login.
type LoginAnswer = Box<dyn Fn(usize) -> Response + Send + Sync>;

pub(crate) fn said(status: u16, body: &Json) -> Response {
    Response::new(StatusCode::from_u16(status).unwrap(), HeaderMap::new(), body.to_string().into())
}

pub(crate) fn token(expires_in: Json) -> Response {
    said(200, &json!({"access_token": "token", "token_type": "Bearer", "expires_in": expires_in}))
}

pub(crate) struct Remote {
    answer: Answer,
    login: LoginAnswer,
    clock: Clock,
    asked: Mutex<usize>,
    /// When.
    logins: Mutex<Vec<Duration>>,
}

impl Transport for Remote {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, Failure>> {
        let response = match request.path.as_str() {
            "/api/4.0/login" => {
                let mut logins = self.logins.lock().unwrap();
                logins.push(self.clock.moment().since_start());
                assert!(logins.len() <= ENDLESS, "nobody signs in as often as this");
                (self.login)(logins.len())
            }
            target => {
                let mut asked = self.asked.lock().unwrap();
                *asked += 1;
                assert!(*asked <= ENDLESS, "{target} is the {asked}th request");
                let body = (self.answer)(&Ask::read(target));
                // Null stands for what is not there.
                said(if body.is_null() { 404 } else { 200 }, &body)
            }
        };
        Box::pin(async move { Ok(response) })
    }
}

/// The source of an instance that answers so.
pub(crate) struct Desk {
    pub(crate) looker: Looker,
    remote: Arc<Remote>,
}

impl Desk {
    pub(crate) fn new(answer: impl Fn(&Ask) -> Json + Send + Sync + 'static) -> Desk {
        Desk::behind(|_| token(3600.into()), answer)
    }

    /// Where signing in is answered so.
    pub(crate) fn behind(
        login: impl Fn(usize) -> Response + Send + Sync + 'static,
        answer: impl Fn(&Ask) -> Json + Send + Sync + 'static,
    ) -> Desk {
        let clock = Clock::simulated(Timestamp::from_millis(1_772_359_200_000));
        let remote = Arc::new(Remote {
            answer: Box::new(answer),
            login: Box::new(login),
            clock: clock.clone(),
            asked: Mutex::default(),
            logins: Mutex::default(),
        });
        let throttle = Settings::new(Rate::Unlimited, InFlight { start: 4, max: 4 });
        let gateway = Gateway::new(remote.clone(), throttle, clock, Box::new(|| 0.5));
        let settings = LookerSettings {
            source: "bi".into(),
            key: ApiKey { client_id: "id".into(), client_secret: Secret::new("secret") },
            types: Vec::new(),
            page: 100,
            max_calls: None,
            max_calls_month: None,
        };
        Desk { looker: Looker::new(gateway, remote.clone(), settings, Decoding::Inline), remote }
    }

    /// Everything of a type, as the source lists it.
    pub(crate) async fn list(&self, kind: &str) -> Result<Roll, Failure> {
        let (stream, span) = (kind.parse().unwrap(), Span::new(Position(0), Position(1)));
        let call = Call::new(Lane::Live, Beat::new(self.looker.gateway().clock().clone()));
        match self.driven(self.looker.discover(&stream, span, &call)).await? {
            Discovered::Roll(roll) => Ok(roll),
            other => panic!("{other:?} is no roll"),
        }
    }

    pub(crate) async fn driven<T>(&self, work: impl Future<Output = T>) -> T {
        tokio::select! {
            done = work => done,
            never = async { self.looker.gateway().drive().await; pending::<Infallible>().await } => match never {},
        }
    }

    /// When somebody signed in.
    pub(crate) fn logins(&self) -> Vec<Duration> {
        self.remote.logins.lock().unwrap().clone()
    }

    /// Requests but logins.
    pub(crate) fn asked(&self) -> usize {
        *self.remote.asked.lock().unwrap()
    }
}

pub(crate) fn ids(roll: &Roll) -> Vec<u32> {
    let mut ids: Vec<u32> = roll.keys.iter().map(|key| key.to_string().parse().unwrap()).collect();
    ids.sort_unstable();
    ids
}
