//! What is asked for, read from what people type. Any text is read as something or refused with a reason; none of it
//! reaches a store as it was typed.

use std::str::FromStr;

use super::{Field, tokens};

/// In characters; nobody types more.
const QUERY_MAX: usize = 1_000;
const TERMS_MAX: usize = 32;
const WORDS_MAX: usize = 64;

/// All of some groups, of each at least one term, and none of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Never none, and none of them is empty.
    wanted: Vec<Vec<Term>>,
    unwanted: Vec<Term>,
}

/// Words that stand one behind the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// Folded; never none.
    pub words: Vec<String>,
    /// The last word is only the beginning of one.
    pub is_prefix: bool,
    /// Anywhere, if none.
    pub field: Option<Field>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadQuery {
    #[error("the query has no word to look for")]
    Empty,
    #[error("the query only says what is not wanted")]
    OnlyUnwanted,
    #[error("what is not wanted cannot stand beside OR")]
    UnwantedOr,
    #[error("the query is longer than {QUERY_MAX} characters")]
    TooLong,
    #[error("the query has more than {TERMS_MAX} terms or {WORDS_MAX} words")]
    TooMany,
}

impl Query {
    pub fn wanted(&self) -> &[Vec<Term>] {
        &self.wanted
    }

    pub fn unwanted(&self) -> &[Term] {
        &self.unwanted
    }

    pub fn wanted_terms(&self) -> impl Iterator<Item = &Term> {
        self.wanted.iter().flatten()
    }
}

impl FromStr for Query {
    type Err = BadQuery;

    fn from_str(text: &str) -> Result<Query, BadQuery> {
        if text.chars().nth(QUERY_MAX).is_some() {
            return Err(BadQuery::TooLong);
        }
        let mut query = Query { wanted: Vec::new(), unwanted: Vec::new() };
        let mut is_or = false;
        let mut pieces = pieces(text).into_iter().peekable();
        while let Some(piece) = pieces.next() {
            // An OR with nothing on one of its sides is a word like others.
            if piece.is_or() && !query.wanted.is_empty() && !is_or && pieces.peek().is_some() {
                is_or = true;
                continue;
            }
            let Some(term) = piece.term() else { continue };
            match (piece.is_unwanted, is_or) {
                (true, true) => return Err(BadQuery::UnwantedOr),
                (true, false) => query.unwanted.push(term),
                (false, true) => query.wanted.last_mut().expect("an OR follows a term").push(term),
                (false, false) => query.wanted.push(vec![term]),
            }
            is_or = false;
        }
        query.checked()
    }
}

impl Query {
    fn checked(self) -> Result<Query, BadQuery> {
        let terms = || self.wanted_terms().chain(&self.unwanted);
        if terms().count() > TERMS_MAX || terms().map(|term| term.words.len()).sum::<usize>() > WORDS_MAX {
            return Err(BadQuery::TooMany);
        }
        match (self.wanted.is_empty(), self.unwanted.is_empty()) {
            (true, true) => Err(BadQuery::Empty),
            (true, false) => Err(BadQuery::OnlyUnwanted),
            (false, _) => Ok(self),
        }
    }
}

/// What stands between spaces or within quotes, with what is written before it.
struct Piece<'a> {
    is_unwanted: bool,
    field: Option<Field>,
    text: &'a str,
    is_quoted: bool,
    is_prefix: bool,
}

impl Piece<'_> {
    fn is_or(&self) -> bool {
        self.text == "OR" && !self.is_quoted && !self.is_unwanted && self.field.is_none()
    }

    fn term(&self) -> Option<Term> {
        let words: Vec<_> = tokens(self.text).map(|token| token.word).collect();
        (!words.is_empty()).then_some(Term { words, is_prefix: self.is_prefix, field: self.field })
    }
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (piece, after) = piece(rest);
        pieces.push(piece);
        rest = after.trim_start();
    }
    pieces
}

fn piece(text: &str) -> (Piece<'_>, &str) {
    let (is_unwanted, text) = text.strip_prefix('-').map_or((false, text), |text| (true, text));
    let (field, text) = field_of(text);
    if let Some(quoted) = text.strip_prefix('"') {
        // One that is never closed goes to the end.
        let (inner, after) = quoted.split_once('"').unwrap_or((quoted, ""));
        let (is_prefix, after) = after.strip_prefix('*').map_or((false, after), |after| (true, after));
        return (Piece { is_unwanted, field, text: inner, is_quoted: true, is_prefix }, after);
    }
    let end = text.find(|c: char| c.is_whitespace() || c == '"').unwrap_or(text.len());
    let (word, after) = text.split_at(end);
    let is_prefix = word.ends_with('*');
    (Piece { is_unwanted, field, text: word, is_quoted: false, is_prefix }, after)
}

/// The field that a piece is for, as mail programs call it, and what follows.
fn field_of(text: &str) -> (Option<Field>, &str) {
    const NAMES: [(&str, Field); 5] = [
        ("subject:", Field::Title),
        ("title:", Field::Title),
        ("from:", Field::Author),
        ("by:", Field::Author),
        ("to:", Field::Addressee),
    ];
    let named = NAMES.iter().find_map(|(name, field)| {
        let head = text.get(..name.len()).filter(|head| head.eq_ignore_ascii_case(name))?;
        let rest = &text[head.len()..];
        (!rest.is_empty() && !rest.starts_with(char::is_whitespace)).then_some((Some(*field), rest))
    });
    named.unwrap_or((None, text))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `(a | b c*) & title:d ! e`
    fn shown(text: &str) -> String {
        let term = |term: &Term| {
            let field = term.field.map_or(String::new(), |field| format!("{field}:"));
            format!("{field}{}{}", term.words.join("+"), if term.is_prefix { "*" } else { "" })
        };
        match text.parse::<Query>() {
            Ok(query) => {
                let group = |terms: &Vec<Term>| terms.iter().map(term).collect::<Vec<_>>().join("|");
                let wanted = query.wanted.iter().map(group).collect::<Vec<_>>().join(" & ");
                query.unwanted.iter().fold(wanted, |text, one| format!("{text} !{}", term(one)))
            }
            Err(error) => format!("{error:?}"),
        }
    }

    #[test]
    fn a_query_is_read_as_people_mean_it() {
        for (text, expected) in [
            ("Invoice  march", "invoice & march"),
            (r#""Quarterly report" -draft"#, "quarterly+report !draft"),
            ("invoi* -\"old news\"", "invoi* !old+news"),
            ("\"press rel\"* ann@example.com", "press+rel* & ann+example+com"),
            ("ann OR bob OR zoe invoice", "ann|bob|zoe & invoice"),
            ("from:Ann subject:\"café é\" to:bob by:pg", "author:ann & title:cafe+e & addressee:bob & author:pg"),
            ("-from:ann mail", "mail !author:ann"),
            ("http://x.org cc:ann from: or", "http+x+org & cc+ann & from & or"),
            ("OR a", "or & a"),
            ("a OR", "a & or"),
            ("a OR OR b", "a|or & b"),
            ("東京 tower", "東+京 & tower"),
            (r#"say"hello world"#, "say & hello+world"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_looked_for_is_refused() {
        for (text, expected) in [
            ("", "Empty"),
            ("  \"\" * - ' & | ! <-> \0", "Empty"),
            ("-draft", "OnlyUnwanted"),
            ("a OR -b", "UnwantedOr"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
        assert_eq!(shown(&"a ".repeat(400)), "TooMany");
        assert_eq!(shown(&"a".repeat(1_001)), "TooLong");
        assert_eq!(shown(&format!("\"{}\"", "東".repeat(90))), "TooMany");
    }

    proptest! {
        #[test]
        fn any_text_is_a_query_or_refused(text in "([a-zé東\"*:()' &|!<>\\-\\\\\0]|OR |from:|NEAR\\(){0,60}") {
            if let Ok(query) = text.parse::<Query>() {
                prop_assert!(!query.wanted.is_empty() && query.wanted.iter().all(|group| !group.is_empty()));
                for word in query.wanted_terms().chain(&query.unwanted).flat_map(|term| &term.words) {
                    prop_assert!(!word.is_empty() && word.chars().all(char::is_alphanumeric));
                }
            }
        }
    }
}
