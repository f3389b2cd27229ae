//! What can be searched of each source: for whoever has a configuration, and needs neither credentials nor a remote.

use highwater_core::{StreamName, schema::Table, search::Searchable};

pub use crate::{gmail::searched as gmail, hn::searched as hn, looker::searched as looker};

/// The rows of a stream, and what of them can be searched.
#[derive(Clone, Debug)]
pub struct Searched {
    pub stream: StreamName,
    pub table: &'static Table,
    pub searchable: &'static Searchable,
}
