//! Overhears which spans a dispatcher is done with: their rows may name what another stream mirrors, long before the
//! frontier passes them.

use std::sync::{Arc, Mutex};

use highwater_core::{Event, Observer, Span};

/// Passes everything on.
pub(super) struct Overhearing {
    observer: Arc<dyn Observer>,
    spans: Arc<ClosedSpans>,
}

/// The mutex is held for a few instructions.
#[derive(Default)]
pub(super) struct ClosedSpans(Mutex<Vec<Span>>);

/// More than these are looked through all together when the frontier passes them.
const SPANS_MAX: usize = 100_000;

impl Overhearing {
    pub(super) fn new(observer: Arc<dyn Observer>, spans: Arc<ClosedSpans>) -> Self {
        Overhearing { observer, spans }
    }
}

impl Observer for Overhearing {
    fn notify(&self, event: &Event) {
        if let Event::Closed { span, .. } = event {
            let mut spans = self.spans.0.lock().expect("no code panics while it holds this lock");
            if spans.len() < SPANS_MAX {
                spans.push(*span);
            }
        }
        self.observer.notify(event);
    }
}

impl ClosedSpans {
    pub(super) fn take(&self) -> Vec<Span> {
        std::mem::take(&mut *self.0.lock().expect("no code panics while it holds this lock"))
    }
}
