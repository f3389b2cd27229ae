//! The users of the generated world. A name spells a number, and items are dealt to users in turn, so that a name
//! can be checked and a user's submissions listed without a table.

use crate::rng::{Purpose, Seed, scale};

use super::json::Json;

const CONSONANTS: &[u8; 16] = b"bcdfghjklmnprstv";
const VOWELS: &[u8; 4] = b"aeio";
/// Three syllables of six bits.
const NAME_BITS: u32 = 18;
/// Odd, so that multiplying by it shuffles the 18-bit numbers and neighbours get unlike names.
const SHUFFLE: u64 = 0x2_9E35;
const UNSHUFFLE: u64 = inverse(SHUFFLE);

/// A real user has about 50 submissions.
const ITEMS_PER_USER: u64 = 50;
const USERS_MIN: u64 = 16;

/// A heavy user's list is cut here.
const SUBMITTED_MAX: usize = 1_000;

#[derive(Clone, Copy, Debug)]
pub(super) struct Users {
    seed: Seed,
    count: u64,
    last_item: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct User(u64);

impl Users {
    pub(super) fn new(seed: Seed, last_item: u64) -> Self {
        let count = (last_item / ITEMS_PER_USER).clamp(USERS_MIN, 1 << NAME_BITS);
        Users { seed, count, last_item }
    }

    pub(super) const fn author(self, item: u64) -> User {
        User(item % self.count)
    }

    pub(super) fn find(self, name: &str) -> Option<User> {
        let number = name.as_bytes().chunks(2).rev().try_fold(0, |number, pair| Some(number << 6 | syllable(pair)?))?;
        let user = User(unshuffled(number)?);
        (user.0 < self.count && user.name() == name.as_bytes()).then_some(user)
    }

    pub(super) fn body(self, user: User) -> Vec<u8> {
        let ids = (0..).map(|turn| user.0 + turn * self.count).skip_while(|id| *id == 0);
        let submitted: Vec<u64> = ids.take_while(|id| *id <= self.last_item).take(SUBMITTED_MAX).collect();
        body(self.seed, std::str::from_utf8(&user.name()).unwrap_or_default(), submitted.iter().rev().copied())
    }
}

/// A profile, for generated and for loaded worlds alike.
pub(super) fn body(seed: Seed, name: &str, submitted: impl Iterator<Item = u64>) -> Vec<u8> {
    let number = name.bytes().fold(0u64, |number, byte| number.wrapping_mul(257).wrapping_add(u64::from(byte)));
    let hash = seed.hash(Purpose::User, number);
    let mut json = Json::with_capacity(256);
    if hash & 3 == 0 {
        json.text("about", b"Building things.<p>Views are my own &amp; nobody else&#x27;s.");
    }
    json.number("created", super::item::EPOCH + scale(hash, 500_000_000) as i64);
    json.text("id", name.as_bytes());
    json.number("karma", scale(hash.rotate_left(32), 50_000) as i64 + 1);
    json.list("submitted", submitted);
    json.finish()
}

impl User {
    pub(super) fn name(self) -> [u8; 6] {
        let number = (self.0 * SHUFFLE) & ((1 << NAME_BITS) - 1);
        let mut name = [0; 6];
        for (at, pair) in name.chunks_mut(2).enumerate() {
            let digit = (number >> (6 * at)) as usize & 63;
            pair.copy_from_slice(&[CONSONANTS[digit >> 2], VOWELS[digit & 3]]);
        }
        // Names are case-sensitive, and a client that folds case should fail here.
        if self.0.is_multiple_of(7) {
            name[0] = name[0].to_ascii_uppercase();
        }
        name
    }
}

fn syllable(pair: &[u8]) -> Option<u64> {
    let &[consonant, vowel] = pair else { return None };
    let high = CONSONANTS.iter().position(|known| *known == consonant.to_ascii_lowercase())?;
    let low = VOWELS.iter().position(|known| *known == vowel)?;
    Some((high << 2 | low) as u64)
}

fn unshuffled(number: u64) -> Option<u64> {
    (number < 1 << NAME_BITS).then_some(number.wrapping_mul(UNSHUFFLE) & ((1 << NAME_BITS) - 1))
}

/// Newton's iteration doubles the number of right low bits each time.
const fn inverse(odd: u64) -> u64 {
    let mut guess = odd;
    let mut round = 0;
    while round < 5 {
        guess = guess.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(guess)));
        round += 1;
    }
    guess
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_author_can_be_found_by_name_and_has_the_item() {
        let users = Users::new(Seed(1), 5_000);
        for item in 1..=5_000 {
            let author = users.author(item);
            let name = String::from_utf8(author.name().to_vec()).unwrap();
            assert_eq!(users.find(&name), Some(author));
            let body: serde_json::Value = serde_json::from_slice(&users.body(author)).unwrap();
            assert!(body["submitted"].as_array().unwrap().contains(&item.into()), "{item}");
        }
    }

    #[test]
    fn names_are_checked_in_full() {
        let users = Users::new(Seed(1), 5_000);
        let name = String::from_utf8(users.author(7).name().to_vec()).unwrap();
        for wrong in
            [name.to_lowercase(), name.to_uppercase(), format!("{name}ba"), name[..5].to_owned(), String::new()]
        {
            assert!(wrong == name || users.find(&wrong).is_none(), "{wrong}");
        }
    }
}
