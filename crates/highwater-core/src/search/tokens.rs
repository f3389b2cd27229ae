//! A text as words: runs of letters and digits, folded. Scripts that put no spaces between words give a word for each
//! character, so that what is looked for is found inside a run as a phrase.

use std::{iter::Peekable, ops::Range, str::CharIndices};

use super::fold::{fold, is_mark, within};

/// In characters. What is longer is cut, in texts and in queries alike: it is noise, and the stores' indexes have limits
/// of their own.
const WORD_MAX: usize = 64;

/// Thai, Lao, Tibetan, Burmese, Khmer, kana, Han.
const LONE: &[(char, char)] = &[
    ('\u{e00}', '\u{fff}'),
    ('\u{1000}', '\u{109f}'),
    ('\u{1780}', '\u{17ff}'),
    ('\u{3005}', '\u{3007}'),
    ('\u{3040}', '\u{30ff}'),
    ('\u{31f0}', '\u{31ff}'),
    ('\u{3400}', '\u{4dbf}'),
    ('\u{4e00}', '\u{9fff}'),
    ('\u{f900}', '\u{faff}'),
    ('\u{ff66}', '\u{ff9d}'),
    ('\u{20000}', '\u{3ffff}'),
];

/// A word, and where in the text it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub word: String,
    pub span: Range<usize>,
}

pub fn tokens(text: &str) -> Tokens<'_> {
    Tokens { chars: text.char_indices().peekable() }
}

pub struct Tokens<'a> {
    chars: Peekable<CharIndices<'a>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Lone,
    Mark,
    Gap,
}

fn class(c: char) -> Class {
    match c {
        _ if c.is_ascii() => {
            if c.is_ascii_alphanumeric() {
                Class::Letter
            } else {
                Class::Gap
            }
        }
        _ if is_mark(c) => Class::Mark,
        _ if !c.is_alphanumeric() => Class::Gap,
        _ if within(LONE, c) => Class::Lone,
        _ => Class::Letter,
    }
}

impl Iterator for Tokens<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        loop {
            let (start, first) = self.chars.next()?;
            match class(first) {
                Class::Gap | Class::Mark => {}
                Class::Lone => {
                    if let Some(token) = self.word(start, first, |next| next == Class::Mark) {
                        return Some(token);
                    }
                }
                Class::Letter => {
                    if let Some(token) = self.word(start, first, |next| matches!(next, Class::Letter | Class::Mark)) {
                        return Some(token);
                    }
                }
            }
        }
    }
}

impl Tokens<'_> {
    /// From its first character on; none if nothing of it is left when it is folded.
    fn word(&mut self, start: usize, first: char, goes_on: impl Fn(Class) -> bool) -> Option<Token> {
        let mut word = String::with_capacity(12);
        let (mut end, mut length) = (start + first.len_utf8(), 1);
        fold(first, &mut word);
        while let Some((at, c)) = self.chars.next_if(|(_, c)| goes_on(class(*c))) {
            end = at + c.len_utf8();
            if class(c) == Class::Letter && length < WORD_MAX {
                fold(c, &mut word);
                length += 1;
            }
        }
        (!word.is_empty()).then_some(Token { word, span: start..end })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(text: &str) -> Vec<String> {
        tokens(text).map(|token| token.word).collect()
    }

    #[test]
    fn case_and_accents_make_no_difference() {
        for same in ["Über Café", "uber CAFE", "u\u{308}ber cafe\u{301}", "ÜBER café", "ＵＢＥＲ ｃａｆｅ"]
        {
            assert_eq!(words(same), ["uber", "cafe"], "{same}");
        }
        assert_eq!(
            words("Straße STRASSE Łódź Ångström İstanbul"),
            ["strasse", "strasse", "lodz", "angstrom", "istanbul"]
        );
        assert_eq!(words("ΑΘΉΝΑΣ αθήνας Ёлка"), ["αθηνασ", "αθηνασ", "елка"]);
    }

    #[test]
    fn words_end_where_no_letter_or_digit_stands() {
        assert_eq!(
            words("ann.lee@example.com, re: don't (v2.0)…"),
            ["ann", "lee", "example", "com", "re", "don", "t", "v2", "0"]
        );
        assert_eq!(words("Donau\u{ad}dampf \u{0} \u{301} _ --"), ["donaudampf"]);
    }

    #[test]
    fn a_script_without_spaces_is_found_character_by_character() {
        assert_eq!(words("東京タワーabc"), ["東", "京", "タ", "ワ", "ー", "abc"]);
        assert_eq!(words("한국어 문서"), ["한국어", "문서"]);
    }

    #[test]
    fn long_noise_is_cut() {
        let found = words(&format!("{} next", "x".repeat(10_000)));
        assert_eq!((found[0].len(), found[1].as_str()), (WORD_MAX, "next"));
    }

    proptest! {
        #[test]
        fn any_text_has_words_in_order_that_are_words_themselves(text in any::<String>()) {
            let mut upto = 0;
            for token in tokens(&text) {
                prop_assert!(token.span.start >= upto && token.span.end <= text.len());
                upto = token.span.end;
                prop_assert!(text.get(token.span.clone()).is_some());
                prop_assert!(token.word.chars().all(|c| c.is_alphanumeric()), "{:?}", token.word);
            }
        }

        #[test]
        fn folding_twice_changes_nothing(text in "\\PC{0,40}") {
            let once = words(&text).join(" ");
            prop_assert_eq!(words(&once).join(" "), once);
        }
    }
}
