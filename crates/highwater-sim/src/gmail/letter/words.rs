//! People, subjects and sentences, drawn from a generator.

use crate::rng::SplitMix64;

const NAMES: [&str; 16] = [
    "Bea", "Carlo", "Dora", "Emil", "Fumi", "Gero", "Hana", "Ivo", "Jana", "Kofi", "Lena", "Milo", "Nora", "Otto",
    "Pia", "Quim",
];
const FAMILIES: [&str; 12] = [
    "Adler", "Brandt", "Costa", "Duarte", "Eriksen", "Fischer", "Garcia", "Hansen", "Ito", "Jensen", "Kowalski", "Lima",
];
const DOMAINS: [&str; 6] =
    ["example.org", "example.net", "lists.example.org", "shop.example", "uni.example.edu", "news.example"];
const WORDS: [&str; 40] = [
    "invoice", "meeting", "river", "garden", "release", "budget", "quarter", "letter", "window", "ticket", "order",
    "parcel", "draft", "review", "signal", "harbour", "winter", "report", "question", "answer", "kernel", "package",
    "holiday", "station", "music", "recipe", "contract", "school", "friend", "photo", "address", "number", "the",
    "and", "with", "for", "next", "under", "before", "without",
];

pub(super) fn domain(rng: &mut SplitMix64) -> &'static str {
    pick(rng, &DOMAINS)
}

pub(super) fn person(rng: &mut SplitMix64) -> String {
    let (name, family) = (pick(rng, &NAMES), pick(rng, &FAMILIES));
    let mailbox = format!("{}.{}@{}", name.to_lowercase(), family.to_lowercase(), domain(rng));
    match rng.below(10) {
        0 => mailbox,
        1 => format!("\"{family}, {name}\" <{mailbox}>"),
        2 => format!("=?UTF-8?Q?{name}_M=C3=BCller?= <{mailbox}>"),
        _ => format!("{name} {family} <{mailbox}>"),
    }
}

pub(super) fn subject(rng: &mut SplitMix64) -> String {
    match rng.below(12) {
        0 => "=?UTF-8?B?w5xiZXJzaWNodCB6dW0gUXVhcnRhbA==?=".to_owned(),
        1 => "=?ISO-8859-1?Q?Caf=E9_um_vier=3F?=".to_owned(),
        _ => {
            let count = 1 + rng.below(6) as usize;
            words(rng, count)
        }
    }
}

/// Text of about `bytes` bytes in lines of under 80 characters.
pub(super) fn text(rng: &mut SplitMix64, bytes: usize) -> String {
    let mut out = String::with_capacity(bytes + 80);
    while out.len() < bytes {
        let count = 4 + rng.below(6) as usize;
        out.push_str(&words(rng, count));
        out.push_str(if rng.chance(1, 6) { ".\r\n\r\n" } else { "\r\n" });
    }
    out
}

fn words(rng: &mut SplitMix64, count: usize) -> String {
    (0..count).map(|_| pick(rng, &WORDS)).collect::<Vec<_>>().join(" ")
}

fn pick(rng: &mut SplitMix64, from: &[&'static str]) -> &'static str {
    from[rng.below(from.len() as u64) as usize]
}
