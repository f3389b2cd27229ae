//! Turns what went wrong below HTTP into a `Failure`. Messages name a cause, never a URL, a header or a body.

use std::{error::Error, io, time::Duration};

use highwater_core::{Failure, FailureKind};

pub(super) fn connect(message: &str) -> Failure {
    Failure::new(FailureKind::Connect, message)
}

pub(super) fn shut_down() -> Failure {
    connect("the transport was shut down")
}

pub(super) fn connect_io(step: &str, error: &io::Error) -> Failure {
    Failure::new(FailureKind::Connect, format!("{step}: {error}"))
}

pub(super) fn timeout(what: &str, after: Duration) -> Failure {
    Failure::new(FailureKind::Timeout, format!("{what} took longer than {after:?}"))
}

pub(super) fn too_large(what: &str, max: usize) -> Failure {
    Failure::new(FailureKind::TooLarge, format!("{what} is larger than {max} bytes"))
}

pub(super) fn redirect(message: &str) -> Failure {
    Failure::new(FailureKind::Redirect, message)
}

pub(super) fn hyper(error: &hyper::Error) -> Failure {
    let (kind, message) = if error.is_parse_too_large() {
        (FailureKind::TooLarge, "the header of the answer is too large".into())
    } else if error.is_parse() {
        (FailureKind::Malformed, "the answer is not HTTP".into())
    } else if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
        (FailureKind::Broken, "the connection closed before the answer was complete".into())
    } else {
        (FailureKind::Broken, format!("the connection broke: {}", root_cause(error)))
    };
    Failure::new(kind, message)
}

fn root_cause(error: &hyper::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
