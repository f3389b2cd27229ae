//! What a mail says, read from its bytes. It does no I/O, and nothing a mail holds makes it fail: what cannot be read is
//! told in `error`, in words that show nothing of the mail.
//!
//! The parts are told apart here, line by line and with a bound on everything, because a mail is written by strangers.
//! `mail-parser` knows the charsets, the grammar of addresses and that of dates; nothing else of it meets a mail.

mod address;
mod charset;
mod contents;
mod fields;
mod head;
mod params;
mod problem;
mod structure;
#[cfg(test)]
mod tests;
mod transfer;
mod words;

use mail_parser::DateTime;

use self::{contents::Contents, fields::Fields, problem::Problem, problem::Problems};
pub use address::Address;

/// Gmail takes no mail that is larger (`messages.import`, 150 MiB).
const MAIL_BYTES_MAX: usize = 157_286_400;
const PLAUSIBLE_YEARS: std::ops::RangeInclusive<u16> = 1970..=2100;

/// No text of it holds a NUL, which databases refuse: U+FFFD stands there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mail {
    /// Without angle brackets.
    pub rfc_message_id: Option<String>,
    pub from: Option<Address>,
    /// Addresses as written but for the domain, which is in lower case; each once.
    pub to: Vec<String>,
    pub cc: Vec<String>,
    pub bcc: Vec<String>,
    pub subject: Option<String>,
    /// None if there is only HTML.
    pub body_plain: Option<String>,
    pub body_html: Option<String>,
    /// What the Date header says, in Unix milliseconds; none if no mail can have been written then.
    pub sent_at: Option<i64>,
    /// The mail's own, in order, names as written, values unfolded and decoded.
    pub headers: Vec<(String, String)>,
    pub attachments: Vec<Attachment>,
    /// None if all could be read as it was meant.
    pub error: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// As Gmail numbers parts: `1` is the second of a multipart, `1.0` the first within that.
    pub part_id: String,
    /// As the sender wrote it: it may name any path.
    pub filename: Option<String>,
    pub mime_type: String,
    /// Transfer-decoded.
    pub content: Vec<u8>,
    pub content_id: Option<String>,
    pub is_inline: bool,
}

pub fn read(raw: &[u8]) -> Mail {
    let mut problems = Problems::default();
    let raw = bounded(raw, &mut problems);
    let message = structure::split(raw, &mut problems);
    let fields = Fields::read(message.header, &mut problems);
    let contents = Contents::read(&message, &mut problems);
    if fields.is_empty() {
        problems.note(Problem::NoHeader);
    }
    Mail {
        rfc_message_id: fields.first("message-id").map(fields::without_brackets).filter(|id| !id.is_empty()),
        from: fields.first("from").and_then(address::first),
        to: address::emails(fields.all("to")),
        cc: address::emails(fields.all("cc")),
        bcc: address::emails(fields.all("bcc")),
        subject: fields.first("subject").map(words::decode),
        body_plain: contents.plain,
        body_html: contents.html,
        sent_at: fields.first("date").and_then(sent_at),
        headers: fields.decoded(),
        attachments: contents.attachments,
        error: problems.into_text(),
    }
}

/// Of what is too large, the beginning.
fn bounded<'a>(raw: &'a [u8], problems: &mut Problems) -> &'a [u8] {
    if raw.len() > MAIL_BYTES_MAX {
        problems.note(Problem::TooLarge);
    }
    &raw[..raw.len().min(MAIL_BYTES_MAX)]
}

fn sent_at(text: &str) -> Option<i64> {
    let date = DateTime::parse_rfc822(text).filter(|date| date.is_valid() && PLAUSIBLE_YEARS.contains(&date.year))?;
    // The 31st of February is the 3rd of March to the parser, and the year 1 is 2001.
    let day = DateTime::from_timestamp(date.to_timestamp_local()).day;
    (day == date.day && says_year(text)).then(|| date.to_timestamp() * 1_000)
}

/// Whether the second number can be a year.
fn says_year(date: &str) -> bool {
    let mut numbers = date.split(|c: char| !c.is_ascii_digit()).filter(|number| !number.is_empty());
    numbers.nth(1).is_some_and(|year| year.len() <= 4 && !year.starts_with("00") || year == "00")
}
