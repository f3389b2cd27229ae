//! The statements that bring new rows and their edges, which is most of what a mirror writes.

use highwater_core::{Value, schema::Table};
use rusqlite::{CachedStatement, Connection};

use super::{
    error::{Fault, Sql},
    table::{EdgeSql, TableSql, ValueParam},
};
use crate::rules::Arrival;

/// Inserts rows that came together. Of most rows most columns are empty: what is bound as nothing already, or is the same
/// in all rows, is not bound again.
pub(super) struct RowInsert<'a> {
    statement: CachedStatement<'a>,
    /// By column: whether the last row had something there.
    filled: Vec<bool>,
    was_tagged: bool,
}

impl<'a> RowInsert<'a> {
    pub(super) fn of(db: &'a Connection, sql: &TableSql, table: &Table, arrival: Arrival) -> Sql<Self> {
        let width = table.columns.len();
        // Out of the cache it comes with nothing bound.
        let mut statement = db.prepare_cached(&sql.insert)?;
        for time in 1..=3 {
            statement.raw_bind_parameter(width + time, arrival.now.as_millis())?;
        }
        Ok(RowInsert { statement, filled: vec![false; width], was_tagged: false })
    }

    /// Whether the row is new. The texts in `left_out` are not written.
    pub(super) fn run(&mut self, values: &[Value], left_out: &[usize], check: i64, tag: Option<&str>) -> Sql<bool> {
        // A column without a value would get that of the row before.
        if values.len() != self.filled.len() {
            return Err(Fault::refused(format!("a row of {} columns has {} values", self.filled.len(), values.len())));
        }
        for (place, value) in values.iter().enumerate() {
            let value = if left_out.contains(&place) { &Value::Null } else { value };
            self.bind(place, value)?;
        }
        let width = self.filled.len();
        self.statement.raw_bind_parameter(width + 4, check)?;
        if tag.is_some() || self.was_tagged {
            self.statement.raw_bind_parameter(width + 5, tag)?;
            self.was_tagged = tag.is_some();
        }
        Ok(self.statement.raw_execute()? == 1)
    }

    fn bind(&mut self, place: usize, value: &Value) -> Sql<()> {
        let is_filled = !matches!(value, Value::Null);
        if is_filled || self.filled[place] {
            self.filled[place] = is_filled;
            self.statement.raw_bind_parameter(place + 1, ValueParam(value))?;
        }
        Ok(())
    }
}

/// Edges by statement: a statement that is run takes as long as to insert one. Largest first, down to one, so that none is
/// left over.
pub(super) const EDGES_AT_ONCE: [usize; 3] = [32, 8, 1];

/// Inserts edges, as many at once as there are. What waits is written by `flush` at the latest.
pub(super) struct EdgeInsert<'a> {
    /// By how many they insert.
    statements: Vec<(usize, CachedStatement<'a>)>,
    waiting: Vec<Edge>,
}

/// Parent, member, order.
type Edge = [i64; 3];

impl<'a> EdgeInsert<'a> {
    pub(super) fn of(db: &'a Connection, sql: &EdgeSql) -> Sql<Self> {
        let prepare = |(rows, sql): (usize, &String)| -> Sql<_> { Ok((rows, db.prepare_cached(sql)?)) };
        let statements = EDGES_AT_ONCE.into_iter().zip(&sql.inserts).map(prepare).collect::<Sql<_>>()?;
        Ok(EdgeInsert { statements, waiting: Vec::with_capacity(EDGES_AT_ONCE[0]) })
    }

    pub(super) fn add(&mut self, parent: i64, members: &[i64]) -> Sql<()> {
        for (order, member) in (0..).zip(members) {
            self.waiting.push([parent, *member, order]);
            if self.waiting.len() == EDGES_AT_ONCE[0] {
                self.flush()?;
            }
        }
        Ok(())
    }

    pub(super) fn flush(&mut self) -> Sql<()> {
        let mut rest = &self.waiting[..];
        for (rows, statement) in &mut self.statements {
            while let Some((edges, others)) = rest.split_at_checked(*rows) {
                insert(statement, edges)?;
                rest = others;
            }
        }
        debug_assert!(rest.is_empty(), "a statement inserts a single one");
        self.waiting.clear();
        Ok(())
    }
}

fn insert(statement: &mut CachedStatement<'_>, edges: &[Edge]) -> Sql<()> {
    for (place, number) in (1_usize..).zip(edges.as_flattened()) {
        statement.raw_bind_parameter(place, number)?;
    }
    statement.raw_execute()?;
    Ok(())
}
