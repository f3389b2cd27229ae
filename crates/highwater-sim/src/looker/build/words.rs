//! Names and sentences.

use crate::rng::SplitMix64;

const SUBJECTS: [&str; 16] = [
    "Revenue",
    "Orders",
    "Churn",
    "Pipeline",
    "Retention",
    "Inventory",
    "Support",
    "Marketing",
    "Signups",
    "Usage",
    "Costs",
    "Shipping",
    "Returns",
    "Bookings",
    "Traffic",
    "Margins",
];
const ASPECTS: [&str; 12] = [
    "by Region",
    "Overview",
    "per Week",
    "Deep Dive",
    "Forecast",
    "vs. Plan",
    "Übersicht",
    "Scorecard",
    "by Cohort",
    "(draft)",
    "\"Q3\"",
    "Health",
];
const FIRST: [&str; 12] =
    ["Ann", "Bob", "Chloé", "Dmitri", "Eve", "Fatima", "Grace", "Håkon", "Iris", "Jun", "Kofi", "Lena"];
const LAST: [&str; 12] = [
    "Abbot", "Brandt", "Castillo", "Dubois", "Eriksen", "Fischer", "García", "Haddad", "Ito", "Jones", "Kowalski",
    "Lee",
];
const FILLER: [&str; 14] = [
    "numbers",
    "are",
    "refreshed",
    "every",
    "morning",
    "for",
    "the",
    "team",
    "and",
    "compare",
    "this",
    "quarter",
    "with",
    "last",
];

pub(super) fn title(rng: &mut SplitMix64, number: u64) -> String {
    format!("{} {} {number}", pick(rng, &SUBJECTS), pick(rng, &ASPECTS))
}

pub(super) fn subject(rng: &mut SplitMix64) -> &'static str {
    pick(rng, &SUBJECTS)
}

pub(super) fn person(rng: &mut SplitMix64) -> (&'static str, &'static str) {
    (pick(rng, &FIRST), pick(rng, &LAST))
}

pub(super) fn sentence(rng: &mut SplitMix64, words: u64) -> String {
    (0..words).map(|_| pick(rng, &FILLER)).collect::<Vec<_>>().join(" ")
}

/// As Looker's slugs look: letters and digits.
pub(super) fn slug(rng: &mut SplitMix64, length: usize) -> String {
    const DIGITS: &[u8; 62] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    (0..length).map(|_| DIGITS[rng.below(62) as usize] as char).collect()
}

pub(super) fn pick<T: Copy>(rng: &mut SplitMix64, from: &[T]) -> T {
    from[rng.below(from.len() as u64) as usize]
}
