//! The rows of a table one after the other, as they are to lie in any store, a page in memory at a time.

use std::collections::VecDeque;

use super::{Content, Row, Scan, cells::settle};
use crate::{Result, migrations::Shape};

pub(super) struct Feed<'a> {
    table: &'static Shape,
    scan: Box<dyn Scan + 'a>,
    page: VecDeque<Row>,
    /// Asked no further: rows written behind the walk do not appear in it.
    is_over: bool,
}

impl<'a> Feed<'a> {
    pub(super) async fn open(store: &'a dyn Content, table: &'static Shape) -> Result<Feed<'a>> {
        Ok(Feed { table, scan: store.scan(table).await?, page: VecDeque::new(), is_over: false })
    }

    pub(super) async fn peek(&mut self) -> Result<Option<&Row>> {
        self.fill().await?;
        Ok(self.page.front())
    }

    /// The row that was peeked at.
    pub(super) fn take(&mut self) -> Option<Row> {
        self.page.pop_front()
    }

    /// What is at hand; none at the end.
    pub(super) async fn page(&mut self) -> Result<Vec<Row>> {
        self.fill().await?;
        Ok(self.page.drain(..).collect())
    }

    /// Has something at hand, unless it is the end.
    pub(super) async fn fill(&mut self) -> Result<()> {
        if !self.page.is_empty() || self.is_over {
            return Ok(());
        }
        let mut rows = self.scan.page().await?;
        rows.iter_mut().for_each(|row| settle(self.table, row));
        self.is_over = rows.is_empty();
        self.page = rows.into();
        Ok(())
    }
}
