//! Search: an index brought up to date with the mirror, and what it finds, read from the rows themselves.

mod error;
mod progress;
mod refresh;

use highwater_core::{
    Key, SourceName, Timestamp,
    search::{Entry, Field, Piece, Query, brief, marked, snippet},
};
use highwater_sources::search::Searched;
use highwater_store::{Collection, ErrorKind, Hit, Opening, SearchIndex, TextStore};
use serde_json::Value as Json;

use error::{in_index, in_store};

pub use error::SearchError;
pub use progress::IndexProgress;
pub use refresh::Indexed;

/// What is searched, and where its words are kept.
pub struct Search<'a> {
    pub store: &'a dyn TextStore,
    pub index: &'a dyn SearchIndex,
    pub among: Vec<Among>,
}

/// A stream of a source.
#[derive(Clone, Debug)]
pub struct Among {
    pub source: SourceName,
    pub kind: &'static str,
    pub searched: Searched,
}

type Result<T> = std::result::Result<T, SearchError>;

#[derive(Clone, Debug)]
pub struct Findings {
    /// How many there are; the matches are the best of them.
    pub total: u64,
    pub matches: Vec<Match>,
}

/// An object that was found, fit to be shown.
#[derive(Clone, Debug)]
pub struct Match {
    pub source: SourceName,
    pub kind: &'static str,
    pub stream: String,
    pub key: Key,
    pub at: Option<Timestamp>,
    pub title: Vec<Piece>,
    pub author: Option<String>,
    pub snippet: Vec<Piece>,
    pub facts: Vec<(&'static str, Json)>,
}

impl Search<'_> {
    /// Finds, in an index that says what the mirror says, or in one as it is. One that turns out to be damaged is made
    /// again, if it may be.
    pub async fn run(
        &self,
        query: &Query,
        limit: u32,
        opening: Opening,
        progress: &IndexProgress,
    ) -> Result<(Indexed, Findings)> {
        match self.attempt(query, limit, opening, progress).await {
            Err(SearchError::Index(error)) if error.kind == ErrorKind::Corrupt && opening == Opening::Refresh => {
                self.index.clear().await.map_err(in_index)?;
                progress.restart();
                self.attempt(query, limit, opening, progress).await
            }
            outcome => outcome,
        }
    }

    async fn attempt(
        &self,
        query: &Query,
        limit: u32,
        opening: Opening,
        progress: &IndexProgress,
    ) -> Result<(Indexed, Findings)> {
        let indexed = match opening {
            Opening::Refresh => self.refreshed(progress).await?,
            Opening::AsIs => {
                let documents = self.index.count(&self.collections()).await.map_err(in_index)?;
                Indexed { documents, ..Indexed::default() }
            }
        };
        Ok((indexed, self.find(query, limit).await?))
    }

    async fn refreshed(&self, progress: &IndexProgress) -> Result<Indexed> {
        let mut indexed = Indexed::default();
        for searched in self.among.iter().map(|among| &among.searched) {
            progress.at(searched.table.name);
            refresh::refresh(self.store, self.index, searched, progress, &mut indexed).await?;
        }
        Ok(indexed)
    }

    async fn find(&self, query: &Query, limit: u32) -> Result<Findings> {
        let found = self.index.find(query, &self.collections(), limit).await.map_err(in_index)?;
        let mut matches = Vec::new();
        for hit in &found.hits {
            matches.extend(self.read(query, hit).await?);
        }
        Ok(Findings { total: found.total, matches })
    }

    fn collections(&self) -> Vec<Collection> {
        self.among.iter().map(|among| Collection::of(among.searched.table)).collect()
    }

    /// None if it is gone since it was indexed.
    async fn read(&self, query: &Query, hit: &Hit) -> Result<Option<Match>> {
        let Among { source, kind, searched } = &self.among[hit.collection];
        let keys = std::slice::from_ref(&hit.key);
        let texts = self.store.texts(searched.table, searched.searchable, keys).await.map_err(in_store)?;
        let Some(row) = texts.rows.into_iter().next() else { return Ok(None) };
        let entry = (searched.searchable.read)(&row.values, &row.beside);
        Ok(Some(Match {
            source: source.clone(),
            kind,
            stream: searched.stream.to_string(),
            key: hit.key.clone(),
            at: entry.at,
            title: entry.title.as_deref().map_or_else(Vec::new, |title| marked(query, title)),
            author: entry.author.as_deref().map(brief),
            snippet: snippet(query, bodies(&entry)),
            facts: entry.facts,
        }))
    }
}

/// What a snippet is taken from: title and author are shown as they are.
fn bodies(entry: &Entry) -> impl Iterator<Item = &str> {
    let of = |field: Field| entry.texts.iter().filter(move |(of, _)| *of == field).map(|(_, text)| text.as_str());
    of(Field::Text).chain(of(Field::Addressee))
}
