//! Names and values in a query or a form.

use crate::escape::escaped;

/// `a=1&b=x%20y`
pub(super) fn encode(pairs: &[(&str, &str)]) -> String {
    let pairs: Vec<_> = pairs.iter().map(|(name, value)| format!("{name}={}", escaped(value))).collect();
    pairs.join("&")
}

/// The first value of a name.
pub(super) fn value(query: &str, name: &str) -> Option<String> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.into_iter().find(|(found, _)| *found == name).map(|(_, value)| plain(value))
}

fn plain(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let escaped = behind.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = escaped.filter(|_| first == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(if first == b'+' { b' ' } else { first }));
        rest = if byte.is_some() { &behind[2..] } else { behind };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let query = encode(&[("a", "1"), ("b", "x y/ä+&=%"), ("a", "2")]);
        assert_eq!(query, "a=1&b=x%20y%2F%C3%A4%2B%26%3D%25&a=2");
        assert_eq!(value(&query, "b").as_deref(), Some("x y/ä+&=%"));
        assert_eq!((value(&query, "a").as_deref(), value(&query, "c")), (Some("1"), None));
        assert_eq!(value("a=x+y%2", "a").as_deref(), Some("x y%2"));
    }
}
