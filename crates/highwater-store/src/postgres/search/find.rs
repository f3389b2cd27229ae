//! A query in the server's words, and what it finds.

use futures_util::future::{try_join, try_join3};
use highwater_core::search::{Query, Term};
use tokio_postgres::{Row, types::Type};

use super::{
    UNHURRIED,
    amend::{key_at, weight},
};
use crate::{
    Collection, Found, Hit,
    postgres::{
        cells::count as count_at,
        error::Sql,
        link::{Db, Param},
    },
};

pub(super) async fn find(db: &Db, query: &Query, among: &[Collection], limit: u32) -> Sql<Found> {
    let matching = "FROM search_documents AS d JOIN search_collections AS c ON c.id = d.collection
         WHERE d.words @@ $1::tsquery AND c.name = ANY($2)";
    let total = format!("SELECT count(*) {matching}");
    let select = format!(
        "SELECT c.name, d.number, d.name {matching}
         ORDER BY ts_rank(d.words, $1::tsquery) DESC, d.at DESC NULLS LAST, d.number, d.name LIMIT {limit}"
    );
    let (spelled, names) = (spelled(query), names_of(among));
    let params: [Param<'_>; 2] = [(&spelled, Type::TEXT), (&names, Type::TEXT_ARRAY)];
    try_join(db.begin(), db.run(UNHURRIED)).await?;
    let (total, rows, ()) = try_join3(db.query(&total, &params), db.query(&select, &params), db.commit()).await?;
    let hit = |row: &Row| -> Sql<Hit> {
        let name: &str = row.try_get(0)?;
        let collection = among.iter().position(|of| of.name == name).expect("only these were asked for");
        Ok(Hit { collection, key: key_at(&among[collection], row, 1)? })
    };
    Ok(Found { total: count_at(&total[0], 0)?, hits: rows.iter().map(hit).collect::<Sql<_>>()? })
}

pub(super) async fn count(db: &Db, among: &[Collection]) -> Sql<u64> {
    let select = "SELECT count(*) FROM search_documents AS d JOIN search_collections AS c ON c.id = d.collection
         WHERE c.name = ANY($1)";
    let names = names_of(among);
    try_join(db.begin(), db.run(UNHURRIED)).await?;
    let params: [Param<'_>; 1] = [(&names, Type::TEXT_ARRAY)];
    let (rows, ()) = try_join(db.query(select, &params), db.commit()).await?;
    count_at(&rows[0], 0)
}

fn names_of(among: &[Collection]) -> Vec<&str> {
    among.iter().map(|of| of.name.as_str()).collect()
}

fn spelled(query: &Query) -> String {
    let any = |terms: &[Term]| terms.iter().map(term).collect::<Vec<_>>().join(" | ");
    let wanted = query.wanted().iter().map(|group| format!("({})", any(group)));
    let unwanted = query.unwanted().iter().map(|one| format!("!({})", term(one)));
    wanted.chain(unwanted).collect::<Vec<_>>().join(" & ")
}

/// Words are letters and digits: within quotes none of them means anything to the server.
fn term(term: &Term) -> String {
    let last = term.words.len() - 1;
    let word = |(place, word): (usize, &String)| {
        let prefix = if term.is_prefix && place == last { "*" } else { "" };
        let weight = term.field.map_or(String::new(), |field| weight(field).to_string());
        if prefix.is_empty() && weight.is_empty() { format!("'{word}'") } else { format!("'{word}':{prefix}{weight}") }
    };
    term.words.iter().enumerate().map(word).collect::<Vec<_>>().join(" <-> ")
}
