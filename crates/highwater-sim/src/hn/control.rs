//! The world changed by hand, at once and on top of what the plan does: for tests that need one thing to happen now.

mod page;

use std::{str::FromStr, time::Duration};

use bytes::Bytes;

pub(super) use self::page::Act;
use super::{
    HnSim,
    life::{CannotMutate, Entry, Publicity},
    living::MutationKind,
};

/// What streams are told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamOrder {
    /// All open streams end.
    Drop,
    /// All open streams break off in the middle of a frame.
    Cut,
    /// `cancel`, and the end: the rules forbid the read from now on.
    Cancel,
    /// `auth_revoked`, and the end.
    AuthRevoked,
    /// Streams stay open, new ones too, and nothing is sent.
    Silence,
    /// Silence is over; what was held back is sent.
    Restore,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown order `{0}`, expected `drop`, `cut`, `cancel`, `auth_revoked`, `silence` or `restore`")]
pub struct UnknownOrder(String);

impl FromStr for StreamOrder {
    type Err = UnknownOrder;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Ok(match name {
            "drop" => StreamOrder::Drop,
            "cut" => StreamOrder::Cut,
            "cancel" => StreamOrder::Cancel,
            "auth_revoked" => StreamOrder::AuthRevoked,
            "silence" => StreamOrder::Silence,
            "restore" => StreamOrder::Restore,
            _ => return Err(UnknownOrder(name.to_owned())),
        })
    }
}

impl HnSim {
    /// Changes an item whose body is out, and gives its new body. A published change is in `updates` at once, with all
    /// that waited for the next write. Without a kind, one is drawn by the seed.
    pub fn mutate(
        &self,
        id: u64,
        kind: Option<MutationKind>,
        publicity: Publicity,
        now: Duration,
    ) -> Result<Bytes, CannotMutate> {
        let mut state = self.live(now);
        let body = self.mutate_item_in(&mut state, id, kind, publicity, now)?;
        if publicity == Publicity::Published {
            state.write_updates();
        }
        drop(state);
        self.life.wake();
        Ok(body)
    }

    /// Changes a profile, and gives its new body.
    pub fn mutate_profile(&self, name: &str, publicity: Publicity, now: Duration) -> Result<Bytes, CannotMutate> {
        let mut state = self.live(now);
        let body = self.mutate_profile_in(&mut state, name, publicity, now)?;
        if publicity == Publicity::Published {
            state.write_updates();
        }
        drop(state);
        self.life.wake();
        Ok(body)
    }

    /// Changes the newest `count` items whose bodies are out, and publishes them in one write. Gives their ids.
    pub fn burst(&self, count: usize, now: Duration) -> Vec<u64> {
        let mut state = self.live(now);
        let newest = (*self.world.ids().start()..=self.head.published(now)).rev().take(count);
        let struck = newest.filter(|id| self.mutate_item_in(&mut state, *id, None, Publicity::Published, now).is_ok());
        let struck: Vec<u64> = struck.collect();
        if !struck.is_empty() {
            state.write_updates();
        }
        drop(state);
        self.life.wake();
        struck
    }

    /// Lets `maxitem` jump, as far as the world has ids, and gives its new value.
    pub fn grow(&self, by: u64, now: Duration) -> u64 {
        let mut state = self.live(now);
        let before = self.head.max_item(now);
        self.head.jump(by, now);
        let after = self.head.max_item(now);
        if after > before {
            state.log.push(Entry::Grew(after));
        }
        drop(state);
        self.life.wake();
        after
    }

    pub fn order(&self, order: StreamOrder, now: Duration) {
        let mut state = self.live(now);
        match order {
            StreamOrder::Silence => state.silent = true,
            StreamOrder::Restore => state.silent = false,
            _ => state.log.push(Entry::Ordered(order)),
        }
        drop(state);
        self.life.wake();
    }

    /// Resets every request to the API, and every attempt to open a stream, until `until`. Open streams stay.
    pub fn go_down(&self, until: Duration) {
        self.life.go_down(until);
    }
}
