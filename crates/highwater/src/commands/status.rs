//! `highwater status`: how far each mirror is, in numbers and as a map.

mod live;
mod mail;
mod map;
mod snapshots;

use std::collections::BTreeMap;

use highwater_core::{ExceptionState, Position, SegmentStatus, SourceName, Timestamp};
use highwater_engine::{StreamStatus, store_status};
use highwater_sources::Clock;
use highwater_store::{Store, WorkerRow};
use serde_json::{Map, Value as Json, json};

use live::LiveFigures;
use snapshots::Snapshots;
pub(super) use snapshots::is_snapshot;

use crate::{
    args::{Global, StatusArgs},
    config::Config,
    exit::Exit,
    out,
    settings::{Access, Settings},
};

pub(super) async fn run(global: &Global, args: &StatusArgs) -> anyhow::Result<Exit> {
    let settings = Settings::load(global)?;
    if let Some(name) = &args.source {
        settings.config.source(name)?;
    }
    let store = settings.open_store(Access::Read).await?;
    let mut all = store_status(&*store).await?;
    if let Some(name) = &args.source {
        all.retain(|stream| stream.source.as_str() == name);
    }
    let workers = workers(&*store, &all).await?;
    let live = live::read(&*store, &all).await?;
    let mail = mail::read(&settings.config, args, &*store, &all).await?;
    let snapshots = snapshots::read(&*store, &all).await?;
    if global.json {
        let mut status = status_json(&settings.config, &all, &workers, &live, &snapshots);
        mail.add_to(&mut status);
        out::data(&status.to_string());
    } else {
        if all.is_empty() && mail.is_empty() {
            out::data("nothing is mirrored yet; start with 'highwater sync hn'");
        }
        print(&*store, &all, &workers, &live, &snapshots).await?;
        mail.texts().for_each(|text| out::data(&text));
    }
    Ok(Exit::Complete)
}

/// The processes at work, by source.
type Workers = BTreeMap<SourceName, Vec<WorkerRow>>;

async fn workers(store: &dyn Store, all: &[StreamStatus]) -> anyhow::Result<Workers> {
    let now = Clock::system().now();
    let mut workers = Workers::new();
    for status in all {
        if !workers.contains_key(&status.source) {
            workers.insert(status.source.clone(), store.workers(&status.source, now).await?);
        }
    }
    Ok(workers)
}

async fn print(
    store: &dyn Store,
    all: &[StreamStatus],
    workers: &Workers,
    live: &LiveFigures,
    snapshots: &Snapshots,
) -> anyhow::Result<()> {
    for status in all {
        if let Some(line) = snapshots.text(status) {
            out::data(&line);
            continue;
        }
        out::data(&text(status));
        let map = map::draw(store, status).await?;
        if !map.is_empty() {
            out::data(&map);
        }
    }
    for text in live.values().filter_map(live::Live::text) {
        out::data(&text);
    }
    for worker in workers.values().flatten() {
        out::data(&worker_text(worker));
    }
    Ok(())
}

fn text(status: &StreamStatus) -> String {
    let done = status.frontier.0.abs_diff(status.origin.0);
    let whole = status.target.0.abs_diff(status.origin.0);
    let word = if status.complete { "complete" } else { "not complete" };
    let exceptions = |state| out::grouped(status.exceptions(state));
    let segments: Vec<String> = SegmentStatus::ALL
        .iter()
        .filter(|state| status.segments(**state) > 0)
        .map(|state| format!("{} {state}", out::grouped(status.segments(*state))))
        .collect();
    let mut lines = vec![
        format!("{}/{}: {word}", status.source, status.stream),
        format!(
            "  frontier      {} of {} (from {}, {})",
            place(status, status.frontier),
            place(status, status.target),
            place(status, status.origin),
            out::percent(done, whole, 2)
        ),
        format!("  stored        {}", out::grouped(status.stored)),
        format!("  missing       {}", exceptions(ExceptionState::Missing)),
        format!("  excluded      {}", exceptions(ExceptionState::Excluded)),
        format!("  retrying      {}", exceptions(ExceptionState::RetryWait)),
        format!("  dead letters  {}", exceptions(ExceptionState::DeadLetter)),
        format!("  segments      {}", segments.join(", ")),
    ];
    lines.extend(status.next_retry_at.map(|at| format!("  next retry    {}", out::time(at))));
    lines.join("\n")
}

/// A position as people read it.
pub(super) fn place(status: &StreamStatus, position: Position) -> String {
    if status.axis == "seconds" || is_snapshot(status) {
        out::time(Timestamp::from_millis(position.0.saturating_mul(1000)))
    } else {
        position.to_string()
    }
}

fn worker_text(worker: &WorkerRow) -> String {
    let rate = worker.rate.map_or_else(|| "no rate limit".into(), |rate| format!("{rate:.0} requests/s"));
    format!(
        "  worker        {} pid {}, since {}, {} segments, {:.0}% of the rate ({rate})",
        worker.host,
        worker.pid,
        out::time(worker.started_at),
        out::grouped(worker.segments),
        100.0 * worker.share,
    )
}

fn worker_json(worker: &WorkerRow) -> Json {
    json!({
        "worker": worker.worker.as_str(),
        "host": worker.host,
        "pid": worker.pid,
        "since": out::time(worker.started_at),
        "segments": worker.segments,
        "share": worker.share,
        "rate": worker.rate,
    })
}

fn status_json(
    config: &Config,
    all: &[StreamStatus],
    workers: &Workers,
    live: &LiveFigures,
    snapshots: &Snapshots,
) -> Json {
    let mut sources: Vec<Json> = Vec::new();
    for chunk in all.chunk_by(|a, b| a.source == b.source) {
        let name = chunk[0].source.as_str();
        let kind = config.source(name).map_or("unknown", |source| source.kind.as_str());
        let stream = |status: &StreamStatus| {
            let mut json = stream_json(status);
            snapshots.add_to(&mut json, status);
            json
        };
        let streams: Vec<Json> = chunk.iter().map(stream).collect();
        let workers: Vec<Json> = workers.get(&chunk[0].source).into_iter().flatten().map(worker_json).collect();
        let mut source = json!({ "name": name, "kind": kind, "streams": streams });
        if !workers.is_empty() {
            source["workers"] = workers.into();
        }
        if let (Json::Object(source), Some(Json::Object(live))) =
            (&mut source, live.get(&chunk[0].source).map(live::Live::json))
        {
            source.extend(live);
        }
        sources.push(source);
    }
    json!({ "sources": sources })
}

pub(super) fn stream_json(status: &StreamStatus) -> Json {
    let segments: Map<String, Json> =
        SegmentStatus::ALL.iter().map(|state| (state.to_string(), status.segments(*state).into())).collect();
    json!({
        "name": status.stream,
        "axis": status.axis,
        "origin": status.origin.0,
        "frontier": status.frontier.0,
        "target": status.target.0,
        "stored": status.stored,
        "missing": status.exceptions(ExceptionState::Missing),
        "excluded": status.exceptions(ExceptionState::Excluded),
        "retrying": status.exceptions(ExceptionState::RetryWait),
        "dead_letters": status.exceptions(ExceptionState::DeadLetter),
        "complete": status.complete,
        "segments": segments,
    })
}
