//! How many bytes of answers may be in memory at once, from the moment they are read until what they became is stored.
//!
//! Nobody can wait for ever. Whoever waits for room holds none, but for the one whose turn it is to grow; and what is
//! held without growing is put away without waiting for anybody, at the latest when somebody waits ([`Held::wanted`]).

use std::sync::Arc;

use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore, watch};

/// Read before anything is asked for, so that most answers never wait in mid-air.
pub(crate) const FREE: usize = 128 << 10;
/// An answer, decoded, unpacked and packed again, takes up about twice its length at the worst.
const COPIES: usize = 2;
const UNIT: usize = 1 << 10;

#[derive(Clone, Debug)]
pub struct Memory {
    room: Arc<Semaphore>,
    /// Whose turn it is to take room for an answer that is only partly read.
    growing: Arc<tokio::sync::Mutex<()>>,
    waiting: Arc<watch::Sender<u32>>,
    /// What the largest may take: what is left suffices for one that was read for free.
    most: usize,
}

/// Room that is taken, until this is dropped.
#[derive(Debug)]
pub struct Held {
    _room: OwnedSemaphorePermit,
    waiting: Arc<watch::Sender<u32>>,
}

impl Memory {
    /// One answer larger than all of it passes when it is alone.
    pub fn new(bytes: usize) -> Self {
        let least = units(FREE);
        let units = (bytes / UNIT).max(2 * least);
        Memory {
            room: Arc::new(Semaphore::new(units)),
            growing: Arc::default(),
            waiting: Arc::new(watch::Sender::new(0)),
            most: units - least,
        }
    }

    async fn take(&self, units: usize) -> OwnedSemaphorePermit {
        let units = u32::try_from(units).expect("no more than the whole is asked for");
        if let Ok(room) = self.room.clone().try_acquire_many_owned(units) {
            return room;
        }
        let _waiting = Waiting::begin(&self.waiting);
        self.room.clone().acquire_many_owned(units).await.expect("the semaphore is never closed")
    }

    fn footprint(&self, bytes: usize) -> usize {
        units(bytes).min(self.most)
    }
}

fn units(bytes: usize) -> usize {
    bytes.saturating_mul(COPIES).div_ceil(UNIT)
}

/// Room is only ever the same as itself.
impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Held {}

impl Held {
    /// Returns when somebody waits for room.
    pub async fn wanted(&self) {
        let waiting = self.waiting.subscribe().wait_for(|waiting| *waiting > 0).await.map(drop);
        waiting.expect("the sender is held here");
    }
}

struct Waiting<'a>(&'a watch::Sender<u32>);

impl<'a> Waiting<'a> {
    fn begin(waiting: &'a watch::Sender<u32>) -> Self {
        waiting.send_modify(|waiting| *waiting += 1);
        Waiting(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|waiting| *waiting -= 1);
    }
}

/// The room of one answer while it is read.
pub(crate) struct Growth<'a> {
    memory: Option<&'a Memory>,
    turn: Option<OwnedMutexGuard<()>>,
    room: Option<OwnedSemaphorePermit>,
    /// Bytes it may have.
    granted: usize,
}

impl<'a> Growth<'a> {
    /// Without bound if there is no memory to share.
    pub(crate) fn new(memory: Option<&'a Memory>) -> Self {
        Growth { memory, turn: None, room: None, granted: if memory.is_some() { FREE } else { usize::MAX } }
    }

    /// Waits until the answer may have `bytes`, or all of it if its length is known.
    pub(crate) async fn reach(&mut self, bytes: usize, length: Option<usize>) {
        let Some(memory) = self.memory.filter(|_| bytes > self.granted) else { return };
        let wanted = length.unwrap_or(bytes.saturating_mul(2)).max(bytes);
        if self.turn.is_none() {
            self.turn = Some(memory.growing.clone().lock_owned().await);
        }
        self.take(memory, wanted).await;
        if length.is_some() {
            self.turn = None;
        }
    }

    /// The answer is read, and has so many bytes: more than it may have, if it was longer than it said. Who holds room
    /// does not wait for more any longer.
    pub(crate) async fn finish(mut self, bytes: usize) -> Option<Held> {
        let memory = self.memory?;
        if self.room.is_none() {
            self.reach(bytes, Some(bytes)).await;
        }
        if self.room.is_none() {
            self.take(memory, bytes).await;
        }
        let mut room = self.room.take()?;
        drop(room.split(room.num_permits().saturating_sub(memory.footprint(bytes).max(1))));
        Some(Held { _room: room, waiting: memory.waiting.clone() })
    }

    async fn take(&mut self, memory: &Memory, bytes: usize) {
        let had = self.room.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let missing = memory.footprint(bytes).max(1).saturating_sub(had);
        if missing > 0 {
            let more = memory.take(missing).await;
            match &mut self.room {
                Some(room) => room.merge(more),
                None => self.room = Some(more),
            }
        }
        self.granted = self.granted.max(bytes);
    }
}

#[cfg(test)]
mod tests;
