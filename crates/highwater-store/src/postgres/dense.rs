//! A span in which every position is a key: what a segment over it must account for.

use std::collections::BTreeSet;

use futures_util::future::try_join;
use highwater_core::{SegmentId, StreamId, schema::Table};
use tokio_postgres::types::Type;

use super::{
    cells::count,
    close::Evidence,
    error::Sql,
    exceptions::census_of,
    link::{Db, Param},
    pool::quoted,
};
use crate::{
    ErrorKind, StoreError,
    rules::{Census, SegmentRow, key_column},
};

pub(super) struct Dense<'a> {
    pub(super) db: &'a Db,
    pub(super) table: &'static Table,
    pub(super) stream: &'a StreamId,
    pub(super) segment: &'a SegmentRow,
}

/// Exceptions of the span whose key is no row.
fn unstored(table: &'static Table) -> String {
    let (name, key) = (quoted(table.name), quoted(key_column(table).name));
    format!("NOT EXISTS (SELECT 1 FROM {name} AS t WHERE t.{key} = e.item_number)")
}

impl Dense<'_> {
    /// The segments that own keys which the segment would take over, as far as can be told without a lock.
    pub(super) async fn owners(
        db: &Db,
        table: &'static Table,
        stream: &StreamId,
        id: SegmentId,
    ) -> Sql<BTreeSet<SegmentId>> {
        let select = format!(
            "SELECT DISTINCT e.segment_id FROM ingest_segments AS s
             JOIN ingest_exceptions AS e ON e.item_number >= s.start_pos AND e.item_number < s.end_pos
             WHERE s.segment_id = $3 AND s.purpose = 'catchup' AND e.source = $1 AND e.stream = $2
               AND e.state IN ('retry_wait', 'dead_letter') AND e.segment_id <> $3 AND {}",
            unstored(table)
        );
        let (source, stream) = (stream.source.as_str(), stream.stream.as_str());
        let params = [(&source as _, Type::TEXT), (&stream as _, Type::TEXT), (&id.0 as _, Type::INT8)];
        let rows = db.query(&select, &params).await?;
        Ok(rows.iter().map(|row| row.try_get(0).map(SegmentId)).collect::<Result<_, _>>()?)
    }

    /// Takes over what a rescan left unsettled here: the frontier may not pass it. The segments that had it.
    pub(super) async fn adopt(&self) -> Sql<BTreeSet<SegmentId>> {
        let update = format!(
            "WITH found AS (
                 SELECT e.source, e.stream, e.item_key, e.segment_id FROM ingest_exceptions AS e
                 WHERE e.source = $1 AND e.stream = $2 AND e.item_number >= $3 AND e.item_number < $4
                   AND e.state IN ('retry_wait', 'dead_letter') AND e.segment_id <> $5 AND {}
             )
             UPDATE ingest_exceptions AS e SET segment_id = $5 FROM found
             WHERE e.source = found.source AND e.stream = found.stream AND e.item_key = found.item_key
             RETURNING found.segment_id",
            unstored(self.table)
        );
        let (source, stream) = (self.stream.source.as_str(), self.stream.stream.as_str());
        let (start, end) = (self.segment.span.start().0, self.segment.span.end().0);
        let params: [Param<'_>; 5] = [
            (&source, Type::TEXT),
            (&stream, Type::TEXT),
            (&start, Type::INT8),
            (&end, Type::INT8),
            (&self.segment.id.0, Type::INT8),
        ];
        let rows = self.db.query(&update, &params).await?;
        Ok(rows.iter().map(|row| row.try_get(0).map(SegmentId)).collect::<Result<_, _>>()?)
    }

    /// Every key is a row or an exception, or the segment is refused.
    pub(super) async fn account(&self) -> Sql<Evidence> {
        let (stored, census) = try_join(self.count_rows(), self.count_exceptions()).await?;
        let (found, keys) = (stored + census.total(), self.segment.span.len());
        if found != keys {
            let (id, span) = (self.segment.id, self.segment.span);
            let short = format!("segment {id} {span} has {found} of {keys} keys accounted for");
            return Err(StoreError::new(ErrorKind::Unaccounted, short).into());
        }
        Ok(Evidence { stored, census })
    }

    async fn count_rows(&self) -> Sql<u64> {
        let (table, key) = (quoted(self.table.name), quoted(key_column(self.table).name));
        let select = format!("SELECT count(*) FROM {table} WHERE {key} >= $1 AND {key} < $2");
        let (start, end) = (self.segment.span.start().0, self.segment.span.end().0);
        count(&self.db.query(&select, &[(&start, Type::INT8), (&end, Type::INT8)]).await?[0], 0)
    }

    async fn count_exceptions(&self) -> Sql<Census> {
        let select = format!(
            "SELECT e.state, count(*) FROM ingest_exceptions AS e
             WHERE e.source = $1 AND e.stream = $2 AND e.item_number >= $3 AND e.item_number < $4 AND {}
             GROUP BY e.state",
            unstored(self.table)
        );
        let (source, stream) = (self.stream.source.as_str(), self.stream.stream.as_str());
        let (start, end) = (self.segment.span.start().0, self.segment.span.end().0);
        let params: [Param<'_>; 4] =
            [(&source, Type::TEXT), (&stream, Type::TEXT), (&start, Type::INT8), (&end, Type::INT8)];
        census_of(&self.db.query(&select, &params).await?)
    }
}
