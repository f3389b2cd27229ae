//! Rows of keys that are not plainly stored: reading, writing many verdicts at once, counting.

use std::collections::BTreeMap;

use futures_util::future::try_join3;
use highwater_core::{Exception, History, Key, SegmentId, StreamId};
use tokio_postgres::{Row, types::Type};

use super::{
    cells::{Time, count, time, time_at, word},
    error::{Fault, Sql},
    link::Db,
};
use crate::rules::Census;

/// What `of` expects.
pub(super) const COLUMNS: &str = "item_key, segment_id, state, attempts, absences, first_absent_at, first_seen_at,
     last_tried_at, next_retry_at, reason, last_error";

pub(super) fn of(row: &Row) -> Sql<Exception> {
    let number = |index| -> Sql<u32> { Ok(u32::try_from(row.try_get::<_, i64>(index)?).unwrap_or(u32::MAX)) };
    Ok(Exception {
        key: Key::from(row.try_get::<_, &str>(0)?),
        segment: SegmentId(row.try_get(1)?),
        state: word(row, 2)?,
        history: History { attempts: number(3)?, absences: number(4)?, first_absent_at: time(row, 5)? },
        first_seen_at: time_at(row, 6)?,
        last_tried_at: time_at(row, 7)?,
        next_retry_at: time(row, 8)?,
        reason: row.try_get(9)?,
        last_error: row.try_get(10)?,
    })
}

pub(super) fn all_of(rows: &[Row]) -> Sql<Vec<Exception>> {
    rows.iter().map(of).collect()
}

/// A key of a stream.
pub(super) type Place = (StreamId, Key);

/// The exceptions of these keys.
pub(super) async fn find(db: &Db, places: &[Place]) -> Sql<Vec<(Place, Exception)>> {
    if places.is_empty() {
        return Ok(Vec::new());
    }
    let columns = COLUMNS.split(',').map(|column| format!("e.{}", column.trim())).collect::<Vec<_>>().join(", ");
    let select = format!(
        "SELECT {columns}, e.source, e.stream FROM UNNEST($1, $2, $3) AS asked (source, stream, item_key)
         JOIN ingest_exceptions AS e USING (source, stream, item_key)"
    );
    let names = Names::of(places.iter());
    let rows = db.query(&select, &names.params()).await?;
    let place_of = |row: &Row| -> Sql<(Place, Exception)> {
        let stream = StreamId {
            source: row.try_get::<_, &str>(11)?.parse().map_err(Fault::nonsense)?,
            stream: row.try_get::<_, &str>(12)?.parse().map_err(Fault::nonsense)?,
        };
        let exception = of(row)?;
        Ok(((stream, exception.key.clone()), exception))
    };
    rows.iter().map(place_of).collect()
}

struct Names<'a> {
    sources: Vec<&'a str>,
    streams: Vec<&'a str>,
    keys: Vec<String>,
}

impl<'a> Names<'a> {
    fn of(places: impl Iterator<Item = &'a Place> + Clone) -> Self {
        Names {
            sources: places.clone().map(|(id, _)| id.source.as_str()).collect(),
            streams: places.clone().map(|(id, _)| id.stream.as_str()).collect(),
            keys: places.map(|(_, key)| key.to_string()).collect(),
        }
    }

    fn params(&self) -> [super::link::Param<'_>; 3] {
        [(&self.sources, Type::TEXT_ARRAY), (&self.streams, Type::TEXT_ARRAY), (&self.keys, Type::TEXT_ARRAY)]
    }
}

/// What becomes of keys; none of them twice.
#[derive(Default)]
pub(super) struct Changes<'a> {
    pub(super) removed: Vec<&'a Place>,
    /// Keys that had an exception before.
    pub(super) updated: Vec<(&'a Place, &'a Exception)>,
    /// Keys that had none.
    pub(super) added: Vec<(&'a Place, &'a Exception)>,
}

impl Changes<'_> {
    pub(super) async fn write(&self, db: &Db) -> Sql<()> {
        try_join3(self.remove(db), self.update(db), self.add(db)).await?;
        Ok(())
    }

    async fn remove(&self, db: &Db) -> Sql<()> {
        if self.removed.is_empty() {
            return Ok(());
        }
        let delete = "DELETE FROM ingest_exceptions AS e USING UNNEST($1, $2, $3) AS gone (source, stream, item_key)
                      WHERE e.source = gone.source AND e.stream = gone.stream AND e.item_key = gone.item_key";
        db.execute(delete, &Names::of(self.removed.iter().copied()).params()).await?;
        Ok(())
    }

    async fn update(&self, db: &Db) -> Sql<()> {
        if self.updated.is_empty() {
            return Ok(());
        }
        let update = format!(
            "UPDATE ingest_exceptions AS e SET segment_id = n.segment_id, state = n.state, attempts = n.attempts,
                absences = n.absences, first_absent_at = n.first_absent_at, first_seen_at = n.first_seen_at,
                last_tried_at = n.last_tried_at, next_retry_at = n.next_retry_at, reason = n.reason,
                last_error = n.last_error
             FROM {GIVEN} WHERE e.source = n.source AND e.stream = n.stream AND e.item_key = n.item_key"
        );
        run(db, &update, &self.updated).await?;
        Ok(())
    }

    async fn add(&self, db: &Db) -> Sql<()> {
        if self.added.is_empty() {
            return Ok(());
        }
        let insert = format!(
            "INSERT INTO ingest_exceptions (source, stream, item_key, item_number, segment_id, state, attempts, absences,
                first_absent_at, first_seen_at, last_tried_at, next_retry_at, reason, last_error)
             SELECT * FROM {GIVEN} ON CONFLICT (source, stream, item_key) DO NOTHING"
        );
        let added = run(db, &insert, &self.added).await?;
        // Another segment tries the same key: whose business it is must be decided knowing both.
        if added == self.added.len() as u64 { Ok(()) } else { Err(Fault::Raced) }
    }
}

const GIVEN: &str =
    "UNNEST($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) AS n (source, stream, item_key,
    item_number, segment_id, state, attempts, absences, first_absent_at, first_seen_at, last_tried_at, next_retry_at,
    reason, last_error)";

async fn run(db: &Db, sql: &str, given: &[(&Place, &Exception)]) -> Sql<u64> {
    let Names { sources, streams, keys } = Names::of(given.iter().map(|(place, _)| *place));
    let numbers: Vec<_> = given.iter().map(|(_, e)| e.key.number()).collect();
    let segments: Vec<_> = given.iter().map(|(_, e)| e.segment.0).collect();
    let states: Vec<_> = given.iter().map(|(_, e)| e.state.as_str()).collect();
    let attempts: Vec<_> = given.iter().map(|(_, e)| i64::from(e.history.attempts)).collect();
    let absences: Vec<_> = given.iter().map(|(_, e)| i64::from(e.history.absences)).collect();
    let first_absent: Vec<_> = given.iter().map(|(_, e)| e.history.first_absent_at.map(Time)).collect();
    let first_seen: Vec<_> = given.iter().map(|(_, e)| Time(e.first_seen_at)).collect();
    let last_tried: Vec<_> = given.iter().map(|(_, e)| Time(e.last_tried_at)).collect();
    let next_retry: Vec<_> = given.iter().map(|(_, e)| e.next_retry_at.map(Time)).collect();
    let reasons: Vec<_> = given.iter().map(|(_, e)| e.reason.as_str()).collect();
    let errors: Vec<_> = given.iter().map(|(_, e)| e.last_error.as_deref()).collect();
    let params = [
        (&sources as _, Type::TEXT_ARRAY),
        (&streams as _, Type::TEXT_ARRAY),
        (&keys as _, Type::TEXT_ARRAY),
        (&numbers as _, Type::INT8_ARRAY),
        (&segments as _, Type::INT8_ARRAY),
        (&states as _, Type::TEXT_ARRAY),
        (&attempts as _, Type::INT8_ARRAY),
        (&absences as _, Type::INT8_ARRAY),
        (&first_absent as _, Type::TIMESTAMPTZ_ARRAY),
        (&first_seen as _, Type::TIMESTAMPTZ_ARRAY),
        (&last_tried as _, Type::TIMESTAMPTZ_ARRAY),
        (&next_retry as _, Type::TIMESTAMPTZ_ARRAY),
        (&reasons as _, Type::TEXT_ARRAY),
        (&errors as _, Type::TEXT_ARRAY),
    ];
    db.execute(sql, &params).await
}

/// Of rows of `segment, state, count`.
pub(super) fn census_by_segment(rows: &[Row]) -> Sql<BTreeMap<SegmentId, Census>> {
    let mut censuses: BTreeMap<SegmentId, Census> = BTreeMap::new();
    for row in rows {
        censuses.entry(SegmentId(row.try_get(0)?)).or_default().note(word(row, 1)?, count(row, 2)?);
    }
    Ok(censuses)
}
