//! The access token of the moment: renewed in time, by one at a time, also among processes.

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use highwater_core::{Failure, FailureKind, Moment, Timestamp};
use tokio::sync::Mutex;

use super::{Access, Client, Credentials, Grant, Granted, Token, TokenEndpoint, Tries, check_scopes};
use crate::Clock;

/// Where credentials are kept: sealed, durable, seen by every process of the account.
pub trait Keeper: Send + Sync {
    fn load(&self) -> BoxFuture<'_, Result<Option<Credentials>, Failure>>;
    fn save<'a>(&'a self, credentials: &'a Credentials) -> BoxFuture<'a, Result<(), Failure>>;
    /// Whether the caller is now the only one, among all processes, to renew them: until `end`, or for `ttl`.
    fn lease(&self, ttl: Duration) -> BoxFuture<'_, Result<bool, Failure>>;
    fn end(&self) -> BoxFuture<'_, Result<(), Failure>>;
}

/// Longer than the endpoint takes with all its tries. If it takes longer still, two may ask at once, which does no harm.
const LEASE: Duration = Duration::from_secs(90);
/// How often to look whether another process is done, and when it must be.
const LOOK: Duration = Duration::from_millis(250);
const WAIT_MAX: Duration = Duration::from_secs(100);
/// After a failure nobody asks again for so long: many may be waiting for the same answer.
const REST: Duration = Duration::from_secs(10);

pub struct BearerSettings {
    /// For whom a service account acts.
    pub account: String,
    /// As configured now; its secret may be newer than the one kept with the credentials.
    pub client: Option<Client>,
    /// What a person is told to do when nothing else helps.
    pub remedy: String,
}

pub struct Bearer {
    keeper: Arc<dyn Keeper>,
    endpoint: TokenEndpoint,
    clock: Clock,
    settings: BearerSettings,
    /// Held over a renewal on purpose: whoever comes meanwhile waits for its result and asks for none of its own.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    access: Option<Access>,
    setback: Option<(Failure, Moment)>,
}

impl Bearer {
    pub fn new(keeper: Arc<dyn Keeper>, endpoint: TokenEndpoint, clock: Clock, settings: BearerSettings) -> Self {
        Bearer { keeper, endpoint, clock, settings, state: Mutex::default() }
    }

    /// A token to ask with, renewed when three quarters of its life have passed.
    pub async fn token(&self) -> Result<Token, Failure> {
        let mut state = self.state.lock().await;
        match &state.access {
            Some(access) if access.is_fresh(self.clock.now()) => Ok(access.token.clone()),
            _ => self.renew(&mut state, None).await,
        }
    }

    /// The remote gave 401 for a token: another one, unless somebody has got one already. If that is refused as well,
    /// asking once more is of no use.
    pub async fn refused(&self, token: &Token) -> Result<Token, Failure> {
        let mut state = self.state.lock().await;
        let is_refused = |access: &Access| access.token == *token || !access.is_alive(self.clock.now());
        match &state.access {
            Some(access) if !is_refused(access) => Ok(access.token.clone()),
            _ => self.renew(&mut state, Some(token)).await,
        }
    }

    async fn renew(&self, state: &mut State, refused: Option<&Token>) -> Result<Token, Failure> {
        let tries = if state.usable(refused, self.clock.now()).is_some() { Tries::One } else { Tries::Some };
        let renewed = match &state.setback {
            Some((failure, until)) if self.clock.moment() < *until => Err(failure.clone()),
            _ => self.renewed(refused, tries).await.inspect_err(|failure| {
                state.setback = Some((failure.clone(), self.clock.moment() + REST));
            }),
        };
        match renewed {
            Ok(access) => {
                *state = State { access: Some(access.clone()), setback: None };
                Ok(access.token)
            }
            Err(failure) => state.usable(refused, self.clock.now()).ok_or(failure),
        }
    }

    /// By this process or by another one.
    async fn renewed(&self, refused: Option<&Token>, tries: Tries) -> Result<Access, Failure> {
        let began = self.clock.moment();
        loop {
            if let Some(access) = self.fitting(&self.load().await?, refused) {
                return Ok(access);
            }
            if self.keeper.lease(LEASE).await? {
                let renewed = self.renewed_here(refused, tries).await;
                // A lease that cannot be ended ends by itself.
                self.keeper.end().await.ok();
                return renewed;
            }
            if self.clock.moment().since(began) > WAIT_MAX {
                return Err(Failure::new(FailureKind::Timeout, "another process does not come to an end of renewing"));
            }
            self.clock.sleep(LOOK).await;
        }
    }

    async fn renewed_here(&self, refused: Option<&Token>, tries: Tries) -> Result<Access, Failure> {
        // Somebody may have renewed it just before we were let in.
        let mut credentials = self.load().await?;
        if let Some(access) = self.fitting(&credentials, refused) {
            return Ok(access);
        }
        self.adopt_client(&mut credentials.grant);
        let granted = self.endpoint.renew(&credentials.grant, &self.settings.account, tries).await;
        let Granted { access, refresh_token: newer } =
            granted.map_err(|refusal| refusal.failure(&self.settings.remedy))?;
        check_scopes(&access.scopes).map_err(|error| self.hopeless(&error.to_string()))?;
        if let (Grant::RefreshToken { refresh_token, .. }, Some(newer)) = (&mut credentials.grant, newer) {
            *refresh_token = newer;
        }
        credentials.access = Some(access.clone());
        self.keeper.save(&credentials).await?;
        tracing::debug!("the access token was renewed");
        Ok(access)
    }

    async fn load(&self) -> Result<Credentials, Failure> {
        self.keeper.load().await?.ok_or_else(|| self.hopeless("there are none yet"))
    }

    fn fitting(&self, credentials: &Credentials, refused: Option<&Token>) -> Option<Access> {
        let now = self.clock.now();
        let fits = |access: &&Access| match refused {
            None => access.is_fresh(now),
            Some(refused) => access.token != *refused && access.is_alive(now),
        };
        credentials.access.as_ref().filter(fits).cloned()
    }

    /// The secret of a client may be changed at Google's; its id stays.
    fn adopt_client(&self, grant: &mut Grant) {
        if let (Grant::RefreshToken { client, .. }, Some(configured)) = (grant, &self.settings.client)
            && client.id == configured.id
        {
            *client = configured.clone();
        }
    }

    fn hopeless(&self, why: &str) -> Failure {
        let message = format!("the credentials cannot be used: {why}; {}", self.settings.remedy);
        Failure::new(FailureKind::Credentials, message)
    }
}

impl State {
    /// A token in its last quarter still works.
    fn usable(&self, refused: Option<&Token>, now: Timestamp) -> Option<Token> {
        let access = self.access.as_ref().filter(|access| access.is_alive(now))?;
        Some(access.token.clone()).filter(|token| Some(token) != refused)
    }
}
