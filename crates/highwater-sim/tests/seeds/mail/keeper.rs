//! Credentials that outlive a process, without a store and its seal: what those do is tested elsewhere.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::future::BoxFuture;
use highwater_core::Failure;
use highwater_sim::gmail::REFRESH_TOKEN;
use highwater_sources::gmail::oauth::{Client, Credentials, Grant, Keeper, Secret};

#[derive(Clone)]
pub(super) struct Kept(Arc<Mutex<Credentials>>);

impl Kept {
    pub(super) fn new() -> Self {
        let client = Client { id: "sim-client".into(), secret: Secret::new("sim-secret") };
        let grant = Grant::RefreshToken { refresh_token: Secret::new(REFRESH_TOKEN), client };
        Kept(Arc::new(Mutex::new(Credentials { grant, access: None })))
    }
}

impl Keeper for Kept {
    fn load(&self) -> BoxFuture<'_, Result<Option<Credentials>, Failure>> {
        let kept = self.0.lock().unwrap().clone();
        Box::pin(async { Ok(Some(kept)) })
    }

    fn save<'a>(&'a self, credentials: &'a Credentials) -> BoxFuture<'a, Result<(), Failure>> {
        *self.0.lock().unwrap() = credentials.clone();
        Box::pin(async { Ok(()) })
    }

    fn lease(&self, _: Duration) -> BoxFuture<'_, Result<bool, Failure>> {
        Box::pin(async { Ok(true) })
    }

    fn end(&self) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(async { Ok(()) })
    }
}
