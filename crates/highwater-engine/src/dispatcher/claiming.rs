//! Claims: segments are leased, and it is found out which of their keys are still open.

use std::sync::Arc;

use highwater_core::{Event, FailureKind, KeySet, Purpose, Span, Timestamp, WorkerId};
use highwater_sources::{Density, Discovered, Tags};
use highwater_store::{Claim, Claimed, Wanted};

use super::snapshot;
use crate::{
    error::Result,
    work::{Job, Marks, SegmentWork},
    worker::{SecondLook, Worker},
};

/// A claimed segment and the jobs it was cut into.
pub(super) type Prepared = (Arc<SegmentWork>, Vec<Job>);

/// What a claim brought.
pub(super) struct Haul {
    pub(super) wanted: Wanted,
    pub(super) segments: Vec<Prepared>,
}

/// Leases segments and finds out which of their keys are still open.
pub(super) async fn claim(worker: Worker, owner: WorkerId, limit: u32, wanted: Wanted) -> Result<Haul> {
    let engine = &worker.engine;
    let request = |now: Timestamp| Claim {
        stream: &worker.stream.id,
        owner: &owner,
        limit,
        wanted,
        lease_ttl: engine.settings.lease.ttl,
        now,
    };
    let claimed = engine.steady(|| engine.store.claim(request(engine.now()))).await?;
    refresh_head(&worker, &claimed).await;
    let mut segments = Vec::with_capacity(claimed.len());
    for segment in claimed {
        segments.push(prepare(&worker, segment).await?);
    }
    Ok(Haul { wanted, segments })
}

/// Keys that may not be published yet are judged by where the head is now.
async fn refresh_head(worker: &Worker, claimed: &[Claimed]) {
    let unpublished = highwater_core::Pending::Unpublished.as_str();
    if claimed.iter().flat_map(|segment| &segment.due).any(|exception| exception.reason == unpublished) {
        // A head that cannot be read now leaves the old one standing: keys are waited for a little longer.
        if let Ok(head) = worker.engine.source.head(&worker.stream.spec.name, &worker.control_call()).await {
            worker.stream.heard_head(head);
        }
    }
}

async fn prepare(worker: &Worker, mut claimed: Claimed) -> Result<Prepared> {
    let engine = &worker.engine;
    let spec = &worker.stream.spec;
    if let Density::Snapshot(renewal) = spec.density {
        return snapshot::prepare(worker, claimed, renewal).await;
    }
    let keys = open_up(worker, &mut claimed).await?;
    let asked = with_due(&keys, &claimed);
    let known = engine.steady(|| engine.store.known(&worker.stream.id, spec.table, &asked)).await?;
    let marks = if claimed.purpose == Purpose::Rescan && worker.second_look == SecondLook::ByMark {
        let read_at = Some(engine.now());
        let tags = Tags::Asked(engine.steady(|| engine.store.tags(spec.table, &keys)).await?.into());
        Marks { tags, read_at }
    } else {
        Marks::default()
    };
    let (segment, span) = (claimed.lease.segment, claimed.span);
    let (work, jobs) = SegmentWork::new(claimed, keys, known, marks, worker.stream.policy.job_size);
    let count = jobs.iter().map(|job| job.keys.len()).sum();
    worker.window.widen(count);
    engine.emit(Event::Claimed { segment, span, keys: count as u64 });
    Ok((Arc::new(work), jobs))
}

/// The keys of what is left of a segment, which is cut in two as often as it holds too many.
async fn open_up(worker: &Worker, claimed: &mut Claimed) -> Result<KeySet> {
    let engine = &worker.engine;
    loop {
        let span = scan_span(worker.stream.spec.density, claimed);
        if span.is_empty() {
            return Ok(KeySet::List(Vec::new()));
        }
        if let Density::Named(_) = worker.stream.spec.density {
            return Ok(KeySet::List(engine.steady(|| engine.store.listed(&worker.stream.id, span)).await?));
        }
        match discover(worker, span).await? {
            Discovered::Keys(keys) => return Ok(keys),
            Discovered::Roll(roll) => return Ok(KeySet::List(roll.keys)),
            Discovered::Refused(failure) => return Err(failure.into()),
            Discovered::TooMany => {
                let middle = claimed.span.start().plus(claimed.span.len() / 2);
                engine.steady(|| engine.store.cut(&claimed.lease, middle)).await?;
                claimed.span = Span::new(claimed.span.start(), middle);
            }
        }
    }
}

/// Lists are made by many requests, and begun anew until patience ends.
async fn discover(worker: &Worker, span: Span) -> Result<Discovered> {
    let engine = &worker.engine;
    let (clock, began) = (&engine.world.clock, engine.world.clock.moment());
    let mut attempt = 0;
    loop {
        match engine.source.discover(&worker.stream.spec.name, span, &worker.control_call()).await {
            Ok(discovered) => return Ok(discovered),
            Err(failure)
                if failure.kind == FailureKind::Credentials
                    || clock.moment().since(began) >= engine.settings.patience.retry =>
            {
                return Err(failure.into());
            }
            Err(failure) => {
                attempt += 1;
                let wait = engine.settings.retry.delay(attempt, engine.world.entropy.unit());
                engine.emit(Event::HeadFailed { kind: failure.kind, retry_at: engine.now() + wait });
                clock.sleep(wait).await;
            }
        }
    }
}

/// Keys that are due may be stored by now, or belong to no span.
fn with_due(keys: &KeySet, claimed: &Claimed) -> KeySet {
    match keys {
        KeySet::Range(span) => KeySet::Range(*span),
        KeySet::List(list) => {
            let due = claimed.due.iter().map(|exception| exception.key.clone());
            KeySet::List(list.iter().cloned().chain(due).collect())
        }
    }
}

/// What to look at again. Where the keys are known without asking the remote, the rows themselves say what is missing, which also finds a row
/// that went missing behind the cursor; elsewhere the cursor spares a second listing.
fn scan_span(density: Density, claimed: &Claimed) -> Span {
    match density {
        Density::Dense | Density::Named(_) => claimed.span,
        Density::Sparse | Density::Snapshot(_) => claimed.rest(),
    }
}
