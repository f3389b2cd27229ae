//! A text of a row. Names and words are short and come by the million: they lie where the text itself does, without
//! memory of their own.

use std::{fmt, ops::Deref};

/// In bytes: as many as fit into the room of a longer one, and as many as a name at Hacker News may have.
const SHORT_MAX: usize = 15;

#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Text(Form);

/// Texts of up to `SHORT_MAX` bytes are always short, with zeros behind them: equal texts are equal in every byte.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Form {
    Short { len: u8, bytes: [u8; SHORT_MAX] },
    Long(String),
}

impl Text {
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Form::Short { .. } => str::from_utf8(self.as_bytes()).expect("it was a string before"),
            Form::Long(text) => text,
        }
    }

    /// Unlike `as_str` does not check that they are UTF-8, as they were before.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Form::Short { len, bytes } => &bytes[..usize::from(*len)],
            Form::Long(text) => text.as_bytes(),
        }
    }

    pub fn len(&self) -> usize {
        self.as_bytes().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn short(text: &str) -> Option<Text> {
    let mut bytes = [0; SHORT_MAX];
    bytes.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
    let len = u8::try_from(text.len()).ok()?;
    Some(Text(Form::Short { len, bytes }))
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        short(text).unwrap_or_else(|| Text(Form::Long(text.to_owned())))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        short(&text).unwrap_or(Text(Form::Long(text)))
    }
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        match text.0 {
            Form::Short { .. } => text.as_str().to_owned(),
            Form::Long(text) => text,
        }
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_short_text_takes_no_more_room_than_a_long_one() {
        assert_eq!(size_of::<Text>(), size_of::<String>());
    }

    #[test]
    fn up_to_fifteen_bytes_lie_in_the_text_itself() {
        let (thirteen, fourteen) = ("a".repeat(13), "a".repeat(14));
        let texts = ["", "comment", &format!("{fourteen}b"), &format!("{thirteen}é"), &format!("{fourteen}é")];
        let is_short = |text: &&str| matches!(Text::from(*text).0, Form::Short { .. });
        assert_eq!(texts.iter().map(is_short).collect::<Vec<_>>(), [true, true, true, true, false]);
        assert_ne!(Text::from("a"), Text::from("a\0"));
    }

    proptest! {
        #[test]
        fn a_text_is_the_string_it_was(text in ".{0,20}", other in ".{0,20}") {
            for kept in [Text::from(text.as_str()), Text::from(text.clone())] {
                prop_assert_eq!(kept.as_str(), &text);
                prop_assert_eq!(kept.as_bytes(), text.as_bytes());
                prop_assert_eq!((kept.len(), kept.is_empty()), (text.len(), text.is_empty()));
                prop_assert_eq!(format!("{kept:?}"), format!("{text:?}"));
                prop_assert_eq!(kept == Text::from(other.as_str()), text == other);
                prop_assert_eq!(&kept, &Text::from(text.as_str()));
                prop_assert_eq!(String::from(kept), text.clone());
            }
        }
    }
}
