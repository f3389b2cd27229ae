//! What `[sources.NAME]` says about a Looker instance.

use std::{path::PathBuf, time::Duration};

use highwater_sources::looker::kind_names;
use secrecy::SecretString;

use super::{reader::Reader, source::Limits};

#[derive(Clone, Debug)]
pub(crate) struct LookerConfig {
    pub(crate) base_url: Option<String>,
    pub(crate) client_id: Option<Given>,
    pub(crate) client_secret: Option<Given>,
    pub(crate) ini: Option<Ini>,
    pub(crate) verify_ssl: Option<bool>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) mirror: MirrorConfig,
}

/// A text, or the environment variable that has it.
#[derive(Clone, Debug)]
pub(crate) enum Given {
    Here(SecretString),
    Environment(String),
}

/// A section of a file as the SDK reads it; the first if none is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ini {
    pub(crate) path: PathBuf,
    pub(crate) section: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct MirrorConfig {
    /// All if none is named.
    pub(crate) types: Vec<String>,
    pub(crate) max_calls: Option<u64>,
    pub(crate) max_calls_month: Option<u64>,
}

/// Nodes of an instance have 200 threads in all.
const IN_FLIGHT_MAX: u32 = 50;
const JOB_MIN: usize = 10;

pub(super) fn parse(section: &mut Reader, base_url: Option<String>, limits: &Limits) -> Result<LookerConfig, String> {
    check_limits(section, limits)?;
    let ini = section.string("ini")?.map(PathBuf::from);
    let name = section.string("section")?;
    if let (None, Some(_)) = (&ini, &name) {
        return Err(format!("{}: of which file? ini is missing", section.path_of("section")));
    }
    Ok(LookerConfig {
        base_url,
        client_id: given(section, "client_id", "client_id_env")?,
        client_secret: given(section, "client_secret", "client_secret_env")?,
        ini: ini.map(|path| Ini { path, section: name }),
        verify_ssl: section.read("verify_ssl", "true or false", toml::Value::as_bool)?,
        timeout: section.duration("timeout")?,
        mirror: MirrorConfig {
            types: types(section)?,
            max_calls: section.whole("max_calls")?,
            max_calls_month: section.whole("max_calls_month")?,
        },
    })
}

fn given(section: &mut Reader, here: &'static str, variable: &'static str) -> Result<Option<Given>, String> {
    match (section.string(here)?, section.string(variable)?) {
        (Some(_), Some(_)) => Err(format!("{}: give {here} or {variable}, not both", section.path_of(here))),
        (Some(text), None) => Ok(Some(Given::Here(text.into()))),
        (None, name) => Ok(name.map(Given::Environment)),
    }
}

fn types(section: &mut Reader) -> Result<Vec<String>, String> {
    let path = section.path_of("types");
    let types = section.strings("types")?.unwrap_or_default();
    for name in &types {
        if !kind_names().any(|known| known == name) {
            let nearest = kind_names().min_by_key(|known| strsim::damerau_levenshtein(name, known)).unwrap_or_default();
            let known: Vec<_> = kind_names().collect();
            return Err(format!(
                "{path}: there is no type {name:?}; did you mean {nearest:?}? Known types are {}",
                known.join(", ")
            ));
        }
    }
    Ok(types)
}

fn check_limits(section: &Reader, limits: &Limits) -> Result<(), String> {
    let path = section.path_of("limits");
    for (key, value) in [("in_flight", limits.in_flight), ("in_flight_max", limits.in_flight_max)] {
        if let Some(value) = value.filter(|value| *value > IN_FLIGHT_MAX) {
            return Err(format!("{path}.{key}: {value} is too many, at most {IN_FLIGHT_MAX} requests at once"));
        }
    }
    match limits.job {
        Some(job) if job < JOB_MIN => Err(format!("{path}.job: {job} is too small, at least {JOB_MIN} objects a page")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn parsed(keys: &str) -> Result<LookerConfig, String> {
        let text = format!("[sources.bi]\nkind = 'looker'\n{keys}");
        Config::parse(&text).map(|config| config.sources[0].looker.clone().unwrap())
    }

    #[test]
    fn every_key_is_read() {
        let looker = parsed(
            "base_url = 'https://x:19999/'\nclient_id_env = 'A'\nclient_secret = 'canary'\nini = 'looker.ini'\n\
             section = 'prod'\nverify_ssl = false\ntimeout = '2m'\ntypes = ['looks', 'folders']\nmax_calls = 5\n\
             max_calls_month = 900",
        )
        .unwrap();
        assert!(matches!(&looker.client_id, Some(Given::Environment(name)) if name == "A"));
        assert_eq!(looker.ini, Some(Ini { path: "looker.ini".into(), section: Some("prod".into()) }));
        assert_eq!((looker.verify_ssl, looker.timeout), (Some(false), Some(Duration::from_secs(120))));
        assert_eq!((looker.mirror.types.len(), looker.mirror.max_calls), (2, Some(5)));
        assert!(!format!("{looker:?}").contains("canary"));
        assert!(parsed("").unwrap().mirror.types.is_empty());
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |keys: &str| parsed(keys).unwrap_err();
        let unknown = error("types = ['dashbords']");
        assert!(unknown.starts_with("sources.bi.types: there is no type \"dashbords\"; did you mean \"dashboards\"?"));
        assert!(error("section = 'prod'").contains("ini is missing"));
        assert!(error("client_id = 'a'\nclient_id_env = 'B'").contains("not both"));
        assert_eq!(error("typs = []"), "unknown key 'sources.bi.typs'; did you mean 'types'?");
        let limits = |keys: &str| error(&format!("[sources.bi.limits]\n{keys}"));
        assert_eq!(
            limits("in_flight = 51"),
            "sources.bi.limits.in_flight: 51 is too many, at most 50 requests at once"
        );
        assert_eq!(limits("job = 5"), "sources.bi.limits.job: 5 is too small, at least 10 objects a page");
        assert_eq!(limits("job = 1001"), "sources.bi.limits.job: 1001 is too large, at most 1000");
    }
}
