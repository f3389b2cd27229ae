//! Real items from a file of JSON lines, kept in memory as they stand in the file.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, BufRead, BufReader, Read},
    ops::RangeInclusive,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use serde::Deserialize;

use super::{item::Flavour, tree::Kind, world::Listing};

const GZIP_MAGIC: [u8; 2] = [0x1F, 0x8B];

#[derive(Debug, thiserror::Error)]
#[error("cannot load items from {path}", path = path.display())]
pub struct LoadError {
    path: PathBuf,
    source: LoadErrorKind,
}

#[derive(Debug, thiserror::Error)]
enum LoadErrorKind {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("line {line} is not an item")]
    NotAnItem { line: usize, source: serde_json::Error },
    #[error("line {line} has id {found} where {expected} was due; ids must ascend without a gap")]
    Gap { line: usize, found: u64, expected: u64 },
    #[error("the file has no items")]
    Empty,
}

#[derive(Debug)]
pub(super) struct Loaded {
    first: u64,
    rows: Vec<Row>,
    submitted: HashMap<String, Vec<u64>>,
}

#[derive(Debug)]
struct Row {
    body: Bytes,
    by: Option<String>,
    listing: Option<Listing>,
    comment: bool,
}

/// The little a list or a profile needs; everything else in a line may have any shape.
#[derive(Deserialize)]
struct Line {
    id: u64,
    by: Option<String>,
    r#type: Option<String>,
    title: Option<String>,
}

impl Loaded {
    pub(super) fn open(path: &Path) -> Result<Self, LoadError> {
        let load = || Loaded::read(reader(path)?);
        load().map_err(|source| LoadError { path: path.to_owned(), source })
    }

    pub(super) fn ids(&self) -> RangeInclusive<u64> {
        self.first..=self.first + self.rows.len() as u64 - 1
    }

    pub(super) fn item(&self, id: u64) -> Option<Bytes> {
        self.row(id).map(|row| row.body.clone())
    }

    pub(super) fn author(&self, id: u64) -> Option<&str> {
        self.row(id)?.by.as_deref()
    }

    pub(super) fn submitted(&self, name: &str) -> Option<&[u64]> {
        self.submitted.get(name).map(Vec::as_slice)
    }

    pub(super) fn listing(&self, id: u64) -> Option<Listing> {
        self.row(id)?.listing
    }

    pub(super) fn is_comment(&self, id: u64) -> bool {
        self.row(id).is_some_and(|row| row.comment)
    }

    fn row(&self, id: u64) -> Option<&Row> {
        self.rows.get(usize::try_from(id.checked_sub(self.first)?).ok()?)
    }

    fn read(lines: impl BufRead) -> Result<Self, LoadErrorKind> {
        let mut loaded = Loaded { first: 0, rows: Vec::new(), submitted: HashMap::new() };
        for (at, text) in lines.lines().enumerate() {
            loaded.push(at + 1, text?.trim())?;
        }
        if loaded.rows.is_empty() { Err(LoadErrorKind::Empty) } else { Ok(loaded) }
    }

    fn push(&mut self, line: usize, text: &str) -> Result<(), LoadErrorKind> {
        let parsed: Line = serde_json::from_str(text).map_err(|source| LoadErrorKind::NotAnItem { line, source })?;
        if self.rows.is_empty() {
            self.first = parsed.id;
        }
        let expected = self.first + self.rows.len() as u64;
        if parsed.id != expected {
            return Err(LoadErrorKind::Gap { line, found: parsed.id, expected });
        }
        if let Some(by) = &parsed.by {
            self.submitted.entry(by.clone()).or_default().push(parsed.id);
        }
        let listing = parsed.listing();
        let comment = parsed.r#type.as_deref() == Some("comment");
        self.rows.push(Row { body: Bytes::copy_from_slice(text.as_bytes()), by: parsed.by, listing, comment });
        Ok(())
    }
}

impl Line {
    /// Dead and deleted stories have no title.
    fn listing(&self) -> Option<Listing> {
        let kind = match self.r#type.as_deref()? {
            "story" => Kind::Story,
            "job" => Kind::Job,
            "poll" => Kind::Poll,
            _ => return None,
        };
        let title = self.title.as_deref()?;
        let flavour = match title {
            _ if title.starts_with("Ask HN") => Flavour::Ask,
            _ if title.starts_with("Show HN") => Flavour::Show,
            _ => Flavour::Link,
        };
        Some(Listing { kind, flavour })
    }
}

/// Plain or gzip, by the first two bytes rather than by name.
fn reader(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let mut file = BufReader::new(File::open(path)?);
    let gzip = file.fill_buf()?.starts_with(&GZIP_MAGIC);
    let bytes: Box<dyn Read> = if gzip { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
    Ok(Box::new(BufReader::new(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Loaded::read(text.as_bytes()).expect_err("the lines must be refused").to_string()
    }

    #[test]
    fn lines_are_kept_as_they_are() {
        let text =
            "{\"id\":7,\"by\":\"a\",\"title\":\"Ask HN: x\",\"type\":\"story\"}\n{\"id\":8,\"text\":\"\\ud83d\"}\n";
        let loaded = Loaded::read(text.as_bytes()).unwrap();
        assert_eq!(loaded.ids(), 7..=8);
        assert_eq!(loaded.item(8).unwrap(), r#"{"id":8,"text":"\ud83d"}"#);
        assert_eq!([loaded.item(6), loaded.item(9)], [None, None]);
        assert_eq!(loaded.submitted("a"), Some(&[7][..]));
        assert_eq!(loaded.listing(7).unwrap().flavour, Flavour::Ask);
    }

    #[test]
    fn gaps_and_rubbish_are_refused_with_the_line() {
        assert!(refused("{\"id\":7}\n{\"id\":9}").contains("line 2 has id 9 where 8"));
        assert!(refused("{\"id\":7}\nnull").contains("line 2"));
        assert!(refused("").contains("no items"));
    }
}
