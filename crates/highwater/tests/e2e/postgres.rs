//! The same mirror in PostgreSQL: one process or many on a real server, and what may happen to either.

mod cells;
mod crowd;
mod disk;
mod doors;
mod fence;
mod server;
mod sync;
mod throttle;
