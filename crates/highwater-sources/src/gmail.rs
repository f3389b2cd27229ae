//! Gmail: what its answers hold.

mod mime;
mod raw;

pub use mime::{Address, Attachment, Mail, read};
pub use raw::{NotBase64, decode};
