//! The Looker source against a remote by hand, on virtual time.

#![expect(clippy::unwrap_used, reason = "a step that fails is a failed test")]

mod lists;
mod logins;
mod remote;
