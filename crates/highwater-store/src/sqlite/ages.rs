//! How old objects were when they were found changed, counted.

use highwater_core::{AgeCounts, StreamId};
use rusqlite::{Connection, params};

use super::error::Sql;

pub(super) fn add(db: &Connection, stream: &StreamId, ages: &AgeCounts) -> Sql<()> {
    for (class, count) in (0i64..).zip(ages.0).filter(|(_, count)| *count > 0) {
        db.prepare_cached(
            "INSERT INTO ingest_ages (source, stream, class, changed) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (source, stream, class) DO UPDATE SET changed = changed + excluded.changed",
        )?
        .execute(params![stream.source.as_str(), stream.stream.as_str(), class, count.cast_signed()])?;
    }
    Ok(())
}

pub(super) fn read(db: &Connection, stream: &StreamId) -> Sql<AgeCounts> {
    let mut select = db.prepare_cached("SELECT class, changed FROM ingest_ages WHERE source = ?1 AND stream = ?2")?;
    let mut rows = select.query([stream.source.as_str(), stream.stream.as_str()])?;
    let mut ages = AgeCounts::default();
    while let Some(row) = rows.next()? {
        let class = usize::try_from(row.get::<_, i64>(0)?).unwrap_or(usize::MAX);
        if let Some(count) = ages.0.get_mut(class) {
            *count = row.get::<_, i64>(1)?.cast_unsigned();
        }
    }
    Ok(ages)
}
