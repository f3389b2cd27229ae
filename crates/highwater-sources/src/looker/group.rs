//! Objects that come together in one answer, such as the looks of a folder: asked for once, by whoever needs one first.

use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
};

use highwater_core::Key;
use tokio::sync::Mutex as AsyncMutex;

pub(super) struct Group {
    /// Path and query of the answer.
    pub(super) path: String,
    /// How many objects it was listed to have.
    pub(super) size: usize,
    /// Held over the request on purpose: whoever comes meanwhile waits for its answer.
    pub(super) turn: AsyncMutex<()>,
    left: Mutex<HashMap<Key, String>>,
    is_read: AtomicBool,
}

impl Group {
    pub(super) fn new(path: String, size: usize) -> Self {
        Group { path, size, turn: AsyncMutex::default(), left: Mutex::default(), is_read: AtomicBool::new(false) }
    }

    pub(super) fn take(&self, key: &Key) -> Option<String> {
        self.lock().remove(key)
    }

    pub(super) fn fill(&self, bodies: HashMap<Key, String>) {
        *self.lock() = bodies;
        self.is_read.store(true, Ordering::Relaxed);
    }

    /// Who asks for one of it after that wants a newer body.
    pub(super) fn is_read(&self) -> bool {
        self.is_read.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, String>> {
        self.left.lock().expect("no code panics while it holds this lock")
    }
}
