//! Server-sent events from bytes, however these are cut into pieces. It reads no network and knows no event; what an
//! event may hold is bounded.

use std::collections::VecDeque;

/// The whole state of Hacker News' updates is a few kilobytes.
const EVENT_BYTES_MAX: usize = 8 * 1024 * 1024;
const BOM: &[u8] = "\u{feff}".as_bytes();

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) data: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event is larger than {0} bytes")]
pub(crate) struct TooLarge(usize);

pub(crate) struct Decoder {
    /// The line under way, without its end.
    line: Vec<u8>,
    name: Vec<u8>,
    /// Every line of data with a newline behind it.
    data: Vec<u8>,
    max: usize,
    is_first_line: bool,
    /// A newline next belongs to the line end before it.
    after_return: bool,
}

impl Default for Decoder {
    fn default() -> Self {
        Decoder::bounded(EVENT_BYTES_MAX)
    }
}

impl Decoder {
    fn bounded(max: usize) -> Self {
        Decoder { line: Vec::new(), name: Vec::new(), data: Vec::new(), max, is_first_line: true, after_return: false }
    }

    /// Adds the events that end within these bytes. After an error nothing more can be made of the rest.
    pub(crate) fn push(&mut self, mut bytes: &[u8], events: &mut VecDeque<Event>) -> Result<(), TooLarge> {
        if self.after_return && !bytes.is_empty() {
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
            self.after_return = false;
        }
        while let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.extend_line(&bytes[..end])?;
            self.end_line(events);
            let is_return = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            self.after_return = is_return && bytes.is_empty();
            if is_return {
                bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
            }
        }
        self.extend_line(bytes)
    }

    /// Lines that are thrown away once they are read, such as comments, count while they last: a line without an end
    /// would fill the memory.
    fn extend_line(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        if self.line.len() + self.name.len() + self.data.len() + bytes.len() > self.max {
            return Err(TooLarge(self.max));
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self, events: &mut VecDeque<Event>) {
        let mut line = std::mem::take(&mut self.line);
        let text = if self.is_first_line { line.strip_prefix(BOM).unwrap_or(&line) } else { &line };
        self.is_first_line = false;
        if text.is_empty() {
            events.extend(self.end_event());
        } else {
            self.field(text);
        }
        line.clear();
        self.line = line;
    }

    fn field(&mut self, line: &[u8]) {
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (name, value) = (&line[..colon], line.get(colon + 1..).unwrap_or_default());
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"event" => value.clone_into(&mut self.name),
            b"data" => {
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            // A comment has no name. `id` and `retry` are for those who resume, which Firebase does not offer.
            _ => {}
        }
    }

    /// Without data there is no event.
    fn end_event(&mut self) -> Option<Event> {
        let name = std::mem::take(&mut self.name);
        let mut data = std::mem::take(&mut self.data);
        data.pop()?;
        let name = if name.is_empty() { "message".into() } else { text(name) };
        Some(Event { name, data: text(data) })
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests;
