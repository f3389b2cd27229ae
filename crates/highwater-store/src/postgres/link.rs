//! One connection, driven by whoever uses it: no task stands behind it. Whoever leaves in the middle takes the
//! connection along, and the server rolls back.

use std::{pin::Pin, sync::Arc, time::Duration};

use futures_util::{FutureExt, poll};
use tokio::time::timeout;
use tokio_postgres::{Client, Row, Statement, types::ToSql, types::Type};

use super::{
    address::Address,
    error::{Fault, Sql},
};
use crate::{ErrorKind, StoreError};

/// A parameter and the type it is sent as: statements have no names, so that a pooler may stand between.
pub(super) type Param<'a> = (&'a (dyn ToSql + Sync), Type);

type Driver = Pin<Box<dyn Future<Output = Result<(), tokio_postgres::Error>> + Send>>;

/// A rollback takes no time; a server that does not answer it is gone.
const UNDO_PATIENCE: Duration = Duration::from_secs(5);

pub(super) struct Link {
    client: Arc<Client>,
    driver: Driver,
}

impl Link {
    pub(super) async fn connect(address: &Address) -> Sql<Link> {
        let tls = address.trust.connector()?;
        let mut refused = None;
        for way in address.trust.attempts() {
            let mut config = address.config.clone();
            config.ssl_mode(*way);
            match timeout(address.patience(), config.connect(tls.clone())).await {
                Ok(Ok((client, driver))) => return Ok(Link { client: Arc::new(client), driver: Box::pin(driver) }),
                Ok(Err(error)) if is_about_encryption(&error) => refused = Some(Fault::Sql(error)),
                Ok(Err(error)) => return Err(authentication(error)),
                Err(_) => {
                    let late = format!("no answer within {} s", address.patience().as_secs());
                    return Err(StoreError::new(ErrorKind::Unavailable, late).into());
                }
            }
        }
        Err(refused.expect("there is at least one way to connect"))
    }

    /// Whether the server has not hung up while nobody was looking.
    pub(super) async fn is_alive(&mut self) -> bool {
        !self.client.is_closed() && poll!(&mut self.driver).is_pending()
    }

    pub(super) fn client(&self) -> Arc<Client> {
        self.client.clone()
    }

    /// Carries what `work` says to the server and back.
    pub(super) async fn drive<T>(&mut self, work: impl Future<Output = Sql<T>>) -> Sql<T> {
        let mut work = std::pin::pin!(work);
        tokio::select! {
            biased;
            done = &mut work => done,
            end = &mut self.driver => match work.now_or_never() {
                Some(done) => done,
                None => Err(end.err().map_or_else(closed, Fault::Sql)),
            },
        }
    }

    /// Whether the connection can be used again.
    pub(super) async fn undo(&mut self) -> bool {
        if self.client.is_closed() {
            return false;
        }
        let client = self.client();
        let rollback = self.drive(async move { Ok(client.batch_execute("ROLLBACK").await?) });
        matches!(timeout(UNDO_PATIENCE, rollback).await, Ok(Ok(())))
    }
}

fn closed() -> Fault {
    StoreError::new(ErrorKind::Unavailable, "the server closed the connection").into()
}

/// Only then may the other way help.
pub(super) fn is_about_encryption(error: &tokio_postgres::Error) -> bool {
    error.code() == Some(&tokio_postgres::error::SqlState::INVALID_AUTHORIZATION_SPECIFICATION)
        || error.to_string().contains("TLS")
}

/// A server that asks for a password we do not have.
fn authentication(error: tokio_postgres::Error) -> Fault {
    let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
    if source.contains("password missing") {
        let missing = "the server asks for a password, and there is none in the URL, PGPASSWORD or the password file";
        return StoreError::new(ErrorKind::Unauthorized, missing).into();
    }
    Fault::Sql(error)
}

/// What statements are run with. Several polled together travel together.
pub(super) struct Db {
    pub(super) client: Arc<Client>,
    pub(super) begin: Arc<str>,
}

impl Db {
    pub(super) async fn begin(&self) -> Sql<()> {
        Ok(self.client.batch_execute(&self.begin).await?)
    }

    /// For what only says who works on what: if the server crashes before it is on disk, the lease was never given, and
    /// whoever believes to hold it is fenced off. Anything durable that comes later takes it along.
    pub(super) async fn begin_lightly(&self) -> Sql<()> {
        self.run(&format!("{}; SET LOCAL synchronous_commit = off", self.begin)).await
    }

    pub(super) async fn commit(&self) -> Sql<()> {
        Ok(self.client.batch_execute("COMMIT").await?)
    }

    pub(super) async fn run(&self, sql: &str) -> Sql<()> {
        Ok(self.client.batch_execute(sql).await?)
    }

    /// To be used within the transaction: a pooler may give the next one another connection.
    pub(super) async fn prepare(&self, sql: &str) -> Sql<Statement> {
        Ok(self.client.prepare(sql).await?)
    }

    pub(super) async fn query(&self, sql: &str, params: &[Param<'_>]) -> Sql<Vec<Row>> {
        Ok(self.client.query_typed(sql, params).await?)
    }

    pub(super) async fn execute(&self, sql: &str, params: &[Param<'_>]) -> Sql<u64> {
        Ok(self.client.execute_typed(sql, params).await?)
    }
}
