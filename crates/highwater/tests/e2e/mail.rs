//! Mailboxes: the binary against the simulated Gmail.

mod budget;
mod changes;
mod desk;
mod doors;
mod kill;
mod letters;
mod memory;
mod mirror;
mod proof;
mod search;
mod secrets;
mod shards;
mod standing;
mod strange;
mod sync;
