//! The lists of numbers that rows have beside them, as rows of their own.

use std::collections::BTreeMap;

use tokio_postgres::types::Type;

use super::{
    cells::Keys,
    error::Sql,
    link::{Db, Param},
    rows::Item,
    table::EdgeSql,
};

/// Parents, members, places.
#[derive(Default)]
pub(super) struct EdgeArrays {
    parents: Vec<i64>,
    members: Vec<i64>,
    places: Vec<i64>,
}

impl EdgeArrays {
    pub(super) fn of<'a>(items: impl Iterator<Item = &'a Item<'a>>) -> EdgeArrays {
        let mut arrays = EdgeArrays::default();
        for item in items {
            let Some(parent) = item.record.key.number() else { continue };
            for (place, member) in (0i64..).zip(&item.body.edges) {
                arrays.parents.push(parent);
                arrays.members.push(*member);
                arrays.places.push(place);
            }
        }
        arrays
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parents.is_empty()
    }

    pub(super) fn params(&self) -> [Param<'_>; 3] {
        [(&self.parents, Type::INT8_ARRAY), (&self.members, Type::INT8_ARRAY), (&self.places, Type::INT8_ARRAY)]
    }
}

/// The lists of these parents, in order.
pub(super) async fn read(db: &Db, sql: Option<&EdgeSql>, parents: &Keys) -> Sql<BTreeMap<i64, Vec<i64>>> {
    let (Some(sql), Keys::Numbers(_)) = (sql, parents) else {
        return Ok(BTreeMap::new());
    };
    let rows = db.query(&sql.select, &[parents.param()]).await?;
    let mut lists: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for row in &rows {
        lists.entry(row.try_get(0)?).or_default().push(row.try_get(1)?);
    }
    Ok(lists)
}
