//! What happened, in order, for streams to read on from where they were.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::hn::control::StreamOrder;

/// A stream that falls so far behind is told the present value instead of each write.
const ENTRIES_MAX: usize = 1 << 16;

#[derive(Clone, Debug)]
pub(in crate::hn) enum Entry {
    /// `maxitem` has a new value.
    Grew(u64),
    /// `updates` has a new value.
    Wrote(Bytes),
    Ordered(StreamOrder),
}

#[derive(Debug, Default)]
pub(in crate::hn) struct Log {
    first: u64,
    entries: VecDeque<Entry>,
}

impl Log {
    pub(in crate::hn) fn push(&mut self, entry: Entry) {
        if self.entries.len() == ENTRIES_MAX {
            self.entries.pop_front();
            self.first += 1;
        }
        self.entries.push_back(entry);
    }

    pub(in crate::hn) fn end(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    /// Whether entries from `cursor` on are gone.
    pub(in crate::hn) const fn has_lost(&self, cursor: u64) -> bool {
        cursor < self.first
    }

    pub(in crate::hn) fn since(&self, cursor: u64) -> impl Iterator<Item = &Entry> {
        let skipped = usize::try_from(cursor.saturating_sub(self.first)).unwrap_or(usize::MAX);
        self.entries.range(skipped.min(self.entries.len())..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_forgets_its_beginning_and_says_so() {
        let mut log = Log::default();
        (0..ENTRIES_MAX as u64 + 2).for_each(|id| log.push(Entry::Grew(id)));
        assert!(log.has_lost(1) && !log.has_lost(2));
        let last =
            log.since(log.end() - 1).map(|entry| matches!(entry, Entry::Grew(id) if *id == ENTRIES_MAX as u64 + 1));
        assert_eq!(last.collect::<Vec<_>>(), [true]);
        assert_eq!(log.since(log.end()).count(), 0);
    }
}
