//! One walk through a table in both stores at once: what is absent or differs is written, what is too much is taken
//! away. Over an empty table it is a plain copy, over a finished one it writes nothing.

use std::cmp::Ordering;

use futures_util::future::try_join;

use super::{
    Amendment, Content, CopyProgress, Row,
    cells::{PAGE_ROWS, key_of, order},
    feed::Feed,
};
use crate::{Result, StoreError, migrations::Shape};

pub(super) async fn merge(
    table: &'static Shape,
    from: &dyn Content,
    to: &dyn Content,
    progress: &CopyProgress,
) -> Result<()> {
    let mut source = Feed::open(from, table).await?;
    let mut merge = Merge { table, to, target: Feed::open(to, table).await?, amendment: Amendment::default() };
    loop {
        let page = source.page().await?;
        if page.is_empty() {
            return merge.finish().await;
        }
        let rows = page.len();
        for row in page {
            merge.meet(row).await?;
        }
        // The walk through the target stands at or behind the last row by now, so it will not meet what is written.
        try_join(merge.write(), source.fill()).await?;
        progress.copied(rows);
    }
}

struct Merge<'a> {
    table: &'static Shape,
    to: &'a dyn Content,
    target: Feed<'a>,
    amendment: Amendment,
}

impl Merge<'_> {
    /// Leaves the target's walk at the row's key or behind it.
    async fn meet(&mut self, row: Row) -> Result<()> {
        while let Some(there) = self.target.peek().await? {
            match order(self.table, there, &row) {
                Ordering::Less => self.remove().await?,
                Ordering::Equal => {
                    if self.target.take().as_ref() != Some(&row) {
                        self.amendment.put.push(row);
                    }
                    return Ok(());
                }
                Ordering::Greater => break,
            }
        }
        self.amendment.put.push(row);
        Ok(())
    }

    /// The row that the target stands at has none beside it in the source.
    async fn remove(&mut self) -> Result<()> {
        self.amendment.gone.extend(self.target.take().map(|row| key_of(self.table, &row)));
        if self.amendment.gone.len() >= PAGE_ROWS {
            let gone = std::mem::take(&mut self.amendment.gone);
            return self.amend(Amendment { put: Vec::new(), gone }).await;
        }
        Ok(())
    }

    async fn write(&mut self) -> Result<()> {
        let amendment = std::mem::take(&mut self.amendment);
        if amendment.len() == 0 { Ok(()) } else { self.amend(amendment).await }
    }

    async fn amend(&self, amendment: Amendment) -> Result<()> {
        let named = |error: StoreError| {
            let doing = format!("copying {}: {}", self.table.name, error.doing);
            StoreError { doing, ..error }
        };
        self.to.amend(self.table, amendment).await.map_err(named)
    }

    async fn finish(mut self) -> Result<()> {
        while self.target.peek().await?.is_some() {
            self.remove().await?;
        }
        self.write().await
    }
}
