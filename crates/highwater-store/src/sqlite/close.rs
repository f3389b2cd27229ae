//! Ending the work on a segment for now, and moving the frontier. Nothing is sealed that does not add up.

use std::collections::BTreeSet;

use highwater_core::{
    Position, Purpose, SegmentId, SegmentStatus, Span, StreamId, Timestamp,
    planted::{Bug, planted},
    schema::Table,
};
use rusqlite::{Connection, params};

use super::{
    commit::{count_unresolved, reconsider},
    error::Sql,
    exceptions, segments,
    session::Session,
    streams,
};
use crate::{
    Close, Closed, ErrorKind, StoreError,
    rules::{Census, SegmentRow, key_column, sealed_entry},
};

pub(super) fn close(session: &mut Session, close: &Close) -> Sql<Closed> {
    let segment = segments::held(&session.db, &close.lease)?;
    let dense = close.dense.map(|table| Dense { table, stream: &close.stream, span: segment.span });
    if let Some(dense) = dense.as_ref().filter(|_| segment.purpose == Purpose::Catchup) {
        dense.adopt(&session.db, segment.id)?;
    }
    let census = exceptions::census(&session.db, segment.id)?;
    let status = census.tally().closing_status(close.policy);
    let evidence = match dense {
        Some(dense) if status != SegmentStatus::RetryWait => dense.account(&session.db, segment.id)?,
        _ => Evidence { stored: segment.stored, census },
    };
    put_down(&session.db, &segment, status, census.tally().unresolved(), close.now)?;
    if status == SegmentStatus::Sealed {
        session.append(&sealed_entry(close, &segment, evidence.stored, &evidence.census))?;
    }
    let frontier = frontier_after(&session.db, close, &segment, status)?;
    Ok(Closed { status, frontier })
}

/// What a segment holds at the end.
struct Evidence {
    stored: u64,
    census: Census,
}

/// A span in which every position is a key.
struct Dense<'a> {
    table: &'static Table,
    stream: &'a StreamId,
    span: Span,
}

impl Dense<'_> {
    /// Takes over what a rescan left unsettled here: the frontier may not pass it.
    fn adopt(&self, db: &Connection, id: SegmentId) -> Sql<()> {
        let (table, key) = (self.table.name, key_column(self.table).name);
        let mut find = db.prepare_cached(&format!(
            "SELECT item_key, segment_id FROM ingest_exceptions AS e
             WHERE source = ?1 AND stream = ?2 AND item_number >= ?3 AND item_number < ?4
               AND state IN ('retry_wait', 'dead_letter') AND segment_id <> ?5
               AND NOT EXISTS (SELECT 1 FROM \"{table}\" AS t WHERE t.\"{key}\" = e.item_number)"
        ))?;
        let (source, stream) = (self.stream.source.as_str(), self.stream.stream.as_str());
        let found = find.query_map(params![source, stream, self.span.start().0, self.span.end().0, id.0], |row| {
            Ok((row.get::<_, String>(0)?, SegmentId(row.get(1)?)))
        })?;
        let found = found.collect::<Result<Vec<_>, _>>()?;
        let mut adopt = db.prepare_cached(
            "UPDATE ingest_exceptions SET segment_id = ?4 WHERE source = ?1 AND stream = ?2 AND item_key = ?3",
        )?;
        for (key, _) in &found {
            adopt.execute(params![source, stream, key, id.0])?;
        }
        for owner in found.into_iter().map(|(_, owner)| owner).collect::<BTreeSet<_>>() {
            count_unresolved(db, owner)?;
            reconsider(db, owner)?;
        }
        Ok(())
    }

    /// Every key is a row or an exception, or the segment is refused.
    fn account(&self, db: &Connection, id: SegmentId) -> Sql<Evidence> {
        let (stored, census) = (self.count_rows(db)?, self.count_exceptions(db)?);
        let (found, keys) = (stored + census.total(), self.span.len());
        if found != keys {
            let short = format!("segment {id} {} has {found} of {keys} keys accounted for", self.span);
            return Err(StoreError::new(ErrorKind::Unaccounted, short).into());
        }
        Ok(Evidence { stored, census })
    }

    fn count_rows(&self, db: &Connection) -> Sql<u64> {
        let (table, key) = (self.table.name, key_column(self.table).name);
        let mut count =
            db.prepare_cached(&format!("SELECT count(*) FROM \"{table}\" WHERE \"{key}\" >= ?1 AND \"{key}\" < ?2"))?;
        let rows: i64 = count.query_row([self.span.start().0, self.span.end().0], |row| row.get(0))?;
        Ok(rows.cast_unsigned())
    }

    fn count_exceptions(&self, db: &Connection) -> Sql<Census> {
        let (table, key) = (self.table.name, key_column(self.table).name);
        let mut count = db.prepare_cached(&format!(
            "SELECT state, count(*) FROM ingest_exceptions AS e
             WHERE source = ?1 AND stream = ?2 AND item_number >= ?3 AND item_number < ?4
               AND NOT EXISTS (SELECT 1 FROM \"{table}\" AS t WHERE t.\"{key}\" = e.item_number)
             GROUP BY state"
        ))?;
        let (source, stream) = (self.stream.source.as_str(), self.stream.stream.as_str());
        exceptions::census_of(count.query(params![source, stream, self.span.start().0, self.span.end().0])?)
    }
}

/// All keys were tried, whatever the outcome.
fn put_down(db: &Connection, segment: &SegmentRow, status: SegmentStatus, unresolved: u64, now: Timestamp) -> Sql<()> {
    streams::count_up(db, segment.id, Some(now))?;
    segments::put_down(db, segment.id, status, segments::next_retry(db, segment.id)?)?;
    let sealed_at = (status == SegmentStatus::Sealed).then_some(now.as_millis());
    db.prepare_cached(
        "UPDATE ingest_segments SET scan_cursor = end_pos, unresolved_count = ?1, sealed_at = ?2 WHERE segment_id = ?3",
    )?
    .execute(params![unresolved.cast_signed(), sealed_at, segment.id.0])?;
    Ok(())
}

fn frontier_after(db: &Connection, close: &Close, segment: &SegmentRow, status: SegmentStatus) -> Sql<Position> {
    if segment.purpose != Purpose::Catchup || status != SegmentStatus::Sealed {
        return Ok(streams::read(db, &close.stream)?.frontier);
    }
    let frontier = streams::advance(db, &close.stream, close.now)?;
    if planted(Bug::FrontierOverGap) && segment.span.end() > frontier {
        streams::move_to(db, &close.stream, segment.span.end(), close.now)?;
        return Ok(segment.span.end());
    }
    Ok(frontier)
}
