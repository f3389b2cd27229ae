//! Rows a second through the PostgreSQL store, on a durable server of its own: jobs of a hundred rows, forty at a time.
//! Also what one connection gets that inserts the same rows in the same batches and does nothing else.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the measurement")]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use highwater_core::{Record, Timestamp, Value};
use highwater_pg_server::{Durability, Server};
use highwater_store::{
    Claimed, Commit, PostgresOptions, PostgresStore,
    suite::{Lab, Scene, item, scene::at},
};

const TOTAL: i64 = 200_000;
const BATCH: i64 = 1_000;

/// Like a comment: about half a kilobyte, now and then with answers.
fn comment(id: i64) -> Record {
    let text = format!("{id} ").repeat(20 + usize::try_from(id % 60).unwrap());
    let kids: Vec<_> = (1..=id % 3).map(|kid| id + kid).collect();
    item(id, &text, &kids)
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let server = Server::start(Durability::Full).unwrap();
    let bare = bare(&server).await;
    println!("{:<12} {bare:>8.0} rows/s", "bare insert");
    let store = Arc::new(PostgresStore::open(PostgresOptions::new(server.url())).await.unwrap());
    let lab = Lab { store, query: Box::new(|_| Box::pin(async { Vec::new() })) };
    let scene = Scene::planned(lab, 0, TOTAL, 1_000).await;
    let claimed = scene.claim("worker", 1_000, at(0)).await;
    for (name, now) in [("new", at(0)), ("replayed", at(0)), ("refetched", at(60)), ("again", at(120))] {
        let rate = rate(write(&scene, &claimed, now)).await;
        println!("{name:<12} {rate:>8.0} rows/s, {:.2} of the bare insert", rate / bare);
    }
    println!("{:<12} {:>8.0} a second, by eight", "claims", claims(&server).await);
}

/// One segment a claim, of sixty thousand.
async fn claims(server: &Server) -> f64 {
    const EACH: u32 = 500;
    let url = format!("{}?schema=claims", server.url());
    let open = || async { Arc::new(PostgresStore::open(PostgresOptions::new(&url)).await.unwrap()) };
    let lab = || async { Lab { store: open().await, query: Box::new(|_| Box::pin(async { Vec::new() })) } };
    Scene::planned(lab().await, 0, 60_000, 1).await;
    let mut scenes = Vec::new();
    for _ in 0..8 {
        scenes.push(Scene::new(lab().await).await);
    }
    let claimers = scenes.iter().map(|scene| async move {
        for _ in 0..EACH {
            scene.claim_one(at(0)).await;
        }
    });
    let rate = rate(async { drop(join_all(claimers).await) }).await;
    rate / TOTAL as f64 * f64::from(8 * EACH)
}

async fn rate(work: impl Future<Output = ()>) -> f64 {
    #[expect(clippy::disallowed_methods, reason = "a server lives in real time")]
    let start = Instant::now();
    work.await;
    let taken: Duration = start.elapsed();
    TOTAL as f64 / taken.as_secs_f64()
}

async fn write(scene: &Scene, claimed: &[Claimed], now: Timestamp) {
    let jobs = claimed.iter().flat_map(|segment| {
        let (start, end) = (segment.span.start().0, segment.span.end().0);
        (start..end).step_by(100).map(move |first| (segment.lease.clone(), first))
    });
    let jobs: Vec<_> = jobs.collect();
    for wave in jobs.chunks(40) {
        let commits = wave.iter().map(|(lease, first)| {
            let commit = scene.commit_of(lease, (*first..first + 100).map(comment).collect(), vec![]);
            scene.store().commit(Arc::new(Commit { now, ..commit }))
        });
        for outcome in join_all(commits).await {
            outcome.unwrap();
        }
    }
}

/// The ceiling: no leases, no edges, no counters.
async fn bare(server: &Server) -> f64 {
    let (client, connection) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
    let driver = tokio::spawn(connection);
    let table = "CREATE TABLE bare (id BIGINT PRIMARY KEY, type TEXT, by TEXT, time BIGINT, text TEXT, score BIGINT);
                 CREATE INDEX ON bare (time)";
    client.batch_execute(table).await.unwrap();
    let insert = "INSERT INTO bare SELECT * FROM UNNEST($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::text[],
                  $6::bigint[]) ON CONFLICT (id) DO NOTHING";
    let rate = rate(async {
        for first in (0..TOTAL).step_by(usize::try_from(BATCH).unwrap()) {
            let rows: Vec<_> = (first..first + BATCH).map(comment).collect();
            let numbers = |index: usize| rows.iter().map(|row| number(&row.body.values[index])).collect::<Vec<_>>();
            let texts = |index: usize| rows.iter().map(|row| text(&row.body.values[index])).collect::<Vec<_>>();
            let (ids, types, by) = (numbers(0), texts(1), texts(2));
            let (times, bodies, scores) = (numbers(3), texts(5), numbers(6));
            client.execute(insert, &[&ids, &types, &by, &times, &bodies, &scores]).await.unwrap();
        }
    });
    let rate = rate.await;
    client.batch_execute("DROP TABLE bare").await.unwrap();
    drop(client);
    driver.await.unwrap().unwrap();
    rate
}

fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        _ => None,
    }
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}
