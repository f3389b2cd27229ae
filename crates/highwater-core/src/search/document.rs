//! The words of one object as an index takes them, within the limits of every store: a place for each word, and gaps
//! that no phrase reaches over.

use std::collections::HashMap;

use super::{Field, tokens};

/// Stands where no word is. No word is spelled so.
const GAP: &str = "_";
/// How many words of a field are indexed. PostgreSQL knows no place beyond 16,383, and these add up to less.
const fn words_max(field: Field) -> usize {
    match field {
        Field::Title => 500,
        Field::Author => 200,
        Field::Addressee => 3_300,
        Field::Text => 12_000,
    }
}
/// PostgreSQL keeps no more than 256 places of a word.
const PLACES_MAX: u32 = 255;
/// What the words and places of an object take in PostgreSQL must be less than 1 MiB.
const BYTES_MAX: usize = 900_000;
const WORD_BYTES: usize = 4;
const PLACE_BYTES: usize = 2;

/// The words of an object, field by field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// In the order of [`Field::ALL`]: folded words and gaps, with a space between.
    fields: [String; 4],
}

impl Words {
    pub fn of<'a>(texts: impl Iterator<Item = (Field, &'a str)> + Clone) -> Words {
        let mut gathering = Gathering::default();
        for field in Field::ALL {
            let own = texts.clone().filter(|(of, _)| of == field).map(|(_, text)| text);
            own.for_each(|text| gathering.add(*field, text));
        }
        gathering.words
    }

    /// Folded words with a space between; `_` where a phrase ends.
    pub fn field(&self, field: Field) -> &str {
        &self.fields[field as usize]
    }

    /// Each word once, with its places, counted from 1 over all fields, none of which touches another.
    pub fn places(&self) -> Vec<(&str, Vec<(u32, Field)>)> {
        let mut places: HashMap<&str, Vec<(u32, Field)>> = HashMap::new();
        let mut place = 0;
        for field in Field::ALL {
            for word in self.field(*field).split(' ').filter(|word| !word.is_empty()) {
                place += 1;
                if word != GAP {
                    places.entry(word).or_default().push((place, *field));
                }
            }
            place += 1;
        }
        let mut places: Vec<_> = places.into_iter().collect();
        places.sort_unstable();
        places
    }
}

#[derive(Default)]
struct Gathering {
    words: Words,
    counts: [usize; 4],
    /// How often each word has come.
    seen: HashMap<String, u32>,
    bytes: usize,
}

impl Gathering {
    /// Texts of one field do not touch each other either.
    fn add(&mut self, field: Field, text: &str) {
        if self.is_full(field) {
            return;
        }
        if self.counts[field as usize] > 0 {
            self.put(field, GAP);
        }
        for token in tokens(text) {
            if self.is_full(field) {
                return;
            }
            if self.has_room(&token.word) {
                self.put(field, &token.word);
            } else {
                self.put(field, GAP);
            }
        }
    }

    fn is_full(&self, field: Field) -> bool {
        self.counts[field as usize] >= words_max(field) || self.bytes >= BYTES_MAX
    }

    fn has_room(&mut self, word: &str) -> bool {
        if let Some(count) = self.seen.get_mut(word) {
            *count += 1;
            self.bytes += if *count <= PLACES_MAX { PLACE_BYTES } else { 0 };
            return *count <= PLACES_MAX;
        }
        self.bytes += word.len() + WORD_BYTES + PLACE_BYTES;
        self.seen.insert(word.to_owned(), 1);
        true
    }

    fn put(&mut self, field: Field, word: &str) {
        let text = &mut self.words.fields[field as usize];
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(word);
        self.counts[field as usize] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(texts: &[(Field, &str)]) -> Words {
        Words::of(texts.iter().copied())
    }

    #[test]
    fn neither_fields_nor_texts_of_a_field_touch() {
        let found = words(&[(Field::Text, "Body one"), (Field::Title, "A title"), (Field::Text, "file.pdf")]);
        assert_eq!((found.field(Field::Title), found.field(Field::Text)), ("a title", "body one _ file pdf"));
        let places: Vec<_> = found.places().into_iter().map(|(word, places)| (word, places[0].0)).collect();
        assert_eq!(places, [("a", 1), ("body", 6), ("file", 9), ("one", 7), ("pdf", 10), ("title", 2)]);
    }

    #[test]
    fn everything_is_within_what_stores_can_hold() {
        let long: String = (0..100_000).map(|n| format!("the w{n} ")).collect();
        let found =
            words(&[(Field::Title, &long), (Field::Author, &long), (Field::Addressee, &long), (Field::Text, &long)]);
        let places = found.places();
        let last = places.iter().flat_map(|(_, places)| places).map(|(place, _)| *place).max();
        assert!(last.is_some_and(|last| (15_000..16_383).contains(&last)), "{last:?}");
        let many = words(&[(Field::Addressee, "ann"); 20_000]);
        assert!(many.field(Field::Addressee).split(' ').count() <= words_max(Field::Addressee) + 1);
        let the = places.iter().find(|(word, _)| *word == "the").map(|(_, places)| places.len());
        assert_eq!(the, Some(PLACES_MAX as usize));
        let wide: String = (0..100_000).map(|n| format!("{n}{} ", "\u{1d400}".repeat(70))).collect();
        let found = words(&[(Field::Text, &wide)]);
        let bytes = |(word, places): &(&str, Vec<_>)| word.len() + WORD_BYTES + PLACE_BYTES * places.len();
        assert!(found.places().iter().map(bytes).sum::<usize>() < 1 << 20);
    }
}
