//! The mailbox as it is at the start: years of mail, spread by the seed.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use super::{Entry, History, Letter, Mailbox, State};
use crate::{
    gmail::{
        labels::{Catalogue, Labels},
        letter::{Author, Nature},
        plan::{GmailPlan, SharesPlan},
    },
    rng::{Purpose, Seed, Share, SplitMix64, scale},
};

const YEAR_MS: u64 = 31_556_952_000;

/// Answers are to one of so many messages before.
const REACH: u64 = 30;

pub(super) fn mailbox(seed: Seed, messages: u64, plan: &GmailPlan) -> Mailbox {
    let share = |share| Share::new(share).unwrap_or(Share::NONE);
    let mut mailbox = Mailbox {
        seed,
        author: Arc::new(Author {
            seed,
            address: plan.mailbox.address.clone(),
            odd: share(plan.shares.odd),
            size: plan.size.clone(),
        }),
        catalogue: Catalogue::new(seed, usize::from(plan.mailbox.user_labels)),
        history: History::new(seed, &plan.history, messages),
        entries: Vec::with_capacity(messages as usize),
        by_id: HashMap::with_capacity(messages as usize),
        order: BTreeMap::new(),
        threads: HashMap::new(),
        inversions: share(plan.list.inversions),
    };
    for number in 0..messages {
        let entry = mailbox.entry(number, messages, plan);
        mailbox.insert(entry);
    }
    mailbox
}

impl Mailbox {
    fn entry(&self, number: u64, of: u64, plan: &GmailPlan) -> Entry {
        let nature = nature(self.seed, number, &plan.shares);
        let parent = self.parent(number, nature);
        let letter = Letter { number, nature, date: date(self.seed, number, of, plan), parent };
        let id = self.free_id(letter.date, number);
        let thread = parent.map_or(id, |parent| self.entries[parent as usize].thread);
        let labels = labels(self.seed, number, nature, &self.catalogue, plan.shares.unlisted_label);
        let history = self.history.current() - (of - number);
        Entry { id, thread, letter, labels, history, state: State::Present, gets: 0, upload: None }
    }

    fn parent(&self, number: u64, nature: Nature) -> Option<u64> {
        let hash = self.seed.hash(Purpose::Thread, number);
        let answers = matches!(nature, Nature::Received | Nature::Sent) && scale(hash, 100) < 45;
        let back = 1 + scale(crate::rng::mix(hash), REACH);
        let parent = number.checked_sub(back).filter(|_| answers)?;
        let kind = self.entries[parent as usize].letter.nature;
        matches!(kind, Nature::Received | Nature::Sent).then_some(parent)
    }
}

/// Evenly over the years, in the order of the numbers, a little off each.
fn date(seed: Seed, number: u64, of: u64, plan: &GmailPlan) -> i64 {
    let span = u64::from(plan.mailbox.years) * YEAR_MS;
    let step = (span / of.max(1)).max(1);
    let off = scale(seed.hash(Purpose::MailDate, number), step);
    plan.mailbox.newest * 1_000 - ((of - number) * step) as i64 + off as i64
}

fn nature(seed: Seed, number: u64, shares: &SharesPlan) -> Nature {
    let at = seed.hash(Purpose::Nature, number) as f64 / 2f64.powi(64);
    let mut top = 0.0;
    for (share, nature) in [
        (shares.sent, Nature::Sent),
        (shares.drafts, Nature::Draft),
        (shares.spam, Nature::Spam),
        (shares.trash, Nature::Trash),
        (shares.chats, Nature::Chat),
    ] {
        top += share;
        if at < top {
            return nature;
        }
    }
    Nature::Received
}

fn labels(seed: Seed, number: u64, nature: Nature, catalogue: &Catalogue, unlisted: f64) -> Labels {
    let mut rng = SplitMix64::new(seed.hash(Purpose::MailLabel, number));
    let mut labels = match nature {
        Nature::Received => received(&mut rng),
        Nature::Sent => Labels::SENT,
        Nature::Draft => Labels::DRAFT,
        Nature::Spam => Labels::SPAM | Labels::UNREAD,
        Nature::Trash => Labels::TRASH,
        Nature::Chat => Labels::CHAT,
    };
    if matches!(nature, Nature::Received | Nature::Sent | Nature::Trash) && catalogue.user_count() > 0 {
        for _ in 0..[0, 0, 0, 1, 1, 2][rng.below(6) as usize] {
            labels = labels | catalogue.user(rng.below(catalogue.user_count()));
        }
    }
    if Share::new(unlisted).unwrap_or(Share::NONE).hit(rng.next_u64()) {
        labels = labels | catalogue.unlisted(rng.next_u64());
    }
    labels
}

pub(in crate::gmail) fn received(rng: &mut SplitMix64) -> Labels {
    let mut labels = Labels::NONE;
    for (label, percent) in [
        (Labels::INBOX, 60),
        (Labels::UNREAD, 30),
        (Labels::IMPORTANT, 20),
        (Labels::STARRED, 5),
        (Labels::category(rng.next_u64()), 50),
    ] {
        if rng.chance(percent, 100) {
            labels = labels | label;
        }
    }
    labels
}
