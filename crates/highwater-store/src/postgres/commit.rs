//! What the jobs of a group bring, behind a check of each lease: rows, verdicts, cursors, ledger lines; one transaction.
//! What the feed told has no lease, and comes along.
//!
//! Locks are taken in one order by everybody: segments from the lowest up, rows by table and key, the stream's row with
//! what is counted beside it, the chain of the ledger. The last two are held for little more than the commit itself, and
//! not at all by what only brings new rows of segments.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::{try_join, try_join3, try_join4};
use highwater_core::{AgeCounts, Exception, StreamId, Timestamp};
use tokio_postgres::types::Type;

use super::{
    ages, derived,
    edits::{self, Edited},
    error::{Fault, Sql},
    exceptions::{self, Place},
    job::Job,
    ledger,
    link::Db,
    rows::{Batch, Expected, Looked},
    segments::{self, Locked},
    settle::Settling,
    streams,
};
use crate::{
    LedgerEntry, LiveCommitted, StoreError,
    rules::{self, SegmentRow, Stored},
};

/// What became of each job. An `Err` inside concerns that job alone, and nothing of it was written.
pub(super) type Answers = Vec<Result<LiveCommitted, StoreError>>;

pub(super) async fn commit(db: &Db, jobs: &[&Job], expected: Expected) -> Sql<Answers> {
    let places = settled(jobs);
    let batch = Batch::of(db, jobs, expected);
    let (locked, seen, looked) = begin(db, jobs, &places, &batch).await?;
    let held: Vec<_> = jobs.iter().map(|job| held(&locked, job)).collect();
    let admitted: Vec<_> = held.iter().map(Result::is_ok).collect();
    let stored = batch.store(jobs, &admitted, looked).await?;
    let (sound, mut stored): (Vec<_>, Vec<_>) = jobs
        .iter()
        .zip(stored)
        .zip(&admitted)
        .filter(|(_, admitted)| **admitted)
        .map(|((job, stored), _)| (*job, stored))
        .unzip();
    let mut edited = Vec::with_capacity(sound.len());
    for (job, stored) in sound.iter().zip(&mut stored) {
        let told = edits::edit(db, job.edits(), job.now()).await?;
        stored.changed += told.edited;
        edited.push(told);
    }
    let mut settling = Settling::new(&locked, seen);
    let mut counts = Vec::with_capacity(sound.len());
    for (job, stored) in sound.iter().zip(&stored) {
        let mut batch = stored.counts();
        settling.settle(job, stored, &mut batch)?;
        counts.push(LiveCommitted { batch, ages: stored.ages, behind: stored.behind.clone() });
    }
    settling.entries.extend(noted(db, &sound, &stored, &edited).await?);
    finish(db, &sound, &stored, &settling).await?;
    let mut counts = counts.into_iter();
    Ok(held.into_iter().map(|held| held.map(|()| counts.next().expect("one for each sound job"))).collect())
}

/// Locks the segments, and looks at what the jobs will meet. Exceptions are seen again behind the locks: from there on
/// nobody else changes them.
async fn begin(
    db: &Db,
    jobs: &[&Job],
    places: &[Place],
    batch: &Batch<'_>,
) -> Sql<(Locked, Vec<(Place, Exception)>, Vec<Looked>)> {
    let mut ids: BTreeSet<_> = jobs.iter().filter_map(|job| job.lease()).map(|lease| lease.segment).collect();
    if places.is_empty() {
        let ((), locked, looked) = try_join3(db.begin(), segments::lock(db, &ids), batch.look()).await?;
        return Ok((locked, Vec::new(), looked));
    }
    let ((), seen) = try_join(db.begin(), exceptions::find(db, places)).await?;
    ids.extend(seen.iter().map(|(_, exception)| exception.segment));
    let (locked, seen, looked) =
        try_join3(segments::lock(db, &ids), exceptions::find(db, places), batch.look()).await?;
    if seen.iter().any(|(_, exception)| !ids.contains(&exception.segment)) {
        return Err(Fault::Raced);
    }
    Ok((locked, seen, looked))
}

/// What the ledger says of what is new. Derived rows of all jobs at once, so that two groups cannot wait for each other.
async fn noted(db: &Db, jobs: &[&Job], stored: &[Stored], edited: &[Edited]) -> Sql<Vec<LedgerEntry>> {
    let groups: Vec<Vec<_>> = stored
        .iter()
        .zip(edited)
        .map(|(stored, edited)| stored.groups.iter().chain(&edited.groups).collect())
        .collect();
    let mut news = derived::refresh(db, &groups.concat()).await?;
    let mut entries = Vec::new();
    for ((job, stored), groups) in jobs.iter().zip(stored).zip(&groups) {
        let derived = groups.iter().filter_map(|(table, group)| news.remove(&(table.name, group.clone())));
        let notes: Vec<_> = stored.notes.iter().cloned().chain(derived).collect();
        entries.extend(notes.into_iter().map(|note| rules::note_entry(job.stream(), note, job.now(), job.actor())));
    }
    Ok(entries)
}

fn settled(jobs: &[&Job]) -> Vec<Place> {
    jobs.iter().flat_map(|job| job.settled()).collect::<BTreeSet<_>>().into_iter().collect()
}

fn held(locked: &Locked, job: &Job) -> Result<(), StoreError> {
    if let Some(lease) = job.lease() {
        SegmentRow::held(locked.get(&lease.segment).cloned(), lease)?;
    }
    Ok(())
}

/// Everything but the rows, and the end.
async fn finish(db: &Db, jobs: &[&Job], stored: &[Stored], settling: &Settling<'_>) -> Sql<()> {
    if jobs.is_empty() {
        return db.commit().await;
    }
    settling.write(db).await?;
    let news = told_by_stream(jobs, stored);
    let progress = Progress::of(jobs, stored);
    let ages = ages_by_stream(jobs, stored);
    // The stream's row as late as can be, so that its lock is short; the ledger's chain after it, as everywhere.
    if settling.entries.is_empty() {
        try_join4(progress.write(db), streams::count_stored(db, &news), ages::add(db, &ages), db.commit()).await?;
    } else {
        try_join3(progress.write(db), streams::count_stored(db, &news), ages::add(db, &ages)).await?;
        ledger::append(db, &settling.entries).await?;
        db.commit().await?;
    }
    Ok(())
}

/// New rows that no segment counts.
fn told_by_stream<'a>(jobs: &[&'a Job], stored: &[Stored]) -> Vec<(&'a StreamId, u64, Timestamp)> {
    let mut news: BTreeMap<&StreamId, (u64, Timestamp)> = BTreeMap::new();
    for (job, stored) in jobs.iter().zip(stored).filter(|(job, _)| job.lease().is_none()) {
        let (count, at) = news.entry(job.stream()).or_insert((0, job.now()));
        *count += stored.new;
        *at = job.now().max(*at);
    }
    news.into_iter().map(|(stream, (count, at))| (stream, count, at)).collect()
}

fn ages_by_stream<'a>(jobs: &[&'a Job], stored: &[Stored]) -> BTreeMap<&'a StreamId, AgeCounts> {
    let mut ages: BTreeMap<&StreamId, AgeCounts> = BTreeMap::new();
    for (job, stored) in jobs.iter().zip(stored).filter(|(_, stored)| stored.changed > 0) {
        ages.entry(job.stream()).or_default().merge(&stored.ages.counts);
    }
    ages
}

/// How far the segments of the jobs have come: one row a segment, as arrays.
#[derive(Default)]
struct Progress<'a> {
    ids: Vec<i64>,
    news: Vec<i64>,
    seen: Vec<i64>,
    changed: Vec<i64>,
    errors: Vec<Option<&'a str>>,
    cursors: Vec<Option<i64>>,
}

#[derive(Default)]
struct Step<'a> {
    new: u64,
    seen: u64,
    changed: u64,
    error: Option<&'a str>,
    cursor: Option<i64>,
}

impl<'a> Progress<'a> {
    fn of(jobs: &[&'a Job], stored: &[Stored]) -> Self {
        let mut segments: BTreeMap<i64, Step<'_>> = BTreeMap::new();
        for (job, stored) in jobs.iter().zip(stored) {
            let Job::Segment(job) = job else { continue };
            let step = segments.entry(job.lease.segment.0).or_default();
            step.new += stored.new;
            step.seen += stored.seen();
            step.changed += stored.changed;
            step.error = job.settlements.iter().rev().find_map(|one| one.last_error.as_deref()).or(step.error);
            step.cursor = step.cursor.max(job.cursor.filter(|_| stored.behind.is_empty()).map(|cursor| cursor.0));
        }
        let mut progress = Progress::default();
        for (id, step) in segments {
            progress.ids.push(id);
            progress.news.push(step.new.cast_signed());
            progress.seen.push(step.seen.cast_signed());
            progress.changed.push(step.changed.cast_signed());
            progress.errors.push(step.error);
            progress.cursors.push(step.cursor);
        }
        progress
    }

    /// The cursor never goes back: jobs of a segment may commit in any order. Nor does it pass what is to be asked for
    /// again, which leaves nothing seen, but may have left rows.
    async fn write(&self, db: &Db) -> Sql<()> {
        let update = "
            UPDATE ingest_segments AS s SET stored_count = s.stored_count + done.new,
                uncounted = s.uncounted + done.new, seen_count = s.seen_count + done.seen,
                changed_count = s.changed_count + done.changed,
                last_error = COALESCE(done.error, s.last_error), scan_cursor = GREATEST(s.scan_cursor, done.cursor)
            FROM UNNEST($1, $2, $3, $4, $5, $6) AS done (id, new, seen, changed, error, cursor)
            WHERE s.segment_id = done.id AND (done.new + done.changed + done.seen > 0
                OR done.error IS NOT NULL OR done.cursor IS NOT NULL)";
        let params = [
            (&self.ids as _, Type::INT8_ARRAY),
            (&self.news as _, Type::INT8_ARRAY),
            (&self.seen as _, Type::INT8_ARRAY),
            (&self.changed as _, Type::INT8_ARRAY),
            (&self.errors as _, Type::TEXT_ARRAY),
            (&self.cursors as _, Type::INT8_ARRAY),
        ];
        if !self.ids.is_empty() {
            db.execute(update, &params).await?;
        }
        Ok(())
    }
}
