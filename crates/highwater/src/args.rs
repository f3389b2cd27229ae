//! The command line as typed: parsing touches nothing.

mod examples;
mod search;
mod spelling;

use std::{fmt, net::SocketAddr, path::PathBuf, str::FromStr};

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use highwater_core::Timestamp;
use highwater_engine::Sample;

pub(crate) use search::SearchArgs;

#[derive(Debug, Parser)]
#[command(
    name = "highwater",
    version,
    about = "Mirrors rate-limited APIs into a database you own, and proves how far the mirror is complete.",
    after_help = examples::ALL,
    max_term_width = 110
)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Args {
    /// The arguments of this process; ends it with a message when they make no sense.
    pub(crate) fn from_command_line() -> Self {
        Args::parse_from(spelling::resolve(std::env::args_os()))
    }
}

#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct Global {
    /// Configuration file [default: ./highwater.toml, then the user's config folder] [env: HIGHWATER_CONFIG]
    #[arg(long, global = true, value_name = "PATH")]
    config: Option<PathBuf>,
    /// Store to use instead of the configured one, as sqlite:PATH or postgres://USER@HOST/DATABASE [env: HIGHWATER_STORE]
    #[arg(long, global = true, value_name = "URL")]
    store: Option<String>,
    /// Print the result as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// No progress and no summary, errors only
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Log more; twice for still more
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

impl Global {
    /// Named by the flag or, failing that, by the environment.
    pub(crate) fn config(&self) -> Option<PathBuf> {
        let told = || std::env::var_os("HIGHWATER_CONFIG").filter(|path| !path.is_empty()).map(PathBuf::from);
        self.config.clone().or_else(told)
    }

    /// Named by the flag or, failing that, by the environment.
    pub(crate) fn store_url(&self) -> Option<String> {
        self.store.clone().or_else(|| std::env::var("HIGHWATER_STORE").ok().filter(|url| !url.is_empty()))
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write a commented highwater.toml
    #[command(after_help = examples::INIT)]
    Init(InitArgs),
    /// Get or import the credentials of a source
    #[command(after_help = examples::AUTH)]
    Auth(AuthArgs),
    /// Catch up with the remote, then exit
    #[command(after_help = examples::SYNC)]
    Sync(SyncArgs),
    /// Stay current until stopped: live feed, catch-up, rescans, metrics
    #[command(after_help = examples::SERVE)]
    Serve(ServeArgs),
    /// Show how far each mirror is
    #[command(after_help = examples::STATUS)]
    Status(StatusArgs),
    /// Compare the mirror with the remote and prove its completeness
    #[command(after_help = examples::VERIFY)]
    Verify(VerifyArgs),
    /// List, show and replay what could not be mirrored
    #[command(name = "dead-letters", after_help = examples::DEAD_LETTERS)]
    DeadLetters(DeadLetterArgs),
    /// Find words in what is mirrored
    #[command(after_help = search::EXAMPLES)]
    Search(SearchArgs),
    /// Show the record of what was done, or check its chain
    #[command(after_help = examples::LEDGER)]
    Ledger(LedgerArgs),
    /// Move a mirror from one store to another
    #[command(after_help = examples::COPY)]
    Store(StoreArgs),
    /// Run a simulated API, to rehearse a configuration against it
    #[command(after_help = examples::SIMULATE)]
    Simulate(SimulateArgs),
    /// The two-minute tour: simulator, sync under faults, a crash, resume, verify
    #[command(after_help = examples::DEMO)]
    Demo(DemoArgs),
    /// Print a completion script for a shell
    #[command(after_help = examples::COMPLETIONS)]
    Completions(CompletionArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct InitArgs {
    /// Where to write it [default: --config, or ./highwater.toml]
    #[arg(value_name = "PATH")]
    pub(crate) path: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct AuthArgs {
    /// The source to get credentials for, or the word rotate-key
    #[arg(value_name = "SOURCE")]
    pub(crate) source: String,
    /// Import the refresh token in this file, bare or as JSON; - is standard input
    #[arg(long, value_name = "FILE", group = "way")]
    pub(crate) refresh_token_file: Option<PathBuf>,
    /// Act for the account with the key file of a service account
    #[arg(long, value_name = "FILE", group = "way")]
    pub(crate) service_account: Option<PathBuf>,
    /// The OAuth client, as Google's console gives it for a desktop app
    #[arg(long, value_name = "FILE", conflicts_with = "service_account")]
    pub(crate) client_secret: Option<PathBuf>,
    /// Print the address to consent at instead of opening a browser
    #[arg(long, group = "way")]
    pub(crate) no_browser: bool,
    /// Only check that the stored credentials work
    #[arg(long, group = "way", conflicts_with = "client_secret")]
    pub(crate) check: bool,
}

impl AuthArgs {
    pub(crate) fn has_flags(&self) -> bool {
        let files = [&self.refresh_token_file, &self.service_account, &self.client_secret];
        files.into_iter().any(Option::is_some) || self.no_browser || self.check
    }
}

#[derive(Debug, ClapArgs)]
pub(crate) struct SyncArgs {
    /// Sources to catch up [default: all in the configuration]
    #[arg(value_name = "SOURCE")]
    pub(crate) sources: Vec<String>,
    /// First id to mirror; lowers the origin, never raises it
    #[arg(long, value_name = "ID", conflicts_with = "last")]
    pub(crate) from: Option<i64>,
    /// First date to mirror, as 2024-01-31 or 2024-01-31T18:00:00Z; lowers the origin, never raises it
    #[arg(long, value_name = "DATE", conflicts_with_all = ["from", "last"])]
    pub(crate) since: Option<Since>,
    /// Last id to mirror, included
    #[arg(long, value_name = "ID")]
    pub(crate) to: Option<i64>,
    /// Only the newest N ids
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) last: Option<u64>,
    /// Fetch again what is stored already, and count what differed
    #[arg(long)]
    pub(crate) force: bool,
    /// Looker: list what there is, fetch nothing, and say how many calls a sync would make
    #[arg(long, conflicts_with = "force")]
    pub(crate) plan: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ServeArgs {
    /// Sources to keep current [default: all in the configuration]
    #[arg(value_name = "SOURCE")]
    pub(crate) sources: Vec<String>,
    /// Where metrics and health are served [default: 127.0.0.1:8722, or serve.listen of the configuration]
    #[arg(long, value_name = "ADDR", value_parser = parse_address)]
    pub(crate) listen: Option<SocketAddr>,
}

/// A moment as it was typed, and as we count.
#[derive(Clone, Debug)]
pub(crate) struct Since {
    text: String,
    pub(crate) at: Timestamp,
}

impl FromStr for Since {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // A date alone is midnight; jiff would take a date out of longer texts as well, and drop the rest.
        let is_date = text.len() == "2024-01-31".len();
        let moment = if is_date { format!("{text}T00:00:00Z") } else { text.to_owned() };
        let moment: jiff::Timestamp =
            moment.parse().map_err(|_| "expected a date such as 2024-01-31 or 2024-01-31T18:00:00Z".to_owned())?;
        Ok(Since { text: text.into(), at: Timestamp::from_millis(moment.as_millisecond()) })
    }
}

impl fmt::Display for Since {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[derive(Debug, ClapArgs)]
pub(crate) struct StatusArgs {
    /// Only this source
    #[arg(value_name = "SOURCE")]
    pub(crate) source: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct VerifyArgs {
    /// The source to verify
    #[arg(value_name = "SOURCE")]
    pub(crate) source: Option<String>,
    /// How many keys to compare with the remote: a number, or 'all'
    #[arg(long, value_name = "N", value_parser = parse_sample)]
    pub(crate) sample: Option<Sample>,
    /// Check the files of the store itself; typed as --store without a URL
    #[arg(long = spelling::CHECK_FILES, hide = true)]
    pub(crate) check_files: bool,
}

pub(crate) fn parse_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "expected an address and a port such as 127.0.0.1:8722 or [::1]:8722".into())
}

fn parse_sample(text: &str) -> Result<Sample, String> {
    match text {
        "all" => Ok(Sample::All),
        _ => text.parse().map(Sample::Count).map_err(|_| "expected a number or 'all'".into()),
    }
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DeadLetterArgs {
    #[command(subcommand)]
    pub(crate) verb: DeadLetterVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DeadLetterVerb {
    /// One line for each dead letter
    #[command(after_help = examples::DEAD_LETTERS)]
    List {
        #[arg(value_name = "SOURCE")]
        source: Option<String>,
    },
    /// Everything known about a key
    #[command(after_help = examples::DEAD_LETTERS)]
    Show {
        #[arg(value_name = "SOURCE")]
        source: String,
        #[arg(value_name = "KEY")]
        key: String,
    },
    /// Put dead letters back to work
    #[command(after_help = examples::DEAD_LETTERS)]
    Replay {
        #[arg(value_name = "SOURCE")]
        source: Option<String>,
        /// Only these keys [default: all]
        #[arg(value_name = "KEY")]
        keys: Vec<String>,
        /// Fetch them at once
        #[arg(long)]
        now: bool,
    },
}

impl DeadLetterVerb {
    pub(crate) fn source(&self) -> Option<&str> {
        match self {
            DeadLetterVerb::List { source } | DeadLetterVerb::Replay { source, .. } => source.as_deref(),
            DeadLetterVerb::Show { source, .. } => Some(source),
        }
    }
}

#[derive(Debug, ClapArgs)]
pub(crate) struct LedgerArgs {
    /// Only this source
    #[arg(value_name = "SOURCE")]
    pub(crate) source: Option<String>,
    /// Check the hash chain instead of showing lines
    #[arg(long)]
    pub(crate) verify: bool,
    /// Show the last N lines
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) last: u32,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct StoreArgs {
    #[command(subcommand)]
    pub(crate) verb: StoreVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StoreVerb {
    /// Copy everything into an empty store, and prove that it is the same
    #[command(after_help = examples::COPY)]
    Copy(CopyArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CopyArgs {
    /// The store to copy [default: the configured one]
    #[arg(long, value_name = "URL")]
    pub(crate) from: Option<String>,
    /// The store to fill, as sqlite:PATH or postgres://USER@HOST/DATABASE
    #[arg(long, value_name = "URL")]
    pub(crate) to: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Simulated {
    Hn,
    Gmail,
    Looker,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct SimulateArgs {
    /// The API to simulate
    #[arg(value_enum, default_value = "hn", value_name = "API")]
    pub(crate) api: Simulated,
    /// Address to listen on; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:8733", value_name = "ADDR", value_parser = parse_address)]
    pub(crate) listen: SocketAddr,
    /// The same seed gives the same items and the same faults
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) seed: u64,
    /// How many items, messages or dashboards there are
    #[arg(long, default_value_t = 20_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub(crate) items: u64,
    /// none, calm, storm, chaos (hn, looker), penalty, expiry, broken (gmail), or a file with a plan
    #[arg(long, default_value = "calm", value_name = "PLAN")]
    pub(crate) faults: String,
    /// Serve the items of a JSON-lines file instead of generated ones
    #[arg(long, value_name = "FILE")]
    pub(crate) load: Option<PathBuf>,
    /// Print a commented fault plan and exit
    #[arg(long)]
    pub(crate) print_plan: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DemoArgs {
    /// Keep the store and say where it is
    #[arg(long)]
    pub(crate) keep: bool,
    /// How many items to mirror
    #[arg(long, default_value_t = 20_000, value_name = "N", value_parser = clap::value_parser!(u64).range(100..=1_000_000))]
    pub(crate) items: u64,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CompletionArgs {
    pub(crate) shell: clap_complete::Shell,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The store named, whether its files are checked, and the source verified.
    fn verify(line: &str) -> (Option<String>, bool, Option<String>) {
        let words = ["highwater"].into_iter().chain(line.split(' ')).map(Into::into);
        let args = Args::try_parse_from(spelling::resolve(words)).unwrap_or_else(|error| panic!("{line}: {error}"));
        let Command::Verify(verify) = args.command else { panic!("{line} is no verify") };
        (args.global.store, verify.check_files, verify.source)
    }

    #[test]
    fn what_follows_store_tells_whether_it_is_named_or_checked() {
        let named = |url: &str| Some(url.to_owned());
        let hn = || Some("hn".to_owned());
        assert_eq!(verify("verify --store"), (None, true, None));
        assert_eq!(verify("verify --store hn"), (None, true, hn()));
        assert_eq!(verify("verify hn --store --json"), (None, true, hn()));
        assert_eq!(verify("verify --store sqlite:a.db hn"), (named("sqlite:a.db"), false, hn()));
        assert_eq!(verify("verify hn --store=sqlite:a.db"), (named("sqlite:a.db"), false, hn()));
        assert_eq!(verify("verify --store postgres://u@h/d --store"), (named("postgres://u@h/d"), true, None));
        assert_eq!(verify("--store sqlite:a.db verify --store"), (named("sqlite:a.db"), true, None));
        assert_eq!(verify("--store sqlite:a.db verify --store hn"), (named("sqlite:a.db"), true, hn()));
        assert_eq!(verify("--config verify verify --store"), (None, true, None));
    }

    #[test]
    fn the_command_line_is_well_formed() {
        <Args as clap::CommandFactory>::command().debug_assert();
    }
}
