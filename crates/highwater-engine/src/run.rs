//! A run in the books: when it began, on whose word, and how it ended.

use std::time::Duration;

use highwater_core::{BatchCounts, Downloads, ExceptionState, Timestamp};
use highwater_sources::Allowance;
use highwater_store::{DownloadNote, ErrorKind, RunEnd, RunOutcome, RunStart, RunTallies, StoreError};

use crate::{Engine, StreamStatus, error::Result};

pub(crate) struct RunLog {
    engine: Engine,
    id: String,
    command: &'static str,
    requests_before: u64,
    items: u64,
    tallies: RunTallies,
}

impl RunLog {
    pub(crate) async fn begin(engine: &Engine, command: &'static str) -> Result<RunLog> {
        let id = engine.world.entropy.id();
        let workers = engine.settings.sizes.in_flight;
        count_month(engine).await?;
        count_day(engine).await?;
        let start = RunStart { id: id.clone(), source: engine.name.clone(), command, workers, at: engine.now() };
        engine.steady(|| engine.store.begin_run(&start)).await?;
        let requests_before = engine.source.gateway().traffic().requests;
        let engine = engine.clone();
        Ok(RunLog { engine, id, command, requests_before, items: 0, tallies: RunTallies::default() })
    }

    fn requests(&self) -> u64 {
        self.engine.source.gateway().traffic().requests - self.requests_before
    }

    /// What came of a stream.
    pub(crate) fn add(&mut self, stream: &str, batch: &BatchCounts, status: &StreamStatus) {
        self.count(batch);
        self.tallies.items.insert(stream.to_owned(), batch.stored() + batch.missing + batch.excluded);
        self.tallies.errors +=
            status.exceptions(ExceptionState::RetryWait) + status.exceptions(ExceptionState::DeadLetter);
    }

    pub(crate) fn count(&mut self, batch: &BatchCounts) {
        self.items += batch.stored() + batch.missing + batch.excluded;
    }

    /// Where calls or bytes are counted over runs, a process that dies may not take its own with it.
    pub(crate) async fn keep_counting<T>(&self) -> T {
        let has_month = self.engine.source.allowance().is_some_and(Allowance::has_month);
        if !has_month && self.engine.source.gateway().budget().is_none() {
            return std::future::pending().await;
        }
        let mut told = Downloads::default();
        loop {
            self.engine.world.clock.sleep(COUNT_EVERY).await;
            // What the store does not take or tell now it does the next time.
            if has_month {
                self.engine.store.note_requests(&self.id, self.requests()).await.ok();
            }
            told = self.tell_downloads(&told).await.unwrap_or(told);
            if self.engine.store.is_shared() {
                self.hear_downloads().await.ok();
            }
        }
    }

    /// Notes what this run has downloaded, unless it is as it was told last.
    async fn tell_downloads(&self, told: &Downloads) -> Result<Downloads, StoreError> {
        let now = self.engine.now();
        let downloads = self.engine.source.gateway().budget().map(|budget| budget.own(now)).unwrap_or_default();
        if downloads != *told {
            let (source, run) = (self.engine.name.clone(), self.id.clone());
            let note = DownloadNote { source, run, downloads: downloads.clone(), now };
            self.engine.store.note_downloads(&note).await?;
        }
        Ok(downloads)
    }

    async fn hear_downloads(&self) -> Result<(), StoreError> {
        let Some(budget) = self.engine.source.gateway().budget() else { return Ok(()) };
        let since = Downloads::counted_since(self.engine.now());
        let all = self.engine.store.downloads_since(&self.engine.name, since).await?;
        let others = all.into_iter().filter(|download| download.run != self.id);
        budget.note_others(others.map(|download| (download.hour, download.bytes)).collect());
        Ok(())
    }

    pub(crate) async fn end(&mut self, outcome: RunOutcome) -> Result<()> {
        let calls = self.engine.source.allowance().map(Allowance::calls).into_iter().flatten();
        self.tallies.calls = calls.map(|(activity, calls)| (activity.as_str(), calls)).collect();
        let engine = &self.engine;
        let end = RunEnd {
            id: self.id.clone(),
            source: engine.name.clone(),
            command: self.command,
            outcome,
            items: self.items,
            requests: self.requests(),
            tallies: self.tallies.clone(),
            at: engine.now(),
        };
        match outcome {
            RunOutcome::Failed => self.note_failed(&end).await?,
            _ => {
                let told = Downloads::default();
                engine.steady(|| self.tell_downloads(&told)).await?;
                engine.steady(|| engine.store.end_run(&end)).await?;
            }
        }
        Ok(())
    }

    /// The store may be what failed, and has been waited for already. A run whose end is not noted stays `running` until
    /// the store is opened again.
    async fn note_failed(&self, end: &RunEnd) -> Result<(), StoreError> {
        tokio::select! {
            biased;
            noted = async { self.tell_downloads(&Downloads::default()).await?; self.engine.store.end_run(end).await } => noted,
            () = self.engine.world.clock.sleep(FAILED_PATIENCE) => {
                Err(StoreError::new(ErrorKind::Unavailable, "noting the end of a run that failed"))
            }
        }
    }
}

const FAILED_PATIENCE: Duration = Duration::from_secs(1);
const COUNT_EVERY: Duration = Duration::from_secs(2);

impl Engine {
    /// Calls that are bounded over runs count whatever they are made for: a run that only looks is in the books then.
    pub(crate) async fn counted<T>(&self, command: &'static str, work: impl Future<Output = Result<T>>) -> Result<T> {
        if !self.source.allowance().is_some_and(Allowance::has_month) {
            return work.await;
        }
        let mut log = RunLog::begin(self, command).await?;
        let done = tokio::select! {
            biased;
            done = work => done,
            never = log.keep_counting() => never,
        };
        log.end(if done.is_ok() { RunOutcome::Complete } else { RunOutcome::Failed }).await?;
        done
    }
}

/// What the runs of this month have spent of the operator's allowance.
async fn count_month(engine: &Engine) -> Result<()> {
    let Some(allowance) = engine.source.allowance().filter(|allowance| allowance.has_month()) else { return Ok(()) };
    let since = month_of(engine.now());
    let spent = engine.steady(|| engine.store.requests_since(&engine.name, since)).await?;
    allowance.note_before(spent);
    Ok(())
}

/// What earlier runs, and those of other processes, have downloaded within a day.
async fn count_day(engine: &Engine) -> Result<()> {
    let Some(budget) = engine.source.gateway().budget() else { return Ok(()) };
    let since = Downloads::counted_since(engine.now());
    let all = engine.steady(|| engine.store.downloads_since(&engine.name, since)).await?;
    budget.begin(all.into_iter().map(|download| (download.hour, download.bytes)).collect());
    Ok(())
}

/// When the month of a moment began, in UTC. Days since 1970 to year and month as in Hinnant's `civil_from_days`.
fn month_of(now: Timestamp) -> Timestamp {
    const DAY: i64 = 86_400_000;
    let days = now.as_millis().div_euclid(DAY);
    let shifted = days + 719_468;
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day_of_month = of_year - (153 * month_from_march + 2) / 5;
    Timestamp::from_millis((days - day_of_month) * DAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_begins_with_its_first_day() {
        let began = |seconds: i64| month_of(Timestamp::from_millis(seconds * 1000)).as_millis() / 1000;
        assert_eq!(began(1_709_210_096), 1_706_745_600, "29 February 2024");
        assert_eq!(began(1_709_251_200), 1_709_251_200, "1 March 2024");
        assert_eq!(began(1_735_689_599), 1_733_011_200, "31 December 2024");
        assert_eq!(began(0), 0);
    }
}
