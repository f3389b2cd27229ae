//! Credentials of a Google account: how consent is asked for, how access tokens are got and renewed, and what a refusal
//! means. No text made here names a token, a secret or an address.

mod bearer;
mod client;
mod consent;
mod credentials;
mod endpoint;
mod form;
mod owner;
mod refusal;
mod scope;
mod secret;
mod service_account;

pub use bearer::{Bearer, BearerSettings, Keeper};
pub use client::Client;
pub use consent::{Consent, ENTROPY, Redirected};
pub use credentials::{Access, Credentials, Grant};
pub use endpoint::{Granted, TokenEndpoint, Tries};
pub use owner::{is_same_account, owner_of};
pub use refusal::Refusal;
pub use scope::{READONLY, ScopeError, check_scopes};
pub use secret::{Secret, Token};
pub use service_account::ServiceAccount;

/// A file from Google that does not say what it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadFile(pub(crate) &'static str);
