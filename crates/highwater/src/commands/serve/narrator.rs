//! What a service says on stderr: a line when something begins or ends, nothing that repeats.

mod flaps;
mod troubles;

use std::sync::{
    Mutex,
    atomic::{AtomicBool, Ordering},
};

use highwater_core::{Event, Observer, RescanReason, SourceName};
use highwater_sources::Clock;

use self::{flaps::Flaps, troubles::Troubles};
use crate::out;

pub(super) struct Narrator {
    source: SourceName,
    quiet: bool,
    clock: Clock,
    stopping: AtomicBool,
    /// Events come from many tasks; held for a few instructions.
    flaps: Mutex<Flaps>,
    troubles: Mutex<Troubles>,
}

impl Narrator {
    pub(super) fn new(source: SourceName, quiet: bool) -> Self {
        let (flaps, troubles) = (Mutex::default(), Mutex::default());
        Narrator { source, quiet, clock: Clock::system(), stopping: AtomicBool::new(false), flaps, troubles }
    }

    fn say(&self, text: &str) {
        if !self.quiet {
            out::complain(&format!("{}: {text}", self.source));
        }
    }
}

impl Observer for Narrator {
    fn notify(&self, event: &Event) {
        crate::progress::log(event);
        // Every stream says so.
        let said_before = matches!(event, Event::Stopping) && self.stopping.swap(true, Ordering::Relaxed);
        let now = self.clock.moment();
        let (summary, is_told) = {
            let mut flaps = self.flaps.lock().expect("no code panics while it holds this lock");
            (flaps.summary(now), flaps.admit(event, now))
        };
        let is_told =
            is_told && self.troubles.lock().expect("no code panics while it holds this lock").admit(event, now);
        summary.iter().for_each(|text| self.say(text));
        if let Some(text) = text(event).filter(|_| is_told && !said_before) {
            self.say(&text);
        }
    }
}

fn text(event: &Event) -> Option<String> {
    Some(match event {
        Event::FeedConnected { feed } => format!("listening to {feed}"),
        Event::FeedLost { feed, failure, retry_in } => {
            format!("{feed} is lost ({failure}); connecting again in {:.1} s", retry_in.as_secs_f64())
        }
        Event::BlindSince { at } => format!("blind since {}", out::time(*at)),
        Event::BlindWindowClosed { window } => {
            format!("what may have changed since {} has been looked at again", out::time(window.opened_at))
        }
        Event::RescanBegan { reason, span } if !span.is_empty() => format!("looking again at {span} ({reason})"),
        Event::RescanSealed { rescan } if rescan.reason != RescanReason::Key && rescan.items > 0 => format!(
            "looked again at {} items, {} differed ({})",
            out::grouped(rescan.items),
            out::grouped(rescan.changed),
            rescan.reason
        ),
        Event::RoleTaken => "this process listens".into(),
        Event::RoleLost => "another process listens now; standing by".into(),
        Event::OutageConfirmed { kind, .. } => {
            format!("the source is out ({}); waiting for it", kind.map_or("no answer", |kind| kind.as_str()))
        }
        Event::OutageOver => "the source answers again".into(),
        Event::Spent { until } => {
            format!("what may be downloaded in a day is; going on at {}", out::time(*until))
        }
        Event::SpentOver => "downloading again".into(),
        Event::StoreTrouble { error } => format!("the store cannot write: {error}; trying again"),
        Event::StoreHealed => "the store writes again".into(),
        Event::LiveWorkerFell => "an update worker fell and was replaced".into(),
        Event::Stopping => "stopping: committing what is in hand".into(),
        _ => return None,
    })
}
