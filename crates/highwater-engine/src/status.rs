//! How far a mirror is, as plain numbers for people and scripts.

use highwater_core::{BadName, ExceptionState, Position, SegmentStatus, SourceName, Span, StreamId, Timestamp};
use highwater_sources::StreamSpec;
use highwater_store::{Counts, Outlook, Result, Store, StreamRow};

use crate::{Engine, error};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamStatus {
    pub source: SourceName,
    pub stream: String,
    pub axis: String,
    pub origin: Position,
    pub frontier: Position,
    pub target: Position,
    pub stored: u64,
    pub counts: Counts,
    pub next_retry_at: Option<Timestamp>,
    /// The frontier has reached the target, nothing waits for a retry and nothing is a dead letter.
    pub complete: bool,
}

impl StreamStatus {
    pub fn id(&self) -> std::result::Result<StreamId, BadName> {
        Ok(StreamId { source: self.source.clone(), stream: self.stream.parse()? })
    }

    pub fn exceptions(&self, state: ExceptionState) -> u64 {
        self.counts.exceptions_in(state)
    }

    pub fn segments(&self, status: SegmentStatus) -> u64 {
        self.counts.segments_in(status)
    }

    /// A stream the store has never heard of.
    pub(crate) fn unknown(id: &StreamId, spec: &StreamSpec) -> StreamStatus {
        let span = Span::new(spec.origin, spec.origin);
        let row = StreamRow { id: id.clone(), axis: spec.axis.into(), span, frontier: spec.origin, stored: 0 };
        StreamStatus::new(row, Counts::default(), &Outlook::default())
    }

    fn new(row: StreamRow, counts: Counts, outlook: &Outlook) -> StreamStatus {
        let open = counts.exceptions_in(ExceptionState::RetryWait) + counts.exceptions_in(ExceptionState::DeadLetter);
        let retries = [outlook.next_retry_at, outlook.next_unpublished_at];
        StreamStatus {
            source: row.id.source,
            stream: row.id.stream.to_string(),
            axis: row.axis,
            origin: row.span.start(),
            frontier: row.frontier,
            target: row.span.end(),
            stored: row.stored,
            complete: !row.span.is_empty() && row.frontier >= row.span.end() && open == 0,
            next_retry_at: retries.into_iter().flatten().min(),
            counts,
        }
    }
}

/// The status of every stream in the store of which anything is to be mirrored, in order of source and stream.
pub async fn store_status(store: &dyn Store) -> Result<Vec<StreamStatus>> {
    let mut all = Vec::new();
    for row in store.streams().await?.into_iter().filter(|row| !row.span.is_empty()) {
        all.push(row_status(store, row).await?);
    }
    Ok(all)
}

/// As `store_status`, of one source.
pub async fn stream_statuses(store: &dyn Store, source: &SourceName) -> Result<Vec<StreamStatus>> {
    let mut all = Vec::new();
    for row in store.streams().await?.into_iter().filter(|row| !row.span.is_empty() && row.id.source == *source) {
        all.push(row_status(store, row).await?);
    }
    Ok(all)
}

pub(crate) async fn row_status(store: &dyn Store, row: StreamRow) -> Result<StreamStatus> {
    let counts = store.counts(&row.id).await?;
    let outlook = store.outlook(&row.id).await?;
    Ok(StreamStatus::new(row, counts, &outlook))
}

impl Engine {
    pub(crate) async fn stream_status(&self, spec: &StreamSpec) -> error::Result<StreamStatus> {
        let id = self.stream_id(spec);
        let row = self.steady(|| self.store.open_stream(&id, spec.axis)).await?;
        Ok(self.steady(|| row_status(&*self.store, row.clone())).await?)
    }
}
