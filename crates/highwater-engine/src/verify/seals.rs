//! What the ledger says was sealed. A chain that holds may have lost its end, or all of it: then what was promised since
//! has no line.

use std::collections::BTreeMap;

use highwater_core::{Position, Span};
use highwater_store::LedgerLine;

/// By stream.
#[derive(Default)]
pub(super) struct Seals(BTreeMap<String, Vec<Span>>);

impl Seals {
    pub(super) fn note(&mut self, line: &LedgerLine) {
        if line.event_type != "SEGMENT_SEALED" {
            return;
        }
        let position = |member: &str| line.payload[member].as_i64().map(Position);
        if let (Some(stream), Some(start), Some(end)) =
            (line.payload["stream"].as_str(), position("start"), position("end"))
        {
            self.0.entry(stream.to_owned()).or_default().push(Span::new(start, end));
        }
    }

    /// Segments are joined after they were sealed, so that a line may be about a part of one.
    pub(super) fn first_untold(&self, stream: &str, sealed: &[Span]) -> Option<Span> {
        let mut told = self.0.get(stream).cloned().unwrap_or_default();
        told.sort_by_key(|span| span.start());
        let told = joined(told);
        sealed.iter().find_map(|span| {
            let before = told.partition_point(|one| one.start() <= span.start());
            let reaches = before.checked_sub(1).map_or(span.start(), |at| told[at].end());
            (reaches < span.end()).then(|| Span::new(reaches.max(span.start()), span.end()))
        })
    }
}

/// Of spans in the order of their starts: without overlaps, and without borders between neighbours.
fn joined(spans: Vec<Span>) -> Vec<Span> {
    let mut joined: Vec<Span> = Vec::new();
    for span in spans {
        match joined.last_mut() {
            Some(last) if span.start() <= last.end() => {
                *last = Span::new(last.start(), last.end().max(span.end()));
            }
            _ => joined.push(span),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(spans: &[(i64, i64)]) -> Vec<Span> {
        spans.iter().map(|(start, end)| Span::new(Position(*start), Position(*end))).collect()
    }

    fn untold(told: &[(i64, i64)], sealed: &[(i64, i64)]) -> Option<(i64, i64)> {
        let seals = Seals(BTreeMap::from([("items".to_owned(), spans(told))]));
        seals.first_untold("items", &spans(sealed)).map(|span| (span.start().0, span.end().0))
    }

    #[test]
    fn what_is_sealed_has_a_line() {
        let told = [(11, 21), (1, 11), (15, 18), (21, 31)];
        assert_eq!(untold(&told, &[(1, 11), (11, 21), (21, 31)]), None);
        assert_eq!(untold(&told, &[(1, 31)]), None, "joined since");
        assert_eq!(untold(&told, &[(1, 11), (21, 41)]), Some((31, 41)));
        assert_eq!(untold(&told[..1], &[(1, 11), (11, 21)]), Some((1, 11)));
        assert_eq!(untold(&[], &[(1, 11)]), Some((1, 11)), "all lines are gone");
        assert_eq!(untold(&[], &[]), None);
    }
}
