//! The configuration file: found, parsed, and every unknown key refused by name.

mod alerts;
mod gmail;
mod looker;
mod reader;
mod serve;
mod source;
mod units;

use std::{
    env,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use highwater_store::Sharding;
use toml::Table;

use crate::exit::Trouble;
pub(crate) use alerts::{AlertsConfig, NotifyConfig, SmtpConfig};
pub(crate) use gmail::{ClientSecret, GmailConfig, OauthConfig};
pub(crate) use looker::{Given, Ini, LookerConfig};
use reader::Reader;
pub(crate) use serve::ServeConfig;
pub(crate) use source::{Limits, LiveConfig, ROTATE_KEY, RateLimit, SourceConfig, SourceKind};
pub(crate) use units::parse_duration;

pub(crate) const FILE_NAME: &str = "highwater.toml";
pub(crate) const DEFAULT_STORE: &str = "sqlite:highwater.db";
const DEFAULT_BLOBS: &str = "file:highwater-blobs";

#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// The file it was read from.
    pub(crate) path: Option<PathBuf>,
    pub(crate) store_url: String,
    /// Of a PostgreSQL database.
    pub(crate) store_schema: Option<String>,
    /// Where large contents go.
    pub(crate) blobs: String,
    /// Where the large parts of mail go.
    pub(crate) sharding: Sharding,
    pub(crate) sources: Vec<SourceConfig>,
    pub(crate) serve: ServeConfig,
    pub(crate) alerts: AlertsConfig,
}

impl Config {
    /// The file that `--config`, the environment or the usual places name; the defaults when there is none.
    pub(crate) fn load(named: Option<&Path>) -> Result<Config, Trouble> {
        let Some(path) = named.map(Path::to_path_buf).or_else(usual_place) else {
            return Config::parse("").map_err(Trouble::usage);
        };
        let text = std::fs::read_to_string(&path).map_err(|error| {
            let trouble = Trouble::usage(format!("cannot read the configuration {}: {error}", path.display()));
            match error.kind() {
                ErrorKind::NotFound => trouble.hint("'highwater init' writes one"),
                _ => trouble,
            }
        })?;
        let config = Config::parse(&text).map_err(|error| Trouble::usage(format!("{}: {error}", path.display())))?;
        Ok(Config { path: Some(path), ..config })
    }

    pub(crate) fn parse(text: &str) -> Result<Config, String> {
        let table: Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
        let mut root = Reader::new("", table);
        let (store_url, store_schema, blobs) = match root.section("store")? {
            Some(mut store) => {
                let places = (store.string("url")?, store.string("schema")?, store.string("blobs")?);
                store.finish()?;
                places
            }
            None => (None, None, None),
        };
        let serve = serve::parse(root.section("serve")?)?;
        let sources = match root.section("sources")? {
            Some(sources) => source::parse_all(sources)?,
            None => vec![SourceConfig::default_hn()],
        };
        let alerts = alerts::parse(root.section("alerts")?)?;
        root.finish()?;
        let sharding = Config::sharding(&sources)?;
        Config::check_alone(&sources)?;
        Ok(Config {
            path: None,
            sharding,
            store_url: store_url.unwrap_or_else(|| DEFAULT_STORE.into()),
            store_schema,
            blobs: blobs.unwrap_or_else(|| DEFAULT_BLOBS.into()),
            sources,
            serve,
            alerts,
        })
    }

    pub(crate) fn has_mail(&self) -> bool {
        self.sources.iter().any(|source| source.gmail.is_some())
    }

    /// Where mail lies, by the mailboxes that say something about it.
    fn sharding(sources: &[SourceConfig]) -> Result<Sharding, String> {
        let said = |source: &SourceConfig| {
            source.gmail.as_ref().and_then(|gmail| Some((source.name.clone(), gmail.mail.shards?)))
        };
        let mut said = sources.iter().filter_map(said);
        let Some((first, sharding)) = said.next() else { return Ok(Sharding::None) };
        match said.find(|(_, other)| *other != sharding) {
            None => Ok(sharding),
            Some((other, _)) => Err(format!(
                "sources.{other}.shards: differs from that of sources.{first}; mailboxes share a store, and so its shards"
            )),
        }
    }

    /// There is one Hacker News, and its tables do not say whose an item is.
    fn check_alone(sources: &[SourceConfig]) -> Result<(), String> {
        let mut hn = sources.iter().filter(|source| source.kind == SourceKind::Hn).map(|source| &source.name);
        match (hn.next(), hn.next()) {
            (Some(first), Some(second)) => Err(format!(
                "sources.{second}: a store holds one mirror of Hacker News, and sources.{first} is one; give the other a \
                 configuration and a store of its own"
            )),
            _ => Ok(()),
        }
    }

    pub(crate) fn source(&self, name: &str) -> Result<&SourceConfig, Trouble> {
        self.sources.iter().find(|source| source.name.as_str() == name).ok_or_else(|| {
            let known: Vec<_> = self.sources.iter().map(|source| source.name.as_str()).collect();
            Trouble::usage(format!("there is no source {name:?} in the configuration"))
                .hint(format!("known sources: {}; add [sources.{name}] for another", known.join(", ")))
        })
    }
}

fn usual_place() -> Option<PathBuf> {
    let here = PathBuf::from(FILE_NAME);
    let user_folder = env::var_os("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".config")));
    let user = user_folder.map(|folder| folder.join("highwater").join(FILE_NAME));
    [Some(here), user].into_iter().flatten().find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Config::parse(text).unwrap_err()
    }

    #[test]
    fn without_a_file_hacker_news_goes_into_a_local_database() {
        let config = Config::parse("").unwrap();
        assert_eq!((config.store_url.as_str(), config.sources.len()), ("sqlite:highwater.db", 1));
    }

    #[test]
    fn an_unknown_key_is_named_with_the_nearest_known_one() {
        assert_eq!(error("[stor]\nurl = 'x'"), "unknown key 'stor'; did you mean 'store'?");
        let limits = "[sources.hn]\nkind = 'hn'\n[sources.hn.limits]\nin_fligth = 3";
        assert_eq!(error(limits), "unknown key 'sources.hn.limits.in_fligth'; did you mean 'in_flight'?");
        let far = "[sources.hn]\nkind = 'hn'\nzzzzzz = 3";
        assert!(
            error(far).starts_with("unknown key 'sources.hn.zzzzzz'; known keys are kind, base_url"),
            "{}",
            error(far)
        );
    }

    #[test]
    fn an_address_that_is_none_is_named_with_what_is_wrong() {
        let at = |url: &str| format!("[sources.hn]\nkind = 'hn'\nbase_url = '{url}'");
        for (url, wrong) in [
            ("", "not a URL"),
            ("example.com", "the scheme is missing"),
            ("ftp://example.com", "only http and https are spoken"),
            ("http://example.com:99999", "the port is not between 1 and 65535"),
        ] {
            assert_eq!(error(&at(url)), format!("sources.hn.base_url: {wrong}"), "{url:?}");
        }
        let config = Config::parse(&at(" http://a:1 ")).unwrap();
        assert_eq!(config.sources[0].hn.base_url, "http://a:1");
    }

    #[test]
    fn mailboxes_of_a_store_agree_on_its_shards() {
        let mailbox = |name, keys: &str| format!("[sources.{name}]\nkind = 'gmail'\naccount = '{name}@b.c'\n{keys}\n");
        let parsed = |ann, zoe| Config::parse(&(mailbox("ann", ann) + &mailbox("zoe", zoe)));
        assert_eq!(parsed("", "").unwrap().sharding, Sharding::None);
        assert_eq!(parsed("", "shards = 'year'").unwrap().sharding, Sharding::Year);
        assert_eq!(parsed("shards = 'year'", "shards = 'year'").unwrap().sharding, Sharding::Year);
        let differ = parsed("shards = 'year'", "shards = 'none'").unwrap_err();
        assert!(differ.starts_with("sources.zoe.shards: differs from that of sources.ann"), "{differ}");
    }

    #[test]
    fn a_store_holds_one_hacker_news() {
        let twice = error("[sources.hn]\nkind = 'hn'\n[sources.news]\nkind = 'hn'");
        assert!(
            twice.starts_with("sources.news: a store holds one mirror of Hacker News, and sources.hn is"),
            "{twice}"
        );
    }

    #[test]
    fn a_wrong_value_is_named_with_what_was_expected() {
        let rate = "[sources.hn]\nkind = 'hn'\n[sources.hn.limits]\nrate = 'fast'";
        assert_eq!(error(rate), "sources.hn.limits.rate: expected a number above 0 or \"unlimited\", found \"fast\"");
        let kind = "[sources.x]\nkind = 'gopher'";
        assert_eq!(error(kind), "sources.x.kind: \"gopher\" is none of hn, gmail, looker");
        let slip = "[sources.x]\nkind = 'gmali'";
        assert!(error(slip).ends_with("is none of hn, gmail, looker; did you mean \"gmail\"?"), "{}", error(slip));
        let large = "[sources.hn]\nkind = 'hn'\n[sources.hn.limits]\nin_flight = 99999999999";
        assert_eq!(error(large), "sources.hn.limits.in_flight: 99999999999 is too large");
        let stall = "[sources.hn]\nkind = 'hn'\n[sources.hn.limits]\nstall_timeout = '0s'";
        assert_eq!(error(stall), "sources.hn.limits.stall_timeout: less than a second is too short");
        let listen = error("[serve]\nlisten = 'localhost'");
        assert!(listen.starts_with("serve.listen: expected an address and a port such as"), "{listen}");
        assert_eq!(error("[sources.x]"), "sources.x.kind is missing: one of hn, gmail, looker");
        assert!(error("[sources.X]\nkind='hn'").contains("is not a name"));
        assert!(error("[store]\nurl = 3").starts_with("store.url: expected a text"));
    }

    #[test]
    fn limits_are_read_with_their_units() {
        let text = r#"
            [sources.hn]
            kind = "hn"
            base_url = "http://127.0.0.1:1"
            [sources.hn.limits]
            rate = "unlimited"
            in_flight = 256
            attempts = 3
            segment = 500
            job = 50
            stall_timeout = "10m"
            retry_patience = "5s"
            dead_letters = "pass"
            [sources.hn.live]
            rescan_every = "6h"
        "#;
        let config = Config::parse(text).unwrap();
        let limits = &config.sources[0].limits;
        assert_eq!(limits.rate, Some(RateLimit::Unlimited));
        assert_eq!(
            (limits.in_flight, limits.attempts, limits.segment, limits.job),
            (Some(256), Some(3), Some(500), Some(50))
        );
        assert_eq!(limits.retry_patience, Some(std::time::Duration::from_secs(5)));
    }
}
