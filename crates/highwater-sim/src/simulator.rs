//! What whoever carries answers out needs to know of a simulated API.

use std::{sync::Arc, time::Duration};

use crate::{
    answer::{Answer, SimRequest},
    hn::{HnSim, Opening},
    plan::Redirect,
    stats::Gauge,
};

/// A simulated API: a request and the time since the start in, an answer out.
pub trait Simulator: Send + Sync + Sized + 'static {
    const TAKES: Takes;

    fn answer(&self, request: &SimRequest<'_>, now: Duration) -> Answer;

    /// Connections, for whoever accepts them.
    fn connections(&self) -> &Gauge;

    /// Requests between arrival and the end of the reply, streams left out, for whoever carries them out.
    fn in_flight(&self) -> &Gauge;

    /// For requests that ask for a stream of events.
    fn open_stream(self: &Arc<Self>, request: &SimRequest<'_>, now: Duration) -> Opening {
        Opening::Answer(self.answer(request, now))
    }

    /// Where streams are sent first.
    fn redirect(&self) -> Option<Redirect> {
        None
    }
}

/// Which requests an API is asked at all; others are refused before it sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// GET, without bodies.
    Gets,
    /// Every method of [`Verb`](crate::Verb), with bodies of at most so many bytes.
    Bodies(usize),
}

impl Simulator for HnSim {
    const TAKES: Takes = Takes::Gets;

    fn answer(&self, request: &SimRequest<'_>, now: Duration) -> Answer {
        HnSim::answer(self, request, now)
    }

    fn connections(&self) -> &Gauge {
        &self.stats().connections
    }

    fn in_flight(&self) -> &Gauge {
        &self.stats().in_flight
    }

    fn open_stream(self: &Arc<Self>, request: &SimRequest<'_>, now: Duration) -> Opening {
        HnSim::open_stream(self, request, now)
    }

    fn redirect(&self) -> Option<Redirect> {
        self.plan().stream.redirect
    }
}
