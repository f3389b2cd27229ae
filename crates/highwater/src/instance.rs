//! How a Looker instance is reached, from wherever that is said: the configuration, the environment as the SDK names it,
//! a section of a `looker.ini`.

use std::{collections::BTreeMap, env, fs, time::Duration};

use highwater_core::SourceName;
use highwater_sources::{gmail::oauth::Secret, looker::ApiKey};
use secrecy::ExposeSecret;

use crate::{
    config::{Given, Ini, LookerConfig},
    exit::{Exit, Trouble},
};

pub(crate) struct Instance {
    pub(crate) base_url: String,
    pub(crate) key: ApiKey,
    pub(crate) verifies: bool,
    pub(crate) timeout: Option<Duration>,
}

/// What the configuration does not say, the environment may, and after that the file.
struct Elsewhere<'a> {
    source: &'a SourceName,
    file: BTreeMap<String, String>,
    variable: fn(&str) -> Option<String>,
}

impl Instance {
    pub(crate) fn find(source: &SourceName, config: &LookerConfig) -> Result<Instance, Trouble> {
        Instance::find_with(source, config, |name| env::var(name).ok())
    }

    fn find_with(
        source: &SourceName,
        config: &LookerConfig,
        variable: fn(&str) -> Option<String>,
    ) -> Result<Instance, Trouble> {
        let file = config.ini.as_ref().map_or(Ok(BTreeMap::new()), |ini| read_file(source, ini))?;
        let elsewhere = Elsewhere { source, file, variable };
        let base_url = config.base_url.clone().or_else(|| elsewhere.word("base_url"));
        let base_url = base_url.ok_or_else(|| {
            Trouble::usage(format!("sources.{source}.base_url is missing: the address of the instance"))
                .hint("LOOKERSDK_BASE_URL or a section of a looker.ini may say it, too")
        })?;
        let client_id = elsewhere.given("client_id", config.client_id.as_ref())?;
        let client_secret = elsewhere.given("client_secret", config.client_secret.as_ref())?;
        Ok(Instance {
            base_url: trimmed(&base_url),
            key: ApiKey { client_id: client_id.expose().to_owned(), client_secret },
            verifies: config
                .verify_ssl
                .map_or_else(|| elsewhere.flag("verify_ssl"), |said| Ok(Some(said)))?
                .unwrap_or(true),
            timeout: config.timeout.map_or_else(|| elsewhere.seconds("timeout"), |said| Ok(Some(said)))?,
        })
    }
}

impl Elsewhere<'_> {
    fn word(&self, name: &str) -> Option<String> {
        let variable = format!("LOOKERSDK_{}", name.to_ascii_uppercase());
        let said = (self.variable)(&variable).map(|text| unquoted(&text)).filter(|text| !text.is_empty());
        said.or_else(|| self.file.get(name).cloned())
    }

    fn given(&self, name: &str, given: Option<&Given>) -> Result<Secret, Trouble> {
        let found = match given {
            Some(Given::Here(text)) => Some(text.expose_secret().to_owned()),
            Some(Given::Environment(variable)) => {
                let said = (self.variable)(variable).filter(|text| !text.is_empty());
                return said.map(Secret::new).ok_or_else(|| {
                    let message = format!("sources.{}.{name}_env: {variable} is not set", self.source);
                    Trouble::new(Exit::Credentials, message)
                });
            }
            None => self.word(name),
        };
        found.map(Secret::new).ok_or_else(|| {
            let message = format!("the {} of the API key of {} is missing", name.replace("client_", ""), self.source);
            let variable = format!("LOOKERSDK_{}", name.to_ascii_uppercase());
            Trouble::new(Exit::Credentials, message)
                .hint(format!("set {variable}, or sources.{0}.{name}_env, or sources.{0}.ini", self.source))
        })
    }

    /// As the SDK reads flags.
    fn flag(&self, name: &str) -> Result<Option<bool>, Trouble> {
        let Some(word) = self.word(name) else { return Ok(None) };
        match word.to_ascii_lowercase().as_str() {
            "yes" | "y" | "true" | "t" | "1" => Ok(Some(true)),
            "no" | "n" | "false" | "f" | "0" => Ok(Some(false)),
            _ => Err(Trouble::usage(format!("{name} of {}: expected true or false, found {word:?}", self.source))),
        }
    }

    fn seconds(&self, name: &str) -> Result<Option<Duration>, Trouble> {
        let Some(word) = self.word(name) else { return Ok(None) };
        match word.parse() {
            Ok(seconds @ 1..) => Ok(Some(Duration::from_secs(seconds))),
            _ => Err(Trouble::usage(format!("{name} of {}: expected seconds, found {word:?}", self.source))),
        }
    }
}

/// The address may end with a slash, or with the path of the API, which we add.
fn trimmed(url: &str) -> String {
    let url = url.trim().trim_end_matches('/');
    let url = ["/api/4.0", "/api"].iter().find_map(|end| url.strip_suffix(end)).unwrap_or(url);
    url.trim_end_matches('/').to_owned()
}

fn unquoted(text: &str) -> String {
    let text = text.trim();
    let inner = ['"', '\''].iter().find_map(|quote| text.strip_prefix(*quote)?.strip_suffix(*quote));
    inner.unwrap_or(text).to_owned()
}

fn read_file(source: &SourceName, ini: &Ini) -> Result<BTreeMap<String, String>, Trouble> {
    let shown = ini.path.display();
    let text = fs::read_to_string(&ini.path)
        .map_err(|error| Trouble::usage(format!("sources.{source}.ini: cannot read {shown}: {error}")))?;
    section(&text, ini.section.as_deref()).map_err(|known| {
        let wanted = ini.section.as_deref().unwrap_or("any");
        Trouble::usage(format!("sources.{source}.section: {shown} has no section {wanted:?}"))
            .hint(format!("it has {}", if known.is_empty() { "none".to_owned() } else { known.join(", ") }))
    })
}

/// The words of a section, without quotes and without those that are empty; or the sections there are.
fn section(text: &str, wanted: Option<&str>) -> Result<BTreeMap<String, String>, Vec<String>> {
    let mut sections: Vec<(String, BTreeMap<String, String>)> = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with(['#', ';']) || line.is_empty() {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            sections.push((name.trim().to_owned(), BTreeMap::new()));
        } else if let (Some((_, words)), Some((name, word))) = (sections.last_mut(), line.split_once(['=', ':'])) {
            let word = unquoted(word);
            if !word.is_empty() {
                words.insert(name.trim().to_ascii_lowercase(), word);
            }
        }
    }
    let names: Vec<String> = sections.iter().map(|(name, _)| name.clone()).collect();
    let found = sections.into_iter().find(|(name, _)| wanted.is_none_or(|wanted| wanted == name));
    found.map(|(_, words)| words).ok_or(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn find(keys: &str, variable: fn(&str) -> Option<String>) -> Result<Instance, Trouble> {
        let config = Config::parse(&format!("[sources.bi]\nkind = 'looker'\n{keys}")).unwrap();
        let source = &config.sources[0];
        Instance::find_with(&source.name, source.looker.as_ref().unwrap(), variable)
    }

    fn sdk(name: &str) -> Option<String> {
        let text = match name {
            "LOOKERSDK_BASE_URL" => "https://env:19999/",
            "LOOKERSDK_CLIENT_ID" => "env-id",
            "LOOKERSDK_CLIENT_SECRET" => "env-secret",
            "LOOKERSDK_VERIFY_SSL" => "no",
            _ => return None,
        };
        Some(text.to_owned())
    }

    #[test]
    fn a_section_is_read_as_the_sdk_reads_it() {
        let text =
            "# mine\n[dev]\nbase_url = \"https://dev\"\nclient_id=a\nclient_secret=\n[prod]\nbase_url: 'https://p:1'\n";
        let dev = section(text, None).unwrap();
        assert_eq!((dev["base_url"].as_str(), dev.get("client_secret")), ("https://dev", None));
        assert_eq!(section(text, Some("prod")).unwrap()["base_url"], "https://p:1");
        assert_eq!(section(text, Some("qa")).unwrap_err(), ["dev", "prod"]);
    }

    #[test]
    fn the_environment_of_the_sdk_is_enough_and_the_configuration_goes_before_it() {
        let instance = find("", sdk).unwrap();
        assert_eq!((instance.base_url.as_str(), instance.verifies), ("https://env:19999", false));
        assert_eq!((instance.key.client_id.as_str(), instance.key.client_secret.expose()), ("env-id", "env-secret"));
        let instance = find("base_url = 'https://x/api/4.0'\nclient_id = 'mine'\nverify_ssl = true", sdk).unwrap();
        assert_eq!((instance.base_url.as_str(), instance.key.client_id.as_str()), ("https://x", "mine"));
        assert!(instance.verifies);
    }

    #[test]
    fn what_is_missing_is_named_with_its_exit_code() {
        let exit = |keys: &str| find(keys, |_| None).err().unwrap().exit;
        assert_eq!(exit(""), Exit::Usage);
        assert_eq!(exit("base_url = 'https://x'"), Exit::Credentials);
        assert_eq!(exit("base_url = 'https://x'\nclient_id = 'a'\nclient_secret_env = 'NOPE'"), Exit::Credentials);
        assert_eq!(exit("base_url = 'https://x'\nini = '/no/such/file'"), Exit::Usage);
    }
}
