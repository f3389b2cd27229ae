//! `highwater search`: words found in what is mirrored. What it finds goes to standard output, and nowhere else.

mod show;

use highwater_core::search::{BadQuery, Query};
use highwater_engine::{Among, Findings, IndexProgress, Indexed, Search, SearchError};
use highwater_sources::{Clock, search};
use highwater_store::{MailboxId, Opening, StreamRow, TextStore};
use tokio_util::sync::CancellationToken;

use crate::{
    args::{Global, SearchArgs},
    config::{SourceConfig, SourceKind},
    exit::{Exit, Trouble},
    location::index_trouble,
    out, progress,
    settings::Settings,
    signals::Signals,
};

pub(super) async fn run(global: &Global, args: &SearchArgs) -> anyhow::Result<Exit> {
    let text = args.query.join(" ");
    let query: Query = text.parse().map_err(bad_query)?;
    let settings = Settings::load(global)?;
    let among = among(&settings, &args.sources)?;
    let opening = if args.as_is { Opening::AsIs } else { Opening::Refresh };
    let signals = Signals::listen()?;
    let (store, index) = settings.location()?.open_search(opening).await?;
    let total = stored(&*store, &among).await?;
    let searching = Search { store: &*store, index: &*index, among };
    let stop = CancellationToken::new();
    let work = async {
        tokio::select! {
            biased;
            () = stop.cancelled() => None,
            found = found(global, &searching, &query, args, opening, total) => Some(found),
        }
    };
    match signals.guard(&stop, work).await {
        (Some(found), _) => {
            let (indexed, findings) = found.map_err(|error| told(error, opening))?;
            conclude(global, &text, indexed, &findings);
            Ok(Exit::Complete)
        }
        (None, signal) => {
            if !global.quiet {
                out::complain("stopped; the next search goes on indexing where this one was");
            }
            Ok(signal.unwrap_or(Exit::Interrupted))
        }
    }
}

fn told(error: SearchError, opening: Opening) -> anyhow::Error {
    match error {
        SearchError::Store(error) => error.into(),
        SearchError::Index(error) => index_trouble(&error, opening).into(),
    }
}

fn bad_query(error: BadQuery) -> Trouble {
    Trouble::usage(error.to_string()).hint("'highwater search --help' shows what a query can say")
}

/// What is to be searched: all sources, or those that are named.
fn among(settings: &Settings, named: &[String]) -> Result<Vec<Among>, Trouble> {
    let config = &settings.config;
    let sources: Vec<&SourceConfig> = if named.is_empty() {
        config.sources.iter().collect()
    } else {
        named.iter().map(|name| config.source(name)).collect::<Result<_, _>>()?
    };
    let mut among: Vec<Among> = Vec::new();
    for source in sources {
        for searched in searched(source) {
            // Two sources of one table have the same rows.
            let is_known = |one: &Among| {
                (one.searched.table.name, one.searched.table.scope) == (searched.table.name, searched.table.scope)
            };
            if !among.iter().any(is_known) {
                among.push(Among { source: source.name.clone(), kind: source.kind.as_str(), searched });
            }
        }
    }
    Ok(among)
}

fn searched(source: &SourceConfig) -> Vec<search::Searched> {
    match (source.kind, &source.gmail) {
        (SourceKind::Hn, _) => search::hn(),
        (SourceKind::Gmail, Some(gmail)) => search::gmail(&MailboxId::new(&gmail.org, &gmail.account).key()),
        (SourceKind::Gmail, None) => Vec::new(),
        (SourceKind::Looker, _) => search::looker(source.name.as_str()),
    }
}

/// How many rows there are to be looked at, as the books say.
async fn stored(store: &dyn TextStore, among: &[Among]) -> anyhow::Result<u64> {
    let is_among =
        |row: &StreamRow| among.iter().any(|one| one.source == row.id.source && one.searched.stream == row.id.stream);
    Ok(store.streams().await?.iter().filter(|row| is_among(row)).map(|row| row.stored).sum())
}

async fn found(
    global: &Global,
    searching: &Search<'_>,
    query: &Query,
    args: &SearchArgs,
    opening: Opening,
    total: u64,
) -> Result<(Indexed, Findings), SearchError> {
    let (indexing, clock) = (IndexProgress::default(), Clock::system());
    tokio::select! {
        biased;
        found = searching.run(query, args.limit, opening, &indexing) => found,
        () = progress::draw_index(&indexing, total, &clock, global.quiet || global.json) => {
            unreachable!("drawing never ends")
        }
    }
}

fn conclude(global: &Global, query: &str, indexed: Indexed, findings: &Findings) {
    if global.json {
        return out::data(&show::json(query, indexed, findings));
    }
    let style = show::Style::of_stdout();
    for found in &findings.matches {
        out::data(&show::text(found, style));
    }
    if !global.quiet {
        out::complain(&show::summary(findings));
    }
}
