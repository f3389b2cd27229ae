//! The `[serve]` section: where the service can be watched, and by whom.

use std::net::SocketAddr;

use super::reader::Reader;

#[derive(Clone, Debug)]
pub(crate) struct ServeConfig {
    pub(crate) listen: SocketAddr,
    /// The environment variable that has the token.
    pub(crate) token_env: Option<String>,
    /// Names by which the service may be called, besides this machine's own.
    pub(crate) hosts: Vec<String>,
}

const ADDRESS: &str = "an address and a port such as \"127.0.0.1:8722\"";

impl Default for ServeConfig {
    fn default() -> Self {
        ServeConfig { listen: SocketAddr::from(([127, 0, 0, 1], 8722)), token_env: None, hosts: Vec::new() }
    }
}

pub(super) fn parse(section: Option<Reader>) -> Result<ServeConfig, String> {
    let default = ServeConfig::default();
    let Some(mut serve) = section else { return Ok(default) };
    let parsed = ServeConfig {
        listen: serve.read("listen", ADDRESS, |value| value.as_str()?.parse().ok())?.unwrap_or(default.listen),
        token_env: serve.string("token_env")?,
        hosts: serve.strings("hosts")?.unwrap_or_default(),
    };
    serve.finish()?;
    Ok(parsed)
}
