//! How a claim is shared between what is new and what is looked at again: neither waits for the end of the other.

use super::SegmentRow;

/// Segments that somebody works on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AtWork {
    pub(crate) rescans: i64,
    pub(crate) catchups: i64,
}

/// What a claim takes of what nobody has begun, from the lowest up. What is at work is counted only if there is something
/// to be looked at again, and more of that is taken if nothing is new.
pub(crate) fn shared_out(
    again: Vec<SegmentRow>,
    new: Vec<SegmentRow>,
    limit: u32,
    at_work: Option<AtWork>,
) -> Vec<SegmentRow> {
    let share = at_work.map_or(0, |at_work| rescan_share(limit, at_work)) as usize;
    let limit = limit as usize;
    let agains = again.len().min(share.max(limit.saturating_sub(new.len())));
    let mut chosen: Vec<_> = again.into_iter().take(agains).collect();
    chosen.extend(new.into_iter().take(limit - agains));
    chosen.sort_by_key(|segment| (segment.span.start(), segment.id));
    chosen
}

/// How many of the segments of a claim are to be rescans, while there are enough of both: as many as make both equal.
/// A first catch-up takes days, and somebody has been blind until a pass has ended; a pass over everything takes days,
/// too.
fn rescan_share(limit: u32, at_work: AtWork) -> u32 {
    let behind = at_work.catchups.saturating_sub(at_work.rescans);
    let share = (i64::from(limit) + 1).saturating_add(behind) / 2;
    u32::try_from(share.clamp(0, i64::from(limit))).unwrap_or(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_purposes_end_up_with_as_many() {
        let share = |limit, rescans, catchups| rescan_share(limit, AtWork { rescans, catchups });
        assert_eq!([share(1, 0, 0), share(1, 1, 0), share(1, 1, 1)], [1, 0, 1]);
        assert_eq!([share(4, 0, 0), share(4, 3, 1), share(4, 9, 0), share(4, 0, 9)], [2, 1, 0, 4]);
        assert_eq!(share(0, 0, 5), 0);
    }
}
