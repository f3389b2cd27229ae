//! The segments of a stream drawn like a disk under a defragmenter: one cell for a stretch of the axis.

use highwater_core::{Purpose, Segment, SegmentStatus, StreamId};
use highwater_engine::StreamStatus;
use highwater_store::{Page, Store};

const COLUMNS: usize = 64;
const ROWS: usize = 6;
const PAGE: u32 = 5000;

/// What a cell shows: the most troubled of its segments.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cell {
    Sealed,
    Pending,
    Working,
    Waiting,
    Dead,
}

impl Cell {
    fn of(status: SegmentStatus) -> Cell {
        match status {
            SegmentStatus::Sealed => Cell::Sealed,
            SegmentStatus::Pending => Cell::Pending,
            SegmentStatus::InProgress => Cell::Working,
            SegmentStatus::RetryWait => Cell::Waiting,
            SegmentStatus::DeadLetter => Cell::Dead,
        }
    }

    fn glyph(self) -> char {
        match self {
            Cell::Sealed => '█',
            Cell::Pending => '·',
            Cell::Working => '▒',
            Cell::Waiting => '○',
            Cell::Dead => '✗',
        }
    }
}

const LEGEND: &str = "█ sealed  ▒ working  ○ waiting  ✗ dead letter  · pending";

pub(super) async fn draw(store: &dyn Store, status: &StreamStatus) -> highwater_store::Result<String> {
    let stream = match status.stream.parse() {
        Ok(stream) => StreamId { source: status.source.clone(), stream },
        Err(_) => return Ok(String::new()),
    };
    let total: u64 = SegmentStatus::ALL.iter().map(|state| status.segments(*state)).sum();
    let mut map = SegmentMap::new(total as usize);
    let mut after = None;
    loop {
        let segments = store.segments(&stream, Page { after, limit: PAGE }).await?;
        let Some(last) = segments.last() else { break };
        after = Some((last.span.start(), last.id));
        segments.iter().filter(|segment| segment.purpose == Purpose::Catchup).for_each(|segment| map.add(segment));
    }
    Ok(map.render())
}

struct SegmentMap {
    per_cell: usize,
    cells: Vec<Cell>,
    seen: usize,
}

impl SegmentMap {
    fn new(total: usize) -> Self {
        SegmentMap { per_cell: total.div_ceil(COLUMNS * ROWS).max(1), cells: Vec::new(), seen: 0 }
    }

    fn add(&mut self, segment: &Segment) {
        let cell = Cell::of(segment.status);
        if self.seen.is_multiple_of(self.per_cell) {
            self.cells.push(cell);
        } else if let Some(last) = self.cells.last_mut() {
            *last = (*last).max(cell);
        }
        self.seen += 1;
    }

    fn render(&self) -> String {
        let rows = self.cells.chunks(COLUMNS).map(|row| {
            let glyphs: String = row.iter().map(|cell| cell.glyph()).collect();
            format!("  {glyphs}\n")
        });
        let rows: String = rows.collect();
        if rows.is_empty() { rows } else { format!("{rows}  {LEGEND}") }
    }
}

#[cfg(test)]
mod tests {
    use highwater_core::{Position, SegmentId, Span};

    use super::*;

    #[test]
    fn a_cell_shows_the_worst_of_its_segments() {
        let mut map = SegmentMap::new(1000);
        for number in 0..1000 {
            let status = if number == 500 { SegmentStatus::DeadLetter } else { SegmentStatus::Sealed };
            let span = Span::new(Position(number), Position(number + 1));
            map.add(&Segment { id: SegmentId(number), purpose: Purpose::Catchup, span, status });
        }
        let drawn = map.render();
        assert_eq!(drawn.lines().count(), 7);
        assert_eq!(drawn.matches('█').count() + 1, 1000usize.div_ceil(3) + 1, "every cell but one, and the legend");
        assert_eq!(drawn.matches('✗').count(), 2, "one cell and the legend");
    }
}
