//! What a PostgreSQL server can do at most, and how fast segments are claimed on it.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, ensure};
use futures_util::future::try_join_all;
use highwater_core::{Lease, Position, Purpose, Span, StreamId, WorkerId};
use highwater_sources::Clock;
use highwater_store::{Claim, Plan, PostgresOptions, PostgresStore, Store, Wanted};
use serde::Serialize;

const BATCH: usize = 1_000;
const CLAIMERS: usize = 8;
const CLAIMS_EACH: usize = 200;
/// The stores take turns of about a second, so that a slow moment of the machine meets both.
const TURNS: usize = 9;
/// Leases whose heartbeats wear the table down.
const WORN: u32 = 1_000;

/// Claims a second, by turn.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Claims {
    fresh: Vec<f64>,
    worn: Vec<f64>,
}

/// Leaves a server as if the schema had never been: what it still has to do about it would weigh on the next run.
pub(crate) fn sweep(url: &str, schema: &str) -> anyhow::Result<()> {
    runtime()?.block_on(async {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
        let sweep = async {
            client.batch_execute(&format!("DROP SCHEMA IF EXISTS {schema} CASCADE")).await?;
            client.batch_execute("CHECKPOINT").await?;
            anyhow::Ok(())
        };
        tokio::select! {
            ended = connection => {
                ended?;
                anyhow::bail!("the server closed the connection")
            }
            swept = sweep => swept,
        }
    })
}

/// Rows a second of one connection that upserts batches of arrays and does nothing else.
pub(crate) fn ceiling(url: &str, rows: u64) -> anyhow::Result<f64> {
    runtime()?.block_on(async {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
        let clock = Clock::system();
        tokio::select! {
            ended = connection => {
                ended?;
                anyhow::bail!("the server closed the connection")
            }
            rate = upsert(&client, rows, &clock) => rate,
        }
    })
}

async fn upsert(client: &tokio_postgres::Client, rows: u64, clock: &Clock) -> anyhow::Result<f64> {
    let table = "CREATE TABLE bare (id BIGINT PRIMARY KEY, type TEXT, by TEXT, time BIGINT, text TEXT, score BIGINT);
                 CREATE INDEX ON bare (time)";
    client.batch_execute(table).await?;
    let insert = "INSERT INTO bare SELECT * FROM UNNEST($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::text[],
                  $6::bigint[]) ON CONFLICT (id) DO UPDATE SET text = EXCLUDED.text WHERE bare.text <> EXCLUDED.text";
    let insert = client.prepare(insert).await?;
    let ids: Vec<i64> = (1..=i64::try_from(rows)?).collect();
    let started = clock.moment();
    for ids in ids.chunks(BATCH) {
        let (types, by) = (vec!["comment"; ids.len()], vec!["somebody"; ids.len()]);
        let texts: Vec<_> = ids.iter().map(|id| text(*id)).collect();
        let scores = vec![1_i64; ids.len()];
        client.execute(&insert, &[&ids, &types, &by, &ids, &texts, &scores]).await?;
    }
    let seconds = clock.moment().since(started).as_secs_f64();
    client.batch_execute("DROP TABLE bare").await?;
    Ok(rows as f64 / seconds)
}

/// Like a comment: a few hundred characters.
fn text(id: i64) -> String {
    format!("{id} ").repeat(20 + id.unsigned_abs() as usize % 60)
}

/// Claims a second by eight claimers, one segment each, of a table as it was made and of one updated so many times.
pub(crate) fn claims(fresh: &str, worn: &str, segments: u32, updates: u32) -> anyhow::Result<Claims> {
    ensure!(segments as usize >= CLAIMERS * CLAIMS_EACH, "too few segments");
    runtime()?.block_on(async {
        let stream = StreamId { source: "hn".parse()?, stream: "items".parse()? };
        let clock = Clock::system();
        let fresh = planned(fresh, &stream, segments).await?;
        let worn = planned(worn, &stream, segments).await?;
        wear(worn.first().context("there is a claimer")?, &stream, &clock, updates).await?;
        let mut claims = Claims::default();
        for turn in 0..TURNS {
            if turn % 2 == 0 {
                claims.fresh.push(claim_all(&fresh, &stream, &clock).await?);
                claims.worn.push(claim_all(&worn, &stream, &clock).await?);
            } else {
                claims.worn.push(claim_all(&worn, &stream, &clock).await?);
                claims.fresh.push(claim_all(&fresh, &stream, &clock).await?);
            }
        }
        Ok(claims)
    })
}

/// A store for each claimer, of the same segments.
async fn planned(url: &str, stream: &StreamId, segments: u32) -> anyhow::Result<Vec<Arc<PostgresStore>>> {
    let mut stores = Vec::new();
    for _ in 0..CLAIMERS {
        stores.push(Arc::new(PostgresStore::open(PostgresOptions::new(url)).await?));
    }
    let store = stores.first().context("there is a claimer")?;
    store.open_stream(stream, "id").await?;
    let span = Span::new(Position(1), Position(1 + i64::from(segments)));
    store.plan(Plan { stream, purpose: Purpose::Catchup, span, segment_size: 1, bare_until: None }).await?;
    Ok(stores)
}

async fn claim_all(stores: &[Arc<PostgresStore>], stream: &StreamId, clock: &Clock) -> anyhow::Result<f64> {
    let started = clock.moment();
    let claimers = stores.iter().enumerate().map(|(number, store)| async move {
        let owner = WorkerId::new(&format!("claimer {number}"));
        let mut leases = Vec::with_capacity(CLAIMS_EACH);
        for _ in 0..CLAIMS_EACH {
            leases.extend(claim(store, stream, &owner, 1, clock).await?);
        }
        ensure!(leases.len() == CLAIMS_EACH, "nothing left to claim");
        anyhow::Ok(leases)
    });
    let leases = try_join_all(claimers).await?;
    let seconds = clock.moment().since(started).as_secs_f64();
    // The next ones find as much at work as these did: nothing.
    for (store, leases) in stores.iter().zip(&leases) {
        store.release(leases).await?;
    }
    Ok((CLAIMERS * CLAIMS_EACH) as f64 / seconds)
}

async fn claim(
    store: &PostgresStore,
    stream: &StreamId,
    owner: &WorkerId,
    limit: u32,
    clock: &Clock,
) -> anyhow::Result<Vec<Lease>> {
    let claim = Claim {
        stream,
        owner,
        limit,
        wanted: Wanted::Anything,
        lease_ttl: Duration::from_secs(3600),
        now: clock.now(),
    };
    Ok(store.claim(claim).await?.into_iter().map(|claimed| claimed.lease).collect())
}

async fn wear(store: &PostgresStore, stream: &StreamId, clock: &Clock, updates: u32) -> anyhow::Result<()> {
    let leases = claim(store, stream, &WorkerId::new("wearer"), WORN, clock).await?;
    for _ in 0..updates.div_ceil(WORN) {
        let lost = store.heartbeat(&leases, clock.now()).await?;
        ensure!(lost.is_empty(), "leases were lost");
    }
    store.release(&leases).await?;
    Ok(())
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}
