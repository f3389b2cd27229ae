//! Where the database is: the URL, the variables and files that libpq knows, and what of it is ours.

use std::{path::PathBuf, str::FromStr, time::Duration};

use tokio_postgres::{Config, config::Host};

use super::{
    passwords,
    tls::{SslMode, Trust},
};
use crate::{ErrorKind, Result, StoreError};

/// Long enough for a far database, short enough to notice that there is none.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// A peer that vanished without a word is noticed within a minute.
const SILENCE_MAX: Duration = Duration::from_secs(30);
const PROBE_EVERY: Duration = Duration::from_secs(10);

pub(super) struct Address {
    pub(super) config: Config,
    pub(super) trust: Trust,
    /// None: the first of the user's search path.
    pub(super) schema: Option<String>,
}

/// What the process was started with: variables by name.
pub(super) type Surroundings<'a> = &'a dyn Fn(&str) -> Option<String>;

impl Address {
    pub(super) fn parse(url: &str, variable: Surroundings<'_>) -> Result<Address> {
        let (plain, own) = split(url)?;
        let mut config = Config::from_str(&plain).map_err(|error| {
            unusable(&error.to_string())
                .caused_by(std::error::Error::source(&error).map_or_else(String::new, ToString::to_string))
        })?;
        let default = |name| variable(name).filter(|value| !value.is_empty());
        let mode = own.ssl_mode.or_else(|| default("PGSSLMODE")).map_or(Ok(SslMode::Prefer), |word| word.parse());
        let mode = mode.map_err(|error: highwater_core::UnknownWord| unusable(&error.to_string()))?;
        let root = own.ssl_root.or_else(|| default("PGSSLROOTCERT")).map(PathBuf::from);
        let root = root.or_else(|| default_root(variable).filter(|path| path.exists()));
        fill_in(&mut config, variable)?;
        passwords::fill_in(&mut config, variable);
        Ok(Address { config, trust: Trust { mode, root }, schema: own.schema })
    }

    /// For people: never with a password.
    pub(super) fn shown(&self) -> String {
        let host = |host: &Host| match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(path) => path.display().to_string(),
        };
        let hosts: Vec<_> = self.config.get_hosts().iter().map(host).collect();
        let database = self.config.get_dbname().or(self.config.get_user()).unwrap_or("its default database");
        format!("PostgreSQL database {database:?} at {}", hosts.join(", "))
    }

    /// To know the same database again, whatever the user and the password.
    pub(super) fn place(&self) -> String {
        let ports: Vec<_> = self.config.get_ports().iter().map(u16::to_string).collect();
        let ports = if ports.is_empty() { String::new() } else { format!(", port {}", ports.join(", ")) };
        format!("{}{ports}", self.shown())
    }

    /// For one server; a list of them takes longer.
    pub(super) fn patience(&self) -> Duration {
        let hosts = u32::try_from(self.config.get_hosts().len().max(1)).unwrap_or(u32::MAX);
        self.config.get_connect_timeout().copied().unwrap_or(CONNECT_PATIENCE).saturating_mul(hosts)
    }
}

/// Parts of the URL that the driver does not know.
#[derive(Default)]
struct Own {
    ssl_mode: Option<String>,
    ssl_root: Option<String>,
    schema: Option<String>,
}

/// The URL without our parts, and those.
fn split(url: &str) -> Result<(String, Own)> {
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        return Err(unusable("it begins with postgres:// or postgresql://"));
    }
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    let mut own = Own::default();
    let mut rest = Vec::new();
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let value_text = decoded(value)?;
        match name {
            "sslmode" => own.ssl_mode = Some(value_text),
            "sslrootcert" => own.ssl_root = Some(value_text),
            "schema" => own.schema = Some(value_text).filter(|schema| !schema.is_empty()),
            "options" => {
                let others = without_search_path(&value_text, &mut own.schema);
                if !others.is_empty() {
                    rest.push(format!("options={}", encoded(&others)));
                }
            }
            _ => rest.push(parameter.to_owned()),
        }
    }
    let plain = if rest.is_empty() { base.to_owned() } else { format!("{base}?{}", rest.join("&")) };
    Ok((plain, own))
}

/// Takes the search path out of `options`: poolers refuse it at the start of a connection, and every transaction sets
/// it anyway.
fn without_search_path(options: &str, schema: &mut Option<String>) -> String {
    let mut others = Vec::new();
    let mut words = options.split_whitespace();
    while let Some(word) = words.next() {
        let setting = match word {
            "-c" => words.next().unwrap_or_default(),
            _ => word.strip_prefix("-c").or_else(|| word.strip_prefix("--")).unwrap_or(word),
        };
        match setting.strip_prefix("search_path=") {
            Some(path) => {
                let first = path.split(',').next().unwrap_or_default().trim().trim_matches('"');
                *schema = Some(first.to_owned()).filter(|first| !first.is_empty());
            }
            None => others.push(format!("-c{setting}")),
        }
    }
    others.join(" ")
}

fn fill_in(config: &mut Config, variable: Surroundings<'_>) -> Result<()> {
    let default = |name| variable(name).filter(|value| !value.is_empty());
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        let hosts = default("PGHOST").unwrap_or_else(|| "localhost".into());
        for host in hosts.split(',') {
            config.host(host);
        }
    }
    if let Some(port) = default("PGPORT").filter(|_| config.get_ports().is_empty()) {
        config.port(port.parse().map_err(|_| unusable(&format!("PGPORT is {port:?}")))?);
    }
    if let Some(user) = default("PGUSER").filter(|_| config.get_user().is_none()) {
        config.user(user);
    }
    if let Some(name) = default("PGDATABASE").filter(|_| config.get_dbname().is_none()) {
        config.dbname(name);
    }
    if config.get_application_name().is_none() {
        config.application_name("highwater");
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_PATIENCE);
    }
    config.keepalives_idle(SILENCE_MAX).keepalives_interval(PROBE_EVERY).tcp_user_timeout(SILENCE_MAX);
    Ok(())
}

fn default_root(variable: Surroundings<'_>) -> Option<PathBuf> {
    variable("HOME").map(|home| PathBuf::from(home).join(".postgresql/root.crt"))
}

fn unusable(why: &str) -> StoreError {
    StoreError::new(ErrorKind::CannotOpen, format!("the URL of the store cannot be used: {why}"))
}

fn decoded(text: &str) -> Result<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let escaped = (first == b'%').then(|| text_of(after.get(..2)?)).flatten();
        match escaped {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).map_err(|_| unusable("it is not in UTF-8"))
}

fn text_of(hex: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[cfg(test)]
mod tests;
