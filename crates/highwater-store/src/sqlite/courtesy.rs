//! Lets others have the processor between stretches of rows. Where there are few processors, the thread that fetches and
//! a remote on the same machine wait behind a group that is written without a pause, while another processor idles;
//! both need it only for a moment.

use std::{
    thread,
    time::{Duration, Instant},
};

/// A twentieth of a millisecond of work.
const STRETCH_MIN: u32 = 12;

/// As long as a time slice: then nothing is lost by giving way.
const STRETCH_MAX: u32 = 800;

/// Those who fetch or answer wait again before this; whoever has something to compute does not.
const MOMENT: Duration = Duration::from_millis(1);

pub(super) struct Courtesy {
    stretch: u32,
    /// Rows until the processor is offered again.
    left: u32,
}

impl Default for Courtesy {
    fn default() -> Self {
        Courtesy { stretch: STRETCH_MIN, left: STRETCH_MIN }
    }
}

impl Courtesy {
    /// Another row is written.
    pub(super) fn note_row(&mut self) {
        self.left -= 1;
        if self.left == 0 {
            self.stretch = next_stretch(self.stretch, offer());
            self.left = self.stretch;
        }
    }
}

/// Who gives way again and again to those who never wait gets nowhere.
fn next_stretch(stretch: u32, away: Duration) -> u32 {
    if away < MOMENT { STRETCH_MIN } else { STRETCH_MAX.min(2 * stretch) }
}

/// For how long somebody took it.
#[expect(clippy::disallowed_methods, reason = "nothing that is written depends on it")]
fn offer() -> Duration {
    let began = Instant::now();
    thread::yield_now();
    began.elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_is_offered_less_often_to_those_who_keep_it() {
        let mut stretch = STRETCH_MIN;
        for _ in 0..20 {
            let longer = next_stretch(stretch, MOMENT);
            assert!(longer > stretch || longer == STRETCH_MAX);
            stretch = longer;
        }
        assert_eq!(stretch, STRETCH_MAX);
        assert_eq!(next_stretch(stretch, MOMENT / 2), STRETCH_MIN);
    }
}
