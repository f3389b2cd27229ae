//! `highwater auth`: gets or imports the credentials of a mailbox, checks whose they are, and keeps them sealed.

mod browser;
mod consent;
mod import;
mod rotate;

use std::{sync::Arc, time::Duration};

use highwater_core::{Failure, FailureKind};
use highwater_sources::{
    Clock, HttpTransport, TransportSettings,
    gmail::oauth::{
        Access, Credentials, Refusal, Token, TokenEndpoint, Tries, check_scopes, is_same_account, owner_of,
    },
};
use highwater_store::{MailboxId, MailboxNote, MailboxStatus};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{
    args::{AuthArgs, Global},
    config::{GmailConfig, ROTATE_KEY, SourceConfig},
    credentials::{Safe, alone_with, bearer, token_endpoint, trouble_of},
    exit::{Exit, Trouble},
    out,
    settings::{Access as StoreAccess, Settings},
    signals::Signals,
};

pub(super) async fn run(global: &Global, args: &AuthArgs) -> anyhow::Result<Exit> {
    let settings = Settings::load(global)?;
    let signals = Signals::listen()?;
    let stop = CancellationToken::new();
    let work = async {
        tokio::select! {
            biased;
            () = stop.cancelled() => Ok(Exit::Interrupted),
            done = dispatch(global, args, &settings) => done,
        }
    };
    let (done, signal) = signals.guard(&stop, work).await;
    Ok(signal.unwrap_or(done?))
}

async fn dispatch(global: &Global, args: &AuthArgs, settings: &Settings) -> anyhow::Result<Exit> {
    if args.source == ROTATE_KEY {
        if args.has_flags() {
            return Err(Trouble::usage(format!("'auth {ROTATE_KEY}' takes no flags of 'auth SOURCE'")).into());
        }
        return rotate::run(global, settings).await;
    }
    let source = settings.config.source(&args.source)?;
    let gmail = source.gmail.as_ref().ok_or_else(|| {
        let why = match source.looker {
            Some(_) => "whose client id and secret come from the configuration or LOOKERSDK_CLIENT_ID and _SECRET",
            None => "which needs no credentials",
        };
        Trouble::usage(format!("source {:?} is of kind {:?}, {why}", args.source, source.kind.as_str()))
    })?;
    let remote = Remote::new(source, gmail)?;
    let credentials = if args.check {
        remote.check(settings, source).await?
    } else {
        remote.obtain(global, args, settings, source).await?
    };
    conclude(global, source, gmail, &credentials);
    Ok(Exit::Complete)
}

/// The account at its provider.
struct Remote<'a> {
    gmail: &'a GmailConfig,
    api: HttpTransport,
    endpoint: TokenEndpoint,
    clock: Clock,
}

impl<'a> Remote<'a> {
    fn new(source: &SourceConfig, gmail: &'a GmailConfig) -> Result<Self, Trouble> {
        let clock = Clock::system();
        let api = HttpTransport::new(&gmail.base_url, TransportSettings::default()).map_err(|error| {
            Trouble::usage(format!("sources.{}.base_url: {}", source.name, highwater_engine::describe(&error)))
        })?;
        let endpoint = token_endpoint(&source.name, gmail, &clock)?;
        Ok(Remote { gmail, api, endpoint, clock })
    }

    /// What is stored works, or is made to by a new access token; the scopes it has.
    async fn check(&self, settings: &Settings, source: &SourceConfig) -> anyhow::Result<Access> {
        let safe = Arc::new(self.safe(settings, source).await?);
        let tokens = bearer(safe.clone(), self.gmail)?;
        let token = tokens.token().await.map_err(trouble_of)?;
        let owner = match self.owner(&token).await {
            // It may have been ended before its time.
            Err(failure) if failure.kind == FailureKind::Credentials => {
                let token = tokens.refused(&token).await.map_err(trouble_of)?;
                self.owner(&token).await
            }
            owner => owner,
        };
        self.check_owner(source, &owner.map_err(trouble_of)?)?;
        let kept = highwater_sources::gmail::oauth::Keeper::load(&*safe).await.map_err(trouble_of)?;
        kept.and_then(|credentials| credentials.access)
            .ok_or_else(|| Trouble::new(Exit::Failed, "no access token").into())
    }

    async fn obtain(
        &self,
        global: &Global,
        args: &AuthArgs,
        settings: &Settings,
        source: &SourceConfig,
    ) -> anyhow::Result<Access> {
        let way = import::Way::choose(args, source, self.gmail)?;
        let safe = self.safe(settings, source).await?;
        let refused = |refusal: Refusal| refused(source, &refusal);
        let credentials = match way {
            import::Way::Consent(client) => {
                let (consent, code) = consent::ask(global, args, self.gmail, &client).await?;
                self.endpoint.exchange(client, &consent, &code).await.map_err(refused)?
            }
            import::Way::Import(grant) => {
                let granted = self.endpoint.renew(&grant, &self.gmail.account, Tries::Some).await.map_err(refused)?;
                Credentials { grant, access: Some(granted.access) }
            }
        };
        let access = credentials.access.clone().expect("both ways end with an access token");
        check_scopes(&access.scopes).map_err(|error| Trouble::new(Exit::Credentials, error.to_string()))?;
        self.check_owner(source, &self.owner(&access.token).await.map_err(trouble_of)?)?;
        self.keep(&safe, &credentials).await?;
        Ok(access)
    }

    async fn safe(&self, settings: &Settings, source: &SourceConfig) -> anyhow::Result<Safe> {
        let store = settings.open_store(StoreAccess::Write).await?;
        let mailbox = MailboxId::new(&self.gmail.org, &self.gmail.account);
        let (keyring, clock) = (settings.keyring()?, self.clock.clone());
        Ok(Safe { store, keyring, mailbox, source: source.name.clone(), clock })
    }

    async fn keep(&self, safe: &Safe, credentials: &Credentials) -> anyhow::Result<()> {
        let (store, id) = (&safe.store, &safe.mailbox);
        store.open_mailbox(id, &safe.source, self.clock.now()).await?;
        alone_with(&**store, id, &self.clock).await?;
        let put = safe.put(credentials).await;
        store.end_refresh(id).await?;
        put?;
        let (status, now) = (MailboxStatus::Connected, self.clock.now());
        store.note_mailbox(id, &MailboxNote { status, error: None, synced_at: None, now }).await?;
        Ok(())
    }

    /// Whose the token is; what passes is tried again.
    async fn owner(&self, token: &Token) -> Result<String, Failure> {
        let mut waits = [1, 2, 4].map(Duration::from_secs).into_iter();
        loop {
            use FailureKind as K;
            match (owner_of(&self.api, token).await, waits.next()) {
                (Err(Failure { kind: K::Server | K::Connect | K::Broken | K::Timeout, .. }), Some(wait)) => {
                    self.clock.sleep(wait).await;
                }
                (answer, _) => return answer,
            }
        }
    }

    fn check_owner(&self, source: &SourceConfig, owner: &str) -> Result<(), Trouble> {
        if is_same_account(owner, &self.gmail.account) {
            return Ok(());
        }
        let name = &source.name;
        Err(Trouble::new(
            Exit::Credentials,
            format!("the token belongs to another account than sources.{name}.account"),
        )
        .hint("log in with that account, or correct the configuration; nothing was stored"))
    }
}

fn refused(source: &SourceConfig, refusal: &Refusal) -> Trouble {
    let remedy = match refusal {
        Refusal::InvalidClient => format!("check sources.{}.client_id and its secret", source.name),
        _ => format!("run 'highwater auth {}' and consent anew", source.name),
    };
    trouble_of(refusal.failure(&remedy))
}

fn conclude(global: &Global, source: &SourceConfig, gmail: &GmailConfig, access: &Access) {
    if global.json {
        let json = json!({ "source": source.name.as_str(), "account": gmail.account, "scopes": access.scopes });
        out::data(&json.to_string());
    } else if !global.quiet {
        let scopes: Vec<_> =
            access.scopes.iter().map(|scope| scope.trim_end_matches('/').rsplit('/').next().unwrap_or(scope)).collect();
        out::data(&format!("{}: {} is connected ({})", source.name, gmail.account, scopes.join(", ")));
    }
}
