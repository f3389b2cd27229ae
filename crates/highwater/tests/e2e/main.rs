//! The real binary in real processes, over real sockets, on real files. `HIGHWATER_BIN` names another build to test.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod auth;
mod copy;
mod demo;
mod disk;
mod gate;
mod kill;
mod letters;
mod lock;
mod looker;
mod mail;
mod outage;
mod pipes;
mod planning;
mod postgres;
mod ranges;
mod restart;
mod search;
mod serve;
mod signals;
mod support;
mod sync;
mod usage;
mod verify;
