//! `highwater auth rotate-key`: seals all credentials with a new key. May be broken off at any moment and run again:
//! until it is done, what either key sealed opens.

use std::sync::Arc;

use highwater_sources::Clock;
use highwater_store::{KeyId, Store, Vault};
use serde_json::json;

use crate::{
    args::Global,
    credentials::{alone_with, place},
    exit::Exit,
    keyring::{Keyring, key_trouble},
    out,
    settings::{Access, Settings},
};

pub(super) async fn run(global: &Global, settings: &Settings) -> anyhow::Result<Exit> {
    let store = settings.open_store(Access::Write).await?;
    let keyring = settings.keyring()?;
    let (resealed, id) = change(&store, &keyring).await?;
    if global.json {
        out::data(&json!({ "resealed": resealed, "key": id.to_string() }).to_string());
    } else if !global.quiet {
        let next = match keyring {
            Keyring::Environment => "; set HIGHWATER_KEY to it now",
            Keyring::File(_) => "",
        };
        out::data(&format!("{resealed} credentials are sealed with the new key {id}{next}"));
    }
    Ok(Exit::Complete)
}

/// Nobody else renews credentials until the new key is in its place: they would be sealed with the old one.
async fn change(store: &Arc<dyn Store>, keyring: &Keyring) -> anyhow::Result<(u64, KeyId)> {
    let clock = Clock::system();
    let ids: Vec<_> = store.mailboxes().await?.into_iter().map(|row| row.id).collect();
    for id in &ids {
        alone_with(&**store, id, &clock).await?;
    }
    let changed = change_alone(store, keyring, &clock).await;
    for id in &ids {
        store.end_refresh(id).await?;
    }
    changed
}

async fn change_alone(store: &Arc<dyn Store>, keyring: &Keyring, clock: &Clock) -> anyhow::Result<(u64, KeyId)> {
    let vault = keyring.begin_change()?;
    let resealed = reseal(store, &vault, clock).await?;
    keyring.finish_change().map_err(key_trouble)?;
    Ok((resealed, vault.key_id()))
}

async fn reseal(store: &Arc<dyn Store>, vault: &Vault, clock: &Clock) -> anyhow::Result<u64> {
    let rows = store.mailboxes().await?;
    // All are opened before the first is written: a wrong key changes nothing.
    let mut sealed = Vec::new();
    for row in &rows {
        if let Some(old) = &row.credentials {
            let key = row.id.key();
            sealed.push((&row.id, vault.reseal(place(&key, &row.id), old).map_err(key_trouble)?));
        }
    }
    for (id, new) in &sealed {
        store.set_credentials(id, Some(new.clone()), clock.now()).await?;
    }
    Ok(sealed.len() as u64)
}
