//! Names that were entered lately, so that those who write a lot are not entered again and again.

use std::{collections::BTreeSet, sync::Mutex};

/// The mutex is held for a few instructions.
#[derive(Default)]
pub(super) struct Authors(Mutex<BTreeSet<String>>);

/// Forgetting all of them now and then costs no more than entering some twice.
const NAMES_MAX: usize = 20_000;

impl Authors {
    pub(super) fn new_ones(&self, names: impl Iterator<Item = String>) -> Vec<String> {
        let mut known = self.0.lock().expect("no code panics while it holds this lock");
        if known.len() >= NAMES_MAX {
            known.clear();
        }
        names.filter(|name| known.insert(name.clone())).collect()
    }
}
