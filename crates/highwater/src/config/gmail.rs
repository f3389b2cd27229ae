//! What `[sources.NAME]` says about a Gmail account.

use std::{path::PathBuf, time::Duration};

use highwater_sources::gmail::{MailKind, Quota};
use highwater_store::Sharding;
use secrecy::SecretString;
use toml::Value;

use super::{reader::Reader, source::Limits, units::parse_size};

const BASE_URL: &str = "https://gmail.googleapis.com";
const TOKEN_URL: &str = "https://oauth2.googleapis.com/token";
const AUTH_URL: &str = "https://accounts.google.com/o/oauth2/v2/auth";
const POLL_EVERY: Duration = Duration::from_secs(300);

#[derive(Clone, Debug)]
pub(crate) struct GmailConfig {
    pub(crate) account: String,
    pub(crate) org: String,
    pub(crate) base_url: String,
    pub(crate) oauth: OauthConfig,
    pub(crate) mail: MailConfig,
}

#[derive(Clone, Debug)]
pub(crate) struct OauthConfig {
    pub(crate) token_url: String,
    pub(crate) auth_url: String,
    pub(crate) client_id: Option<String>,
    pub(crate) client_secret: Option<ClientSecret>,
}

/// Where the secret of the OAuth client is.
#[derive(Clone, Debug)]
pub(crate) enum ClientSecret {
    Here(SecretString),
    Environment(String),
    /// As Google's console gives it; has the id as well.
    File(PathBuf),
}

#[derive(Clone, Debug)]
pub(crate) struct MailConfig {
    /// Beyond the default, which is everything else.
    pub(crate) include: Vec<MailKind>,
    pub(crate) quota: Quota,
    /// Of the whole store: all mailboxes that say something say the same.
    pub(crate) shards: Option<Sharding>,
    pub(crate) backfill_days: Option<u32>,
    pub(crate) max_bytes_day: Option<u64>,
    pub(crate) poll_every: Duration,
}

/// `base_url` is read with what all sources have.
pub(super) fn parse(section: &mut Reader, base_url: Option<String>, limits: &Limits) -> Result<GmailConfig, String> {
    check_limits(section, limits)?;
    let path = section.path_of("account");
    let account = section.string("account")?.ok_or_else(|| format!("{path} is missing: the address of the mailbox"))?;
    if !is_address(&account) {
        return Err(format!("{path}: expected an address such as \"ann@example.com\""));
    }
    let org = section.string("org")?.unwrap_or_else(|| "default".into());
    let base_url = base_url.unwrap_or_else(|| BASE_URL.into());
    let (oauth, mail) = (parse_oauth(section)?, parse_mail(section)?);
    Ok(GmailConfig { account, org, base_url, oauth, mail })
}

/// A job of fewer messages is not worth its bookkeeping; one of more than a page of a list holds up what comes after it.
const JOB_MIN: usize = 200;
pub(super) const JOB_MAX: u64 = 500;

fn check_limits(section: &Reader, limits: &Limits) -> Result<(), String> {
    let path = section.path_of("limits.job");
    match limits.job {
        Some(job) if job < JOB_MIN => Err(format!("{path}: {job} is too small, at least {JOB_MIN} messages a job")),
        _ => Ok(()),
    }
}

fn is_address(text: &str) -> bool {
    let is_plain = !text.contains(|c: char| c.is_whitespace() || c.is_control());
    is_plain && text.split_once('@').is_some_and(|(name, host)| !name.is_empty() && !host.is_empty())
}

fn parse_oauth(section: &mut Reader) -> Result<OauthConfig, String> {
    let (token_url, auth_url) = (section.string("token_url")?, section.string("auth_url")?);
    let client_id = section.string("client_id")?;
    let secrets = [
        section.string("client_secret")?.map(|secret| ClientSecret::Here(secret.into())),
        section.string("client_secret_env")?.map(ClientSecret::Environment),
        section.string("client_secret_file")?.map(|path| ClientSecret::File(path.into())),
    ];
    let mut secrets = secrets.into_iter().flatten();
    let client_secret = secrets.next();
    if secrets.next().is_some() {
        let path = section.path_of("client_secret");
        return Err(format!("{path}: give one of client_secret, client_secret_env and client_secret_file"));
    }
    Ok(OauthConfig {
        token_url: token_url.unwrap_or_else(|| TOKEN_URL.into()),
        auth_url: auth_url.unwrap_or_else(|| AUTH_URL.into()),
        client_id,
        client_secret,
    })
}

fn parse_mail(section: &mut Reader) -> Result<MailConfig, String> {
    let path = section.path_of("include");
    let include = section.strings("include")?.unwrap_or_default();
    let include: Result<_, String> =
        include.iter().map(|word| word.parse().map_err(|error| format!("{path}: {error}"))).collect();
    Ok(MailConfig {
        include: include?,
        quota: section.word("quota")?.unwrap_or(Quota::Auto),
        shards: section.read("shards", SHARDS, parse_shards)?,
        backfill_days: section.whole("backfill_days")?,
        max_bytes_day: section.read("max_bytes_day", BYTES_DAY, parse_bytes_day)?,
        poll_every: section.duration("poll_every")?.unwrap_or(POLL_EVERY),
    })
}

const BYTES_DAY: &str = "a size of at least 1MB such as \"2GB\"";
/// Lists alone take up some of it.
const BYTES_DAY_MIN: u64 = 1_000_000;

fn parse_bytes_day(value: &Value) -> Option<u64> {
    parse_size(value.as_str()?).filter(|bytes| *bytes >= BYTES_DAY_MIN)
}

const SHARDS: &str = "\"none\", \"year\" or a size of at least 1MB such as \"2GB\"";
/// A file is made for each so many bytes.
const SHARD_MIN: u64 = 1_000_000;

fn parse_shards(value: &Value) -> Option<Sharding> {
    match value.as_str()? {
        "none" => Some(Sharding::None),
        "year" => Some(Sharding::Year),
        size => parse_size(size).filter(|bytes| *bytes >= SHARD_MIN).map(Sharding::Size),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn parsed(keys: &str) -> Result<GmailConfig, String> {
        let text = format!("[sources.mail]\nkind = 'gmail'\n{keys}");
        Config::parse(&text).map(|config| config.sources[0].gmail.clone().unwrap())
    }

    #[test]
    fn an_account_is_all_that_is_needed() {
        let gmail = parsed("account = 'ann@example.com'").unwrap();
        assert_eq!((gmail.org.as_str(), gmail.base_url.as_str()), ("default", BASE_URL));
        assert_eq!((gmail.oauth.token_url.as_str(), gmail.oauth.auth_url.as_str()), (TOKEN_URL, AUTH_URL));
        assert!(gmail.oauth.client_id.is_none() && gmail.oauth.client_secret.is_none());
        assert_eq!((gmail.mail.include.len(), gmail.mail.quota, gmail.mail.poll_every), (0, Quota::Auto, POLL_EVERY));
    }

    #[test]
    fn every_key_is_read() {
        let gmail = parsed(
            "account = 'ann@example.com'\norg = 'acme'\nbase_url = 'http://b'\ntoken_url = 'http://t'\n\
             auth_url = 'http://a'\nclient_id = 'id'\nclient_secret_env = 'S'\ninclude = ['spam', 'chats']\n\
             quota = 'old'\nshards = '2GB'\nbackfill_days = 30\nmax_bytes_day = '500MB'\npoll_every = '1m'",
        )
        .unwrap();
        assert_eq!((gmail.org.as_str(), gmail.base_url.as_str()), ("acme", "http://b"));
        assert!(matches!(&gmail.oauth.client_secret, Some(ClientSecret::Environment(name)) if name == "S"));
        assert_eq!(
            (gmail.mail.include.as_slice(), gmail.mail.quota),
            (&[MailKind::Spam, MailKind::Chats][..], Quota::Old)
        );
        assert_eq!(gmail.mail.shards, Some(Sharding::Size(2_000_000_000)));
        assert_eq!((gmail.mail.backfill_days, gmail.mail.poll_every), (Some(30), Duration::from_secs(60)));
        assert_eq!(gmail.mail.max_bytes_day, Some(500_000_000));
    }

    #[test]
    fn what_is_wrong_is_named_and_no_secret_is() {
        let error = |keys: &str| parsed(keys).unwrap_err();
        assert_eq!(error(""), "sources.mail.account is missing: the address of the mailbox");
        assert!(error("account = 'ann'").starts_with("sources.mail.account: expected an address"));
        let account = "account = 'ann@example.com'\n";
        let said = |keys: &str| error(&format!("{account}{keys}"));
        assert_eq!(said("poll_evry = '1m'"), "unknown key 'sources.mail.poll_evry'; did you mean 'poll_every'?");
        assert!(said("include = ['span']").contains("sources.mail.include: \"span\" is not a"));
        for odd in ["'month'", "'999KB'", "2024"] {
            let expected = "sources.mail.shards: expected \"none\", \"year\" or a size of at least 1MB";
            assert!(said(&format!("shards = {odd}")).starts_with(expected), "{odd}");
        }
        for odd in ["'2 GB'", "'999KB'", "'0MB'", "'unlimited'", "2000000000"] {
            let expected = "sources.mail.max_bytes_day: expected a size of at least 1MB such as \"2GB\", found";
            assert!(said(&format!("max_bytes_day = {odd}")).starts_with(expected), "{odd}");
        }
        let job = |job: u32| said(&format!("[sources.mail.limits]\njob = {job}"));
        assert_eq!(job(199), "sources.mail.limits.job: 199 is too small, at least 200 messages a job");
        for large in [501, 1_001] {
            assert_eq!(job(large), format!("sources.mail.limits.job: {large} is too large, at most 500"));
        }
        for fits in [200, 500] {
            assert!(parsed(&format!("{account}[sources.mail.limits]\njob = {fits}")).is_ok(), "{fits}");
        }
        let both = said("client_secret = 'canary'\nclient_secret_env = 'X'");
        assert!(both.contains("give one of") && !both.contains("canary"), "{both}");
        let gmail = parsed(&format!("{account}client_secret = 'canary'")).unwrap();
        assert!(!format!("{gmail:?}").contains("canary"));
        let reserved = Config::parse("[sources.rotate-key]\nkind = 'hn'").unwrap_err();
        assert!(reserved.contains("'highwater auth rotate-key'"), "{reserved}");
    }
}
