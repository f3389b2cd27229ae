//! What happens to the mailbox as time goes by: arrivals, deletions, labels, imports into the past, saved drafts.

use std::{num::NonZeroU32, time::Duration};

use super::{
    GmailSim, Inside,
    labels::Labels,
    letter::Nature,
    mailbox::{Arrival, Entry, State},
    plan::GmailMutations,
};
use crate::rng::{Purpose, Seed, SplitMix64, scale};

const YEAR_MS: u64 = 31_556_952_000;

/// A mutation clock: how often each kind has struck.
#[derive(Debug)]
pub(super) struct Life {
    kinds: [(Kind, Option<NonZeroU32>); 5],
    struck: [u64; 5],
    stop: Duration,
    /// Draws so far, planned and by hand.
    draws: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Arrive,
    Delete,
    Label,
    Import,
    Draft,
}

impl Life {
    pub(super) fn new(plan: &GmailMutations) -> Self {
        Life {
            kinds: [
                (Kind::Arrive, plan.arrive_every_ms),
                (Kind::Delete, plan.delete_every_ms),
                (Kind::Label, plan.label_every_ms),
                (Kind::Import, plan.import_every_ms),
                (Kind::Draft, plan.draft_every_ms),
            ],
            struck: [0; 5],
            stop: plan.stop_after_ms.map_or(Duration::MAX, |ms| Duration::from_millis(u64::from(ms))),
            draws: 0,
        }
    }

    /// The earliest mutation that is due, and since when.
    fn due(&mut self, now: Duration) -> Option<(Duration, Kind)> {
        let next = |(at, (kind, every)): (usize, &(Kind, Option<NonZeroU32>))| {
            let due = Duration::from_millis(u64::from((*every)?.get()) * (self.struck[at] + 1));
            (due <= now.min(self.stop)).then_some((due, at, *kind))
        };
        let (due, at, kind) = self.kinds.iter().enumerate().filter_map(next).min_by_key(|(due, at, _)| (*due, *at))?;
        self.struck[at] += 1;
        Some((due, kind))
    }

    fn draw(&mut self, seed: Seed) -> SplitMix64 {
        self.draws += 1;
        SplitMix64::new(seed.hash(Purpose::MailLife, self.draws))
    }
}

impl GmailSim {
    /// Everything that was due until `now`.
    pub(super) fn live(&self, inside: &mut Inside, now: Duration) {
        while let Some((at, kind)) = inside.life.due(now) {
            match kind {
                Kind::Arrive => drop(self.arrive(inside, at)),
                Kind::Delete => drop(self.delete_any(inside, at)),
                Kind::Label => drop(self.label_any(inside, at)),
                Kind::Import => drop(self.import(inside, None, at)),
                Kind::Draft => drop(self.save_draft(inside, at)),
            }
        }
    }

    /// A new message, in every third case in an older thread.
    pub(super) fn arrive(&self, inside: &mut Inside, now: Duration) -> u64 {
        let mut rng = inside.life.draw(self.seed);
        let thread = rng.chance(1, 3).then(|| pick(inside, &mut rng, |_| true)).flatten().map(|entry| entry.thread);
        let labels = Labels::INBOX | Labels::UNREAD | Labels::category(rng.next_u64());
        let wall = self.wall(now);
        let arrival = Arrival { nature: Nature::Received, date: wall, labels, thread, upload: None };
        inside.mailbox.arrive(arrival, wall, now)
    }

    /// A message that Gmail gets now and that is dated in the past.
    pub(super) fn import(&self, inside: &mut Inside, date: Option<i64>, now: Duration) -> u64 {
        let mut rng = inside.life.draw(self.seed);
        let span = u64::from(self.plan.mailbox.years) * YEAR_MS;
        let date = date.unwrap_or_else(|| self.plan.mailbox.newest * 1_000 - scale(rng.next_u64(), span) as i64);
        let users = inside.mailbox.catalogue.user_count();
        let labels = if users > 0 { inside.mailbox.catalogue.user(rng.below(users)) } else { Labels::NONE };
        let arrival = Arrival { nature: Nature::Received, date, labels, thread: None, upload: None };
        inside.mailbox.arrive(arrival, self.wall(now), now)
    }

    /// Every save gives a draft another message.
    pub(super) fn save_draft(&self, inside: &mut Inside, now: Duration) -> u64 {
        let mut rng = inside.life.draw(self.seed);
        let old = pick(inside, &mut rng, |entry| entry.labels.contains(Labels::DRAFT));
        let old = old.map(|entry| (entry.id, entry.thread));
        let wall = self.wall(now);
        let thread = old.map(|(_, thread)| thread);
        let arrival = Arrival { nature: Nature::Draft, date: wall, labels: Labels::DRAFT, thread, upload: None };
        let id = inside.mailbox.arrive(arrival, wall, now);
        if let Some((old, _)) = old {
            inside.mailbox.delete(old, now);
        }
        id
    }

    fn delete_any(&self, inside: &mut Inside, now: Duration) -> Option<u64> {
        let mut rng = inside.life.draw(self.seed);
        let id = pick(inside, &mut rng, |_| true)?.id;
        inside.mailbox.delete(id, now);
        Some(id)
    }

    fn label_any(&self, inside: &mut Inside, now: Duration) -> Option<u64> {
        let mut rng = inside.life.draw(self.seed);
        let entry = pick(inside, &mut rng, |entry| !entry.labels.touches(Labels::DRAFT | Labels::CHAT))?;
        let (id, before) = (entry.id, entry.labels);
        let users = inside.mailbox.catalogue.user_count();
        let (label, extra) = match rng.below(8) {
            0 => (Labels::TRASH, Labels::INBOX | Labels::SPAM),
            1 | 2 => (Labels::STARRED, Labels::NONE),
            3 | 4 => (Labels::INBOX, Labels::NONE),
            5 if users > 0 => (inside.mailbox.catalogue.user(rng.below(users)), Labels::NONE),
            _ => (Labels::UNREAD, Labels::NONE),
        };
        let (add, remove) = if before.contains(label) { (Labels::NONE, label) } else { (label, extra) };
        inside.mailbox.relabel(id, add, remove, now);
        Some(id)
    }
}

/// The first that fits, from a place drawn on.
fn pick<'a>(inside: &'a Inside, rng: &mut SplitMix64, fits: impl Fn(&Entry) -> bool) -> Option<&'a Entry> {
    let entries = inside.mailbox.entries();
    let start = rng.below(entries.len() as u64) as usize;
    let mut round = entries[start..].iter().chain(&entries[..start]);
    round.find(|entry| entry.state == State::Present && fits(entry))
}
