//! `highwater store copy`: a mirror moves to another store, and both sides are proven to be the same.

use std::time::Duration;

use highwater_sources::Clock;
use highwater_store::{Content, CopyProgress, CopyReport, ErrorKind, Mode, StoreError, TableReport, copy};
use serde_json::{Value as Json, json};
use tokio_util::sync::CancellationToken;

use crate::{
    args::{CopyArgs, Global, StoreVerb},
    exit::{Exit, Trouble},
    location::{Location, exit_of},
    out, progress,
    settings::Settings,
    signals::Signals,
};

pub(super) async fn run(global: &Global, verb: StoreVerb) -> anyhow::Result<Exit> {
    match verb {
        StoreVerb::Copy(args) => run_copy(global, &args).await,
    }
}

async fn run_copy(global: &Global, args: &CopyArgs) -> anyhow::Result<Exit> {
    let to = Location::parse(&args.to, None)?;
    let from = match &args.from {
        Some(url) => Location::parse(url, None)?,
        None => Settings::load(global)?.location()?,
    };
    if from.is(&to) {
        return Err(Trouble::usage("--from and --to name the same store").into());
    }
    let signals = Signals::listen()?;
    let from = from.open_content(Mode::CopySource).await?;
    let to = to.open_content(Mode::CopyTarget).await?;
    let clock = Clock::system();
    let began = clock.moment();
    let stop = CancellationToken::new();
    // Broken off anywhere, it goes on from there: what was written is whole, and found again.
    let work = async {
        tokio::select! {
            biased;
            () = stop.cancelled() => None,
            report = copied(global, &*from, &*to, &clock) => Some(report),
        }
    };
    match signals.guard(&stop, work).await {
        (Some(report), _) => conclude(global, &report?, clock.moment().since(began)),
        (None, signal) => {
            if !global.quiet {
                out::complain("stopped; run the same command again to go on");
            }
            Ok(signal.unwrap_or(Exit::Interrupted))
        }
    }
}

async fn copied(
    global: &Global,
    from: &dyn Content,
    to: &dyn Content,
    clock: &Clock,
) -> Result<CopyReport, anyhow::Error> {
    let progress = CopyProgress::default();
    let report = tokio::select! {
        biased;
        report = copy(from, to, &progress) => report,
        () = progress::draw_copy(&progress, clock, global.quiet || global.json) => unreachable!("drawing never ends"),
    };
    report.map_err(trouble)
}

fn trouble(error: StoreError) -> anyhow::Error {
    let hint = match error.kind {
        ErrorKind::CannotOpen => "name another target with --to: a new file, or another schema with ?schema=NAME",
        ErrorKind::Locked => "nothing may write while a mirror is copied; run the same command again afterwards",
        _ => return error.into(),
    };
    Trouble::new(exit_of(error.kind), highwater_engine::describe(&error)).hint(hint).into()
}

fn conclude(global: &Global, report: &CopyReport, took: Duration) -> anyhow::Result<Exit> {
    if global.json {
        let tables: Vec<Json> = report.tables.iter().map(table_json).collect();
        let json = json!({ "tables": tables, "rows": report.rows(), "seconds": took.as_secs_f64() });
        out::data(&json.to_string());
    } else if !global.quiet {
        out::data(&text(report, took));
    }
    let differing: Vec<_> = report.differing().map(|table| table.name).collect();
    if differing.is_empty() {
        return Ok(Exit::Complete);
    }
    let message = format!("the copy differs from its source in {}", differing.join(", "));
    Err(Trouble::new(Exit::Failed, message)
        .hint("the target stays closed to other commands; run the same command again, or check the source with 'highwater verify --store'")
        .into())
}

fn table_json(table: &TableReport) -> Json {
    json!({ "name": table.name, "rows": table.rows, "digest": table.digest, "same": table.is_same })
}

fn text(report: &CopyReport, took: Duration) -> String {
    let line = |table: &TableReport| {
        let verdict = if table.is_same { "same" } else { "DIFFERS" };
        format!("  {:<18} {:>12}  {verdict:<7}  {:.16}", table.name, out::grouped(table.rows), table.digest)
    };
    let head = format!("  {:<18} {:>12}  {:<7}  {}", "table", "rows", "copy", "digest");
    let lines: Vec<_> = report.tables.iter().map(line).collect();
    format!("{head}\n{}\n{} rows in {}", lines.join("\n"), out::grouped(report.rows()), out::duration(took))
}
