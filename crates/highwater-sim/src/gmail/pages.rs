//! Page tokens: opaque numbers behind which the place in a list is kept.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use super::{error::ApiError, mailbox::Place, params::Params};
use crate::rng::{Purpose, Seed, scale};

/// The oldest are forgotten beyond this, as if their time were up.
const TOKENS_MAX: usize = 200_000;
const TWENTY_DIGITS: u64 = 10_000_000_000_000_000_000;
const RESULTS_DEFAULT: usize = 100;
const RESULTS_MAX: usize = 500;

#[derive(Debug)]
pub(super) struct Pages {
    seed: Seed,
    lifetime: Option<Duration>,
    issued: u64,
    tokens: HashMap<u64, Cursor>,
    age: VecDeque<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Cursor {
    question: u64,
    at: At,
    issued: Duration,
}

/// Where the next page begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    Start,
    /// Behind this place, towards the past.
    Below(Place),
    /// After so many.
    Skip(usize),
    /// After this record of the history.
    Record(u64),
}

impl Pages {
    pub(super) fn new(seed: Seed, lifetime_s: Option<u32>) -> Self {
        let lifetime = lifetime_s.map(|seconds| Duration::from_secs(u64::from(seconds)));
        Pages { seed, lifetime, issued: 0, tokens: HashMap::new(), age: VecDeque::new() }
    }

    /// Where a request's page begins. A token is good for the question it was given to.
    pub(super) fn find(&self, params: &Params, now: Duration) -> Result<At, ApiError> {
        let Some(token) = params.first("pageToken").filter(|token| !token.is_empty()) else { return Ok(At::Start) };
        let cursor = token.parse().ok().and_then(|token: u64| self.tokens.get(&token));
        let question = params.fingerprint();
        let alive = |cursor: &&Cursor| {
            cursor.question == question && self.lifetime.is_none_or(|lifetime| now < cursor.issued + lifetime)
        };
        cursor.filter(alive).map(|cursor| cursor.at).ok_or_else(invalid_token)
    }

    pub(super) fn issue(&mut self, params: &Params, at: At, now: Duration) -> String {
        // Twenty digits, as the real ones.
        let token = TWENTY_DIGITS + scale(self.seed.hash(Purpose::PageToken, self.issued), u64::MAX - TWENTY_DIGITS);
        self.issued += 1;
        self.tokens.insert(token, Cursor { question: params.fingerprint(), at, issued: now });
        self.age.push_back(token);
        if self.age.len() > TOKENS_MAX {
            self.age.pop_front().map(|oldest| self.tokens.remove(&oldest));
        }
        token.to_string()
    }
}

pub(super) fn invalid_token() -> ApiError {
    ApiError::invalid("Invalid pageToken")
}

/// How many a page may have.
pub(super) fn max_results(params: &Params) -> Result<usize, ApiError> {
    match params.first("maxResults") {
        None => Ok(RESULTS_DEFAULT),
        Some(text) => match text.parse::<u32>() {
            Ok(0) => Ok(RESULTS_DEFAULT),
            Ok(count) => Ok((count as usize).min(RESULTS_MAX)),
            Err(_) => Err(ApiError::invalid(format!("Invalid value at 'max_results': \"{text}\""))),
        },
    }
}
