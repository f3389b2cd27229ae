//! What was told and is not stored when the service ends, in order or not: laid as passes over those keys, so that they are
//! looked at however old they are.

use std::collections::BTreeMap;

use highwater_core::{Event, Key, Position, RescanReason, Span};
use highwater_sources::Density;
use highwater_store::RescanPlan;

use super::{Followed, Service, queue::LiveKey};
use crate::error::Result;

/// Keys no further apart are looked at together with what lies between them: a request costs less than a transaction.
const NEAR: u64 = 8;

impl Service {
    /// What cannot be entered stays in the queue, and the cursor behind it.
    pub(super) async fn owe_told(&self) -> Result<()> {
        for followed in &self.streams {
            let keys = self.queue.keys_of(&followed.stream.spec.name);
            if !keys.is_empty() {
                self.owe(followed, keys).await?;
            }
        }
        Ok(())
    }

    /// What a process that was killed had been told and had not stored.
    pub(super) async fn owe_inherited(&self) -> Result<()> {
        for followed in &self.streams {
            let store = &self.engine.store;
            let keys = self.engine.steady(|| store.told(&followed.stream.id)).await?;
            if !keys.is_empty() {
                self.owe(followed, keys).await?;
            }
        }
        Ok(())
    }

    /// What is not planned yet is young enough for the window that the next process begins with.
    async fn owe(&self, followed: &Followed, keys: Vec<Key>) -> Result<()> {
        let (store, stream) = (&self.engine.store, &followed.stream);
        let row = store.open_stream(&stream.id, stream.spec.axis).await?;
        let mut places = self.places(followed, keys).await?;
        places.retain(|at, _| row.span.contains(*at));
        for (span, keys) in joined(places) {
            let (id, now, segment_size) = (stream.id.clone(), self.engine.now(), stream.policy.segment_size);
            let plan = RescanPlan { stream: id, reason: RescanReason::Key, span, segment_size, now };
            store.begin_rescan(&plan).await?;
            self.forget(followed, keys);
        }
        Ok(())
    }

    async fn places(&self, followed: &Followed, keys: Vec<Key>) -> Result<BTreeMap<Position, Key>> {
        let (store, stream) = (&self.engine.store, &followed.stream);
        let mut places = BTreeMap::new();
        for key in keys {
            let at = match (stream.spec.density, key.number()) {
                (Density::Dense, Some(id)) => Some(Position(id)),
                _ => store.listed_at(&stream.id, &key).await?,
            };
            places.extend(at.map(|at| (at, key)));
        }
        Ok(places)
    }

    fn forget(&self, followed: &Followed, keys: Vec<Key>) {
        for key in keys {
            self.engine.emit(Event::LiveDeferred { key: key.clone() });
            self.queue.forget(&LiveKey { stream: followed.stream.spec.name.clone(), key });
        }
    }
}

/// Spans over all of them, with the keys that each is there for.
fn joined(places: BTreeMap<Position, Key>) -> Vec<(Span, Vec<Key>)> {
    let mut spans: Vec<(Span, Vec<Key>)> = Vec::new();
    for (at, key) in places {
        match spans.last_mut() {
            Some((span, keys)) if at <= span.end().plus(NEAR) => {
                *span = Span::new(span.start(), at.plus(1));
                keys.push(key);
            }
            _ => spans.push((Span::new(at, at.plus(1)), vec![key])),
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_are_near_are_looked_at_together() {
        let places = [5, 6, 14, 30, 39, 38].map(|id| (Position(id), Key::Number(id)));
        let spans = joined(places.into());
        let plain: Vec<_> = spans.iter().map(|(span, keys)| (span.start().0, span.end().0, keys.len())).collect();
        assert_eq!(plain, [(5, 15, 3), (30, 40, 3)]);
    }
}
