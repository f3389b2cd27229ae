//! Gmail: who may read a mailbox.

pub mod oauth;
