//! Where requests go: scheme, host and port, and how URLs and redirects are read.

use http::{
    HeaderValue, Uri,
    uri::{Authority, PathAndQuery, Scheme},
};

use super::settings::SetupError;

#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub(super) scheme: Scheme,
    pub(super) authority: Authority,
    /// Without the brackets of an IPv6 address.
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) host_header: HeaderValue,
}

impl PartialEq for Origin {
    fn eq(&self, other: &Self) -> bool {
        self.scheme == other.scheme && self.port == other.port && self.host.eq_ignore_ascii_case(&other.host)
    }
}

impl Origin {
    pub(super) fn is_tls(&self) -> bool {
        self.scheme == Scheme::HTTPS
    }

    /// The absolute form, which HTTP/2 sends in parts.
    pub(super) fn uri(&self, path: PathAndQuery) -> Uri {
        let mut parts = Uri::from(path).into_parts();
        parts.scheme = Some(self.scheme.clone());
        parts.authority = Some(self.authority.clone());
        Uri::from_parts(parts).expect("scheme, authority and path make a URI")
    }

    fn of(uri: &Uri) -> Result<Self, &'static str> {
        let scheme = uri.scheme().ok_or("the scheme is missing")?.clone();
        let authority = uri.authority().ok_or("the host is missing")?.clone();
        let default_port = match scheme.as_str() {
            "https" => 443,
            "http" => 80,
            _ => return Err("only http and https are spoken"),
        };
        if authority.as_str().contains('@') {
            return Err("credentials do not belong into a URL");
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() {
            return Err("the host is missing");
        }
        let port = port_of(&authority)?.unwrap_or(default_port);
        let host_header = HeaderValue::from_str(authority.as_str()).map_err(|_| "the host is not a header value")?;
        Ok(Origin { scheme, authority, host, port, host_header })
    }
}

/// One that is no number of a port is not the same as none.
pub fn port_of(authority: &Authority) -> Result<Option<u16>, &'static str> {
    let address = authority.as_str().rsplit_once('@').map_or(authority.as_str(), |(_, address)| address);
    let behind = address.strip_prefix(authority.host()).ok_or("the host is not one")?;
    let port = match behind.strip_prefix(':') {
        Some("") => return Ok(None),
        None if behind.is_empty() => return Ok(None),
        Some(digits) if digits.bytes().all(|digit| digit.is_ascii_digit()) => digits.parse().ok(),
        _ => None,
    };
    port.filter(|port| *port > 0).map(Some).ok_or("the port is not between 1 and 65535")
}

/// Whether requests can be sent below this URL, as far as that can be told without sending any.
pub fn check_base_url(url: &str) -> Result<(), SetupError> {
    parse_base(url).map(drop)
}

/// Splits a base URL into its origin and the prefix of every path, which has no slash at its end.
pub(super) fn parse_base(url: &str) -> Result<(Origin, String), SetupError> {
    let uri: Uri = url.parse().map_err(|_| SetupError::BaseUrl("not a URL"))?;
    let origin = Origin::of(&uri).map_err(SetupError::BaseUrl)?;
    if uri.query().is_some() {
        return Err(SetupError::BaseUrl("a query does not belong here"));
    }
    Ok((origin, uri.path().trim_end_matches('/').to_owned()))
}

/// Where a `Location` points to, seen from a request that was answered with it.
pub(super) fn resolve(from: &Origin, path: &PathAndQuery, location: &str) -> Option<(Origin, PathAndQuery)> {
    let location = location.split('#').next().unwrap_or(location);
    let absolute = if location.contains("://") {
        location.to_owned()
    } else if location.starts_with("//") {
        format!("{}:{location}", from.scheme)
    } else {
        return Some((from.clone(), relative(path, location).parse().ok()?));
    };
    let uri: Uri = absolute.parse().ok()?;
    let path = uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
    Some((Origin::of(&uri).ok()?, path))
}

fn relative(path: &PathAndQuery, location: &str) -> String {
    if location.starts_with('/') {
        location.to_owned()
    } else if location.is_empty() || location.starts_with('?') {
        format!("{}{location}", path.path())
    } else {
        let folder = path.path().rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{folder}/{location}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_has_a_host_and_perhaps_a_prefix() {
        for (url, host, port, prefix) in [
            ("https://example.com", "example.com", 443, ""),
            ("http://example.com:8080/", "example.com", 8080, ""),
            ("http://127.0.0.1:1/a/b//", "127.0.0.1", 1, "/a/b"),
            ("https://[::1]:7/x", "::1", 7, "/x"),
            ("https://[::1]/", "::1", 443, ""),
            ("http://example.com:65535", "example.com", 65_535, ""),
            ("http://example.com:", "example.com", 80, ""),
        ] {
            let (origin, found) = parse_base(url).unwrap();
            assert_eq!((origin.host.as_str(), origin.port, found.as_str()), (host, port, prefix), "{url}");
        }
        for bad in [
            "http://:8080",
            "http://:",
            "http://[::1]x:80",
            "",
            "/v0",
            "example.com",
            "ftp://example.com",
            "http://me:secret@example.com",
            "http://a/?b=c",
        ] {
            assert!(parse_base(bad).is_err(), "{bad:?}");
        }
        for bad in ["http://a:65536", "http://a:99999/b", "https://[::1]:70000", "http://a:0", "http://a:+80"] {
            assert!(parse_base(bad).is_err_and(|error| error.to_string().starts_with("the port ")), "{bad:?}");
        }
    }

    #[test]
    fn locations_are_read_as_browsers_do() {
        let (origin, _) = parse_base("https://a.example").unwrap();
        let path = PathAndQuery::from_static("/v0/item/1.json?x=1");
        for (location, expected) in [
            ("/v1", "https://a.example/v1"),
            ("2.json", "https://a.example/v0/item/2.json"),
            ("?y=2", "https://a.example/v0/item/1.json?y=2"),
            ("//b.example/z#top", "https://b.example/z"),
            ("http://A.example:443", "http://A.example:443/"),
        ] {
            let (to, path) = resolve(&origin, &path, location).unwrap();
            assert_eq!(to.uri(path).to_string(), expected, "{location}");
        }
        assert!(resolve(&origin, &path, "ftp://a.example/").is_none());
        assert!(resolve(&origin, &path, "http://[bad/").is_none());
    }

    #[test]
    fn hosts_are_the_same_in_any_case_but_not_on_any_port() {
        let origin = |url: &str| parse_base(url).unwrap().0;
        assert_eq!(origin("https://A.example"), origin("https://a.EXAMPLE:443/x"));
        assert_ne!(origin("https://a.example"), origin("https://a.example:444"));
        assert_ne!(origin("https://a.example"), origin("http://a.example:443"));
    }
}
