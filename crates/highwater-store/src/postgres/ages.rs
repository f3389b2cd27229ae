//! How old objects were when they were found changed, counted.

use std::collections::BTreeMap;

use futures_util::future::try_join3;
use highwater_core::{AgeCounts, StreamId};
use tokio_postgres::types::Type;

use super::{cells::count, error::Sql, link::Db};

/// Comes after the streams' rows are locked, so that two groups cannot wait for each other.
pub(super) async fn add(db: &Db, ages: &BTreeMap<&StreamId, AgeCounts>) -> Sql<()> {
    let counted = ages.iter().flat_map(|(stream, ages)| (0i64..).zip(ages.0).map(move |(class, n)| (stream, class, n)));
    let counted: Vec<_> = counted.filter(|(_, _, count)| *count > 0).collect();
    if counted.is_empty() {
        return Ok(());
    }
    let upsert = "
        INSERT INTO ingest_ages AS a (source, stream, class, changed) SELECT * FROM UNNEST($1, $2, $3, $4)
        ON CONFLICT (source, stream, class) DO UPDATE SET changed = a.changed + EXCLUDED.changed";
    let sources: Vec<_> = counted.iter().map(|(stream, ..)| stream.source.as_str()).collect();
    let streams: Vec<_> = counted.iter().map(|(stream, ..)| stream.stream.as_str()).collect();
    let classes: Vec<_> = counted.iter().map(|(_, class, _)| *class).collect();
    let counts: Vec<_> = counted.iter().map(|(.., count)| count.cast_signed()).collect();
    let params = [
        (&sources as _, Type::TEXT_ARRAY),
        (&streams as _, Type::TEXT_ARRAY),
        (&classes as _, Type::INT8_ARRAY),
        (&counts as _, Type::INT8_ARRAY),
    ];
    db.execute(upsert, &params).await?;
    Ok(())
}

pub(super) async fn read(db: &Db, stream: &StreamId) -> Sql<AgeCounts> {
    let select = "SELECT class, changed FROM ingest_ages WHERE source = $1 AND stream = $2";
    let (source, name) = (stream.source.as_str(), stream.stream.as_str());
    let params = [(&source as _, Type::TEXT), (&name as _, Type::TEXT)];
    let ((), rows, ()) = try_join3(db.begin(), db.query(select, &params), db.commit()).await?;
    let mut ages = AgeCounts::default();
    for row in &rows {
        let class = usize::try_from(row.try_get::<_, i64>(0)?).unwrap_or(usize::MAX);
        if let Some(changed) = ages.0.get_mut(class) {
            *changed = count(row, 1)?;
        }
    }
    Ok(ages)
}
