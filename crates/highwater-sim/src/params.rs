//! Queries and forms: names and values, percent-decoded.

#[derive(Clone, Debug, Default)]
pub(crate) struct Params(Vec<(String, String)>);

impl Params {
    pub(crate) fn parse(query: &str) -> Self {
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        Params(
            pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).map(|(k, v)| (decode(k), decode(v))).collect(),
        )
    }

    pub(crate) fn first(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub(crate) fn push(&mut self, name: &str, value: impl Into<String>) {
        self.0.push((name.to_owned(), value.into()));
    }

    /// Everything that makes two requests ask the same but for the page.
    pub(crate) fn fingerprint(&self) -> u64 {
        let telling = self.0.iter().filter(|(name, _)| !matches!(name.as_str(), "pageToken" | "maxResults"));
        telling.fold(7, |hash, (name, value)| hash_text(hash_text(hash, name), value))
    }
}

pub(crate) fn hash_text(start: u64, text: &str) -> u64 {
    text.bytes().fold(crate::rng::mix(start ^ 0xFF), |hash, byte| crate::rng::mix(hash ^ u64::from(byte)))
}

pub(crate) fn decode(text: &str) -> String {
    let (mut out, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let [byte, after @ ..] = rest {
        rest = after;
        match (*byte, after) {
            (b'+', _) => out.push(b' '),
            (b'%', [high, low, after @ ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                out.push(nibble(*high) << 4 | nibble(*low));
                rest = after;
            }
            (other, _) => out.push(other),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

const fn nibble(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_repeat_and_values_are_decoded() {
        let params = Params::parse("q=in%3Ainbox+after%3A5&labelIds=A&labelIds=B&x&y=50%");
        assert_eq!(params.first("q"), Some("in:inbox after:5"));
        assert_eq!(params.all("labelIds").collect::<Vec<_>>(), ["A", "B"]);
        assert_eq!((params.first("x"), params.first("y"), params.first("z")), (Some(""), Some("50%"), None));
    }

    #[test]
    fn the_page_does_not_change_the_fingerprint() {
        let of = |query| Params::parse(query).fingerprint();
        assert_eq!(of("q=a&pageToken=1&maxResults=5"), of("q=a&pageToken=2"));
        assert_ne!(of("q=a"), of("q=b"));
    }
}
