//! The digest of a table: SHA-256 over its rows in the order of their key, the same for the same rows in any store.

use aws_lc_rs::digest::{Context, SHA256};
use highwater_core::hex;

use super::{Cell, Content, CopyProgress, Row, feed::Feed};
use crate::{Result, migrations::Shape};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) rows: u64,
    pub(super) digest: String,
}

impl Tally {
    pub(super) async fn of(table: &'static Shape, store: &dyn Content, progress: &CopyProgress) -> Result<Tally> {
        let mut feed = Feed::open(store, table).await?;
        let mut sha = Context::new(&SHA256);
        let mut rows = 0;
        loop {
            let page = feed.page().await?;
            if page.is_empty() {
                return Ok(Tally { rows, digest: hex(sha.finish().as_ref()) });
            }
            page.iter().for_each(|row| add(&mut sha, row));
            rows += page.len() as u64;
            progress.compared(page.len());
        }
    }
}

/// Each cell with its kind and its length, so that no two rows look alike.
fn add(sha: &mut Context, row: &Row) {
    for cell in row {
        match cell {
            Cell::Null => sha.update(b"n"),
            Cell::Int(number) => add_part(sha, b"i", &number.to_le_bytes()),
            Cell::Real(number) => add_part(sha, b"r", &number.to_bits().to_le_bytes()),
            Cell::Bool(flag) => add_part(sha, b"b", &[u8::from(*flag)]),
            Cell::Text(text) => add_part(sha, b"t", text.as_bytes()),
            Cell::Bytes(bytes) => add_part(sha, b"y", bytes),
            Cell::Ints(numbers) => {
                add_part(sha, b"l", &numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<_>>());
            }
        }
    }
}

fn add_part(sha: &mut Context, kind: &[u8], bytes: &[u8]) {
    sha.update(kind);
    sha.update(&(bytes.len() as u64).to_le_bytes());
    sha.update(bytes);
}
