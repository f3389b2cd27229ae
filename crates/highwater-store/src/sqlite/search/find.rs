//! A query in the words of FTS5, and what it finds.

use highwater_core::search::{Query, Term};
use rusqlite::{Connection, params};

use super::{amend::key_of, number_of};
use crate::{Collection, Found, Hit, sqlite::error::Sql};

/// How much a word counts in each column.
const WEIGHTS: &str = "8.0, 4.0, 2.0, 1.0";

pub(super) fn find(db: &mut Connection, query: &Query, among: &[Collection], limit: u32) -> Sql<Found> {
    let snapshot = db.transaction()?;
    let numbers = numbers_of(&snapshot, among)?;
    let matching = format!(
        "FROM search_words JOIN search_documents AS d ON d.id = search_words.rowid
         WHERE search_words MATCH ?1 AND d.collection IN ({})",
        listed(&numbers)
    );
    let spelled = spelled(query);
    let total: i64 = snapshot.query_row(&format!("SELECT count(*) {matching}"), [&spelled], |row| row.get(0))?;
    let mut select = snapshot.prepare(&format!(
        "SELECT d.collection, d.key {matching} ORDER BY bm25(search_words, {WEIGHTS}), d.at DESC, d.key LIMIT ?2"
    ))?;
    let hits = select.query_map(params![spelled, limit], |row| {
        let collection: i64 = row.get(0)?;
        let place = numbers.iter().position(|number| *number == Some(collection)).expect("only these were asked for");
        Ok(Hit { collection: place, key: key_of(row.get_ref(1)?) })
    })?;
    Ok(Found { total: total.cast_unsigned(), hits: hits.collect::<Result<_, _>>()? })
}

pub(super) fn count(db: &Connection, among: &[Collection]) -> Sql<u64> {
    let numbers = numbers_of(db, among)?;
    let count = format!("SELECT count(*) FROM search_documents WHERE collection IN ({})", listed(&numbers));
    Ok(db.query_row(&count, [], |row| row.get::<_, i64>(0))?.cast_unsigned())
}

/// In the order of the collections; none of those that have no documents.
fn numbers_of(db: &Connection, among: &[Collection]) -> Sql<Vec<Option<i64>>> {
    among.iter().map(|of| number_of(db, of)).collect()
}

fn listed(numbers: &[Option<i64>]) -> String {
    numbers.iter().flatten().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn spelled(query: &Query) -> String {
    let any = |terms: &[Term]| terms.iter().map(term).collect::<Vec<_>>().join(" OR ");
    let wanted: Vec<_> = query.wanted().iter().map(|group| format!("({})", any(group))).collect();
    let wanted = wanted.join(" AND ");
    if query.unwanted().is_empty() { wanted } else { format!("({wanted}) NOT ({})", any(query.unwanted())) }
}

/// Words are letters and digits: within quotes none of them means anything to FTS5.
fn term(term: &Term) -> String {
    let field = term.field.map_or(String::new(), |field| format!("{field} : "));
    let prefix = if term.is_prefix { " *" } else { "" };
    format!("{field}\"{}\"{prefix}", term.words.join(" "))
}
