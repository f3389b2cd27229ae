//! Proves how complete a mirror is: its own books first, then a comparison with the remote. Repairs nothing.

mod again;
mod books;
mod names;
mod record;
mod remote;
pub(crate) mod rows;
mod seals;
mod snapshot;

use highwater_core::{ExceptionState, Key, Span, Timestamp};
use highwater_sources::{Density, Following, News, StreamSpec};
use highwater_store::{ChainCheck, Page};

use crate::{Engine, StreamStatus, error::Result};
use seals::Seals;

/// How many keys are compared with the remote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sample {
    /// All keys up to ten thousand, a sample of ten thousand above.
    #[default]
    Auto,
    Count(u64),
    All,
}

const AUTO_SAMPLE: u64 = 10_000;
/// Examples named per stream.
pub const EXAMPLES_MAX: usize = 100;

/// What was found wrong with a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub key: Key,
    pub kind: FindingKind,
    pub detail: String,
}

highwater_core::word! {
    pub enum FindingKind {
        /// A row that is not what was stored, or not what the remote has.
        Differs = "differs",
        /// A key without a row and without an explanation.
        Unexplained = "unexplained",
        /// The remote gave no usable answer, so nothing was compared.
        Unchecked = "unchecked",
    }
}

#[derive(Clone, Debug)]
pub struct StreamVerdict {
    pub status: StreamStatus,
    /// Keys compared with the remote.
    pub checked: u64,
    /// Rows found in the span, and keys explained by an exception.
    pub stored: u64,
    pub missing: u64,
    pub excluded: u64,
    pub dead_letters: u64,
    pub retrying: u64,
    /// Positions nobody has worked on yet.
    pub pending: u64,
    /// Segments behind the frontier that are at work again, because dead letters in them were replayed.
    pub reopened: u64,
    pub differs: u64,
    pub unexplained: u64,
    pub unchecked: u64,
    /// Rows whose mutable fields have moved at the remote since they were fetched.
    pub moved: u64,
    /// Rows the remote no longer has.
    pub vanished: u64,
    /// Contents outside the database whose hash was checked.
    pub blobs: u64,
    /// SHA-256 over the names and checksums of all rows, where all of them were read: equal mirrors have equal ones.
    pub digest: Option<String>,
    pub examples: Vec<Finding>,
    /// What is wrong with segments, frontier or counts.
    pub book_errors: Vec<String>,
    pub complete: bool,
    /// Which command fetches what is wrong again.
    pub follows: Following,
    /// What segments of the catch-up say is sealed.
    sealed: Vec<Span>,
}

impl StreamVerdict {
    fn new(status: StreamStatus, follows: Following) -> Self {
        StreamVerdict {
            follows,
            checked: 0,
            stored: 0,
            missing: status.exceptions(ExceptionState::Missing),
            excluded: status.exceptions(ExceptionState::Excluded),
            dead_letters: status.exceptions(ExceptionState::DeadLetter),
            retrying: status.exceptions(ExceptionState::RetryWait),
            pending: 0,
            reopened: 0,
            differs: 0,
            unexplained: 0,
            unchecked: 0,
            moved: 0,
            vanished: 0,
            blobs: 0,
            digest: None,
            examples: Vec::new(),
            book_errors: Vec::new(),
            complete: false,
            sealed: Vec::new(),
            status,
        }
    }

    fn found(&mut self, key: Key, kind: FindingKind, detail: impl Into<String>) {
        let count = match kind {
            FindingKind::Differs => &mut self.differs,
            FindingKind::Unexplained => &mut self.unexplained,
            FindingKind::Unchecked => &mut self.unchecked,
        };
        *count += 1;
        if self.examples.len() < EXAMPLES_MAX {
            self.examples.push(Finding { key, kind, detail: detail.into() });
        }
    }

    /// Whether nothing is wrong with it. What only `serve` mirrors is complete when it has had the time.
    fn holds(&self) -> bool {
        let is_sound = self.differs + self.unexplained == 0 && self.book_errors.is_empty();
        self.complete || (self.follows == Following::Serve && is_sound)
    }

    fn conclude(&mut self) {
        let troubles = self.differs + self.unexplained + self.unchecked + self.pending + self.reopened;
        self.complete = self.status.complete && troubles == 0 && self.book_errors.is_empty();
    }
}

#[derive(Clone, Debug)]
pub struct VerifyReport {
    pub streams: Vec<StreamVerdict>,
    pub ledger_lines: i64,
    pub ledger_error: Option<String>,
    pub verified_at: Timestamp,
}

impl VerifyReport {
    pub fn is_complete(&self) -> bool {
        self.ledger_error.is_none() && self.streams.iter().all(StreamVerdict::holds)
    }
}

impl Engine {
    pub async fn verify(&self, sample: Sample) -> Result<VerifyReport> {
        // Who was asked for silence before asks no more than a sync does.
        let pause = self.store.pause(&self.name, self.now()).await?;
        self.source.gateway().adopt(1.0, News::None, pause);
        let verified = self.counted("verify", self.verify_all(sample)).await;
        self.source.sign_off().await;
        verified
    }

    async fn verify_all(&self, sample: Sample) -> Result<VerifyReport> {
        let mut streams = Vec::new();
        for spec in self.source.streams() {
            // What nobody has served yet is no part of the mirror.
            if spec.follows == Following::Sync || again::stream(self, spec).await?.is_some() {
                streams.push(self.verify_stream(spec, sample).await?);
            }
        }
        // After the segments: what was sealed before they were read has a line by then.
        let (ledger_lines, seals, ledger_error) = self.verify_ledger().await?;
        for verdict in streams.iter_mut().filter(|_| ledger_error.is_none()) {
            if let Some(untold) = seals.first_untold(&verdict.status.stream, &verdict.sealed) {
                verdict.book_errors.push(format!("{untold} is sealed, and no line of the ledger says so"));
                verdict.conclude();
            }
        }
        Ok(VerifyReport { streams, ledger_lines, ledger_error, verified_at: self.now() })
    }

    async fn verify_stream(&self, spec: &StreamSpec, sample: Sample) -> Result<StreamVerdict> {
        let Some(row) = again::stream(self, spec).await? else {
            let unknown = StreamStatus::unknown(&self.stream_id(spec), spec);
            return Ok(StreamVerdict::new(unknown, spec.follows));
        };
        let status = crate::status::row_status(&*self.store, row).await?;
        let mut verdict = StreamVerdict::new(status, spec.follows);
        let exceptions = books::audit(self, spec, &mut verdict).await?;
        if let Density::Snapshot(renewal) = spec.density {
            snapshot::compare(self, spec, renewal, &exceptions, &mut verdict).await?;
            verdict.conclude();
            return Ok(verdict);
        }
        match self.source.changes() {
            Some(changes) => record::compare(self, spec, changes, &exceptions, &mut verdict).await?,
            None => remote::compare(self, spec, sample, &exceptions, &mut verdict).await?,
        }
        verdict.conclude();
        Ok(verdict)
    }

    async fn verify_ledger(&self) -> Result<(i64, Seals, Option<String>)> {
        let (mut check, mut seals) = (ChainCheck::default(), Seals::default());
        loop {
            let page = Page { after: Some(check.lines()), limit: 1000 };
            let lines = self.store.ledger(&self.name, page).await?;
            if lines.is_empty() {
                return Ok((check.lines(), seals, None));
            }
            for line in &lines {
                if let Err(broken) = check.add(line) {
                    return Ok((check.lines(), seals, Some(broken.to_string())));
                }
                seals.note(line);
            }
        }
    }
}
