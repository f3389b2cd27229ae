//! Spans in which every position is a key: what segments over them must account for.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::try_join;
use highwater_core::{SegmentId, StreamId, schema::Table};
use tokio_postgres::types::Type;

use super::{
    cells::count,
    close::Evidence,
    error::Sql,
    exceptions::census_by_segment,
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
    pub(super) segments: Vec<&'a SegmentRow>,
}

/// Exceptions of the span whose key is no row.
fn unstored(table: &'static Table) -> String {
    let (name, key) = (quoted(table.name), quoted(key_column(table).name));
    format!("NOT EXISTS (SELECT 1 FROM {name} AS t WHERE t.{key} = e.item_number)")
}

/// The segments that own keys which these would take over, as far as can be told without a lock.
pub(super) async fn owners(
    db: &Db,
    table: &'static Table,
    stream: &StreamId,
    ids: &BTreeSet<SegmentId>,
) -> Sql<BTreeSet<SegmentId>> {
    let select = format!(
        "SELECT DISTINCT e.segment_id FROM ingest_segments AS s
         JOIN ingest_exceptions AS e ON e.item_number >= s.start_pos AND e.item_number < s.end_pos
         WHERE s.segment_id = ANY($3) AND s.purpose = 'catchup' AND e.source = $1 AND e.stream = $2
           AND e.state IN ('retry_wait', 'dead_letter') AND e.segment_id <> s.segment_id AND {}",
        unstored(table)
    );
    let (source, stream) = (stream.source.as_str(), stream.stream.as_str());
    let ids: Vec<_> = ids.iter().map(|id| id.0).collect();
    let params = [(&source as _, Type::TEXT), (&stream as _, Type::TEXT), (&ids as _, Type::INT8_ARRAY)];
    let rows = db.query(&select, &params).await?;
    Ok(rows.iter().map(|row| row.try_get(0).map(SegmentId)).collect::<Result<_, _>>()?)
}

/// Every key is a row or an exception, or the segment is refused.
pub(super) fn accounted(segment: &SegmentRow, found: Evidence) -> Sql<Evidence> {
    let (sum, keys) = (found.stored + found.census.total(), segment.span.len());
    if sum == keys {
        return Ok(found);
    }
    let short = format!("segment {} {} has {sum} of {keys} keys accounted for", segment.id, segment.span);
    Err(StoreError::new(ErrorKind::Unaccounted, short).into())
}

const SPANS: &str = "UNNEST($1, $2, $3) AS span (id, first, beyond)";

impl Dense<'_> {
    /// Takes over what rescans left unsettled in the spans. The segments that had it.
    pub(super) async fn adopt(&self) -> Sql<BTreeSet<SegmentId>> {
        let update = format!(
            "WITH found AS (
                 SELECT e.source, e.stream, e.item_key, e.segment_id, span.id FROM {SPANS}
                 JOIN ingest_exceptions AS e ON e.item_number >= span.first AND e.item_number < span.beyond
                 WHERE e.source = $4 AND e.stream = $5
                   AND e.state IN ('retry_wait', 'dead_letter') AND e.segment_id <> span.id AND {}
             )
             UPDATE ingest_exceptions AS e SET segment_id = found.id FROM found
             WHERE e.source = found.source AND e.stream = found.stream AND e.item_key = found.item_key
             RETURNING found.segment_id",
            unstored(self.table)
        );
        let rows = self.ask(&update, 5).await?;
        Ok(rows.iter().map(|row| row.try_get(0).map(SegmentId)).collect::<Result<_, _>>()?)
    }

    /// What is there, segment by segment.
    pub(super) async fn account(&self) -> Sql<BTreeMap<SegmentId, Evidence>> {
        let (rows, censuses) = try_join(self.count_rows(), self.count_exceptions()).await?;
        let evidence = |(id, stored)| {
            let census = censuses.get(&id).copied().unwrap_or_default();
            (id, Evidence { stored, census })
        };
        Ok(rows.into_iter().map(evidence).collect())
    }

    async fn count_rows(&self) -> Sql<Vec<(SegmentId, u64)>> {
        let (table, key) = (quoted(self.table.name), quoted(key_column(self.table).name));
        let select = format!(
            "SELECT span.id, (SELECT count(*) FROM {table} AS t WHERE t.{key} >= span.first AND t.{key} < span.beyond)
             FROM {SPANS}"
        );
        let rows = self.ask(&select, 3).await?;
        rows.iter().map(|row| Ok((SegmentId(row.try_get(0)?), count(row, 1)?))).collect()
    }

    async fn count_exceptions(&self) -> Sql<BTreeMap<SegmentId, Census>> {
        let select = format!(
            "SELECT span.id, e.state, count(*) FROM {SPANS}
             JOIN ingest_exceptions AS e ON e.item_number >= span.first AND e.item_number < span.beyond
             WHERE e.source = $4 AND e.stream = $5 AND {} GROUP BY span.id, e.state",
            unstored(self.table)
        );
        census_by_segment(&self.ask(&select, 5).await?)
    }

    /// The first so many of ids, first positions, positions beyond, source and stream.
    async fn ask(&self, sql: &str, params: usize) -> Sql<Vec<tokio_postgres::Row>> {
        let ids: Vec<_> = self.segments.iter().map(|segment| segment.id.0).collect();
        let firsts: Vec<_> = self.segments.iter().map(|segment| segment.span.start().0).collect();
        let beyond: Vec<_> = self.segments.iter().map(|segment| segment.span.end().0).collect();
        let (source, stream) = (self.stream.source.as_str(), self.stream.stream.as_str());
        let all: [Param<'_>; 5] = [
            (&ids, Type::INT8_ARRAY),
            (&firsts, Type::INT8_ARRAY),
            (&beyond, Type::INT8_ARRAY),
            (&source, Type::TEXT),
            (&stream, Type::TEXT),
        ];
        self.db.query(sql, &all[..params]).await
    }
}
