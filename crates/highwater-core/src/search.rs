//! Full text: how texts become words, what a query asks for, and what is shown of a text that answers it. Stores only
//! keep and look up the words made here, so that all of them answer alike.

mod document;
mod fold;
mod query;
mod snippet;
mod spec;
mod tokens;

pub use document::Words;
pub use query::{BadQuery, Query, Term};
pub use snippet::{Piece, brief, cleaned, marked, snippet};
pub use spec::{Beside, Entry, Searchable, TEXT_MAX};
pub use tokens::{Token, tokens};

crate::word! {
    /// Where in an object a word stands.
    pub enum Field {
        /// A subject, a title, a name.
        Title = "title",
        /// Who wrote it.
        Author = "author",
        /// To whom.
        Addressee = "addressee",
        /// All the rest.
        Text = "text",
    }
}
