//! Looker: everything an instance holds, one stream for each type of content. Keys are Looker's own ids; the axis is the
//! time of a snapshot, in seconds.

mod census;
mod content;
mod fetching;
mod group;
mod json;
mod kinds;
mod listing;
mod naming;
mod permissions;
mod references;
mod reply;
mod schema;
mod search;
mod session;
mod walking;

use std::{
    collections::{BTreeSet, HashMap},
    num::NonZeroU32,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use highwater_core::{
    AbsenceRule, DeadLetterPolicy, Failure, FailureKind, Key, Position, Span, StreamName, Timestamp, schema::Table,
};
use http::StatusCode;

pub use kinds::{Kind, kind_names};
pub use search::searched;
pub use session::ApiKey;

use self::{
    census::{Census, Order},
    content::Reader,
    listing::{is_end, is_refusal},
    references::References,
    reply::{expect_ok, is_passing},
    session::{Session, signed},
};
use crate::{
    Allowance, Answer, Call, Decoding, Density, Discovered, Following, Forecast, Gateway, GatewayError, Live, Recall,
    Renewal, Request, Response, Source, StreamPolicy, StreamSpec, Transport, gmail::oauth::Token,
};

pub struct LookerSettings {
    /// What rows of it are called.
    pub source: String,
    pub key: ApiKey,
    /// The types to mirror; all if none is named.
    pub types: Vec<String>,
    /// Objects in a page.
    pub page: usize,
    pub max_calls: Option<u64>,
    pub max_calls_month: Option<u64>,
}

pub struct Looker {
    gateway: Gateway,
    session: Session,
    allowance: Arc<Allowance>,
    streams: Vec<StreamSpec>,
    /// Of all types, also of those that are only read for what they name.
    tables: HashMap<&'static str, &'static Table>,
    source: Arc<str>,
    page: usize,
    decoding: Decoding,
    /// Types are mirrored that are found only by what refers to them.
    collects: bool,
    /// What the last look at each type found; held for a few instructions.
    censuses: Mutex<HashMap<&'static str, Arc<Census>>>,
    references: Mutex<References>,
    /// What pages have shown of a type and no list has.
    strays: Mutex<HashMap<&'static str, BTreeSet<Key>>>,
    /// How often a page failed that was to show one object.
    spoiled: Mutex<HashMap<(&'static str, Key), u32>>,
    /// How the server orders ids, once that is known.
    order: Mutex<Option<Order>>,
}

/// A token may end while its request waits at a closed gate. Who is refused more often with good ones is so for a reason.
const RENEWALS: u32 = 3;
/// Between tries of a list.
const QUICK_RETRIES: [Duration; 4] =
    [Duration::from_millis(250), Duration::from_millis(500), Duration::from_secs(1), Duration::from_secs(2)];
const ABSENCE: AbsenceRule = AbsenceRule { confirmations: 1, over: Duration::ZERO, reason: "gone before fetch" };
/// What an operator may have in a page, and gets.
pub const JOB_SIZE: usize = 100;

impl Looker {
    /// `transport` is that of the gateway: signing in needs no permit.
    pub fn new(gateway: Gateway, transport: Arc<dyn Transport>, settings: LookerSettings, decoding: Decoding) -> Self {
        let LookerSettings { source, key, types, page, max_calls, max_calls_month } = settings;
        let allowance = Arc::new(Allowance::new(max_calls, max_calls_month, kinds::activity_of));
        let clock = gateway.clock().clone();
        let chosen = |kind: &&Kind| types.is_empty() || types.iter().any(|name| name == kind.name);
        let tables: HashMap<_, _> =
            kinds::KINDS.iter().map(|kind| (kind.name, schema::content(&source, kind.name))).collect();
        let streams: Vec<_> = kinds::KINDS.iter().filter(chosen).map(|kind| stream(kind, tables[kind.name])).collect();
        Looker {
            collects: streams.iter().any(|stream| kind_of(&stream.name).is_referred_to()),
            gateway: gateway.with_allowance(allowance.clone()),
            session: Session::new(transport, clock, key),
            allowance,
            streams,
            tables,
            source: source.into(),
            page,
            decoding,
            censuses: Mutex::default(),
            references: Mutex::default(),
            strays: Mutex::default(),
            spoiled: Mutex::default(),
            order: Mutex::default(),
        }
    }

    /// One request with a token that is good now.
    async fn ask(&self, path: &str, call: &Call) -> Result<Response, GatewayError> {
        let request = Request::get(format!("/api/4.0/{path}"));
        let (mut token, mut refusals) = (self.token(None, call).await?, 0);
        loop {
            let response = self.gateway.get(&signed(request.clone(), &token), call, 1.0).await?;
            if response.status != StatusCode::UNAUTHORIZED || refusals >= RENEWALS {
                return Ok(response);
            }
            // One that was renewed meanwhile has ended while its request waited, which says nothing of the account.
            refusals += u32::from(self.session.is_current(&token).await);
            token = self.token(Some(&token), call).await?;
        }
    }

    /// A token that is good, and not one that was refused. Who is to wait with signing in waits at the gate, as with any
    /// other request.
    async fn token(&self, refused: Option<&Token>, call: &Call) -> Result<Token, GatewayError> {
        loop {
            match self.sign_in(refused).await {
                Err(failure) if failure.kind == FailureKind::Throttled => {
                    drop(self.gateway.line(call.lane, 1.0, NonZeroU32::MIN).next().await?);
                }
                signed_in => return Ok(signed_in?),
            }
        }
    }

    async fn sign_in(&self, refused: Option<&Token>) -> Result<Token, Failure> {
        let signed_in = match refused {
            Some(token) => self.session.refused(token).await,
            None => self.session.token().await,
        };
        signed_in.inspect_err(|failure| {
            if let (FailureKind::Throttled, Some(wait)) = (failure.kind, failure.retry_after) {
                self.gateway.told_to_wait(wait);
            }
        })
    }

    /// The body of an answer that is sound JSON, or is about to be found out not to be.
    async fn answer(&self, path: &str, call: &Call) -> Result<Bytes, GatewayError> {
        let response = self.ask(path, call).await?;
        let what = path.split('?').next().unwrap_or(path);
        Ok(expect_ok(response, what)?)
    }

    /// A list. All that follows depends on it, so that a moment's trouble may not spoil it.
    async fn list(&self, path: &str, call: &Call) -> Result<Bytes, Failure> {
        self.list_for(path, &QUICK_RETRIES, call).await
    }

    /// Tried again after each of these waits.
    async fn list_for(&self, path: &str, waits: &[Duration], call: &Call) -> Result<Bytes, Failure> {
        let mut waits = waits.iter();
        loop {
            let listed = match self.answer(path, call).await {
                Ok(body) => listing::rows(&body, path).map(drop).map(|()| body),
                Err(error) => Err(error.into()),
            };
            match (listed, waits.next()) {
                (Err(failure), Some(wait)) if is_passing(failure.kind) => self.gateway.clock().sleep(*wait).await,
                (listed, _) => return listed,
            }
        }
    }

    /// Nothing more is to be had of this account now.
    fn is_over(&self, failure: &Failure) -> bool {
        is_end(failure.kind) || self.gateway.is_stopped()
    }

    fn reader(&self, kind: &'static Kind) -> Reader {
        let table = self.tables[kind.name];
        Reader { source: self.source.clone(), kind, table, collects: self.collects }
    }

    fn references(&self) -> MutexGuard<'_, References> {
        self.references.lock().expect("no code panics while it holds this lock")
    }

    fn known(&self, kind: &Kind) -> Option<Arc<Census>> {
        self.censuses.lock().expect("no code panics while it holds this lock").get(kind.name).cloned()
    }

    /// Lists a type, and remembers what was found.
    async fn look(&self, kind: &'static Kind, is_second: bool, call: &Call) -> Result<Arc<Census>, Failure> {
        // Some types are found by way of others.
        let mut census = Box::pin(self.census(kind, call)).await?;
        census.is_second = is_second;
        if is_second {
            self.add_strays(&mut census, kind, call).await?;
        }
        let census = Arc::new(census);
        let mut censuses = self.censuses.lock().expect("no code panics while it holds this lock");
        censuses.insert(kind.name, census.clone());
        Ok(census)
    }

    async fn listed(&self, stream: &StreamName, is_second: bool, call: &Call) -> Result<Discovered, Failure> {
        let before = self.known(kind_of(stream)).filter(|_| is_second);
        match self.look(kind_of(stream), is_second, call).await {
            Ok(census) => Ok(Discovered::Roll(census.roll(before.as_deref()))),
            Err(failure) if is_refusal(failure.kind) => {
                Ok(Discovered::Refused(Failure::new(FailureKind::Forbidden, failure.message)))
            }
            Err(failure) => Err(failure),
        }
    }

    fn seconds(&self) -> i64 {
        self.gateway.clock().now().as_millis().div_euclid(1000)
    }

    async fn forecast_of(&self, kind: &'static Kind, call: &Call) -> Result<Option<Forecast>, Failure> {
        if kind.is_referred_to() {
            return Ok(None);
        }
        let before = self.calls_made();
        let census = match self.look(kind, false, call).await {
            Ok(census) => census,
            Err(failure) if is_refusal(failure.kind) => {
                return Ok(Some(Forecast { objects: 0, calls: Vec::new(), refused: Some(failure.message) }));
            }
            Err(failure) => return Err(failure),
        };
        let lists = self.calls_made() - before;
        let members = if matches!(kind.list, kinds::List::Groups { .. }) { 2 * census.keys().len() as u64 } else { 0 };
        let bodies = fetching::requests(&census, census.keys(), self.page);
        let activity = kinds::activity_of(&Request::get(format!("/{}/", kind.one)));
        let calls = vec![(activity.as_str(), 2 * lists + bodies + members)];
        Ok(Some(Forecast { objects: census.keys().len() as u64, calls, refused: None }))
    }

    fn calls_made(&self) -> u64 {
        self.allowance.calls().iter().map(|(_, calls)| calls).sum()
    }
}

fn kind_of(stream: &StreamName) -> &'static Kind {
    Kind::find(stream.as_str()).expect("streams are made of types")
}

fn stream(kind: &'static Kind, table: &'static Table) -> StreamSpec {
    StreamSpec {
        name: kind.name.parse().expect("the names of types are names of streams"),
        axis: "snapshot",
        origin: Position(0),
        table,
        density: Density::Snapshot(if kind.is_for_ever() { Renewal::Once } else { Renewal::Anew }),
        follows: Following::Sync,
        sides: &[],
        vanished: Some(schema::DELETED),
        policy: StreamPolicy {
            segment_size: 1,
            job_size: JOB_SIZE,
            dead_letters: DeadLetterPolicy::Pass,
            absence: ABSENCE,
            settled_behind: 0,
        },
    }
}

impl Source for Looker {
    fn streams(&self) -> &[StreamSpec] {
        &self.streams
    }

    fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    fn head<'a>(&'a self, _: &'a StreamName, _: &'a Call) -> BoxFuture<'a, Result<Position, Failure>> {
        Box::pin(async move { Ok(Position(self.seconds())) })
    }

    fn position_at<'a>(
        &'a self,
        _: &'a StreamName,
        at: Timestamp,
        _: &'a Call,
    ) -> BoxFuture<'a, Result<Position, Failure>> {
        Box::pin(async move { Ok(Position(at.as_millis().div_euclid(1000).max(0))) })
    }

    fn discover<'a>(
        &'a self,
        stream: &'a StreamName,
        _: Span,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<Discovered, Failure>> {
        Box::pin(self.listed(stream, false, call))
    }

    fn recheck<'a>(
        &'a self,
        stream: &'a StreamName,
        _: Span,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<Option<Discovered>, Failure>> {
        Box::pin(async move {
            let kind = kind_of(stream);
            if kind.is_referred_to() {
                return Ok(None);
            }
            self.listed(stream, true, call).await.map(Some)
        })
    }

    fn forecast<'a>(
        &'a self,
        stream: &'a StreamName,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<Option<Forecast>, Failure>> {
        Box::pin(self.forecast_of(kind_of(stream), call))
    }

    fn fetch<'a>(
        &'a self,
        stream: &'a StreamName,
        keys: &'a [Key],
        call: &'a Call,
    ) -> BoxFuture<'a, Result<Vec<Answer>, Failure>> {
        Box::pin(async move {
            let kind = kind_of(stream);
            // Keys that are tried again in a later run come before anything is listed.
            let census = self.known(kind).unwrap_or_default();
            self.bodies(kind, &census, keys, call).await
        })
    }

    fn probe<'a>(&'a self, _: &'a StreamName, _: Option<&'a Key>) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            let token = self.sign_in(None).await?;
            let response = self.gateway.get_probe(signed(Request::get("/api/4.0/user"), &token)).await?;
            match expect_ok(response, "user") {
                Err(failure) if is_refusal(failure.kind) => Ok(()),
                answer => answer.map(drop),
            }
        })
    }

    fn live(&self) -> Option<&dyn Live> {
        None
    }

    fn allowance(&self) -> Option<&Allowance> {
        Some(&self.allowance)
    }

    fn sign_off(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.session.end())
    }

    fn recall(&self) -> Option<&dyn Recall> {
        Some(self)
    }
}
