//! Credentials of a mailbox in the store: sealed on the way in, opened on the way out, with the tokens made from them.

use std::{env, fs, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use highwater_core::{Failure, FailureKind, SourceName};
use highwater_sources::{
    Clock,
    gmail::oauth::{Bearer, BearerSettings, Client, Credentials, Keeper, Secret, TokenEndpoint},
};
use highwater_store::{ErrorKind, MailboxId, Place, Store, StoreError, Vault};
use secrecy::ExposeSecret;

use crate::{
    config::{ClientSecret, GmailConfig, OauthConfig},
    exit::{Exit, Trouble},
    keyring::{Keyring, key_trouble},
};

/// How long others leave credentials alone that are being replaced; more than any of that takes.
const LEASE: Duration = Duration::from_secs(90);
const LOOK: Duration = Duration::from_millis(250);

/// Waits until no other process renews the credentials of a mailbox; none does until `end_refresh`.
pub(crate) async fn alone_with(store: &dyn Store, id: &MailboxId, clock: &Clock) -> anyhow::Result<()> {
    let began = clock.moment();
    while !store.lease_refresh(id, clock.now(), LEASE).await? {
        if clock.moment().since(began) > LEASE + LOOK {
            let busy = "another process does not come to an end of renewing the credentials";
            return Err(Trouble::new(Exit::Failed, busy).hint("run the same command again later").into());
        }
        clock.sleep(LOOK).await;
    }
    Ok(())
}

/// The sealed credentials of one mailbox.
pub(crate) struct Safe {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) keyring: Keyring,
    pub(crate) mailbox: MailboxId,
    pub(crate) source: SourceName,
    pub(crate) clock: Clock,
}

impl Safe {
    /// What to do when nothing else helps.
    pub(crate) fn remedy(&self) -> String {
        crate::mailbox::remedy(&self.source)
    }

    /// Without a key file one is made; also where the mailbox is new.
    pub(crate) async fn put(&self, credentials: &Credentials) -> anyhow::Result<()> {
        let sealed = self.seal(&self.keyring.vault_or_new().map_err(key_trouble)?, credentials);
        self.store.set_credentials(&self.mailbox, Some(sealed), self.clock.now()).await?;
        Ok(())
    }

    fn seal(&self, vault: &Vault, credentials: &Credentials) -> String {
        let row = self.mailbox.key();
        vault.seal(place(&row, &self.mailbox), credentials.to_json().expose().as_bytes())
    }

    async fn get(&self) -> Result<Option<Credentials>, Failure> {
        let rows = self.store.mailboxes().await.map_err(store_failure)?;
        let row = rows.into_iter().find(|row| row.id == self.mailbox);
        let Some(sealed) = row.and_then(|row| row.credentials) else { return Ok(None) };
        let key = self.mailbox.key();
        let plain = self.keyring.vault().and_then(|vault| vault.open(place(&key, &self.mailbox), &sealed));
        let plain = plain.map_err(|error| self.lost(&highwater_engine::describe(&error)))?;
        Credentials::from_json(&plain).map(Some).map_err(|error| self.lost(&error.to_string()))
    }

    fn lost(&self, why: &str) -> Failure {
        let message = format!("the credentials cannot be opened: {why}; put the key back, or {}", self.remedy());
        Failure::new(FailureKind::Credentials, message)
    }
}

pub(crate) fn place<'a>(row: &'a str, mailbox: &'a MailboxId) -> Place<'a> {
    Place { row, column: "mailboxes.credentials", account: mailbox.email() }
}

impl Keeper for Safe {
    fn load(&self) -> BoxFuture<'_, Result<Option<Credentials>, Failure>> {
        Box::pin(self.get())
    }

    fn save<'a>(&'a self, credentials: &'a Credentials) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            let vault = self.keyring.vault().map_err(|error| self.lost(&highwater_engine::describe(&error)))?;
            let sealed = self.seal(&vault, credentials);
            let saved = self.store.set_credentials(&self.mailbox, Some(sealed), self.clock.now()).await;
            unless_only_read(saved, ())
        })
    }

    fn lease(&self, ttl: Duration) -> BoxFuture<'_, Result<bool, Failure>> {
        Box::pin(
            async move { unless_only_read(self.store.lease_refresh(&self.mailbox, self.clock.now(), ttl).await, true) },
        )
    }

    fn end(&self) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(async move { unless_only_read(self.store.end_refresh(&self.mailbox).await, ()) })
    }
}

/// The access token of a mailbox, for whoever asks Gmail.
pub(crate) fn bearer(safe: Arc<Safe>, gmail: &GmailConfig) -> Result<Bearer, Trouble> {
    let (clock, remedy) = (safe.clock.clone(), safe.remedy());
    let endpoint = token_endpoint(&safe.source, gmail, &clock)?;
    // The client that the credentials were given to is kept with them, so that none need be configured.
    let client = configured_client(&safe.source, &gmail.oauth).unwrap_or_default();
    let settings = BearerSettings { account: gmail.account.clone(), client, remedy };
    Ok(Bearer::new(safe, endpoint, clock, settings))
}

pub(crate) fn token_endpoint(
    source: &SourceName,
    gmail: &GmailConfig,
    clock: &Clock,
) -> Result<TokenEndpoint, Trouble> {
    TokenEndpoint::connect(&gmail.oauth.token_url, clock.clone())
        .map_err(|error| Trouble::usage(format!("sources.{source}.token_url: {}", highwater_engine::describe(&error))))
}

/// The client that the configuration names, if it names one.
pub(crate) fn configured_client(source: &SourceName, oauth: &OauthConfig) -> Result<Option<Client>, Trouble> {
    let trouble = |key: &str, why: &str| Trouble::usage(format!("sources.{source}.{key}: {why}"));
    let secret = match (&oauth.client_secret, &oauth.client_id) {
        (None, None) => return Ok(None),
        (None, Some(_)) => {
            return Err(trouble("client_id", "its secret is missing: client_secret, client_secret_env or _file"));
        }
        (Some(ClientSecret::File(path)), id) => {
            let text = fs::read_to_string(path).map_err(|error| trouble("client_secret_file", &error.to_string()))?;
            let client = Client::from_file(&text).map_err(|error| trouble("client_secret_file", &error.to_string()))?;
            return match id {
                Some(id) if *id != client.id => Err(trouble("client_id", "the file of the client secret has another")),
                _ => Ok(Some(client)),
            };
        }
        (Some(ClientSecret::Here(secret)), _) => secret.expose_secret().to_owned(),
        (Some(ClientSecret::Environment(name)), _) => env::var(name)
            .map_err(|_| trouble("client_secret_env", &format!("the environment variable {name} is not set")))?,
    };
    let id = oauth.client_id.clone().ok_or_else(|| trouble("client_id", "is missing"))?;
    Ok(Some(Client { id, secret: Secret::new(secret) }))
}

/// As an error of the command: exit code 4 where only a person can help.
pub(crate) fn trouble_of(failure: Failure) -> Trouble {
    match failure.kind {
        FailureKind::Credentials => Trouble::new(Exit::Credentials, failure.message),
        _ => Trouble::new(Exit::Failed, failure.message).hint("run the same command again later"),
    }
}

/// Who only reads the store keeps a new token to itself.
fn unless_only_read<T>(outcome: Result<T, StoreError>, otherwise: T) -> Result<T, Failure> {
    match outcome {
        Err(error) if error.kind == ErrorKind::CannotOpen => Ok(otherwise),
        outcome => outcome.map_err(store_failure),
    }
}

fn store_failure(error: StoreError) -> Failure {
    Failure::new(FailureKind::Internal, highwater_engine::describe(&error))
}
