//! What the jobs of a group bring, behind a check of each lease: rows, verdicts, cursors, ledger lines; one transaction.
//!
//! Locks are taken in one order by everybody: segments from the lowest up, rows by table and key, the stream's row, the
//! chain of the ledger. The last two are held for little more than the commit itself.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::{try_join, try_join3};
use highwater_core::{BatchCounts, StreamId, Timestamp};
use tokio_postgres::types::Type;

use super::{
    error::{Fault, Sql},
    exceptions::{self, Place},
    ledger,
    link::Db,
    rows,
    segments::{self, Locked},
    settle::Settling,
    streams,
};
use crate::{
    Commit, StoreError,
    rules::{SegmentRow, Stored},
};

/// What became of each job. An `Err` inside concerns that job alone, and nothing of it was written.
pub(super) type Answers = Vec<Result<BatchCounts, StoreError>>;

pub(super) async fn commit(db: &Db, jobs: &[&Commit]) -> Sql<Answers> {
    let places = settled(jobs);
    let ((), seen) = try_join(db.begin(), exceptions::find(db, &places)).await?;
    let mut ids: BTreeSet<_> = jobs.iter().map(|job| job.lease.segment).collect();
    ids.extend(seen.iter().map(|(_, exception)| exception.segment));
    // Seen again behind the locks: from here on nobody else changes them.
    let (locked, seen) = try_join(segments::lock(db, &ids), exceptions::find(db, &places)).await?;
    if seen.iter().any(|(_, exception)| !ids.contains(&exception.segment)) {
        return Err(Fault::Raced);
    }
    let admitted: Vec<_> = jobs.iter().map(|job| held(&locked, job)).collect();
    let sound: Vec<_> = jobs.iter().zip(&admitted).filter(|(_, held)| held.is_ok()).map(|(job, _)| *job).collect();
    let stored = rows::store(db, &sound).await?;
    let mut settling = Settling::new(&locked, seen);
    let mut counts = Vec::with_capacity(sound.len());
    for (job, stored) in sound.iter().zip(&stored) {
        let mut count = BatchCounts {
            new: stored.new,
            changed: stored.changed,
            unchanged: stored.unchanged,
            ..BatchCounts::default()
        };
        settling.settle(job, &mut count)?;
        counts.push(count);
    }
    finish(db, &sound, &stored, &settling).await?;
    let mut counts = counts.into_iter();
    Ok(admitted.into_iter().map(|held| held.map(|()| counts.next().expect("one for each sound job"))).collect())
}

fn settled(jobs: &[&Commit]) -> Vec<Place> {
    let places = jobs
        .iter()
        .flat_map(|job| job.settlements.iter().map(|settlement| (job.stream.clone(), settlement.key.clone())));
    places.collect::<BTreeSet<_>>().into_iter().collect()
}

fn held(locked: &Locked, job: &Commit) -> Result<(), StoreError> {
    SegmentRow::held(locked.get(&job.lease.segment).cloned(), &job.lease)?;
    Ok(())
}

/// Everything but the rows, and the end.
async fn finish(db: &Db, jobs: &[&Commit], stored: &[Stored], settling: &Settling<'_>) -> Sql<()> {
    if jobs.is_empty() {
        return db.commit().await;
    }
    settling.write(db).await?;
    let news = new_by_stream(jobs, stored);
    let progress = Progress::of(jobs, stored);
    // The stream's row as late as can be, so that its lock is short; the ledger's chain after it, as everywhere.
    if settling.entries.is_empty() {
        try_join3(progress.write(db), streams::count_stored(db, &news), db.commit()).await?;
    } else {
        try_join(progress.write(db), streams::count_stored(db, &news)).await?;
        ledger::append(db, &settling.entries).await?;
        db.commit().await?;
    }
    Ok(())
}

fn new_by_stream<'a>(jobs: &[&'a Commit], stored: &[Stored]) -> Vec<(&'a StreamId, u64, Timestamp)> {
    let mut news: BTreeMap<&StreamId, (u64, Timestamp)> = BTreeMap::new();
    for (job, stored) in jobs.iter().zip(stored) {
        let (count, at) = news.entry(&job.stream).or_insert((0, job.now));
        *count += stored.new;
        *at = job.now.max(*at);
    }
    news.into_iter().map(|(stream, (count, at))| (stream, count, at)).collect()
}

/// How far the segments of the jobs have come: one row a segment, as arrays.
#[derive(Default)]
struct Progress<'a> {
    ids: Vec<i64>,
    news: Vec<i64>,
    errors: Vec<Option<&'a str>>,
    cursors: Vec<Option<i64>>,
}

impl<'a> Progress<'a> {
    fn of(jobs: &[&'a Commit], stored: &[Stored]) -> Self {
        let mut segments: BTreeMap<i64, (u64, Option<&str>, Option<i64>)> = BTreeMap::new();
        for (job, stored) in jobs.iter().zip(stored) {
            let (new, error, cursor) = segments.entry(job.lease.segment.0).or_default();
            *new += stored.new;
            *error = job.settlements.iter().rev().find_map(|one| one.last_error.as_deref()).or(*error);
            *cursor = (*cursor).max(job.cursor.map(|cursor| cursor.0));
        }
        let mut progress = Progress::default();
        for (id, (new, error, cursor)) in segments {
            progress.ids.push(id);
            progress.news.push(new.cast_signed());
            progress.errors.push(error);
            progress.cursors.push(cursor);
        }
        progress
    }

    /// The cursor never goes back: jobs of a segment may commit in any order.
    async fn write(&self, db: &Db) -> Sql<()> {
        let update = "
            UPDATE ingest_segments AS s SET stored_count = s.stored_count + done.new,
                last_error = COALESCE(done.error, s.last_error), scan_cursor = GREATEST(s.scan_cursor, done.cursor)
            FROM UNNEST($1, $2, $3, $4) AS done (id, new, error, cursor) WHERE s.segment_id = done.id
              AND (done.new > 0 OR done.error IS NOT NULL OR done.cursor IS NOT NULL)";
        let params = [
            (&self.ids as _, Type::INT8_ARRAY),
            (&self.news as _, Type::INT8_ARRAY),
            (&self.errors as _, Type::TEXT_ARRAY),
            (&self.cursors as _, Type::INT8_ARRAY),
        ];
        db.execute(update, &params).await?;
        Ok(())
    }
}
