//! The fields of a header: names, and values that run over several lines.

use super::{
    charset,
    problem::{Problem, Problems},
    words,
};

/// Of all fields together. Mailing lists and filters write tens of kilobytes.
const HEADER_BYTES_MAX: usize = 1024 * 1024;
/// Of one field: some thousand recipients.
const FIELD_BYTES_MAX: usize = 256 * 1024;

/// A field, its value unfolded, in text, not yet decoded.
struct Field<'a> {
    name: &'a str,
    value: String,
}

/// In the order they stand.
pub(super) struct Fields<'a>(Vec<Field<'a>>);

impl<'a> Fields<'a> {
    /// Lines that belong to no field are left out.
    pub(super) fn read(header: &'a [u8], problems: &mut Problems) -> Self {
        if header.len() > HEADER_BYTES_MAX {
            problems.note(Problem::HeaderTooLong);
        }
        let mut header = &header[..header.len().min(HEADER_BYTES_MAX)];
        let mut fields = Vec::new();
        while !header.is_empty() {
            let (name, rest) = name(header).map_or((None, header), |(name, rest)| (Some(name), rest));
            let (value, rest) = rest.split_at(value_len(rest));
            fields.extend(name.map(|name| Field { name, value: unfolded(value, problems) }));
            header = rest;
        }
        Fields(fields)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Of a name in lower case.
    pub(super) fn first(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value.as_str())
    }

    pub(super) fn decoded(&self) -> Vec<(String, String)> {
        self.0.iter().map(|field| (field.name.to_owned(), words::decode(&field.value))).collect()
    }
}

/// Of an id: what stands in the brackets if it begins with one.
pub(super) fn without_brackets(value: &str) -> String {
    let inner = value.strip_prefix('<').map(|rest| rest.split_once('>').map_or(rest, |(inner, _)| inner));
    inner.unwrap_or(value).trim().to_owned()
}

/// Whether a line begins a field.
pub(super) fn is_field(line: &[u8]) -> bool {
    name(line).is_some()
}

pub(super) fn is_folded(line: &[u8]) -> bool {
    matches!(line.first(), Some(b' ' | b'\t'))
}

/// A name and what follows its colon. Some senders put a space before that.
fn name(line: &[u8]) -> Option<(&str, &[u8])> {
    let end = line.iter().position(|byte| !byte.is_ascii_graphic() || *byte == b':').filter(|end| *end > 0)?;
    let (name, rest) = line.split_at(end);
    let spaces = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let rest = rest[spaces..].strip_prefix(b":")?;
    Some((str::from_utf8(name).ok()?, rest))
}

/// Up to the end of the line that is not continued.
fn value_len(bytes: &[u8]) -> usize {
    let mut len = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        if len > 0 && !is_folded(line) {
            break;
        }
        len += line.len();
    }
    len
}

fn unfolded(value: &[u8], problems: &mut Problems) -> String {
    if value.len() > FIELD_BYTES_MAX {
        problems.note(Problem::HeaderTooLong);
    }
    let text = charset::guess(&value[..value.len().min(FIELD_BYTES_MAX)]);
    let text = text.trim();
    if !text.contains('\n') {
        return text.to_owned();
    }
    let lines = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    let mut unfolded = String::with_capacity(text.len());
    for (number, line) in lines.enumerate() {
        match line.strip_prefix('\t') {
            Some(line) if number > 0 => unfolded.extend([" ", line]),
            _ => unfolded.push_str(line),
        }
    }
    unfolded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(header: &[u8], expected: &[(&str, &str)]) {
        let fields = Fields::read(header, &mut Problems::default());
        let found: Vec<_> = fields.0.iter().map(|field| (field.name, field.value.as_str())).collect();
        assert_eq!(found, expected, "{:?}", String::from_utf8_lossy(header));
    }

    #[test]
    fn values_are_unfolded() {
        check(b"A: 1\r\nb:2\r\n\t3\r\n  4\r\nC:\r\n 5\r\n", &[("A", "1"), ("b", "2 3  4"), ("C", "5")]);
        check(b"A: 1\n 2\nB : 3", &[("A", "1 2"), ("B", "3")]);
        check(b"A:\r\nB:\r\n", &[("A", ""), ("B", "")]);
    }

    #[test]
    fn what_is_no_field_is_left_out() {
        check(b"From ann@example.com Mon Jan 1 10:00:00\r\nA: 1\r\n", &[("A", "1")]);
        check(b"A: 1\r\nno field\r\n and more of it\r\n: x\r\nB: 2\r\n", &[("A", "1"), ("B", "2")]);
        check(b" folded: under nothing\r\nA: 1\r\n", &[("A", "1")]);
        check(b"K\xf6ln: 1\r\nA: K\xf6ln\0\r\n", &[("A", "Köln\u{fffd}")]);
    }

    #[test]
    fn an_endless_header_is_cut_and_told_of() {
        let mut problems = Problems::default();
        let header = [b"A: ".to_vec(), vec![b'x'; 2 * FIELD_BYTES_MAX], b"\r\nB: 2\r\n".to_vec()].concat();
        let fields = Fields::read(&header, &mut problems);
        assert!(fields.first("a").unwrap().len() < FIELD_BYTES_MAX);
        assert_eq!(fields.first("b"), Some("2"));
        assert_eq!(problems.into_text().as_deref(), Some("header too long"));
        let mut problems = Problems::default();
        let header = b"A: 1\r\n".repeat(HEADER_BYTES_MAX);
        let fields = Fields::read(&header, &mut problems);
        assert!(fields.0.len() <= HEADER_BYTES_MAX / 6 + 1);
        assert_eq!(problems.into_text().as_deref(), Some("header too long"));
    }

    #[test]
    fn an_id_loses_its_brackets() {
        for id in ["<a@b>", "a@b", "<a@b", "<a@b> (added by x)", "< a@b >"] {
            assert_eq!(without_brackets(id), "a@b");
        }
    }
}
