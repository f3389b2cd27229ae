//! Who may ask. A loopback address is no boundary: any web page can point a name of its own at it, so that requests are
//! told apart by the host they name. Other addresses need a token as well.

use std::{fmt, net::SocketAddr};

use aws_lc_rs::{constant_time, digest};
use http::{HeaderMap, HeaderName, Uri, header, uri::Authority};

const LOCAL_HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

#[derive(Clone, Debug, Default)]
pub struct AccessRules {
    /// Names by which others reach the service, with a port or for any.
    pub allowed_hosts: Vec<String>,
    pub token: Option<Token>,
}

/// A secret that requests must carry. Only its digest is kept.
#[derive(Clone)]
pub struct Token(digest::Digest);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    #[error("{0} can be reached from elsewhere: that needs a token")]
    NeedsToken(SocketAddr),
    #[error("a token is one or more visible ASCII characters")]
    BadToken,
}

/// Why a request is turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    NoHost,
    WrongHost,
    NoRead,
    NoToken,
}

impl AccessRules {
    /// To be asked before listening.
    pub fn check(&self, address: SocketAddr) -> Result<(), AccessError> {
        let is_local = address.ip().to_canonical().is_loopback();
        if is_local || self.token.is_some() { Ok(()) } else { Err(AccessError::NeedsToken(address)) }
    }

    pub(crate) fn check_host(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        let named = single(headers, &header::HOST).and_then(|host| host.parse::<Authority>().ok());
        let host = named.ok_or(Refusal::NoHost)?;
        // A request that names its host twice must mean us both times.
        let is_ours = |host: &Authority| self.is_our_host(host);
        if is_ours(&host) && uri.authority().is_none_or(is_ours) { Ok(()) } else { Err(Refusal::WrongHost) }
    }

    fn is_our_host(&self, host: &Authority) -> bool {
        let is_named =
            |allowed: &str| allowed.eq_ignore_ascii_case(host.as_str()) || allowed.eq_ignore_ascii_case(host.host());
        LOCAL_HOSTS.contains(&host.host().to_ascii_lowercase().as_str())
            || self.allowed_hosts.iter().any(|allowed| is_named(allowed))
    }

    pub(crate) fn check_token(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let Some(token) = &self.token else { return Ok(()) };
        let shown = single(headers, &header::AUTHORIZATION).and_then(bearer);
        if shown.is_some_and(|shown| token.is(shown)) { Ok(()) } else { Err(Refusal::NoToken) }
    }
}

fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let (first, second) = (values.next()?, values.next());
    if second.is_none() { first.to_str().ok() } else { None }
}

fn bearer(authorization: &str) -> Option<&str> {
    let (scheme, token) = authorization.split_once(' ')?;
    scheme.eq_ignore_ascii_case("Bearer").then(|| token.trim())
}

impl Token {
    pub fn new(secret: &str) -> Result<Self, AccessError> {
        let is_sound = !secret.is_empty() && secret.bytes().all(|byte| byte.is_ascii_graphic());
        if is_sound {
            Ok(Token(digest::digest(&digest::SHA256, secret.as_bytes())))
        } else {
            Err(AccessError::BadToken)
        }
    }

    /// Digests are compared, in constant time, so that neither length nor beginning can be guessed by the clock.
    fn is(&self, shown: &str) -> bool {
        let shown = digest::digest(&digest::SHA256, shown.as_bytes());
        constant_time::verify_slices_are_equal(self.0.as_ref(), shown.as_ref()).is_ok()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> AccessRules {
        AccessRules { allowed_hosts: vec!["mirror.example".into(), "proxy.example:444".into()], token: None }
    }

    fn host(value: &str) -> Result<(), Refusal> {
        let headers = HeaderMap::from_iter([(header::HOST, value.parse().unwrap())]);
        rules().check_host(&Uri::from_static("/metrics"), &headers)
    }

    #[test]
    fn only_hosts_that_mean_us_are_answered() {
        for ours in
            ["localhost", "LOCALHOST:8722", "127.0.0.1:1", "[::1]:8722", "mirror.example:9", "proxy.example:444"]
        {
            assert_eq!(host(ours), Ok(()), "{ours}");
        }
        for other in [
            "evil.example",
            "proxy.example",
            "proxy.example:4444",
            "127.0.0.2",
            "localhost.evil.example",
            "xmirror.example",
        ] {
            assert_eq!(host(other), Err(Refusal::WrongHost), "{other}");
        }
        assert_eq!(host("a b"), Err(Refusal::NoHost));
        let both = HeaderMap::from_iter([(header::HOST, "localhost".parse().unwrap())]);
        let absolute = Uri::from_static("http://evil.example/metrics");
        assert_eq!(rules().check_host(&absolute, &both), Err(Refusal::WrongHost));
        let mut twice = both.clone();
        twice.append(header::HOST, "evil.example".parse().unwrap());
        assert_eq!(rules().check_host(&Uri::from_static("/"), &twice), Err(Refusal::NoHost));
    }

    #[test]
    fn a_token_is_required_once_there_is_one() {
        let rules = AccessRules { token: Some(Token::new("s3cret").unwrap()), ..AccessRules::default() };
        let ask =
            |value: &str| rules.check_token(&HeaderMap::from_iter([(header::AUTHORIZATION, value.parse().unwrap())]));
        assert_eq!(ask("Bearer s3cret"), Ok(()));
        assert_eq!(ask("bearer s3cret"), Ok(()));
        for wrong in ["Bearer s3cre", "Bearer s3crets", "Bearer ", "Basic s3cret", "s3cret"] {
            assert_eq!(ask(wrong), Err(Refusal::NoToken), "{wrong}");
        }
        assert_eq!(rules.check_token(&HeaderMap::new()), Err(Refusal::NoToken));
        assert_eq!(AccessRules::default().check_token(&HeaderMap::new()), Ok(()));
        assert!(!format!("{rules:?}").contains("s3cret"));
        assert_eq!(Token::new("").unwrap_err(), AccessError::BadToken);
        assert_eq!(Token::new("a b").unwrap_err(), AccessError::BadToken);
    }

    #[test]
    fn an_address_others_can_reach_needs_a_token() {
        let open = AccessRules::default();
        let closed = AccessRules { token: Some(Token::new("x").unwrap()), ..AccessRules::default() };
        for local in ["127.0.0.1:8722", "127.8.8.8:1", "[::1]:8722", "[::ffff:127.0.0.1]:1"] {
            assert_eq!(open.check(local.parse().unwrap()), Ok(()), "{local}");
        }
        for reachable in ["0.0.0.0:8722", "[::]:8722", "10.0.0.1:1"] {
            let address = reachable.parse().unwrap();
            assert_eq!(open.check(address), Err(AccessError::NeedsToken(address)));
            assert_eq!(closed.check(address), Ok(()));
        }
    }
}
