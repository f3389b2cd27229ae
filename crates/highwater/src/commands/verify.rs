//! `highwater verify`: the proof, as a certificate for people or as JSON.

mod blobs;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use highwater_core::Event;
use highwater_engine::{Engine, StreamVerdict, VerifyReport};
use highwater_sources::Following;
use serde_json::{Value as Json, json};
use tokio_util::sync::CancellationToken;

use crate::{
    args::{Global, VerifyArgs},
    commands::status::place,
    exit::{Exit, Trouble},
    out,
    settings::{Access, Settings},
    signals::Signals,
};

pub(super) async fn run(global: &Global, args: &VerifyArgs) -> anyhow::Result<Exit> {
    let settings = Settings::load(global)?;
    let store_exit = if args.check_files { Some(verify_store(global, &settings).await?) } else { None };
    match (&args.source, store_exit) {
        (Some(source), store_exit) => {
            let exit = verify_source(global, args, &settings, source).await?;
            Ok(exit.max(store_exit.unwrap_or(Exit::Complete)))
        }
        (None, Some(exit)) => Ok(exit),
        (None, None) => {
            Err(Trouble::usage("name the source to verify").hint("for example 'highwater verify hn'").into())
        }
    }
}

async fn verify_store(global: &Global, settings: &Settings) -> anyhow::Result<Exit> {
    let store = settings.open_store(Access::Read).await?;
    let problems = store.integrity().await?;
    drop(store);
    let orphans = blobs::collect(settings).await?;
    if global.json {
        let mut json = json!({ "store": settings.store_shown(), "sound": problems.is_empty(), "problems": problems });
        if let Some(orphans) = &orphans {
            json["orphan_blobs"] =
                json!({ "found": orphans.found, "bytes": orphans.bytes, "collected": orphans.collected });
            json["orphan_parts"] = json!(orphans.parts);
        }
        out::data(&json.to_string());
    } else if problems.is_empty() {
        out::data(&format!("{}: sound", settings.store_shown()));
    } else {
        out::data(&format!("{}: {} problems", settings.store_shown(), problems.len()));
        problems.iter().for_each(|problem| out::data(&format!("  {problem}")));
    }
    if let Some(orphans) = orphans.filter(|orphans| orphans.found + orphans.parts > 0 && !global.json) {
        out::data(&orphans.to_string());
    }
    Ok(if problems.is_empty() { Exit::Complete } else { Exit::Unaccounted })
}

async fn verify_source(global: &Global, args: &VerifyArgs, settings: &Settings, name: &str) -> anyhow::Result<Exit> {
    let source = settings.config.source(name)?;
    // Its calls are noted if they are counted.
    let is_counted = source.looker.as_ref().is_some_and(|looker| looker.mirror.max_calls_month.is_some());
    let store = settings.open_store(if is_counted { Access::Write } else { Access::Read }).await?;
    let stop = CancellationToken::new();
    let compared = Arc::new(AtomicU64::new(0));
    let counter = compared.clone();
    let count = move |event: &Event| {
        if let Event::Compared { keys } = event {
            counter.fetch_add(*keys, Ordering::Relaxed);
        }
    };
    let engine = settings.engine(source, store, Arc::new(count), stop.clone())?;
    let sample = args.sample.unwrap_or_default();
    let work = async {
        tokio::select! {
            report = engine.verify(sample) => report.map(Some),
            () = show_progress(&engine, &compared, global) => unreachable!("showing never ends"),
            () = stop.cancelled() => Ok(None),
        }
    };
    let (report, signal) = Signals::listen()?.guard(&stop, work).await;
    let Some(report) = report? else {
        out::complain(&format!("{name}: stopped before the end; nothing is proven"));
        return Ok(signal.unwrap_or(Exit::Interrupted));
    };
    if global.json {
        out::data(&report_json(name, &report).to_string());
    } else if !global.quiet {
        print(&report);
    }
    Ok(if report.is_complete() { Exit::Complete } else { Exit::Unaccounted })
}

async fn show_progress(engine: &Engine, compared: &AtomicU64, global: &Global) {
    const EVERY: Duration = Duration::from_secs(4);
    loop {
        engine.world.clock.sleep(EVERY).await;
        let keys = compared.load(Ordering::Relaxed);
        if keys > 0 && !global.quiet && !global.json {
            out::complain(&format!("{}: {} compared with the remote", engine.name, out::grouped(keys)));
        }
    }
}

fn report_json(name: &str, report: &VerifyReport) -> Json {
    json!({
        "source": name,
        "complete": report.is_complete(),
        "verified_at": report.verified_at.as_millis(),
        "streams": report.streams.iter().map(stream_json).collect::<Vec<_>>(),
        "ledger": { "lines": report.ledger_lines, "sound": report.ledger_error.is_none(), "error": report.ledger_error },
    })
}

fn stream_json(verdict: &StreamVerdict) -> Json {
    let examples: Vec<Json> = verdict
        .examples
        .iter()
        .map(|finding| json!({ "key": finding.key.to_string(), "kind": finding.kind.as_str(), "detail": finding.detail }))
        .collect();
    json!({
        "name": verdict.status.stream,
        "origin": verdict.status.origin.0,
        "frontier": verdict.status.frontier.0,
        "target": verdict.status.target.0,
        "checked": verdict.checked,
        "stored": verdict.stored,
        "missing": verdict.missing,
        "excluded": verdict.excluded,
        "retrying": verdict.retrying,
        "dead_letters": verdict.dead_letters,
        "pending": verdict.pending,
        "reopened": verdict.reopened,
        "differs": verdict.differs,
        "unexplained": verdict.unexplained,
        "unchecked": verdict.unchecked,
        "moved": verdict.moved,
        "vanished": verdict.vanished,
        "blobs": verdict.blobs,
        "digest": verdict.digest,
        "complete": verdict.complete,
        "book_errors": verdict.book_errors,
        "examples": examples,
    })
}

fn print(report: &VerifyReport) {
    for verdict in &report.streams {
        out::data(&text(verdict));
    }
    match &report.ledger_error {
        None => {
            out::data(&format!("ledger: {} lines, the chain holds", out::grouped(report.ledger_lines.unsigned_abs())))
        }
        Some(error) => out::data(&format!("ledger: broken: {error}")),
    }
    out::data(&format!("verified at {}", out::time(report.verified_at)));
}

fn text(verdict: &StreamVerdict) -> String {
    let status = &verdict.status;
    let word = if verdict.complete { "complete and sound" } else { "NOT complete" };
    let mut lines = vec![
        format!(
            "{}/{} {}..{}: {word}",
            status.source,
            status.stream,
            place(status, status.origin),
            place(status, status.target.minus(1).max(status.origin))
        ),
        format!("  stored        {}", out::grouped(verdict.stored)),
        format!("  missing       {} (confirmed)", out::grouped(verdict.missing)),
    ];
    let counts = [
        ("excluded", verdict.excluded, ""),
        ("retrying", verdict.retrying, ""),
        ("dead letters", verdict.dead_letters, ""),
        ("pending", verdict.pending, " (not worked on yet)"),
        ("reopened", verdict.reopened, " (segments behind the frontier, at work again after a replay)"),
        ("differs", verdict.differs, ""),
        ("unexplained", verdict.unexplained, " (no row and no reason)"),
        ("unchecked", verdict.unchecked, " (the remote gave no usable answer)"),
        ("moved", verdict.moved, " (changed at the remote since they were fetched)"),
        ("vanished", verdict.vanished, " (gone at the remote, kept here)"),
    ];
    let worth = counts.iter().filter(|(_, count, _)| *count > 0);
    lines.extend(worth.map(|(name, count, note)| format!("  {name:<13} {}{note}", out::grouped(*count))));
    lines.push(format!("  compared      {} with the remote", out::grouped(verdict.checked)));
    lines.extend(verdict.digest.as_ref().map(|digest| format!("  digest        sha256:{digest}")));
    lines.extend(verdict.book_errors.iter().map(|error| format!("  books: {error}")));
    let examples = verdict.examples.iter().take(20);
    lines.extend(examples.map(|finding| format!("  {} {}: {}", finding.kind, finding.key, finding.detail)));
    if verdict.examples.len() > 20 {
        lines.push(format!("  … and {} more; --json names up to 100", verdict.examples.len() - 20));
    }
    if verdict.differs + verdict.unexplained > 0 && verdict.follows == Following::Sync {
        lines.push(format!("  'highwater sync {} --force' fetches the range again and repairs it", status.source));
    }
    lines.join("\n")
}
