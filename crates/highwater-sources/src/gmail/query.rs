//! Paths and queries of Gmail's API, escaped.

use crate::{Request, escape::escaped};

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
