//! Who does what for all processes of a source, by the server's clock, and the check before whatever only that one may
//! write.

use futures_util::future::{try_join, try_join3};
use highwater_core::{SourceName, Timestamp, WorkerId};
use tokio_postgres::types::Type;

use super::{cells::Time, error::Sql, link::Db};
use crate::{LISTENER, RoleAsk, rules::not_listening};

/// `now` is none for the server's clock.
pub(super) async fn take(db: &Db, ask: &RoleAsk, now: Option<Timestamp>) -> Sql<bool> {
    let upsert = "
        INSERT INTO ingest_roles AS r (source, role, owner, beat_at) VALUES ($1, $2, $3, COALESCE($4, clock_timestamp()))
        ON CONFLICT (source, role) DO UPDATE SET owner = EXCLUDED.owner, beat_at = EXCLUDED.beat_at
        WHERE r.owner = EXCLUDED.owner OR r.beat_at <= EXCLUDED.beat_at - $5 * interval '1 millisecond'";
    let params = [
        (&ask.source.as_str() as _, Type::TEXT),
        (&ask.role as _, Type::TEXT),
        (&ask.worker.as_str() as _, Type::TEXT),
        (&now.map(Time) as _, Type::TIMESTAMPTZ),
        (&(ask.ttl.as_secs_f64() * 1e3) as _, Type::FLOAT8),
    ];
    let ((), taken) = try_join(db.begin_lightly(), db.execute(upsert, &params)).await?;
    db.commit().await?;
    Ok(taken == 1)
}

pub(super) async fn give_up(db: &Db, ask: &RoleAsk) -> Sql<()> {
    let delete = "DELETE FROM ingest_roles WHERE source = $1 AND role = $2 AND owner = $3";
    let params = [
        (&ask.source.as_str() as _, Type::TEXT),
        (&ask.role as _, Type::TEXT),
        (&ask.worker.as_str() as _, Type::TEXT),
    ];
    try_join3(db.begin(), db.execute(delete, &params), db.commit()).await?;
    Ok(())
}

/// Whoever listens may write about the feed, and nobody else; nobody takes the role away until the transaction ends.
pub(super) async fn check(db: &Db, source: &SourceName, worker: &WorkerId) -> Sql<()> {
    let select = "SELECT 1 FROM ingest_roles WHERE source = $1 AND role = $2 AND owner = $3 FOR SHARE";
    let (name, owner) = (source.as_str(), worker.as_str());
    let params = [(&name as _, Type::TEXT), (&LISTENER as _, Type::TEXT), (&owner as _, Type::TEXT)];
    if db.query(select, &params).await?.is_empty() {
        return Err(not_listening(source, worker).into());
    }
    Ok(())
}
