//! What was wrong with a mail, in words that give nothing of it away.

use std::fmt;

/// More than these say nothing new.
const TOLD_MAX: usize = 6;
const CHARSET_NAME_MAX: usize = 40;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    NoHeader,
    TooLarge,
    HeaderTooLong,
    TooDeep,
    TooManyParts,
    NoBoundary,
    Unterminated,
    BadBase64,
    UnknownEncoding,
    UnknownCharset(String),
    TextTooLong,
}

/// In the order they were met, each once.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<Problem>);

impl Problem {
    /// Of the name only what every charset's name is made of is kept.
    pub(super) fn unknown_charset(name: &str) -> Self {
        let name = name.chars().map(|c| c.to_ascii_lowercase());
        let plain = name.filter(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || *c == '-');
        Problem::UnknownCharset(plain.take(CHARSET_NAME_MAX).collect())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Problem::NoHeader => "no header",
            Problem::TooLarge => "too large",
            Problem::HeaderTooLong => "header too long",
            Problem::TooDeep => "nested too deeply",
            Problem::TooManyParts => "too many parts",
            Problem::NoBoundary => "multipart without a boundary",
            Problem::Unterminated => "unterminated multipart",
            Problem::BadBase64 => "broken base64",
            Problem::UnknownEncoding => "unknown transfer encoding",
            Problem::UnknownCharset(name) => return write!(f, "unknown charset {name}"),
            Problem::TextTooLong => "text too long",
        })
    }
}

impl Problems {
    pub(super) fn note(&mut self, problem: Problem) {
        if self.0.len() < TOLD_MAX && !self.0.contains(&problem) {
            self.0.push(problem);
        }
    }

    pub(super) fn into_text(self) -> Option<String> {
        let texts: Vec<_> = self.0.iter().map(ToString::to_string).collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charset_is_named_without_what_no_charset_is_named() {
        assert_eq!(Problem::unknown_charset("X-Foo_<b>\u{e9}\0'1").to_string(), "unknown charset x-foob1");
        assert_eq!(Problem::unknown_charset(&"a".repeat(99)).to_string().len(), "unknown charset ".len() + 40);
    }

    #[test]
    fn problems_are_told_once_and_not_without_end() {
        let mut problems = Problems::default();
        for n in 0..100 {
            problems.note(Problem::TooDeep);
            problems.note(Problem::unknown_charset(&format!("x-{n}")));
        }
        let text = problems.into_text().unwrap();
        assert!(text.starts_with("nested too deeply; unknown charset x-0; "), "{text}");
        assert_eq!(text.split("; ").count(), TOLD_MAX);
        assert_eq!(Problems::default().into_text(), None);
    }
}
