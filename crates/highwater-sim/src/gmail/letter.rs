//! The bytes of generated messages (RFC 5322), made on demand: the same number and date give the same bytes.

mod body;
mod odd;
mod pool;
mod words;

use std::fmt::Write;

use jiff::{Timestamp, tz::TimeZone};

use self::{body::Body, odd::Odd};
use super::plan::SizePlan;
use crate::rng::{Purpose, Seed, Share, SplitMix64};

const KB: usize = 1 << 10;

/// What a message is to its mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nature {
    Received,
    Sent,
    Draft,
    Spam,
    Trash,
    Chat,
}

/// What the bytes of a message depend on, beside the seed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Letter {
    pub(super) number: u64,
    pub(super) nature: Nature,
    /// Milliseconds since 1970: when Gmail got it.
    pub(super) date: i64,
    /// The number of the message it answers.
    pub(super) parent: Option<u64>,
}

/// Writes the mail of one mailbox.
#[derive(Debug)]
pub(super) struct Author {
    pub(super) seed: Seed,
    pub(super) address: String,
    pub(super) odd: Share,
    pub(super) size: SizePlan,
}

impl Author {
    pub(super) fn raw(&self, letter: &Letter) -> Vec<u8> {
        let odd = self.oddity(letter.number);
        let mut rng = SplitMix64::new(self.seed.hash(Purpose::Letter, letter.number));
        let mut head = String::with_capacity(1 << 10);
        self.trace(letter, &mut rng, &mut head);
        self.people(letter, odd, &mut rng, &mut head);
        self.dates_and_ids(letter, odd, &mut head);
        let body = match odd.and_then(|odd| odd.body(&mut rng)) {
            Some(body) => body,
            None => self.ordinary(letter.number, &mut rng),
        };
        let mut raw = head.into_bytes();
        odd.inspect(|odd| odd.extra_headers(&mut rng, &mut raw));
        raw.extend_from_slice(b"MIME-Version: 1.0\r\n");
        body.write(&mut raw);
        match odd {
            Some(odd) => odd.cut(raw),
            None => raw,
        }
    }

    /// What the `Date` header says, in milliseconds; `None` if it is missing or says nothing.
    pub(super) fn header_date(&self, letter: &Letter) -> Option<i64> {
        match self.oddity(letter.number) {
            Some(Odd::NoDate | Odd::AbsurdDate | Odd::NoHeaders) => None,
            _ => Some(letter.date / 1_000 * 1_000),
        }
    }

    fn oddity(&self, number: u64) -> Option<Odd> {
        let hash = self.seed.hash(Purpose::LetterOdd, number);
        self.odd.hit(hash).then(|| Odd::ALL[(crate::rng::mix(hash) % Odd::ALL.len() as u64) as usize])
    }

    fn ordinary(&self, number: u64, rng: &mut SplitMix64) -> Body {
        let (hash, size) = (self.seed.hash(Purpose::Attachment, number), &self.size);
        if share(size.large).hit(hash) {
            let bytes = u64::from(size.large_max) / 10 + rng.below(u64::from(size.large_max) * 9 / 10 + 1);
            return Body::with_attachments(rng, &[bytes as usize]);
        }
        if let Some(kb) = size.size_kb {
            let attached = share(size.attachments).hit(crate::rng::mix(hash)).then_some(size.attachment_kb);
            return Body::sized(rng, kb.get() as usize * KB, attached.map(|kb| kb as usize * KB));
        }
        match rng.below(100) {
            0..50 => Body::plain(rng),
            50..80 => Body::alternative(rng),
            80..83 => Body::html(rng),
            83..86 => Body::calendar(rng),
            86..89 => Body::inline_image(rng),
            _ => {
                let sizes: Vec<usize> = (0..=rng.below(3)).map(|_| 300 + rng.below(12_000) as usize).collect();
                Body::with_attachments(rng, &sizes)
            }
        }
    }

    /// What mail servers add on the way.
    fn trace(&self, letter: &Letter, rng: &mut SplitMix64, head: &mut String) {
        if matches!(letter.nature, Nature::Received | Nature::Spam | Nature::Trash) {
            let (relay, queue) = (words::domain(rng), rng.next_u64());
            line(head, format_args!("Delivered-To: {}", self.address));
            line(
                head,
                format_args!(
                    "Received: from mx.{relay} (mx.{relay} [192.0.2.{}])\r\n        by mx.example.net with ESMTPS id {queue:016x}\r\n        for <{}>;\r\n        {}",
                    rng.below(250) + 1,
                    self.address,
                    rfc2822(letter.date),
                ),
            );
        }
    }

    fn people(&self, letter: &Letter, odd: Option<Odd>, rng: &mut SplitMix64, head: &mut String) {
        let other = words::person(rng);
        let other = odd.and_then(Odd::person).map_or(other, str::to_owned);
        let own = format!("Ann Example <{}>", self.address);
        let outgoing = matches!(letter.nature, Nature::Sent | Nature::Draft);
        let (from, to) = if outgoing { (&own, &other) } else { (&other, &own) };
        if odd != Some(Odd::NoFrom) {
            line(head, format_args!("From: {from}"));
        }
        line(head, format_args!("To: {to}"));
        if rng.chance(1, 5) {
            line(head, format_args!("Cc: {},\r\n {}", words::person(rng), words::person(rng)));
        }
        if outgoing && rng.chance(1, 10) {
            line(head, format_args!("Bcc: {}", words::person(rng)));
        }
        // Answers have the subject of what they answer.
        let about = letter.parent.unwrap_or(letter.number);
        let subject = words::subject(&mut SplitMix64::new(self.seed.hash(Purpose::Words, about)));
        let prefix = if letter.parent.is_some() { "Re: " } else { "" };
        if odd != Some(Odd::EightBitHeaders) {
            line(head, format_args!("Subject: {prefix}{subject}"));
        }
    }

    fn dates_and_ids(&self, letter: &Letter, odd: Option<Odd>, head: &mut String) {
        match odd {
            Some(Odd::NoDate) => {}
            Some(Odd::AbsurdDate) => line(head, format_args!("Date: Thu, 31 Feb 20255 25:61:00 +9999")),
            _ => line(head, format_args!("Date: {}", rfc2822(letter.date))),
        }
        match odd {
            Some(Odd::NoMessageId) => {}
            Some(Odd::SameMessageId) => line(head, format_args!("Message-ID: <daily-report@example.net>")),
            _ => line(head, format_args!("Message-ID: <{}>", self.message_id(letter.number))),
        }
        if let Some(parent) = letter.parent {
            line(head, format_args!("In-Reply-To: <{}>", self.message_id(parent)));
            line(head, format_args!("References: <{}>", self.message_id(parent)));
        }
    }

    fn message_id(&self, number: u64) -> String {
        format!("{:016x}.{number}@mail.example.net", self.seed.hash(Purpose::Letter, number))
    }
}

fn share(share: f64) -> Share {
    Share::new(share).unwrap_or(Share::NONE)
}

fn line(head: &mut String, text: std::fmt::Arguments<'_>) {
    write!(head, "{text}\r\n").expect("a String takes every character");
}

fn rfc2822(date: i64) -> String {
    let at = Timestamp::from_millisecond(date).unwrap_or_default().to_zoned(TimeZone::UTC);
    at.strftime("%a, %d %b %Y %H:%M:%S +0000").to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn author(odd: f64) -> Author {
        Author {
            seed: Seed(3),
            address: "ann@example.com".to_owned(),
            odd: Share::new(odd).unwrap(),
            size: SizePlan { large_max: 1_000_000, ..SizePlan::default() },
        }
    }

    fn letter(number: u64) -> Letter {
        Letter { number, nature: Nature::Received, date: 1_700_000_000_123, parent: None }
    }

    #[test]
    fn the_same_letter_has_the_same_bytes_and_another_has_others() {
        let raws: HashSet<Vec<u8>> = (0..300).map(|number| author(0.5).raw(&letter(number))).collect();
        assert_eq!(raws.len(), 300);
        assert!((0..300).all(|number| raws.contains(&author(0.5).raw(&letter(number)))));
    }

    #[test]
    fn lines_end_as_mail_does_and_heads_are_there() {
        for number in 0..300 {
            let raw = author(0.0).raw(&letter(number));
            let bare = raw.windows(2).filter(|pair| pair[1] == b'\n' && pair[0] != b'\r').count();
            assert_eq!(bare, 0, "{number}");
            let text = String::from_utf8_lossy(&raw);
            assert!(text.contains("\r\nSubject: ") && text.contains("\r\n\r\n"), "{text}");
            assert!(text.contains("Date: Tue, 14 Nov 2023 22:13:20 +0000\r\n"), "{text}");
            assert!((400..100_000).contains(&raw.len()), "{}", raw.len());
        }
    }

    #[test]
    fn every_oddity_occurs() {
        let author = author(1.0);
        let seen: HashSet<_> = (0..1_000).filter_map(|number| author.oddity(number).map(|odd| odd as usize)).collect();
        assert_eq!(seen.len(), Odd::ALL.len());
    }

    #[test]
    fn a_large_letter_is_large() {
        let author =
            Author { size: SizePlan { large: 1.0, large_max: 1_000_000, ..SizePlan::default() }, ..author(0.0) };
        let sizes: Vec<usize> = (0..20).map(|number| author.raw(&letter(number)).len()).collect();
        assert!(sizes.iter().all(|size| (100_000..1_500_000).contains(size)), "{sizes:?}");
    }

    #[test]
    fn sizes_can_be_asked_for() {
        let size_kb = std::num::NonZeroU32::new(20);
        let size = SizePlan { size_kb, attachments: 0.1, attachment_kb: 50, ..SizePlan::default() };
        let author = Author { size, ..author(0.0) };
        let sizes: Vec<usize> = (0..1_000).map(|number| author.raw(&letter(number)).len()).collect();
        let attached = sizes.iter().filter(|size| **size > 60_000).count();
        assert!((70..130).contains(&attached), "{attached}");
        let plain = sizes.iter().filter(|size| (20_000..24_000).contains(*size)).count();
        assert_eq!(plain, 1_000 - attached);
        let raws: HashSet<Vec<u8>> = (0..1_000).map(|number| author.raw(&letter(number))).collect();
        assert_eq!(raws.len(), 1_000);
    }
}
