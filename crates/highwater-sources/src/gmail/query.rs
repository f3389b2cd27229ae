//! Paths and queries of Gmail's API, escaped.

use std::fmt::Write;

use crate::Request;

pub(super) struct Query {
    path: String,
}

impl Query {
    /// `what` is a path behind the user, whose parts are escaped already.
    pub(super) fn new(what: &str) -> Self {
        Query { path: format!("/gmail/v1/users/me/{what}?prettyPrint=false") }
    }

    pub(super) fn add(&mut self, name: &str, value: &str) -> &mut Self {
        self.path.push('&');
        self.path.push_str(name);
        self.path.push('=');
        self.path.push_str(&escaped(value));
        self
    }

    pub(super) fn request(self) -> Request {
        Request::get(self.path)
    }
}

pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            escaped.push(char::from(byte));
        } else {
            write!(escaped, "%{byte:02X}").expect("a string takes everything");
        }
    }
    escaped
}
