//! Looker instances: the binary against the simulated API.

mod bounds;
mod changes;
mod desk;
mod doors;
mod faults;
mod kill;
mod mirror;
mod search;
mod strange;
mod sync;
