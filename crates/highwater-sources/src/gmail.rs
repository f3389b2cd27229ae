//! Gmail: the messages of one mailbox, each with all its bytes. Keys are Gmail's own ids; the axis is the time at which a
//! message came in, in seconds.

mod census;
mod history;
mod listing;
mod message;
mod mime;
pub mod oauth;
mod packed;
mod places;
mod policy;
mod query;
mod quota;
mod raw;
mod reply;
mod schema;
mod search;
mod threads;

use std::{collections::BTreeMap, future::pending, time::Duration};

use futures_util::{
    StreamExt, TryStreamExt,
    future::BoxFuture,
    stream::{self, BoxStream, FuturesUnordered},
};
use highwater_core::{
    AbsenceRule, DeadLetterPolicy, Failure, FailureKind, Key, KeySet, Lane, Position, Span, StreamName, Timestamp,
    schema::Table,
};
use http::{HeaderValue, StatusCode, header};
use serde::{Deserialize, de::DeserializeOwned};
use tokio::sync::OnceCell;

pub use mime::{Address, Attachment, Mail, read as read_mail};
pub use packed::{NotPacked, unpack};
pub use policy::{Kind as MailKind, Policy};
pub use quota::Quota;
pub use raw::{NotBase64, decode as decode_raw};
pub use schema::{ALL_MESSAGES, ATTACHMENTS};
pub use search::searched;

use self::{
    listing::{Listed, Which},
    message::Reader,
    oauth::{Bearer, Token},
    query::Query,
    quota::Costs,
    reply::expect_ok,
};
use crate::{
    Answer, Budget, Call, Changes, Decoding, Density, Discovered, Fetched, Following, Gateway, GatewayError, Live,
    Request, Response, Source, StreamPolicy, StreamSpec, Survey, decoding::DECODED_LIKE_AN_ITEM,
};

/// Whose mail it is.
#[derive(Clone, Debug)]
pub struct Mailbox {
    /// What rows of it are called.
    pub id: String,
    pub org: String,
    pub account: String,
}

pub struct GmailSettings {
    pub mailbox: Mailbox,
    pub policy: Policy,
    pub quota: Quota,
    /// Older mail is left alone.
    pub backfill: Option<Duration>,
    /// Bytes of answers that may come in a day, decompressed.
    pub max_bytes_day: Option<u64>,
}

pub struct Gmail {
    gateway: Gateway,
    bearer: Bearer,
    streams: [StreamSpec; 1],
    quota: Quota,
    policy: Policy,
    table: &'static Table,
    mailbox: Mailbox,
    backfill: Option<Duration>,
    decoding: Decoding,
    /// Known to be left out before anything is fetched: spares the asking. Listed once.
    left_out: OnceCell<BTreeMap<Key, &'static str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Profile {
    email_address: String,
    history_id: String,
    #[serde(default)]
    messages_total: u64,
}

/// Between tries of a page of a list.
const QUICK_RETRIES: [Duration; 4] =
    [Duration::from_millis(250), Duration::from_millis(500), Duration::from_secs(1), Duration::from_secs(2)];

/// Whether the same request may well succeed in a moment.
fn is_passing(kind: FailureKind) -> bool {
    use FailureKind as K;
    matches!(kind, K::Connect | K::Timeout | K::Broken | K::Server | K::Malformed)
}

/// A token may end while its request waits at a closed gate, also a second time. Who is refused more often is so for a
/// reason.
const RENEWALS: u32 = 3;

const STREAM: &str = "messages";
/// Long listings are cut in two.
const PAGES_MAX: u32 = 20;
/// A mailbox so small is listed at once.
const SMALL: i64 = 2_000;
const DAY: u64 = 86_400;
const ABSENCE: AbsenceRule = AbsenceRule { confirmations: 1, over: Duration::ZERO, reason: "gone before fetch" };

impl Gmail {
    pub fn new(gateway: Gateway, bearer: Bearer, settings: GmailSettings, decoding: Decoding) -> Self {
        let GmailSettings { mailbox, policy, quota, backfill, max_bytes_day } = settings;
        let budget = max_bytes_day.map(|most| Budget::new(most, message::is_request));
        let table = schema::messages(&mailbox.id);
        Gmail {
            gateway: gateway.with_classifier(reply::classify).with_quota_reader(reply::quota).with_budget(budget),
            bearer,
            streams: [stream(table)],
            quota,
            policy,
            table,
            mailbox,
            backfill,
            decoding,
            left_out: OnceCell::new(),
        }
    }

    fn costs(&self) -> Costs {
        self.quota.costs_by(self.gateway.quota())
    }

    /// One request with a token that is good now. What is throttled may be sent again much later, with a token that was
    /// good then; hence the other tries.
    async fn ask(&self, request: Request, call: &Call, cost: f64) -> Result<Response, GatewayError> {
        let mut token = self.bearer.token().await?;
        for _ in 0..RENEWALS {
            let response = self.gateway.get(&signed(request.clone(), &token), call, cost).await?;
            if response.status != StatusCode::UNAUTHORIZED {
                return Ok(response);
            }
            token = self.bearer.refused(&token).await?;
        }
        self.gateway.get(&signed(request, &token), call, cost).await
    }

    /// An answer that is no message, read. Lists are made of many of these, so that one that fails for a moment may not
    /// spoil all.
    async fn read<T: DeserializeOwned>(&self, request: Request, call: &Call, cost: f64) -> Result<T, Failure> {
        let mut waits = QUICK_RETRIES.iter();
        loop {
            let read = match self.ask(request.clone(), call, cost).await {
                Ok(response) => expect_ok(&response).and_then(|body| {
                    serde_json::from_slice(body)
                        .map_err(|_| Failure::new(FailureKind::Malformed, "the answer is not what was asked for"))
                }),
                Err(error) => Err(error.into()),
            };
            match (read, waits.next()) {
                (Err(failure), Some(wait)) if is_passing(failure.kind) => self.gateway.clock().sleep(*wait).await,
                (read, _) => return read,
            }
        }
    }

    async fn fetch_one(&self, key: &Key, call: &Call) -> Heard {
        // What the record has told of since may be something else by now.
        let left_out = self.left_out.get().filter(|_| call.lane == Lane::Backfill);
        if let Some(reason) = left_out.and_then(|left_out| left_out.get(key)) {
            return (key.clone(), Err(Fetched::Excluded { reason }));
        }
        let reply = self.ask(message::request(key), call, self.costs().get).await.map_err(|error| match error {
            GatewayError::Failed(failure) => Fetched::Failed(failure),
            GatewayError::Stopped(_) => Fetched::Skipped,
        });
        (key.clone(), reply)
    }

    /// What came in within a span.
    async fn discover_in(&self, span: Span, call: &Call) -> Result<Discovered, Failure> {
        let pages_max = if span.len() > 1 { PAGES_MAX } else { u32::MAX };
        let which = Which { span: Some(span), label: None };
        let Listed::All { keys, .. } = self.list_pages(which, pages_max, call).await? else {
            return Ok(Discovered::TooMany);
        };
        if !keys.is_empty() {
            self.left_out.get_or_try_init(|| self.leave_out(call)).await?;
        }
        Ok(Discovered::Keys(KeySet::List(keys.into_iter().collect())))
    }

    /// What policy leaves out is listed by its labels, so that it is counted, not fetched.
    async fn leave_out(&self, call: &Call) -> Result<BTreeMap<Key, &'static str>, Failure> {
        let mut left_out = BTreeMap::new();
        for kind in self.policy.excluded() {
            match self.list(Which { span: None, label: Some(kind.label()) }, call).await {
                Ok(listed) => left_out.extend(listed.into_iter().map(|key| (key, kind.as_str()))),
                // Not every mailbox has every label.
                Err(failure) if census::is_unknown(&failure) => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(left_out)
    }

    /// Where mail begins, how much there is, and so how large slices are to be.
    async fn survey_now(&self, call: &Call) -> Result<Survey, Failure> {
        let total = self.profile(call).await?.messages_total.cast_signed();
        let head = Position(self.seconds().saturating_add(1));
        let first = self.limit().unwrap_or(Position(0));
        if total <= SMALL {
            return Ok(Survey { head, first, oldest: first, segment_size: Some(Span::new(first, head).len().max(1)) });
        }
        let oldest = Position(self.oldest(head.0, call).await?);
        Ok(Survey { head, first, oldest, segment_size: Some(slice(total, head.0 - oldest.0)) })
    }

    /// Where mail begins that is not to be left alone, by the configuration.
    fn limit(&self) -> Option<Position> {
        let back = self.backfill?.as_secs().cast_signed();
        Some(Position(self.seconds().saturating_sub(back).max(0)))
    }

    /// Refused if it is another mailbox than the one that is to be mirrored.
    async fn profile(&self, call: &Call) -> Result<Profile, Failure> {
        let profile: Profile = self.read(Query::new("profile").request(), call, self.costs().profile).await?;
        if !oauth::is_same_account(&profile.email_address, &self.mailbox.account) {
            return Err(Failure::new(FailureKind::Credentials, "the credentials are those of another account"));
        }
        Ok(profile)
    }

    /// The day of the oldest message, by halving: rather too early than too late.
    async fn oldest(&self, head: i64, call: &Call) -> Result<i64, Failure> {
        let (mut low, mut high) = (0, head);
        while high - low > DAY.cast_signed() {
            let middle = low + (high - low) / 2;
            if self.has_before(middle, call).await? {
                high = middle;
            } else {
                low = middle;
            }
        }
        Ok((low - DAY.cast_signed()).max(0))
    }

    fn seconds(&self) -> i64 {
        self.gateway.clock().now().as_millis().div_euclid(1000)
    }

    async fn decode(&self, heard: Vec<Heard>) -> Vec<Answer> {
        let bytes: usize = heard.iter().filter_map(|(_, reply)| reply.as_ref().ok()).map(|it| it.body.len()).sum();
        let reader = self.reader();
        let answers = move || heard.into_iter().map(|(key, reply)| answer(&reader, key, reply)).collect();
        self.decoding.run(bytes / DECODED_LIKE_AN_ITEM, answers).await
    }

    fn reader(&self) -> Reader {
        Reader { mailbox: self.mailbox.clone(), policy: self.policy.clone(), table: self.table }
    }
}

/// A key, and what came back for it.
type Heard = (Key, Result<Response, Fetched>);

/// All there is to hear, or what was heard when somebody needs the memory. Nothing at the end.
async fn next_part(asked: &mut FuturesUnordered<impl Future<Output = Heard>>) -> Vec<Heard> {
    let mut heard = Vec::new();
    loop {
        tokio::select! {
            biased;
            next = asked.next() => match next {
                Some(next) => heard.push(next),
                None => return heard,
            },
            () = wanted(&heard) => return heard,
        }
    }
}

async fn wanted(heard: &[Heard]) {
    match heard.iter().find_map(|(_, reply)| reply.as_ref().ok()?.held.as_ref()) {
        Some(held) => held.wanted().await,
        None => pending().await,
    }
}

fn signed(mut request: Request, token: &Token) -> Request {
    request.headers.insert(header::AUTHORIZATION, token.authorization());
    request.headers.insert(header::USER_AGENT, USER_AGENT);
    request
}

/// Google compresses for those who say so here as well.
const USER_AGENT: HeaderValue = HeaderValue::from_static(concat!("highwater/", env!("CARGO_PKG_VERSION"), " (gzip)"));

/// A slice holds some hundreds of messages: a day, a week or a month.
fn slice(total: i64, seconds: i64) -> u64 {
    let a_day = total.saturating_mul(DAY.cast_signed()) / seconds.max(1);
    match a_day {
        300.. => DAY,
        40..300 => 7 * DAY,
        _ => 30 * DAY,
    }
}

fn stream(table: &'static Table) -> StreamSpec {
    StreamSpec {
        name: STREAM.parse().expect("a plain word is a name"),
        axis: "seconds",
        origin: Position(0),
        table,
        density: Density::Sparse,
        follows: Following::Sync,
        sides: schema::SIDES,
        vanished: Some(schema::DELETED),
        policy: StreamPolicy {
            segment_size: 30 * DAY,
            job_size: 300,
            dead_letters: DeadLetterPolicy::Pass,
            absence: ABSENCE,
            settled_behind: 0,
        },
    }
}

impl Source for Gmail {
    fn streams(&self) -> &[StreamSpec] {
        &self.streams
    }

    fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    fn head<'a>(&'a self, _: &'a StreamName, _: &'a Call) -> BoxFuture<'a, Result<Position, Failure>> {
        Box::pin(async move { Ok(Position(self.seconds().saturating_add(1))) })
    }

    fn survey<'a>(&'a self, _: &'a StreamName, call: &'a Call) -> BoxFuture<'a, Result<Survey, Failure>> {
        Box::pin(self.survey_now(call))
    }

    fn floor(&self, _: &StreamName) -> Option<Position> {
        self.limit()
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
        _: &'a StreamName,
        span: Span,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<Discovered, Failure>> {
        Box::pin(self.discover_in(span, call))
    }

    fn fetch<'a>(
        &'a self,
        stream: &'a StreamName,
        keys: &'a [Key],
        call: &'a Call,
    ) -> BoxFuture<'a, Result<Vec<Answer>, Failure>> {
        // Whoever wants all of it at once has to have the room.
        let roomy = |answer: Answer| Answer { held: None, ..answer };
        let parts = self.fetch_parts(stream, keys, call);
        Box::pin(parts.map_ok(move |part| part.into_iter().map(roomy).collect::<Vec<_>>()).try_concat())
    }

    fn fetch_parts<'a>(
        &'a self,
        _: &'a StreamName,
        keys: &'a [Key],
        call: &'a Call,
    ) -> BoxStream<'a, Result<Vec<Answer>, Failure>> {
        let asked: FuturesUnordered<_> = keys.iter().map(|key| self.fetch_one(key, call)).collect();
        Box::pin(stream::unfold(asked, move |mut asked| async move {
            let heard = next_part(&mut asked).await;
            if heard.is_empty() { None } else { Some((Ok(self.decode(heard).await), asked)) }
        }))
    }

    fn probe<'a>(&'a self, _: &'a StreamName, _: Option<&'a Key>) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            let token = self.bearer.token().await?;
            let request = signed(Query::new("profile").request(), &token);
            expect_ok(&self.gateway.get_probe(request).await?).map(drop)
        })
    }

    fn live(&self) -> Option<&dyn Live> {
        None
    }

    fn changes(&self) -> Option<&dyn Changes> {
        Some(self)
    }
}

fn answer(reader: &Reader, key: Key, reply: Result<Response, Fetched>) -> Answer {
    let mut response = match reply {
        Ok(response) => response,
        Err(unheard) => return Answer::new(key, unheard),
    };
    let held = response.held.take();
    let fetched = match expect_ok(&response).map(drop).and_then(|()| reader.read(&key, response.body)) {
        Ok(fetched) => fetched,
        Err(failure) if failure.kind == FailureKind::NotFound => Fetched::Absent,
        Err(failure) => Fetched::Failed(failure),
    };
    Answer { key, fetched, held }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_hold_some_hundreds_of_messages() {
        let years = |years: i64| years * 365 * DAY.cast_signed();
        assert_eq!(slice(1_000_000, years(2)), DAY);
        assert_eq!(slice(100_000, years(5)), 7 * DAY);
        assert_eq!(slice(20_000, years(15)), 30 * DAY);
        assert_eq!(slice(5, 0), DAY);
    }
}

#[cfg(fuzzing)]
pub(crate) fn read_and_pack(bytes: &[u8]) {
    let mail = mime::read(bytes);
    let contents: usize = mail.attachments.iter().map(|attachment| attachment.content.len()).sum();
    assert!(contents <= 2 * bytes.len() + 1, "attachments of {contents} bytes in a message of {}", bytes.len());
    assert_eq!(packed::unpack(&packed::pack(bytes), bytes.len()).as_deref(), Ok(bytes));
    if let Ok(text) = str::from_utf8(bytes) {
        // Most texts are no base64: that is an answer, too.
        raw::decode(text).ok();
    }
}
