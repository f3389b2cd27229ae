//! The command line as typed: parsing touches nothing.

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
    after_help = EXAMPLES,
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

const EXAMPLES: &str = "\
Examples:
  highwater demo                     see a mirror built under faults, killed, resumed and proven
  highwater sync hn --last 10000     mirror the newest 10,000 items into ./highwater.db
  highwater sync hn                  mirror all of Hacker News; stop and start it as you like
  highwater serve                    stay current from then on
  highwater status                   how far is it
  highwater verify hn                compare with the remote and prove it
  highwater search 'rust compiler'   find it in what is mirrored

Exit codes:
  0 done and complete      1 failed      2 bad usage or configuration
  3 finished, but something is unaccounted for      4 credentials missing or refused
  130/143 stopped by a signal, in order";

#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct Global {
    /// Configuration file [default: ./highwater.toml, then the user's config folder]
    #[arg(long, global = true, env = "HIGHWATER_CONFIG", value_name = "PATH")]
    pub(crate) config: Option<PathBuf>,
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
    pub(crate) fn store_url(&self) -> Option<String> {
        self.store.clone().or_else(|| std::env::var("HIGHWATER_STORE").ok().filter(|url| !url.is_empty()))
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write a commented highwater.toml
    Init(InitArgs),
    /// Get or import the credentials of a source
    #[command(after_help = AUTH_EXAMPLES)]
    Auth(AuthArgs),
    /// Catch up with the remote, then exit
    #[command(after_help = SYNC_EXAMPLES)]
    Sync(SyncArgs),
    /// Stay current until stopped: live feed, catch-up, rescans, metrics
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(ServeArgs),
    /// Show how far each mirror is
    Status(StatusArgs),
    /// Compare the mirror with the remote and prove its completeness
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(VerifyArgs),
    /// List, show and replay what could not be mirrored
    #[command(name = "dead-letters", after_help = DEAD_LETTER_EXAMPLES)]
    DeadLetters(DeadLetterArgs),
    /// Find words in what is mirrored
    #[command(after_help = search::EXAMPLES)]
    Search(SearchArgs),
    /// Show the record of what was done, or check its chain
    Ledger(LedgerArgs),
    /// Move a mirror from one store to another
    Store(StoreArgs),
    /// Run a simulated API, to rehearse a configuration against it
    #[command(after_help = SIMULATE_EXAMPLES)]
    Simulate(SimulateArgs),
    /// The two-minute tour: simulator, sync under faults, a crash, resume, verify
    Demo(DemoArgs),
    /// Print a completion script for a shell
    Completions(CompletionArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct InitArgs {
    /// Where to write it
    #[arg(default_value = "highwater.toml", value_name = "PATH")]
    pub(crate) path: PathBuf,
    /// Overwrite an existing file
    #[arg(long)]
    pub(crate) force: bool,
}

const AUTH_EXAMPLES: &str = "\
Examples:
  highwater auth mail --client-secret client_secret.json    consent in the browser
  highwater auth mail --no-browser                          prints the address instead
  highwater auth mail --refresh-token-file token.json       imports a refresh token; - is stdin
  highwater auth mail --service-account key.json            domain-wide delegation
  highwater auth mail --check                               whether what is stored still works
  highwater auth rotate-key                                 seal all credentials with a new key

Only reading is asked for (gmail.readonly). Credentials are kept in the store, sealed with the key in
HIGHWATER_KEY (64 hexadecimal digits) or in highwater.key, which is made beside a SQLite store, or beside
the configuration for PostgreSQL. Keep a copy of it: without it, 'highwater auth' must be run again.
To change a key that is in HIGHWATER_KEY, put the new one into HIGHWATER_NEW_KEY.
Exit code 4: credentials are missing, expired, refused, or belong to another account.";

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

const SYNC_EXAMPLES: &str = "\
Examples:
  highwater sync hn                        everything up to now
  highwater sync hn --last 10000           only the newest 10,000 ids (later syncs go on from there)
  highwater sync hn --from 1 --to 500000   a range of ids, both ends included
  highwater sync hn --since 2024-01-31     everything posted since then (UTC; or 2024-01-31T18:00:00Z)
  highwater sync hn --force --last 1000    fetch the newest 1,000 again and count what differed
  highwater sync bi                        a Looker instance as it is now, with what changed since the last time
  highwater sync bi --plan                 how many calls that would take, for the price of the lists";

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

const SERVE_EXAMPLES: &str = "\
Examples:
  highwater serve                            every source of the configuration, until stopped
  highwater serve hn --listen 127.0.0.1:0    one source; metrics and health on a free port

It follows the live feed, catches up, looks again at what may still change, and accounts for every moment
in which it did not listen. Watch it with 'highwater status' and at http://127.0.0.1:8722/metrics, /healthz
and /readyz. The configuration is read at start: restart it to apply changes.
Ended by SIGINT or SIGTERM it exits with 130 or 143; with 1 when something does not heal by itself.";

#[derive(Debug, ClapArgs)]
pub(crate) struct ServeArgs {
    /// Sources to keep current [default: all in the configuration]
    #[arg(value_name = "SOURCE")]
    pub(crate) sources: Vec<String>,
    /// Where metrics and health are served [default: 127.0.0.1:8722, or serve.listen of the configuration]
    #[arg(long, value_name = "ADDR")]
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

const VERIFY_EXAMPLES: &str = "\
Examples:
  highwater verify hn                 all keys up to 10,000, a sample of 10,000 above
  highwater verify hn --sample all    every key
  highwater verify --store            check the files of the store itself; before a URL it names the store

Verify repairs nothing; 'highwater sync SOURCE --force' does.
Exit code 0 means complete and sound, 3 that something is missing, differs or has no explanation.";

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

fn parse_sample(text: &str) -> Result<Sample, String> {
    match text {
        "all" => Ok(Sample::All),
        _ => text.parse().map(Sample::Count).map_err(|_| "expected a number or 'all'".into()),
    }
}

const DEAD_LETTER_EXAMPLES: &str = "\
Examples:
  highwater dead-letters list hn
  highwater dead-letters show hn 8863
  highwater dead-letters replay hn          put all back to work; the next sync fetches them
  highwater dead-letters replay hn 8863 --now";

#[derive(Debug, ClapArgs)]
pub(crate) struct DeadLetterArgs {
    #[command(subcommand)]
    pub(crate) verb: DeadLetterVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DeadLetterVerb {
    /// One line for each dead letter
    List {
        #[arg(value_name = "SOURCE")]
        source: Option<String>,
    },
    /// Everything known about a key
    Show {
        #[arg(value_name = "SOURCE")]
        source: String,
        #[arg(value_name = "KEY")]
        key: String,
    },
    /// Put dead letters back to work
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

const COPY_EXAMPLES: &str = "\
Examples:
  highwater store copy --to postgres://ann@db.example.com/mirrors
  highwater store copy --from sqlite:highwater.db --to postgres://ann@localhost/mirrors?schema=hn
  highwater store copy --from postgres://localhost/mirrors --to sqlite:small.db

The target must be empty. Stopped at any moment, the same command goes on where it was. In the end
both sides are compared; only then does the target open for other commands, and sync goes on there.
Exit code 0 means that every table is the same on both sides, 1 that one is not.";

#[derive(Debug, ClapArgs)]
pub(crate) struct StoreArgs {
    #[command(subcommand)]
    pub(crate) verb: StoreVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StoreVerb {
    /// Copy everything into an empty store, and prove that it is the same
    #[command(after_help = COPY_EXAMPLES)]
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

const SIMULATE_EXAMPLES: &str = "\
Examples:
  highwater simulate hn                                  20,000 items, a calm remote
  highwater simulate hn --items 100000 --faults storm    errors, resets, throttling
  highwater simulate hn --faults plan.toml               your own plan; --print-plan shows every key of one
  highwater simulate hn --load items.jsonl.gz            real bodies, one JSON object a line
  highwater simulate gmail --items 5000                  a mailbox; --print-plan shows its plan
  highwater simulate looker --items 2000                 an instance of 2,000 dashboards and all that goes with them

Then point a source at it: base_url = \"http://127.0.0.1:8733\".
The truth to compare with is at /_sim/truth and /_sim/truth/users, counters are at /_sim/stats.

A plan with [mutations] makes items and profiles change while it runs; [stream] says how streams tell of it. By hand:
  curl '127.0.0.1:8733/_sim/mutate?id=19990&kind=dead'   score, text, kids, dead, delete or revive; &publish=false
  curl '127.0.0.1:8733/_sim/burst?count=500'             the newest 500 change at once
  curl '127.0.0.1:8733/_sim/profile?name=Bababa'         a profile changes
  curl '127.0.0.1:8733/_sim/grow?by=20'                  maxitem jumps, into what head.behind of the plan reserves
  curl '127.0.0.1:8733/_sim/stream?do=drop'              drop, cut, cancel, auth_revoked, silence or restore
  curl '127.0.0.1:8733/_sim/down?for_ms=60000'           every request is reset for a minute

Gmail: base_url = \"http://127.0.0.1:8733\", token_url = \"http://127.0.0.1:8733/token\". Unless the plan says otherwise
the account is ann@example.com, the client id sim-client, its secret sim-secret, and the refresh token
sim-refresh-token; /o/oauth2/v2/auth consents at once, and any service account may act for the account.
The plans are none, calm, storm, penalty, expiry and broken. By hand, with GET or POST:
  curl '127.0.0.1:8733/_sim/arrive?count=3'              mail arrives; /_sim/import?at=SECONDS: into the past
  curl '127.0.0.1:8733/_sim/label?id=ID&add=STARRED'     also remove=; /_sim/delete?id=ID: for good
  curl '127.0.0.1:8733/_sim/draft'                       a draft is saved, which gives it another id
  curl '127.0.0.1:8733/_sim/expire_history'              older history ids give 404
  curl '127.0.0.1:8733/_sim/expire_tokens'               access tokens end; /_sim/revoke: refresh tokens too
  curl '127.0.0.1:8733/_sim/penalty?for_s=60'            the penalty box; /_sim/down as above

Looker: base_url = \"http://127.0.0.1:8733\"; LOOKERSDK_CLIENT_ID=sim-client and LOOKERSDK_CLIENT_SECRET=sim-secret unless
the plan says otherwise. The plans are none, calm, storm and chaos. By hand, with GET, or POST and JSON:
  curl '127.0.0.1:8733/_sim/edit?type=dashboards&id=7'   another title; {\"set\": {...}} sets members
  curl '127.0.0.1:8733/_sim/insert?type=looks&count=3'   new ones, with their queries and metadata
  curl '127.0.0.1:8733/_sim/delete?type=looks&id=7'      to the trash; /_sim/restore, and /_sim/purge: for good
  curl '127.0.0.1:8733/_sim/hide?type=folders&id=7'      absent from lists, 404 alone; /_sim/show undoes it
  curl '127.0.0.1:8733/_sim/forbid?type=alerts'          the whole type is 403, or &status=404; /_sim/allow undoes it
  curl '127.0.0.1:8733/_sim/revoke'                      all tokens end; /_sim/credentials?client_secret=S changes it";

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
    #[arg(long, default_value = "127.0.0.1:8733", value_name = "ADDR")]
    pub(crate) listen: SocketAddr,
    /// The same seed gives the same items and the same faults
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) seed: u64,
    /// How many items, messages or dashboards there are
    #[arg(long, default_value_t = 20_000, value_name = "N")]
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
