//! `highwater sync`: catch up, show progress, say what came of it.

mod plan;

use std::sync::Arc;

use highwater_core::{ExceptionState, Position, StreamId, Timestamp};
use highwater_engine::{Ending, EngineError, Force, Left, Range, SyncReport, SyncRequest};
use highwater_sources::Clock;
use highwater_store::{ExceptionFilter, Page, Store};
use serde_json::{Value as Json, json};
use tokio_util::sync::CancellationToken;

use crate::{
    allocators,
    args::{Global, SyncArgs},
    arrange::arrange,
    commands::status::{is_snapshot, place, stream_json},
    config::{SourceConfig, SourceKind},
    exit::{Exit, Trouble},
    mailbox::{MailboxOf, how, left_alone, silent},
    out,
    progress::{self, Progress},
    settings::{Access, Settings},
    signals::Signals,
};

pub(super) async fn run(global: &Global, args: &SyncArgs) -> anyhow::Result<Exit> {
    let request = request(args, Clock::system().now())?;
    let settings = Settings::load(global)?;
    let sources = chosen(&settings, &args.sources)?;
    check_range(&sources, args)?;
    allocators::set_up(&sources);
    let signals = Signals::listen()?;
    let store = settings.open_store(Access::Write).await?;
    let stop = CancellationToken::new();
    if args.plan {
        let (planned, signal) = signals.guard(&stop, plan::run(global, &settings, &sources, &store, &stop)).await;
        return planned.map(|exit| signal.unwrap_or(exit));
    }
    let work = async {
        if let Err(error) = arrange(global, &settings, &*store, &stop).await {
            return (Vec::new(), vec![error]);
        }
        let mut reports = Vec::new();
        let mut failed = Vec::new();
        for source in sources {
            if !stop.is_cancelled() {
                match sync_source(global, &settings, source, store.clone(), Task::CatchUp(&request), &stop).await {
                    Ok(done) => reports.extend(done),
                    // The others are none the worse for it.
                    Err(error) => failed.push(error),
                }
            }
        }
        (reports, failed)
    };
    let ((reports, mut failed), signal) = signals.guard(&stop, work).await;
    let Some(last) = failed.pop() else { return conclude(global, Ok(reports), signal, json!({})) };
    if !reports.is_empty() {
        print(global, &reports, json!({}));
    }
    let worst = failed.iter().map(crate::complain).max();
    match (conclude(global, Err(last), signal, json!({})), worst) {
        (Ok(exit), Some(worst)) => Ok(exit.max(worst)),
        (ended, _) => ended,
    }
}

/// Prints what came of it, as JSON with `more`. A run that was told to stop has stopped, also when it could not write
/// down how.
pub(super) fn conclude(
    global: &Global,
    reports: anyhow::Result<Vec<SyncReport>>,
    signal: Option<Exit>,
    more: Json,
) -> anyhow::Result<Exit> {
    match (reports, signal) {
        (Ok(reports), signal) => {
            print(global, &reports, more);
            Ok(exit_of(&reports, signal))
        }
        (Err(error), Some(signal)) => {
            crate::complain(&error);
            Ok(signal)
        }
        (Err(error), None) => Err(error),
    }
}

pub(super) fn chosen<'a>(settings: &'a Settings, names: &[String]) -> anyhow::Result<Vec<&'a SourceConfig>> {
    if names.is_empty() {
        return Ok(settings.config.sources.iter().collect());
    }
    let named = names.iter().enumerate().filter(|(at, name)| !names[..*at].contains(name));
    named.map(|(_, name)| Ok(settings.config.source(name)?)).collect()
}

fn request(args: &SyncArgs, now: Timestamp) -> Result<SyncRequest, Trouble> {
    if let Some((from, to)) = args.from.zip(args.to).filter(|(from, to)| from > to) {
        return Err(Trouble::usage(format!("--from {from} lies after --to {to}")).hint("both ends are included"));
    }
    if let Some(since) = args.since.as_ref().filter(|since| since.at > now) {
        return Err(Trouble::usage(format!("--since {since} lies in the future")).hint("dates are in UTC"));
    }
    Ok(SyncRequest {
        range: Range {
            from: args.from.map(Position),
            since: args.since.as_ref().map(|since| since.at),
            to: args.to.map(Position),
            last: args.last,
        },
        force: if args.force { Force::Refetch } else { Force::No },
    })
}

/// A snapshot is of everything.
fn check_range(sources: &[&SourceConfig], args: &SyncArgs) -> Result<(), Trouble> {
    let has_range = args.from.is_some() || args.to.is_some() || args.last.is_some() || args.since.is_some();
    match sources.iter().find(|source| source.looker.is_some() && has_range) {
        None => Ok(()),
        Some(source) => {
            let message = format!("--from, --to, --last and --since say nothing of {}", source.name);
            Err(Trouble::usage(message).hint("a sync of Looker sees everything; 'types' in the configuration chooses"))
        }
    }
}

/// What is to be done with a source.
#[derive(Clone, Copy)]
pub(super) enum Task<'a> {
    CatchUp(&'a SyncRequest),
    /// Fetch what was put back to work in these streams.
    Retries(&'a [StreamId]),
}

/// One source, with progress on the side.
pub(super) async fn sync_source(
    global: &Global,
    settings: &Settings,
    source: &SourceConfig,
    store: Arc<dyn Store>,
    task: Task<'_>,
    stop: &CancellationToken,
) -> anyhow::Result<Vec<SyncReport>> {
    let progress = Arc::new(Progress::default());
    let engine = settings.engine(source, store.clone(), progress.clone(), stop.clone())?;
    let mailbox = match MailboxOf::source(source) {
        Some(mailbox) => Some(mailbox.opened(store).await?),
        None => None,
    };
    if let Some(mailbox) = &mailbox {
        mailbox.begin().await?;
    }
    let quiet = global.quiet || global.json;
    let work = async {
        match task {
            Task::CatchUp(request) => engine.sync(request).await,
            Task::Retries(streams) => engine.fetch_due(streams).await,
        }
    };
    let reports = tokio::select! {
        biased;
        reports = work => reports,
        () = progress::draw(&progress, &engine, quiet) => unreachable!("drawing never ends"),
    };
    if !quiet {
        progress::tell_rest(&progress, &engine);
    }
    if let Some(mailbox) = &mailbox {
        mailbox.end(&reports).await?;
    }
    let reports = reports.map_err(|error| placed(source, error))?;
    if source.looker.is_some() && !quiet {
        name_exceptions(&*engine.store, &reports).await?;
    }
    Ok(reports)
}

/// Whoever cannot be reached is named.
fn placed(source: &SourceConfig, error: EngineError) -> anyhow::Error {
    let is_remote = matches!(error, EngineError::Remote(_));
    let error = anyhow::Error::new(error);
    match source.kind {
        SourceKind::Hn if is_remote => error.context(format!("{} at {}", source.name, source.hn.base_url)),
        _ => error,
    }
}

/// Of a source of many streams: what exactly is not accounted for, a few of each.
async fn name_exceptions(store: &dyn Store, reports: &[SyncReport]) -> anyhow::Result<()> {
    const NAMED: u32 = 5;
    for report in reports.iter().filter(|report| matches!(report.ending, Ending::Incomplete(_))) {
        let stream = report.status.id()?;
        for state in [ExceptionState::DeadLetter, ExceptionState::RetryWait] {
            let page = Page { after: None, limit: NAMED };
            for exception in store.exceptions(&stream, ExceptionFilter { state: Some(state) }, page).await? {
                let error = exception.last_error.unwrap_or_default();
                out::complain(&format!("{stream} {}: {} ({error})", exception.key, exception.reason));
            }
        }
    }
    Ok(())
}

fn exit_of(reports: &[SyncReport], signal: Option<Exit>) -> Exit {
    let worst = reports.iter().map(|report| match report.ending {
        Ending::Complete | Ending::NothingToDo { .. } => Exit::Complete,
        Ending::Incomplete(_) => Exit::Unaccounted,
        Ending::Stopped => signal.unwrap_or(Exit::Interrupted),
    });
    match (worst.max(), signal) {
        (Some(Exit::Complete), _) => Exit::Complete,
        (None, signal) => signal.unwrap_or(Exit::Complete),
        (Some(worst), _) => worst,
    }
}

fn print(global: &Global, reports: &[SyncReport], mut json: Json) {
    if global.json {
        json["streams"] = reports.iter().map(report_json).collect();
        out::data(&json.to_string());
    } else if !global.quiet {
        for report in reports {
            out::data(&if is_snapshot(&report.status) { line(report) } else { summary(report) });
        }
    }
}

fn report_json(report: &SyncReport) -> Json {
    let mut json = stream_json(&report.status);
    let (outcome, why) = outcome(report);
    let seconds = report.duration.as_secs_f64();
    let more = json!({
        "source": report.status.source.as_str(),
        "outcome": outcome,
        "detail": why,
        "next_retry_at": report.status.next_retry_at.map(Timestamp::as_millis),
        "run": {
            "stored": report.batch.stored(),
            "new": report.batch.new,
            "refetched": report.batch.changed + report.batch.unchanged,
            "differed": report.batch.changed,
            "missing": report.batch.missing,
            "retries": report.batch.retrying,
            "dead_letters": report.batch.dead,
            "requests": report.requests,
            "throttled": report.throttled,
            "seconds": seconds,
            "items_per_second": report.batch.stored() as f64 / seconds.max(1e-9),
        },
    });
    if let (Json::Object(json), Json::Object(more)) = (&mut json, more) {
        json.extend(more);
    }
    json
}

fn outcome(report: &SyncReport) -> (&'static str, Option<String>) {
    match &report.ending {
        Ending::Complete => ("complete", None),
        Ending::NothingToDo { newest } => (
            "nothing to do",
            Some(format!("the range asked for is empty, the newest {} is {newest}", report.status.axis)),
        ),
        Ending::Stopped => ("stopped", Some("run the same command again to go on".into())),
        Ending::Incomplete(left) => ("incomplete", Some(why(report, left))),
    }
}

fn why(report: &SyncReport, left: &Left) -> String {
    match left {
        Left::Spent { why, until: None } => format!("{why}; run the same command again to go on"),
        Left::Spent { why, until: Some(at) } => {
            format!("{why}; run the same command again at {} to go on", out::time(*at))
        }
        Left::GateClosed { until } => left_alone(*until),
        Left::Outage { kind } => silent(how(*kind)),
        Left::Exceptions { next_retry_at } => {
            let retrying = report.status.exceptions(ExceptionState::RetryWait);
            let dead = report.status.exceptions(ExceptionState::DeadLetter);
            let mut parts = Vec::new();
            if retrying > 0 {
                let when = next_retry_at.map_or(String::new(), |at| format!(", the next at {}", out::time(at)));
                parts.push(format!("{} to be tried again{when}", out::grouped(retrying)));
            }
            if dead > 0 {
                let source = &report.status.source;
                parts.push(format!("{} dead letters: see 'highwater dead-letters list {source}'", out::grouped(dead)));
            }
            if parts.is_empty() {
                parts.push(format!("the frontier stands at {} of {}", report.status.frontier, report.status.target));
            }
            parts.join("; ")
        }
    }
}

/// A line, because there are many types.
fn line(report: &SyncReport) -> String {
    let status = &report.status;
    let (outcome, why) = outcome(report);
    let mut text = format!(
        "{}/{:<24} {outcome:<10} {:>8} stored ({} new, {} changed), {} requests, {}",
        status.source,
        status.stream,
        out::grouped(status.stored),
        out::grouped(report.batch.new),
        out::grouped(report.batch.changed),
        out::grouped(report.requests),
        out::duration(report.duration)
    );
    if let Some(why) = why {
        text.push_str(&format!("\n  {why}"));
    }
    text
}

fn summary(report: &SyncReport) -> String {
    let status = &report.status;
    let (outcome, why) = outcome(report);
    if let (Ending::NothingToDo { .. }, Some(why)) = (&report.ending, &why) {
        return format!("{}/{}: {outcome}: {why}", status.source, status.stream);
    }
    let seconds = report.duration.as_secs_f64().max(1e-9);
    let number = |state| out::grouped(status.exceptions(state));
    let mut lines = vec![
        format!("{}/{}: {outcome}", status.source, status.stream),
        format!(
            "  frontier      {} of {} (from {})",
            place(status, status.frontier),
            place(status, status.target),
            place(status, status.origin)
        ),
        format!("  stored        {} ({} new in this run)", out::grouped(status.stored), out::grouped(report.batch.new)),
        format!("  missing       {}", number(ExceptionState::Missing)),
        format!("  excluded      {}", number(ExceptionState::Excluded)),
        format!("  retrying      {}", number(ExceptionState::RetryWait)),
        format!("  dead letters  {}", number(ExceptionState::DeadLetter)),
    ];
    let refetched = report.batch.changed + report.batch.unchanged;
    if refetched > 0 {
        let differed = out::grouped(report.batch.changed);
        lines.push(format!("  refetched     {} ({differed} differed)", out::grouped(refetched)));
    }
    lines.push(format!("  requests      {} ({} throttled)", out::grouped(report.requests), report.throttled));
    let rate = out::grouped((report.batch.stored() as f64 / seconds) as u64);
    lines.push(format!("  duration      {} ({rate} items/s)", out::duration(report.duration)));
    lines.extend(why.map(|why| format!("  {why}")));
    lines.join("\n")
}
