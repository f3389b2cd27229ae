//! Faults that only the inside of the store can stage: a statement that fails, a disk that is full, a log that is torn,
//! a caller that leaves in the middle.

mod faults;
mod groups;
mod live;
mod script;
mod shards;
mod torn;
mod upgrade;
