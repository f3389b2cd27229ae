//! Rows that are there already: most are the same and only their time moves; what changed is kept as a version first.

use futures_util::future::{BoxFuture, try_join_all};
use highwater_core::{
    Change,
    planted::{Bug, planted},
};
use tokio_postgres::types::Type;

use super::{
    cells::{Keys, Time},
    columns::{Column, Marks, columns_of},
    error::{Fault, Sql},
    link::Param,
    rows::{Item, Rows},
};
use crate::rules::Kept;

/// An item beside the row it meets.
struct Met<'a> {
    item: &'a Item<'a>,
    kept: Kept,
    change: Change,
}

/// What became of each.
pub(super) async fn store<'a>(rows: &Rows<'_>, items: &[&'a Item<'a>]) -> Sql<Vec<Change>> {
    let mut met = meet(rows, &rows.sql.select, items).await?;
    // Only what is about to be rewritten is locked, and looked at again: a lock is a write, too.
    let differing: Vec<_> = met.iter().filter(|met| met.is_rewritten()).map(|met| met.item).collect();
    if !differing.is_empty() {
        let mut locked = meet(rows, &rows.sql.select_locked, &differing).await?.into_iter();
        for met in met.iter_mut().filter(|met| met.is_rewritten()) {
            *met = locked.next().expect("one for each that differs");
        }
    }
    write(rows, &met).await?;
    Ok(met.into_iter().map(|met| met.change).collect())
}

async fn meet<'a>(rows: &Rows<'_>, select: &str, items: &[&'a Item<'a>]) -> Sql<Vec<Met<'a>>> {
    let mut kept = rows.read(select, &rows.keys(items.iter().copied())).await?;
    let meet = |item: &&'a Item<'a>| {
        // Neither new nor there: somebody deleted it just now.
        let kept = kept.remove(&item.row).ok_or(Fault::Raced)?;
        let change = item.arrival.change(&kept, &item.body, rows.table);
        Ok(Met { item, kept, change })
    };
    items.iter().map(meet).collect()
}

async fn write(rows: &Rows<'_>, met: &[Met<'_>]) -> Sql<()> {
    let changed: Vec<_> = met.iter().filter(|met| met.change == Change::Changed).collect();
    let relinked: Vec<_> = met.iter().filter(|met| met.is_relinked()).collect();
    let refreshed: Vec<_> = met.iter().filter(|met| met.is_refreshed()).collect();
    let is_touched = |met: &&Met<'_>| met.change != Change::Changed && !met.is_refreshed() && met.is_stale();
    let touched: Vec<_> = met.iter().filter(is_touched).collect();
    // In this order: all travel together.
    let mut steps: Vec<BoxFuture<'_, Sql<()>>> = Vec::new();
    if !changed.is_empty() {
        steps.push(Box::pin(keep_versions(rows, &changed)));
        steps.push(Box::pin(update(rows, &changed)));
    }
    if !refreshed.is_empty() {
        steps.push(Box::pin(refresh(rows, &refreshed)));
    }
    if !touched.is_empty() {
        steps.push(Box::pin(touch(rows, &touched)));
    }
    if !relinked.is_empty() {
        if !planted(Bug::KidsNotReplaced) {
            steps.push(Box::pin(unlink(rows, &relinked)));
        }
        steps.push(Box::pin(relink(rows, &relinked)));
    }
    try_join_all(steps).await?;
    Ok(())
}

impl Met<'_> {
    fn is_rewritten(&self) -> bool {
        matches!(self.change, Change::Changed | Change::Reordered)
    }

    /// The same commit again finds nothing to do. The check as well: it heals if only that was damaged.
    fn is_stale(&self) -> bool {
        let is_marked_anew = self.item.record.tag.is_some() && self.item.record.tag != self.kept.etag;
        let is_older = self.kept.last_fetched_at < self.item.arrival.now;
        !self.is_behind() && (is_older || is_marked_anew || self.kept.row_check != self.item.check)
    }

    /// The row stays as it is.
    fn is_behind(&self) -> bool {
        self.change == Change::Behind
    }

    /// Only what moves without meaning is another.
    fn is_refreshed(&self) -> bool {
        self.change == Change::Reordered && self.kept.body.values != self.item.body.values
    }

    fn is_relinked(&self) -> bool {
        !self.is_behind() && self.kept.body.edges != self.item.body.edges
    }
}

/// A version bears the time its body was first seen: it lasted until the next one's.
async fn keep_versions(rows: &Rows<'_>, changed: &[&Met<'_>]) -> Sql<()> {
    let Some(sql) = &rows.sql.keep_versions else {
        return Ok(());
    };
    let keys = rows.keys(changed.iter().map(|met| met.item));
    let times: Vec<_> = changed.iter().map(|met| Time(met.kept.last_changed_at)).collect();
    let bodies: Vec<_> = changed.iter().map(|met| met.kept.body.to_json(rows.table).to_string()).collect();
    let params: [Param<'_>; 3] = [keys.param(), (&times, Type::TIMESTAMPTZ_ARRAY), (&bodies, Type::TEXT_ARRAY)];
    rows.db.execute(sql, &params).await?;
    Ok(())
}

async fn update(rows: &Rows<'_>, changed: &[&Met<'_>]) -> Sql<()> {
    let bodies: Vec<_> = changed.iter().map(|met| met.item.body.values.as_slice()).collect();
    let columns = columns_of(rows.table.columns, &bodies)?;
    let marks = Marks::of(changed.iter().map(|met| met.item));
    let params: Vec<_> = columns.iter().map(Column::param).chain(marks.params()).collect();
    rows.db.execute(&rows.sql.update, &params).await?;
    Ok(())
}

/// As `update`, but the time of the last change stays.
async fn refresh(rows: &Rows<'_>, refreshed: &[&Met<'_>]) -> Sql<()> {
    let bodies: Vec<_> = refreshed.iter().map(|met| met.item.body.values.as_slice()).collect();
    let columns = columns_of(rows.table.columns, &bodies)?;
    let marks = Marks::of(refreshed.iter().map(|met| met.item));
    let [times, checks, _] = marks.params();
    let changed: Vec<_> = refreshed.iter().map(|met| Time(met.kept.last_changed_at)).collect();
    let changed: Param<'_> = (&changed, Type::TIMESTAMPTZ_ARRAY);
    let params: Vec<_> = columns.iter().map(Column::param).chain([times, changed, checks]).collect();
    rows.db.execute(&rows.sql.edit, &params).await?;
    Ok(())
}

async fn touch(rows: &Rows<'_>, touched: &[&Met<'_>]) -> Sql<()> {
    let keys = rows.keys(touched.iter().map(|met| met.item));
    let marks = Marks::of(touched.iter().map(|met| met.item));
    let [times, checks, tags] = marks.params();
    let seen: Vec<_> = touched.iter().map(|met| met.kept.row_check).collect();
    rows.db.execute(&rows.sql.touch, &[keys.param(), times, checks, tags, (&seen, Type::INT8_ARRAY)]).await?;
    Ok(())
}

async fn unlink(rows: &Rows<'_>, relinked: &[&Met<'_>]) -> Sql<()> {
    if let (Some(edges), keys @ Keys::Numbers(_)) = (&rows.sql.edges, rows.keys(relinked.iter().map(|met| met.item))) {
        rows.db.execute(&edges.delete, &[keys.param()]).await?;
    }
    Ok(())
}

async fn relink(rows: &Rows<'_>, relinked: &[&Met<'_>]) -> Sql<()> {
    let items: Vec<_> = relinked.iter().map(|met| met.item).collect();
    rows.link(&items).await
}
