//! What the tests stand on. Nothing here uses the code of the product: it runs the binary and looks from outside.

mod clock;
mod database;
mod disk;
mod home;
mod http;
mod process;
mod schema;
mod server;
mod service;
mod sim;
mod stage;
mod truth;
mod wire;

pub(crate) use clock::{Deadline, pause, unix_seconds, until};
pub(crate) use database::Database;
pub(crate) use disk::Disk;
pub(crate) use home::Home;
pub(crate) use process::{Done, Running, Signal, program};
pub(crate) use schema::{Schema, Session};
pub(crate) use server::{Reply, Server, item};
pub(crate) use service::Service;
pub(crate) use sim::{Publish, Sim};
pub(crate) use stage::{Stage, World as Staged};
pub(crate) use truth::{Tables, assert_mirrors};
pub(crate) use wire::Ask;

/// As fast as it goes, with retries that do not make a test wait.
pub(crate) const FAST: &str = "rate = \"unlimited\"";
