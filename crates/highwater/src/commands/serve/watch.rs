//! One source at work, seen from outside: figures of the process as they are now, figures of the store as they were a
//! moment ago.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::future::BoxFuture;
use highwater_core::{ExceptionState, Lane, Moment, Position, SegmentStatus, Timestamp, throttle::PauseReason};
use highwater_engine::{Engine, PulseView, ServeRequest, StreamStatus, Unheard, stream_statuses};
use highwater_sources::{Density, LATENCY_BOUNDS, Meter, StreamSpec};
use highwater_store::{LiveState, StoreSizes};
use highwater_web::{
    AlertView, BuildView, HistogramView, LiveView, ProfileView, RequestCount, RescanView, ServiceView, SourceView,
    StoreView, StreamView, ThrottledView, TrafficView, Views, WorkView,
};

use super::counters::{COMMIT_BOUNDS, Counters, Counts};
use crate::{config::SourceConfig, mailbox::MailboxOf};

/// How old the figures of the store may be, and the sizes, which take longer to find out.
const FIGURES_LAST: Duration = Duration::from_secs(1);
const SIZES_LAST: Duration = Duration::from_secs(60);

pub(super) struct Service {
    pub(super) watched: Vec<Arc<Watched>>,
    began: Moment,
    /// Alerts that are not resolved; held for a few instructions.
    pub(super) alerts: Mutex<Vec<AlertView>>,
}

pub(super) struct Watched {
    kind: &'static str,
    pub(super) engine: Engine,
    pub(super) request: ServeRequest,
    pub(super) counters: Arc<Counters>,
    pub(super) mailbox: Option<MailboxOf>,
    /// What was read from the store last; held for a few instructions.
    figures: Mutex<Option<(Moment, Figures)>>,
    sizes: Mutex<Option<(Moment, StoreSizes)>>,
}

/// What the store says of a source.
#[derive(Clone, Debug, Default)]
struct Figures {
    streams: Vec<StreamStatus>,
    live: LiveState,
    profiles: ProfileView,
    sizes: Option<StoreSizes>,
}

impl Service {
    pub(super) fn new(watched: Vec<Arc<Watched>>) -> Self {
        let began = watched.first().map_or(Moment::START, |one| one.engine.world.clock.moment());
        Service { watched, began, alerts: Mutex::default() }
    }

    /// One line for people.
    pub(super) fn summary(&self) -> String {
        let line = |watched: &Arc<Watched>| {
            let pulse = watched.request.pulse.view();
            let word = match (pulse.is_listener, pulse.is_connected()) {
                (true, true) => "listening",
                (true, false) => "connecting",
                (false, _) => "standing by",
            };
            format!("{}: {word}, {} updated, {} queued", watched.engine.name, pulse.updated, pulse.queue_depth)
        };
        self.watched.iter().map(line).collect::<Vec<_>>().join("; ")
    }

    fn uptime(&self) -> Duration {
        self.watched.first().map_or(Duration::ZERO, |one| one.engine.world.clock.moment().since(self.began))
    }
}

impl Views for Service {
    fn view(&self) -> BoxFuture<'_, Arc<ServiceView>> {
        Box::pin(async {
            let mut sources = Vec::with_capacity(self.watched.len());
            for watched in &self.watched {
                sources.push(watched.view().await);
            }
            Arc::new(ServiceView {
                build: BuildView { version: env!("CARGO_PKG_VERSION") },
                uptime: self.uptime(),
                dead_loops: Vec::new(),
                sources,
                alerts: self.alerts.lock().expect("no code panics while it holds this lock").clone(),
            })
        })
    }
}

impl Watched {
    pub(super) fn new(source: &SourceConfig, engine: Engine, request: ServeRequest, counters: Arc<Counters>) -> Self {
        let (kind, mailbox) = (source.kind.as_str(), MailboxOf::source(source));
        Watched { kind, engine, request, counters, mailbox, figures: Mutex::default(), sizes: Mutex::default() }
    }

    pub(super) fn counts(&self) -> Counts {
        self.counters.view()
    }

    pub(super) fn pulse(&self) -> PulseView {
        self.request.pulse.view()
    }

    pub(super) fn rescan_every(&self) -> Duration {
        self.request.live.rescan.every
    }

    pub(super) async fn view(&self) -> SourceView {
        let figures = self.figures().await;
        let (pulse, counts, meter) = (self.pulse(), self.counts(), self.engine.source.gateway().meter());
        let (moment, now) = (self.engine.world.clock.moment(), self.engine.world.clock.now());
        let main = self.engine.source.streams().first();
        SourceView {
            name: self.engine.name.to_string(),
            kind: self.kind.into(),
            traffic: traffic(&meter),
            work: work(&counts, &figures.streams),
            catchup: figures.streams.iter().map(|status| stream(status, main, pulse.head)).collect(),
            live: self.engine.source.live().map(|_| live(&pulse, &figures.live, moment, now)),
            rescan: self.engine.source.live().map(|_| rescan(&figures.live, moment, now)),
            unheard: self.mailbox.is_some() && is_unheard(&pulse, &counts),
            profiles: figures.profiles,
            store: StoreView {
                trouble: counts.store_trouble.is_some(),
                database_bytes: figures.sizes.map(|sizes| sizes.database_bytes),
                control_bytes: figures.sizes.map(|sizes| sizes.control_bytes),
                blob_bytes: figures.sizes.map(|sizes| sizes.blob_bytes),
            },
        }
    }

    /// Read anew when they are old. A store that cannot be read leaves the old ones standing.
    async fn figures(&self) -> Figures {
        let now = self.engine.world.clock.moment();
        let known = self.figures.lock().expect("no code panics while it holds this lock").clone();
        if let Some((_, figures)) = known.as_ref().filter(|(at, _)| now.since(*at) < FIGURES_LAST) {
            return figures.clone();
        }
        match self.read_figures().await {
            Ok(figures) => {
                let read = (now, figures.clone());
                *self.figures.lock().expect("no code panics while it holds this lock") = Some(read);
                figures
            }
            Err(error) => {
                tracing::debug!(error = %highwater_engine::describe(&error), "reading figures");
                known.map(|(_, figures)| figures).unwrap_or_default()
            }
        }
    }

    async fn read_figures(&self) -> highwater_store::Result<Figures> {
        let (engine, store) = (&self.engine, &*self.engine.store);
        let streams = stream_statuses(store, &engine.name).await?;
        let mut figures = Figures { streams, ..Figures::default() };
        if let (Some(main), Some(_)) = (engine.source.streams().first(), engine.source.live()) {
            figures.live = store.live_state(&engine.stream_id(main)).await?;
        }
        for spec in engine.source.streams().iter().filter(|spec| matches!(spec.density, Density::Named(_))) {
            let end = store.listed_end(&engine.stream_id(spec)).await?;
            figures.profiles = profiles(spec, end, &figures.streams);
        }
        figures.sizes = Some(self.sizes().await?);
        Ok(figures)
    }

    async fn sizes(&self) -> highwater_store::Result<StoreSizes> {
        let now = self.engine.world.clock.moment();
        let known = *self.sizes.lock().expect("no code panics while it holds this lock");
        if let Some((_, sizes)) = known.filter(|(at, _)| now.since(*at) < SIZES_LAST) {
            return Ok(sizes);
        }
        let sizes = self.engine.store.sizes().await?;
        *self.sizes.lock().expect("no code panics while it holds this lock") = Some((now, sizes));
        Ok(sizes)
    }
}

fn is_unheard(pulse: &PulseView, counts: &Counts) -> bool {
    matches!(pulse.unheard, Some(Unheard::Failing { .. })) || counts.outage.is_some()
}

fn traffic(meter: &Meter) -> TrafficView {
    let lanes = Lane::ALL.iter().zip(meter.lanes);
    let requests = lanes.flat_map(|(lane, answers)| {
        let outcomes = [
            ("served", answers.served),
            ("not_modified", answers.not_modified),
            ("failed", answers.failed),
            ("throttled", answers.throttled),
        ];
        outcomes.map(|(outcome, count)| RequestCount { lane: *lane, outcome, count })
    });
    TrafficView {
        requests: requests.collect(),
        latency: HistogramView {
            bounds: LATENCY_BOUNDS.iter().map(Duration::as_secs_f64).collect(),
            counts: meter.latency.counts.to_vec(),
            sum: Some(meter.latency.sum.as_secs_f64()),
        },
        rate_limit: meter.throttle.rate,
        in_flight: u64::from(meter.throttle.in_flight),
        waiting: meter.throttle.waiting.iter().sum::<usize>() as u64,
        throttled: throttled(meter),
        bytes: meter.traffic.bytes,
    }
}

fn throttled(meter: &Meter) -> Vec<ThrottledView> {
    let closed = meter.throttle.totals.closed;
    PauseReason::ALL
        .iter()
        .map(|reason| ThrottledView { reason: reason.as_str(), time: closed.because(*reason) })
        .collect()
}

fn work(counts: &Counts, streams: &[StreamStatus]) -> WorkView {
    let open = |status: &StreamStatus| {
        let states = [SegmentStatus::Pending, SegmentStatus::InProgress, SegmentStatus::RetryWait];
        states.into_iter().map(|state| status.segments(state)).sum::<u64>()
    };
    WorkView {
        retries: counts.retries,
        splits: counts.splits,
        stalls: counts.stalls,
        panics: counts.panics,
        commits: counts.commits,
        commit_latency: HistogramView {
            bounds: COMMIT_BOUNDS.to_vec(),
            counts: counts.commit_classes.to_vec(),
            sum: Some(counts.commit_seconds),
        },
        rows_new: counts.batch.new,
        rows_changed: counts.batch.changed,
        rows_unchanged: counts.batch.unchanged,
        segments_open: streams.iter().map(open).sum(),
    }
}

fn stream(status: &StreamStatus, main: Option<&StreamSpec>, head: Option<Position>) -> StreamView {
    let is_main = main.is_some_and(|spec| spec.name.as_str() == status.stream);
    let head = head.filter(|_| is_main).unwrap_or(status.target).max(status.target);
    let (done, whole) = (status.frontier.0.abs_diff(status.origin.0), head.0.abs_diff(status.origin.0));
    StreamView {
        stream: status.stream.clone(),
        origin: status.origin.0,
        frontier: status.frontier.0,
        target: status.target.0,
        stored: status.stored,
        retrying: status.exceptions(ExceptionState::RetryWait),
        dead_letters: status.exceptions(ExceptionState::DeadLetter),
        lag: whole - done.min(whole),
        percent: if whole == 0 { 100.0 } else { 100.0 * done as f64 / whole as f64 },
    }
}

/// What has not happened yet is as old as the service.
fn live(pulse: &PulseView, state: &LiveState, moment: Moment, now: Timestamp) -> LiveView {
    let oldest = state.windows.iter().map(|window| window.opened_at).min();
    LiveView {
        connected: pulse.is_connected(),
        is_listener: pulse.is_listener,
        last_event_age: Some(moment.since(pulse.last_event.unwrap_or(Moment::START))),
        workers_alive: pulse.workers_alive as u64,
        queue_depth: pulse.queue_depth as u64,
        reconnects: pulse.reconnects(),
        items_updated: pulse.updated,
        update_ages: pulse.ages.into(),
        blind_windows_open: state.windows.len() as u64,
        oldest_window_age: oldest.map(|at| now.since(at)),
        last_commit_age: pulse.last_sound.map(|at| moment.since(at)),
    }
}

fn rescan(state: &LiveState, moment: Moment, now: Timestamp) -> RescanView {
    let last = state.last_rescan.as_ref().and_then(|rescan| rescan.sealed_at);
    let open = |count: fn(&highwater_core::Rescan) -> u64| state.rescans.iter().map(count).sum::<u64>();
    RescanView {
        last_run_age: Some(last.map_or(moment.since_start(), |at| now.since(at))),
        items_processed: state.rescanned + open(|rescan| rescan.items),
        items_changed: state.differed + open(|rescan| rescan.changed),
        running: !state.rescans.is_empty(),
    }
}

fn profiles(spec: &StreamSpec, end: Position, streams: &[StreamStatus]) -> ProfileView {
    let known = end.0.abs_diff(spec.origin.0);
    let settled = streams.iter().find(|status| status.stream == spec.name.as_str()).map_or(0, |status| {
        let explained = [ExceptionState::Missing, ExceptionState::Excluded, ExceptionState::DeadLetter];
        status.stored + explained.into_iter().map(|state| status.exceptions(state)).sum::<u64>()
    });
    ProfileView { known, not_fetched: known.saturating_sub(settled) }
}
