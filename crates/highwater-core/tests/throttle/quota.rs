//! Models of how a source counts requests. Each judges a request at the moment it arrives.

use std::collections::VecDeque;

pub(crate) enum Answer {
    Accepted,
    /// With the seconds of `Retry-After`, when the source sends it.
    Refused(Option<f64>),
}

pub(crate) trait Quota {
    fn judge(&mut self, at: f64) -> Answer;
}

/// Refills evenly and holds one second of it.
pub(crate) struct TokenBucket {
    pub(crate) rate: f64,
    level: f64,
    last: f64,
}

impl TokenBucket {
    pub(crate) fn new(rate: f64) -> Self {
        TokenBucket { rate, level: rate, last: 0.0 }
    }
}

impl Quota for TokenBucket {
    fn judge(&mut self, at: f64) -> Answer {
        self.level = (self.level + (at - self.last) * self.rate).min(self.rate);
        self.last = at;
        if self.level < 1.0 {
            return Answer::Refused(None);
        }
        self.level -= 1.0;
        Answer::Accepted
    }
}

/// A token bucket that says how long to wait, far below a second: the hiccup that needs no probe.
pub(crate) struct Hinting(pub(crate) TokenBucket);

impl Quota for Hinting {
    fn judge(&mut self, at: f64) -> Answer {
        match self.0.judge(at) {
            Answer::Refused(_) => Answer::Refused(Some(0.4)),
            accepted => accepted,
        }
    }
}

/// A token bucket whose rate changes at given seconds.
pub(crate) struct Changing {
    pub(crate) bucket: TokenBucket,
    pub(crate) changes: VecDeque<(f64, f64)>,
}

impl Quota for Changing {
    fn judge(&mut self, at: f64) -> Answer {
        if let Some(&(when, rate)) = self.changes.front()
            && at >= when
        {
            self.bucket.rate = rate;
            self.changes.pop_front();
        }
        self.bucket.judge(at)
    }
}

/// So many accepted within any second.
pub(crate) struct SlidingSecond {
    limit: usize,
    accepted: VecDeque<f64>,
}

impl SlidingSecond {
    pub(crate) fn new(rate: f64) -> Self {
        SlidingSecond { limit: rate as usize, accepted: VecDeque::new() }
    }
}

impl Quota for SlidingSecond {
    fn judge(&mut self, at: f64) -> Answer {
        while self.accepted.front().is_some_and(|&first| first <= at - 1.0) {
            self.accepted.pop_front();
        }
        if self.accepted.len() >= self.limit {
            return Answer::Refused(None);
        }
        self.accepted.push_back(at);
        Answer::Accepted
    }
}

/// So many in every full minute; the header names whole seconds, as HTTP does.
pub(crate) struct MinuteWindow {
    limit: f64,
    header: bool,
    minute: f64,
    used: f64,
}

impl MinuteWindow {
    pub(crate) fn with_header(rate: f64) -> Self {
        MinuteWindow { limit: rate * 60.0, header: true, minute: 0.0, used: 0.0 }
    }

    pub(crate) fn without_header(rate: f64) -> Self {
        MinuteWindow { header: false, ..MinuteWindow::with_header(rate) }
    }
}

impl Quota for MinuteWindow {
    fn judge(&mut self, at: f64) -> Answer {
        let minute = (at / 60.0).floor();
        if minute > self.minute {
            (self.minute, self.used) = (minute, 0.0);
        }
        if self.used >= self.limit {
            let left = (minute + 1.0) * 60.0 - at;
            return Answer::Refused(self.header.then(|| left.ceil()));
        }
        self.used += 1.0;
        Answer::Accepted
    }
}

/// Accepts everything.
pub(crate) struct Boundless;

impl Quota for Boundless {
    fn judge(&mut self, _: f64) -> Answer {
        Answer::Accepted
    }
}
