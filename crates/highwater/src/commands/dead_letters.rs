//! `highwater dead-letters`: what could not be mirrored, why, and another chance for it.

use std::sync::Arc;

use highwater_core::{Event, Exception, ExceptionState, Key, KeySet, StreamId, Timestamp};
use highwater_sources::Clock;
use highwater_store::{ExceptionFilter, Page, Store};
use serde_json::{Value as Json, json};
use tokio_util::sync::CancellationToken;

use crate::{
    args::{DeadLetterVerb, Global},
    arrange::arrange,
    commands::sync::{self, Task},
    exit::{Exit, Trouble},
    out,
    settings::{Access, Settings},
    signals::Signals,
};

const PAGE: u32 = 1000;

pub(super) async fn run(global: &Global, verb: DeadLetterVerb) -> anyhow::Result<Exit> {
    let settings = Settings::load(global)?;
    if let Some(name) = verb.source() {
        settings.config.source(name)?;
    }
    match verb {
        DeadLetterVerb::List { source } => list(global, &settings, source.as_deref()).await,
        DeadLetterVerb::Show { source, key } => show(global, &settings, &source, &key).await,
        DeadLetterVerb::Replay { source, keys, now } => replay(global, &settings, source.as_deref(), &keys, now).await,
    }
}

/// The streams in the store, of one source or of all.
async fn streams(store: &dyn Store, source: Option<&str>) -> anyhow::Result<Vec<StreamId>> {
    let ids = store.streams().await?.into_iter().map(|row| row.id);
    Ok(ids.filter(|id| source.is_none_or(|name| id.source.as_str() == name)).collect())
}

async fn list(global: &Global, settings: &Settings, source: Option<&str>) -> anyhow::Result<Exit> {
    let store = settings.open_store(Access::Read).await?;
    let mut all = Vec::new();
    for stream in streams(&*store, source).await? {
        let filter = ExceptionFilter { state: Some(ExceptionState::DeadLetter) };
        let mut after = None;
        loop {
            let page = store.exceptions(&stream, filter, Page { after, limit: PAGE }).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.key.clone());
            all.extend(page.into_iter().map(|exception| (stream.clone(), exception)));
        }
    }
    all.sort_by(|(a, left), (b, right)| (a, &left.key).cmp(&(b, &right.key)));
    if global.json {
        let letters: Vec<Json> = all.iter().map(|(stream, exception)| exception_json(stream, exception)).collect();
        out::data(&json!({ "dead_letters": letters }).to_string());
    } else if all.is_empty() {
        out::data("no dead letters");
    } else {
        all.iter().for_each(|(stream, exception)| out::data(&line(stream, exception)));
    }
    Ok(Exit::Complete)
}

fn line(stream: &StreamId, exception: &Exception) -> String {
    let error = exception.last_error.as_deref().unwrap_or("");
    let (key, reason, attempts) = (&exception.key, &exception.reason, exception.history.attempts);
    format!(
        "{stream} {key}  {reason} after {attempts} attempts, last at {}  {error}",
        out::time(exception.last_tried_at)
    )
}

async fn show(global: &Global, settings: &Settings, source: &str, key: &str) -> anyhow::Result<Exit> {
    let store = settings.open_store(Access::Read).await?;
    let key = Key::from(key);
    if let Some((stream, exception)) = find(settings, store, source, &key).await? {
        let json = exception_json(&stream, &exception);
        if global.json {
            out::data(&json.to_string());
        } else if let Json::Object(fields) = json {
            fields.iter().for_each(|(name, value)| out::data(&format!("{name:<16} {}", shown(name, value))));
        }
        return Ok(Exit::Complete);
    }
    Err(Trouble::new(Exit::Failed, format!("{source} has no exception for key {key}"))
        .hint("it is stored, or was never tried; 'highwater dead-letters list' shows the dead letters")
        .into())
}

/// Times as people read them; their names end alike.
fn shown(name: &str, value: &Json) -> String {
    match (value, value.as_i64()) {
        (Json::Null, _) => "-".into(),
        (_, Some(at)) if name.ends_with("_at") => out::time(Timestamp::from_millis(at)),
        (value, _) => value.as_str().map_or_else(|| value.to_string(), str::to_owned),
    }
}

async fn find(
    settings: &Settings,
    store: Arc<dyn Store>,
    source: &str,
    key: &Key,
) -> anyhow::Result<Option<(StreamId, Exception)>> {
    let engine =
        settings.engine(settings.config.source(source)?, store, Arc::new(|_: &Event| {}), CancellationToken::new())?;
    let keys = KeySet::List(vec![key.clone()]);
    for spec in engine.source.streams() {
        let stream = engine.stream_id(spec);
        let known = engine.store.known(&stream, spec.table, &keys).await?;
        if let Some(exception) = known.exceptions.into_iter().next() {
            return Ok(Some((stream, exception)));
        }
    }
    Ok(None)
}

fn exception_json(stream: &StreamId, exception: &Exception) -> Json {
    json!({
        "source": stream.source.as_str(),
        "stream": stream.stream.as_str(),
        "key": exception.key.to_string(),
        "state": exception.state.as_str(),
        "reason": exception.reason,
        "attempts": exception.history.attempts,
        "first_seen_at": exception.first_seen_at.as_millis(),
        "last_tried_at": exception.last_tried_at.as_millis(),
        "next_retry_at": exception.next_retry_at.map(Timestamp::as_millis),
        "last_error": exception.last_error,
        "segment_id": exception.segment.0,
    })
}

async fn replay(
    global: &Global,
    settings: &Settings,
    source: Option<&str>,
    keys: &[String],
    at_once: bool,
) -> anyhow::Result<Exit> {
    let signals = Signals::listen()?;
    let store = settings.open_store(Access::Write).await?;
    let keys: Vec<Key> = keys.iter().map(|key| Key::from(key.as_str())).collect();
    let chosen = (!keys.is_empty()).then_some(keys.as_slice());
    let now = Clock::system().now();
    let (mut streams, mut replayed) = (streams(&*store, source).await?, 0);
    for stream in std::mem::take(&mut streams) {
        let revived = store.replay(&stream, chosen, now).await?;
        replayed += revived;
        streams.extend((revived > 0).then_some(stream));
    }
    if replayed == 0 && chosen.is_some() {
        let message = format!("{} has no dead letter for {}", source.unwrap_or("the store"), shown_keys(&keys));
        return Err(Trouble::new(Exit::Failed, message).hint("'highwater dead-letters list' shows them all").into());
    }
    let ends_here = !at_once || replayed == 0;
    if global.json && ends_here {
        out::data(&json!({ "replayed": replayed }).to_string());
    } else if !global.quiet && !global.json {
        out::data(&format!("{replayed} put back to work{}", if at_once { "" } else { "; the next sync fetches them" }));
    }
    if ends_here {
        return Ok(Exit::Complete);
    }
    let stop = CancellationToken::new();
    let work = async {
        arrange(global, settings, &*store, &stop).await?;
        let mut reports = Vec::new();
        for of_source in streams.chunk_by(|one, other| one.source == other.source) {
            let source = settings.config.source(of_source[0].source.as_str())?;
            let task = Task::Retries(of_source);
            reports.extend(sync::sync_source(global, settings, source, store.clone(), task, &stop).await?);
        }
        anyhow::Ok(reports)
    };
    let (reports, signal) = signals.guard(&stop, work).await;
    sync::conclude(global, reports, signal, json!({ "replayed": replayed }))
}

fn shown_keys(keys: &[Key]) -> String {
    let keys: Vec<String> = keys.iter().map(Key::to_string).collect();
    keys.join(", ")
}
