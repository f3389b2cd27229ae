//! Joining small segments behind the frontier.

use futures_util::future::try_join;
use highwater_core::{Position, SegmentId, SegmentStatus, Span, StreamId};
use tokio_postgres::types::Type;

use super::{
    error::Sql,
    link::{Db, Param},
    segments::{self, Locked},
    streams,
};
use crate::{
    StreamRow,
    rules::{JOINED_AT_ONCE, Joined, joined},
};

/// How many rows were saved. What is found is locked, and joined only if it is still as it was.
pub(super) async fn compact(db: &Db, stream: &StreamId, segment_size: u64) -> Sql<u64> {
    let ((), row) = try_join(db.begin(), streams::read(db, stream, "")).await?;
    let sealed = last_sealed(db, &row).await?;
    let mut found = joined(row.span.start(), segment_size, &sealed);
    if !found.is_empty() {
        let ids = found.iter().flat_map(|one| one.gone.iter().copied().chain([one.survivor])).collect();
        let locked = segments::lock(db, &ids).await?;
        found.retain(|one| is_unchanged(one, &sealed, &locked));
        join(db, &found).await?;
    }
    db.commit().await?;
    Ok(found.iter().map(|one| one.gone.len() as u64).sum())
}

/// The last segments behind the frontier, lowest first: small ones come into being there.
async fn last_sealed(db: &Db, row: &StreamRow) -> Sql<Vec<(SegmentId, Span)>> {
    let select = "
        SELECT segment_id, start_pos, end_pos FROM ingest_segments
        WHERE source = $1 AND stream = $2 AND purpose = 'catchup' AND status = 'sealed'
          AND start_pos < $3 AND end_pos <= $3 ORDER BY start_pos DESC LIMIT $4";
    let (source, name) = (row.id.source.as_str(), row.id.stream.as_str());
    let limit = i64::from(JOINED_AT_ONCE);
    let params: [Param<'_>; 4] =
        [(&source, Type::TEXT), (&name, Type::TEXT), (&row.frontier.0, Type::INT8), (&limit, Type::INT8)];
    let mut segments = Vec::new();
    for row in db.query(select, &params).await?.iter().rev() {
        let span = Span::new(Position(row.try_get(1)?), Position(row.try_get(2)?));
        segments.push((SegmentId(row.try_get(0)?), span));
    }
    Ok(segments)
}

fn is_unchanged(one: &Joined, seen: &[(SegmentId, Span)], locked: &Locked) -> bool {
    let is_so = |id: &SegmentId| {
        let span = seen.iter().find(|(known, _)| known == id).map(|(_, span)| *span);
        locked.get(id).is_some_and(|row| row.lease.status == SegmentStatus::Sealed && Some(row.span) == span)
    };
    is_so(&one.survivor) && one.gone.iter().all(is_so)
}

const GONE: &str = "UNNEST($1, $2) AS j (survivor, gone)";

async fn join(db: &Db, found: &[Joined]) -> Sql<()> {
    let pairs = found.iter().flat_map(|one| one.gone.iter().map(|gone| (one.survivor.0, gone.0)));
    let (survivors, gone): (Vec<_>, Vec<_>) = pairs.unzip();
    let pairs: [Param<'_>; 2] = [(&survivors, Type::INT8_ARRAY), (&gone, Type::INT8_ARRAY)];
    let hand_over =
        format!("UPDATE ingest_exceptions AS e SET segment_id = j.survivor FROM {GONE} WHERE e.segment_id = j.gone");
    let add_up = format!(
        "WITH sums AS (
             SELECT j.survivor, sum(g.stored_count)::bigint AS stored, sum(g.unresolved_count)::bigint AS unresolved,
                 sum(g.seen_count)::bigint AS seen, sum(g.changed_count)::bigint AS changed,
                 max(g.attempts) AS attempts, min(g.started_at) AS started_at, max(g.sealed_at) AS sealed_at,
                 max(g.last_error) AS last_error
             FROM {GONE} JOIN ingest_segments AS g ON g.segment_id = j.gone GROUP BY j.survivor
         )
         UPDATE ingest_segments AS s SET stored_count = s.stored_count + sums.stored,
             unresolved_count = s.unresolved_count + sums.unresolved, seen_count = s.seen_count + sums.seen,
             changed_count = s.changed_count + sums.changed, attempts = GREATEST(s.attempts, sums.attempts),
             started_at = LEAST(s.started_at, sums.started_at), sealed_at = GREATEST(s.sealed_at, sums.sealed_at),
             last_error = COALESCE(s.last_error, sums.last_error)
         FROM sums WHERE s.segment_id = sums.survivor"
    );
    db.execute(&hand_over, &pairs).await?;
    db.execute(&add_up, &pairs).await?;
    db.execute("DELETE FROM ingest_segments WHERE segment_id = ANY($1)", &pairs[1..]).await?;
    stretch(db, found).await
}

async fn stretch(db: &Db, found: &[Joined]) -> Sql<()> {
    let update = "
        UPDATE ingest_segments AS s SET start_pos = n.start_pos, end_pos = n.end_pos, scan_cursor = n.end_pos
        FROM UNNEST($1, $2, $3) AS n (id, start_pos, end_pos) WHERE s.segment_id = n.id";
    let ids: Vec<_> = found.iter().map(|one| one.survivor.0).collect();
    let starts: Vec<_> = found.iter().map(|one| one.span.start().0).collect();
    let ends: Vec<_> = found.iter().map(|one| one.span.end().0).collect();
    let params: [Param<'_>; 3] = [(&ids, Type::INT8_ARRAY), (&starts, Type::INT8_ARRAY), (&ends, Type::INT8_ARRAY)];
    db.execute(update, &params).await?;
    Ok(())
}
