//! What a verdict on a key means for the rows: whose business the key is, what is counted and told.

use highwater_core::{
    BatchCounts, Exception, ExceptionState, Purpose, SegmentId, SegmentStatus, Settlement, Timestamp, Verdict,
};
use serde_json::json;

use super::SegmentRow;
use crate::{Commit, LedgerEntry};

pub(crate) fn count(counts: &mut BatchCounts, verdict: &Verdict) {
    match verdict {
        Verdict::Stored => {}
        Verdict::Missing => counts.missing += 1,
        Verdict::Excluded => counts.excluded += 1,
        Verdict::Retry { .. } => counts.retrying += 1,
        Verdict::Dead => counts.dead += 1,
    }
}

pub(crate) fn next_retry(verdict: &Verdict) -> Option<Timestamp> {
    match verdict {
        Verdict::Retry { at } => Some(*at),
        Verdict::Stored | Verdict::Missing | Verdict::Excluded | Verdict::Dead => None,
    }
}

/// Whose business the key is from now on. A catch-up segment answers for what it tries, because the frontier relies on
/// it. A rescan takes a key over only from a segment that is done with it; and its failure to look again is no news
/// about a key whose absence was confirmed: `None`.
pub(crate) fn owner<E>(
    segment: &SegmentRow,
    before: Option<&Exception>,
    state: ExceptionState,
    status_of: impl FnOnce(SegmentId) -> Result<Option<SegmentStatus>, E>,
) -> Result<Option<SegmentId>, E> {
    let Some(before) = before.filter(|before| before.segment != segment.id) else {
        return Ok(Some(segment.id));
    };
    let is_open = |state| matches!(state, ExceptionState::RetryWait | ExceptionState::DeadLetter);
    Ok(match (segment.purpose, is_open(before.state), is_open(state)) {
        (Purpose::Catchup, _, _) => Some(segment.id),
        (Purpose::Rescan, false, true) => None,
        (Purpose::Rescan, _, false) => Some(before.segment),
        (Purpose::Rescan, true, true) => {
            let done = status_of(before.segment)?.is_none_or(|status| status == SegmentStatus::Sealed);
            Some(if done { segment.id } else { before.segment })
        }
    })
}

/// Whether an exception in this state ends when a row of its key comes in by itself. What policy keeps out stays out.
pub(crate) fn is_ended_by_row(state: ExceptionState) -> bool {
    match state {
        ExceptionState::RetryWait | ExceptionState::Missing | ExceptionState::DeadLetter => true,
        ExceptionState::Excluded => false,
    }
}

/// Another segment's keys were settled. Whoever claims it next closes it by the rules, which need the policy and the
/// table of the stream.
pub(crate) fn is_to_be_reconsidered(status: SegmentStatus) -> bool {
    matches!(status, SegmentStatus::RetryWait | SegmentStatus::DeadLetter)
}

/// A segment that nobody works on waits for its replayed keys, also one that was sealed over them. One at work, or yet
/// to be, finds them when it is closed.
pub(crate) fn status_when_replayed(status: SegmentStatus) -> Option<SegmentStatus> {
    match status {
        SegmentStatus::RetryWait | SegmentStatus::Sealed | SegmentStatus::DeadLetter => Some(SegmentStatus::RetryWait),
        SegmentStatus::Pending | SegmentStatus::InProgress => None,
    }
}

/// What the ledger says about a key that came into a new state.
pub(crate) fn ledger_entry(commit: &Commit, settlement: &Settlement) -> Option<LedgerEntry> {
    let event_type = match settlement.verdict {
        Verdict::Dead => "DEAD_LETTER",
        Verdict::Missing => "KEY_MISSING",
        Verdict::Stored | Verdict::Excluded | Verdict::Retry { .. } => return None,
    };
    let key = settlement.key.to_string();
    Some(LedgerEntry {
        at: commit.now,
        event_type,
        source: commit.stream.source.clone(),
        entity_type: "key",
        payload: json!({
            "stream": commit.stream.stream.as_str(),
            "key": key,
            "reason": settlement.reason,
            "attempts": settlement.history.attempts,
            "absences": settlement.history.absences,
        }),
        entity_id: key,
        actor: commit.lease.owner.to_string(),
    })
}
