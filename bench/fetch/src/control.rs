//! What a run does in the store besides its rows: segments planned, claimed, committed to and closed.

use std::{fs, path::Path, sync::Arc, time::Duration};

use anyhow::Context;
use futures_util::future::try_join_all;
use highwater_core::{DeadLetterPolicy, Position, Purpose, Span, StreamId, WorkerId};
use highwater_sources::Clock;
use highwater_store::{Claim, Claimed, Close, Commit, Durability, OpenOptions, Plan, SqliteStore, Store, Wanted};

/// As the engine has them for Hacker News.
const SEGMENT: u64 = 1_000;
const JOBS_A_SEGMENT: i64 = 10;
const CLAIMED_AT_ONCE: u32 = 16;

/// Processor seconds of the control plane of `items` items.
pub(crate) fn measure(path: &Path, items: u32) -> anyhow::Result<f64> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // A run waits for the disk because of its rows; the control plane goes along in the same transactions.
    let options = OpenOptions { durability: Durability::Off, ..OpenOptions::new(path) };
    let store = SqliteStore::open(options)?;
    let before = processor_seconds()?;
    runtime.block_on(run(&store, items))?;
    Ok(processor_seconds()? - before)
}

async fn run(store: &SqliteStore, items: u32) -> anyhow::Result<()> {
    let stream: StreamId = StreamId { source: "hn".parse()?, stream: "items".parse()? };
    let owner = WorkerId::new("bench");
    let clock = Clock::system();
    store.open_stream(&stream, "id").await?;
    let span = Span::new(Position(1), Position(1 + i64::from(items)));
    store
        .plan(Plan { stream: &stream, purpose: Purpose::Catchup, span, segment_size: SEGMENT, bare_until: None })
        .await?;
    loop {
        let claim = Claim {
            wanted: Wanted::Anything,
            stream: &stream,
            owner: &owner,
            limit: CLAIMED_AT_ONCE,
            lease_ttl: Duration::from_secs(30),
            now: clock.now(),
        };
        let claimed = store.claim(claim).await?;
        if claimed.is_empty() {
            return Ok(());
        }
        try_join_all(claimed.iter().map(|segment| work(store, &stream, segment, &clock))).await?;
    }
}

async fn work(store: &SqliteStore, stream: &StreamId, segment: &Claimed, clock: &Clock) -> anyhow::Result<()> {
    let commit = |job: i64| {
        store.commit(Arc::new(Commit {
            edits: Vec::new(),
            lease: segment.lease.clone(),
            stream: stream.clone(),
            now: clock.now(),
            asked_at: clock.now(),
            unchanged: Vec::new(),
            records: Vec::new(),
            settlements: Vec::new(),
            cursor: Some(Position(segment.span.start().0 + job)),
        }))
    };
    try_join_all((1..=JOBS_A_SEGMENT).map(commit)).await?;
    let close = Close {
        lease: segment.lease.clone(),
        stream: stream.clone(),
        policy: DeadLetterPolicy::Hold,
        dense: None,
        now: clock.now(),
    };
    store.close(close).await?;
    Ok(())
}

/// Of this process so far, user and kernel.
fn processor_seconds() -> anyhow::Result<f64> {
    const NANOS: f64 = 1e9;
    let mut nanos = 0.0;
    for task in fs::read_dir("/proc/self/task")? {
        let stat = fs::read_to_string(task?.path().join("schedstat"))?;
        let running: f64 = stat.split_whitespace().next().context("an empty schedstat")?.parse()?;
        nanos += running;
    }
    Ok(nanos / NANOS)
}
