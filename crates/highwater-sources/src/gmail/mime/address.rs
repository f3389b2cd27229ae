//! Addresses of people, out of the headers that name them.

use std::collections::HashSet;

use mail_parser::{HeaderValue, parsers::MessageStream};

use super::{charset, words};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub name: Option<String>,
    /// Empty if the header only has a name.
    pub email: String,
}

/// The addresses in these headers, each once, those in groups among them.
pub(super) fn emails<'a>(values: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut seen = HashSet::new();
    let emails = values.flat_map(addresses).map(|address| address.email);
    emails.filter(|email| !email.is_empty() && seen.insert(email.clone())).collect()
}

pub(super) fn first(value: &str) -> Option<Address> {
    addresses(value).into_iter().next()
}

fn addresses(value: &str) -> Vec<Address> {
    // The parser takes the end of the line for the end of the last address.
    let line = format!("{}\n", words::in_utf8(value));
    let HeaderValue::Address(found) = MessageStream::new(line.as_bytes()).parse_address() else { return Vec::new() };
    found.iter().filter_map(|address| whole(address.name.as_deref(), address.address.as_deref())).collect()
}

/// A word where an address should be is one: `root`, or `MAILER-DAEMON`.
fn whole(name: Option<&str>, email: Option<&str>) -> Option<Address> {
    let name = name.map(str::trim).filter(|name| !name.is_empty());
    let email = email.map(str::trim).filter(|email| !email.is_empty());
    let (name, email) = match (name, email) {
        (Some(word), None) if !word.contains(char::is_whitespace) => (None, word),
        (None, None) => return None,
        (name, email) => (name, email.unwrap_or("")),
    };
    Some(Address { name: name.map(|name| charset::clean(name.to_owned())), email: charset::clean(lower_domain(email)) })
}

/// Who reads the part before the sign decides whether its case matters.
fn lower_domain(email: &str) -> String {
    match email.rsplit_once('@') {
        Some((local, domain)) => format!("{local}@{}", domain.to_lowercase()),
        None => email.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: &str, expected: &[(&str, &str)]) {
        let found = addresses(value);
        let found: Vec<_> = found.iter().map(|a| (a.name.as_deref().unwrap_or("-"), a.email.as_str())).collect();
        assert_eq!(found, expected, "{value:?}");
    }

    #[test]
    fn addresses_are_read_however_they_are_written() {
        check("ann@Example.COM", &[("-", "ann@example.com")]);
        check("Ann <Ann.B@Example.com>, <c@d>", &[("Ann", "Ann.B@example.com"), ("-", "c@d")]);
        check("\"B, Ann \\\"x\\\"\" <a@b>", &[("B, Ann \"x\"", "a@b")]);
        check("a@b (Ann)", &[("Ann", "a@b")]);
        check("Friends: a@b, C <c@d>;, e@f", &[("-", "a@b"), ("C", "c@d"), ("-", "e@f")]);
        check("undisclosed-recipients:;", &[]);
        check("", &[]);
    }

    #[test]
    fn names_are_decoded_after_the_addresses_are_told_apart() {
        check("=?utf-8?Q?M=C3=BCller=2C_Ann?= <a@b>, c@d", &[("Müller, Ann", "a@b"), ("-", "c@d")]);
        check("\"=?utf-8?B?w7Y=?=\" <a@b>", &[("ö", "a@b")]);
        check("=?utf-8?B?4oI=?= =?utf-8?B?rA==?= <a@b>", &[("€", "a@b")]);
        check("=?x-foo?Q?K=F6ln?= <a@b>", &[("Köln", "a@b")]);
        check("Jörg <j@b>", &[("Jörg", "j@b")]);
    }

    #[test]
    fn what_has_no_address_is_kept_as_what_it_is() {
        check("MAILER-DAEMON", &[("-", "MAILER-DAEMON")]);
        check("Mail Delivery System", &[("Mail Delivery System", "")]);
        check("root (Cron)", &[("Cron", "root")]);
        assert!(emails(["Mail Delivery System"].into_iter()).is_empty());
    }

    #[test]
    fn nobody_is_named_twice() {
        let found = emails(["a@b, A <a@B>, A@b", "c@d, a@b"].into_iter());
        assert_eq!(found, ["a@b", "A@b", "c@d"]);
    }
}
