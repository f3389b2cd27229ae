//! What is shown of a text that answers a query: a stretch around the first match, with nothing in it that could steer
//! a terminal.

use super::{Query, Token, tokens};

/// A stretch of text, and whether it is what was looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    pub text: String,
    pub is_match: bool,
}

/// In characters, before the first match and all in all.
const BEFORE: usize = 60;
const LENGTH: usize = 220;
/// Words looked at for a match: a little more than an index knows of a text.
const WORDS_MAX: usize = 13_000;

/// The stretch around the first match in any of the texts; the beginning of the first if there is none.
pub fn snippet<'a>(query: &Query, texts: impl Iterator<Item = &'a str>) -> Vec<Piece> {
    let mut first = None;
    for text in texts {
        let text = cleaned(text);
        let matches = matches(query, &text);
        if let Some(found) = matches.first() {
            return cut(&text, found.0, &matches);
        }
        first = first.or(Some(text).filter(|text| !text.is_empty()));
    }
    first.map_or_else(Vec::new, |text| cut(&text, 0, &[]))
}

/// A short text from its beginning.
pub fn marked(query: &Query, text: &str) -> Vec<Piece> {
    let text = cleaned(text);
    let matches = matches(query, &text);
    cut(&text, 0, &matches)
}

/// As much of a text as is shown of anything.
pub fn brief(text: &str) -> String {
    cut(&cleaned(text), 0, &[]).into_iter().map(|piece| piece.text).collect()
}

/// On one line: what a terminal could take for a command or for an order to write backwards is left out.
pub fn cleaned(text: &str) -> String {
    let mut clean = String::with_capacity(text.len().min(4_096));
    for c in text.chars() {
        let is_space = c.is_whitespace() || c.is_control();
        if is_space && !clean.is_empty() && !clean.ends_with(' ') {
            clean.push(' ');
        } else if !is_space && !steers(c) {
            clean.push(c);
        }
    }
    clean.truncate(clean.trim_end().len());
    clean
}

/// Directions, separators, tags and what is not to be seen.
fn steers(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Where what is wanted stands, in order.
fn matches(query: &Query, text: &str) -> Vec<(usize, usize)> {
    let tokens: Vec<Token> = tokens(text).take(WORDS_MAX).collect();
    let mut found = Vec::new();
    let mut place = 0;
    while place < tokens.len() {
        let longest =
            query.wanted_terms().filter_map(|term| matched(&term.words, term.is_prefix, &tokens[place..])).max();
        if let Some(count) = longest {
            found.push((tokens[place].span.start, tokens[place + count - 1].span.end));
        }
        place += longest.unwrap_or(1);
    }
    found
}

/// How many tokens these words are, if they stand at the beginning.
fn matched(words: &[String], is_prefix: bool, tokens: &[Token]) -> Option<usize> {
    let (last, before) = words.split_last()?;
    let own = tokens.get(..words.len())?;
    let is_same = before.iter().zip(own).all(|(word, token)| *word == token.word);
    let end = &own[before.len()].word;
    let ends = if is_prefix { end.starts_with(last.as_str()) } else { end == last };
    (is_same && ends).then_some(words.len())
}

fn cut(text: &str, around: usize, matches: &[(usize, usize)]) -> Vec<Piece> {
    let start = before(text, around);
    let end = text[start..].char_indices().nth(LENGTH).map_or(text.len(), |(at, _)| start + at);
    // Not within a word, unless the word is longer than that.
    let end = if end < text.len() { text[start..end].rfind(' ').map_or(end, |at| start + at) } else { end };
    let mut pieces = pieces(text, start, end, matches);
    let plain = |text: &str| Piece { text: text.into(), is_match: false };
    if start > 0 {
        pieces.insert(0, plain("… "));
    }
    if end < text.len() {
        pieces.push(plain(" …"));
    }
    pieces
}

/// The beginning of a word a little before that place.
fn before(text: &str, place: usize) -> usize {
    let start = text[..place].char_indices().rev().nth(BEFORE - 1).map_or(0, |(at, _)| at);
    if start == 0 { 0 } else { text[start..place].find(' ').map_or(start, |at| start + at + 1) }
}

fn pieces(text: &str, start: usize, end: usize, matches: &[(usize, usize)]) -> Vec<Piece> {
    let (mut pieces, mut upto) = (Vec::new(), start);
    let mut push = |from: usize, to: usize, is_match| {
        if from < to {
            pieces.push(Piece { text: text[from..to].into(), is_match });
        }
    };
    for (from, to) in matches.iter().filter(|(from, to)| *from >= start && *to <= end) {
        push(upto, *from, false);
        push(*from, *to, true);
        upto = *to;
    }
    push(upto, end, false);
    pieces
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(query: &str, texts: &[&str]) -> String {
        let pieces = snippet(&query.parse().unwrap(), texts.iter().copied());
        pieces
            .iter()
            .map(|piece| if piece.is_match { format!("[{}]", piece.text) } else { piece.text.clone() })
            .collect()
    }

    #[test]
    fn the_stretch_around_the_first_match_is_shown_with_its_matches() {
        assert_eq!(
            shown("\"cafe au\" lait*", &["none here", "Un Café  au\r\nlaité, s'il"]),
            "Un [Café au] [laité], s'il"
        );
        let long = format!("{} the Invoice of March {}", "word ".repeat(100), "tail ".repeat(100));
        let found = shown("invoice", &[&long]);
        assert!(
            found.starts_with("… word") && found.contains("the [Invoice] of March tail") && found.ends_with("tail …")
        );
        assert!(found.chars().count() < LENGTH + 10, "{found}");
        assert_eq!(shown("absent", &["", "What it begins with"]), "What it begins with");
        assert_eq!(shown("absent", &[]), "");
    }

    #[test]
    fn what_is_long_is_cut() {
        assert_eq!(brief("A short\ttitle"), "A short title");
        let long = brief(&"word ".repeat(10_000));
        assert!(long.ends_with("word …") && long.chars().count() < LENGTH + 10, "{long}");
    }

    #[test]
    fn nothing_steers_a_terminal() {
        let hostile = "a\u{1b}[31mred\u{9b}2J\u{202e}txt\u{7}\0\u{200f} b\u{feff}c";
        assert_eq!(cleaned(hostile), "a [31mred 2Jtxt bc");
        assert_eq!(shown("red", &[hostile]), "a [31mred 2Jtxt bc");
    }

    proptest! {
        #[test]
        fn any_text_is_cut_where_characters_end(text in any::<String>(), word in "[a-z0-9]{1,3}") {
            let query = format!("{word}*").parse().unwrap();
            let all: String = marked(&query, &text).into_iter().map(|piece| piece.text).collect();
            prop_assert_eq!(&all, &brief(&text));
            prop_assert!(cleaned(&text).starts_with(all.trim_end_matches(" …")));
            prop_assert!(!snippet(&query, [text.as_str()].into_iter()).iter().any(|piece| piece.text.contains(char::is_control)));
        }
    }
}
