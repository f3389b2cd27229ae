//! The parts of a mail, told apart in one pass over its lines. Nothing recurses and no line is looked at twice, so that
//! a mail made to exhaust the stack or the processor does neither. A mail within a mail is one part.

use super::{
    fields::{is_field, is_folded},
    head::Head,
    problem::{Problem, Problems},
};

/// People forward mail of mail, but not that often.
const DEPTH_MAX: usize = 64;
/// Of all multiparts and what is in them. Digests of mailing lists have some hundred.
const PARTS_MAX: usize = 1_000;
/// A sentence for readers without MIME may stand before the first part.
const PREAMBLE_LINES_MAX: usize = 20;

pub(super) struct Message<'a> {
    pub(super) header: &'a [u8],
    /// In the order they stand.
    pub(super) leaves: Vec<Leaf<'a>>,
}

/// A part without parts.
pub(super) struct Leaf<'a> {
    pub(super) id: String,
    pub(super) head: Head,
    pub(super) body: &'a [u8],
    pub(super) is_root: bool,
}

/// A multipart that is being read.
struct Open {
    id: String,
    head: Head,
    boundary: Vec<u8>,
    body_start: usize,
    children: usize,
}

/// A leaf whose end is not found yet.
struct Pending {
    id: String,
    head: Head,
    body_start: usize,
}

/// A line between parts.
struct Delimiter {
    /// Of the multipart in `open`.
    level: usize,
    closes: bool,
    line: Line,
}

#[derive(Clone, Copy)]
struct Line {
    start: usize,
    /// Without white space at its end.
    text_end: usize,
    next: usize,
}

struct Splitter<'a, 'p> {
    raw: &'a [u8],
    /// From the outermost.
    open: Vec<Open>,
    pending: Option<Pending>,
    leaves: Vec<Leaf<'a>>,
    parts: usize,
    problems: &'p mut Problems,
}

pub(super) fn split<'a>(raw: &'a [u8], problems: &mut Problems) -> Message<'a> {
    let start = raw.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(raw.len());
    let mut splitter = Splitter { raw, open: Vec::new(), pending: None, leaves: Vec::new(), parts: 0, problems };
    let (header_end, body_start) = splitter.header_end(start);
    splitter.begin(start..header_end, body_start, "0".into());
    let mut at = body_start;
    while let Some(Delimiter { level, closes, line }) = splitter.next_delimiter(at) {
        splitter.end_leaf(line.start);
        splitter.abandon(level + 1, line.start);
        if closes {
            splitter.open.truncate(level);
            at = line.next;
        } else if splitter.parts >= PARTS_MAX {
            splitter.problems.note(Problem::TooManyParts);
            splitter.open.clear();
        } else {
            at = splitter.child(line.next);
        }
    }
    splitter.end_leaf(raw.len());
    splitter.abandon(0, raw.len());
    Message { header: &raw[start..header_end], leaves: splitter.leaves }
}

impl<'a> Splitter<'a, '_> {
    /// The next part of the innermost multipart; returns where its body begins.
    fn child(&mut self, start: usize) -> usize {
        let parent = self.open.last_mut().expect("a part follows a delimiter of an open multipart");
        let id = match parent.id.as_str() {
            "" => parent.children.to_string(),
            id => format!("{id}.{}", parent.children),
        };
        parent.children += 1;
        let (header_end, body_start) = self.header_end(start);
        self.begin(start..header_end, body_start, id);
        body_start
    }

    fn begin(&mut self, header: std::ops::Range<usize>, body_start: usize, id: String) {
        self.parts += 1;
        let parent = self.open.last().map(|open| open.head.mime_type.as_str());
        let default = if parent == Some("multipart/digest") { "message/rfc822" } else { "text/plain" };
        let head = Head::read(&self.raw[header], default, self.problems);
        match self.boundary(&head, body_start) {
            Some(boundary) => {
                // The children of the outermost are numbered as if it were not there.
                let id = if self.open.is_empty() { String::new() } else { id };
                self.open.push(Open { id, head, boundary, body_start, children: 0 });
            }
            None => self.pending = Some(Pending { id, head, body_start }),
        }
    }

    /// None for what is not to be taken apart.
    fn boundary(&mut self, head: &Head, body_start: usize) -> Option<Vec<u8>> {
        if !head.is_multipart() {
            return None;
        }
        if self.open.len() >= DEPTH_MAX {
            self.problems.note(Problem::TooDeep);
            return None;
        }
        let said = head.boundary.as_ref().map(|boundary| boundary.trim_end().as_bytes().to_vec());
        said.filter(|boundary| !boundary.is_empty()).or_else(|| {
            self.problems.note(Problem::NoBoundary);
            self.first_dashes(body_start)
        })
    }

    /// What would be the boundary if the first line that looks like a delimiter is one.
    fn first_dashes(&self, at: usize) -> Option<Vec<u8>> {
        let near = self.lines(at).take(PREAMBLE_LINES_MAX).take_while(|line| self.delimiter(*line).is_none());
        let mut dashed = near.filter_map(|line| self.raw[line.start..line.text_end].strip_prefix(b"--"));
        dashed.find(|boundary| !boundary.is_empty()).map(<[u8]>::to_vec)
    }

    /// Where the header that begins here ends, and where its body begins. A blank line may be missing.
    fn header_end(&self, start: usize) -> (usize, usize) {
        let mut lines = self.lines(start).peekable();
        let mut is_first = true;
        while let Some(line) = lines.next() {
            let text = &self.raw[line.start..line.next];
            if line.start == line.text_end && !is_folded(text) {
                return (line.start, line.next);
            }
            let is_part = is_field(text) || is_folded(text) && !is_first;
            let is_slip = !is_part && lines.peek().is_some_and(|next| is_field(&self.raw[next.start..next.next]));
            if self.delimiter(line).is_some() || !is_part && !is_slip {
                return (line.start, line.start);
            }
            is_first = false;
        }
        (self.raw.len(), self.raw.len())
    }

    fn next_delimiter(&self, at: usize) -> Option<Delimiter> {
        if self.open.is_empty() {
            return None;
        }
        self.lines(at).find_map(|line| self.delimiter(line))
    }

    /// Of the innermost multipart it can belong to.
    fn delimiter(&self, line: Line) -> Option<Delimiter> {
        let text = self.raw[line.start..line.text_end].strip_prefix(b"--")?;
        let levels = self.open.iter().enumerate().rev();
        levels.map(|(level, open)| (level, text.strip_prefix(open.boundary.as_slice()))).find_map(|(level, rest)| {
            match rest? {
                b"" => Some(Delimiter { level, closes: false, line }),
                b"--" => Some(Delimiter { level, closes: true, line }),
                _ => None,
            }
        })
    }

    fn end_leaf(&mut self, end: usize) {
        if let Some(Pending { id, head, body_start }) = self.pending.take() {
            self.leaves.push(Leaf { id, head, body: self.body(body_start, end), is_root: self.open.is_empty() });
        }
    }

    /// Multiparts from this level on that were never closed. One whose boundary did not occur is text.
    fn abandon(&mut self, level: usize, end: usize) {
        while self.open.len() > level {
            self.problems.note(Problem::Unterminated);
            let open = self.open.pop().expect("there is one beyond the level");
            if open.children == 0 {
                let head = Head { mime_type: "text/plain".into(), ..open.head };
                let is_root = self.open.is_empty();
                let id = if is_root { "0".into() } else { open.id };
                self.leaves.push(Leaf { id, head, body: self.body(open.body_start, end), is_root });
            }
        }
    }

    /// The line break before a delimiter belongs to that.
    fn body(&self, start: usize, end: usize) -> &'a [u8] {
        let body = &self.raw[start.min(end)..end];
        if end == self.raw.len() {
            return body;
        }
        let body = body.strip_suffix(b"\n").unwrap_or(body);
        body.strip_suffix(b"\r").unwrap_or(body)
    }

    fn lines(&self, start: usize) -> impl Iterator<Item = Line> + use<'a> {
        let raw = self.raw;
        let mut at = start;
        std::iter::from_fn(move || {
            let rest = raw.get(at..).filter(|rest| !rest.is_empty())?;
            let len = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |end| end + 1);
            let line = Line { start: at, text_end: at + rest[..len].trim_ascii_end().len(), next: at + len };
            at = line.next;
            Some(line)
        })
    }
}
