//! The connection that writes, with what it remembers between transactions.

use std::{collections::BTreeMap, sync::Arc};

use highwater_core::{SourceName, schema::Table};
use rusqlite::{Connection, TransactionBehavior};

use super::{
    courtesy::Courtesy, error::Sql, lock::ProcessLock, mailboxes, roles, runs, segments, shards::Shards,
    table::TableSql,
};

pub(super) struct Session {
    pub(super) db: Connection,
    pub(super) shards: Shards,
    /// The ends of the ledger's chains, as far as they are known for certain.
    pub(super) chain_ends: BTreeMap<SourceName, (i64, String)>,
    tables: BTreeMap<&'static str, Arc<TableSql>>,
    pub(super) courtesy: Courtesy,
    /// Here, because a thread may still be writing when the store itself is gone.
    _lock: ProcessLock,
}

impl Session {
    pub(super) fn new(db: Connection, shards: Shards, lock: ProcessLock) -> Self {
        Session {
            db,
            shards,
            chain_ends: BTreeMap::new(),
            tables: BTreeMap::new(),
            courtesy: Courtesy::default(),
            _lock: lock,
        }
    }

    /// Takes up what a process left that is dead now: the process lock is ours.
    pub(super) fn recover(&mut self) -> Sql<()> {
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        segments::recover(&transaction)?;
        runs::recover(&transaction)?;
        roles::recover(&transaction)?;
        mailboxes::recover(&transaction)?;
        Ok(transaction.commit()?)
    }

    pub(super) fn begin(&mut self) -> Sql<()> {
        // A panic may have left a transaction behind.
        if !self.db.is_autocommit() {
            self.undo();
        }
        Ok(self.db.execute_batch("BEGIN IMMEDIATE")?)
    }

    /// Shards first: what the store names must be there.
    pub(super) fn commit(&mut self) -> Sql<()> {
        self.shards.commit()?;
        self.db.execute_batch("COMMIT")?;
        self.shards.rest();
        Ok(())
    }

    pub(super) fn undo(&mut self) {
        self.forget();
        self.shards.undo();
        if !self.db.is_autocommit()
            && let Err(error) = self.db.execute_batch("ROLLBACK")
        {
            tracing::warn!(%error, "rolling back");
        }
    }

    /// What was remembered may have been rolled back.
    pub(super) fn forget(&mut self) {
        self.chain_ends.clear();
    }

    pub(super) fn table(&mut self, table: &'static Table) -> Arc<TableSql> {
        self.tables.entry(table.name).or_insert_with(|| Arc::new(TableSql::of(table))).clone()
    }
}
