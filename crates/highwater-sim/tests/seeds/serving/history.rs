//! Every body that every object ever had, as an undisturbed decoder reads it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::future::BoxFuture;
use highwater_core::{
    Failure, Key, Lane, StreamName, Timestamp,
    throttle::{InFlight, Rate, Settings},
};
use highwater_sim::{HnSim, Publicity, Version};
use highwater_sources::{Beat, Call, Clock, Decoding, Gateway, Hn, Request, Response, Source, Transport};
use serde_json::Value as Json;

use super::stage::{EPOCH, Stage};
use crate::oracle::{self, Plain};

/// A body, and since when.
pub(crate) struct Told {
    pub(crate) at: Timestamp,
    /// When `updates` named it, at the latest; `None` if it never did.
    pub(crate) told: Option<Timestamp>,
    pub(crate) plain: Plain,
    pub(crate) json: Json,
}

/// Grows with the world, so that nothing is decoded twice.
pub(crate) struct Histories {
    sim: Arc<HnSim>,
    pub(crate) items: BTreeMap<u64, Vec<Told>>,
    pub(crate) users: BTreeMap<String, Vec<Told>>,
}

impl Histories {
    pub(crate) fn new(sim: Arc<HnSim>) -> Self {
        Histories { sim, items: BTreeMap::new(), users: BTreeMap::new() }
    }

    pub(crate) fn grow(&mut self, stage: &Stage) {
        let now = stage.age;
        let mut decoder = Decoder::new();
        for id in *self.sim.world().ids().start()..=self.sim.max_item(now) {
            let Some(versions) = self.sim.item_versions(id, now) else { continue };
            let known = self.items.entry(id).or_default();
            let told = |version: &Version| told_at(stage, version);
            extend(known, versions, told, |body| decoder.read("items", &Key::Number(id as i64), body));
            for author in known.iter().filter_map(|told| told.plain.0.get("by")) {
                self.users.entry(author.clone()).or_default();
            }
        }
        for (name, known) in &mut self.users {
            let Some(versions) = self.sim.user_versions(name, now) else { continue };
            let told = |version: &Version| told_at(stage, version);
            extend(known, versions, told, |body| decoder.read("users", &Key::from(name.as_str()), body));
        }
    }
}

fn extend(
    known: &mut Vec<Told>,
    (base, changed): (bytes::Bytes, Vec<Version>),
    told: impl Fn(&Version) -> Option<Timestamp>,
    mut read: impl FnMut(bytes::Bytes) -> (Plain, Json),
) {
    if known.is_empty() {
        let (plain, json) = read(base);
        known.push(Told { at: EPOCH, told: None, plain, json });
    }
    for version in changed.into_iter().skip(known.len() - 1) {
        let (told, at) = (told(&version), EPOCH + version.at);
        let (plain, json) = read(version.body);
        known.push(Told { at, told, plain, json });
    }
}

/// What changes by plan waits for the next write of `updates`; what changes by hand is written at once.
fn told_at(stage: &Stage, version: &Version) -> Option<Timestamp> {
    let plan = &stage.sim.plan().mutations;
    let by_plan = plan.every_ms.is_some_and(|every| version.at.as_millis().is_multiple_of(u128::from(every.get())));
    let every = u128::from(plan.updates_every_ms.get());
    let written = if by_plan { version.at.as_millis().div_ceil(every) * every } else { version.at.as_millis() };
    let told = stage.silences.told(Duration::from_millis(written as u64));
    (version.publicity == Publicity::Published).then(|| EPOCH + told)
}

/// The source itself, on a transport that answers with one body.
struct Decoder {
    runtime: tokio::runtime::Runtime,
    body: Arc<Mutex<bytes::Bytes>>,
}

struct OneBody(Arc<Mutex<bytes::Bytes>>);

impl Transport for OneBody {
    fn send(&self, _: Request) -> BoxFuture<'_, Result<Response, Failure>> {
        let body = self.0.lock().unwrap().clone();
        Box::pin(async { Ok(Response::new(http::StatusCode::OK, http::HeaderMap::new(), body)) })
    }
}

impl Decoder {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        Decoder { runtime, body: Arc::default() }
    }

    fn read(&mut self, stream: &str, key: &Key, body: bytes::Bytes) -> (Plain, Json) {
        *self.body.lock().unwrap() = body;
        let stream: StreamName = stream.parse().unwrap();
        let answer = self.runtime.block_on(async {
            let clock = Clock::simulated(EPOCH);
            let settings = Settings::new(Rate::Unlimited, InFlight { start: 1, max: 1 });
            let transport = Arc::new(OneBody(self.body.clone()));
            let hn = Hn::new(Gateway::new(transport, settings, clock.clone(), Box::new(|| 0.0)), Decoding::Inline);
            let call = Call::new(Lane::Backfill, Beat::new(clock));
            hn.fetch(&stream, std::slice::from_ref(key), &call).await.unwrap().remove(0)
        });
        let record = oracle::record(answer.fetched);
        let json = record.body.to_json(record.table);
        (oracle::plain(record), json)
    }
}
