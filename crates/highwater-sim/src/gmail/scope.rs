//! The scopes that say what an access token may do.

pub(super) const MAIL: &str = "https://mail.google.com/";
pub(super) const MODIFY: &str = "https://www.googleapis.com/auth/gmail.modify";
pub(super) const READONLY: &str = "https://www.googleapis.com/auth/gmail.readonly";
pub(super) const METADATA: &str = "https://www.googleapis.com/auth/gmail.metadata";
pub(super) const COMPOSE: &str = "https://www.googleapis.com/auth/gmail.compose";
pub(super) const INSERT: &str = "https://www.googleapis.com/auth/gmail.insert";
pub(super) const LABELS: &str = "https://www.googleapis.com/auth/gmail.labels";
pub(super) const ALL: [&str; 7] = [MAIL, MODIFY, READONLY, METADATA, COMPOSE, INSERT, LABELS];
