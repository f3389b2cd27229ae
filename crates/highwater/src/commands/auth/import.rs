//! Which way credentials come: by consent in a browser, or from a file that somebody has already.

use std::{fs, io::Read, path::Path};

use highwater_sources::gmail::oauth::{Client, Grant, Secret, ServiceAccount};
use serde_json::Value as Json;

use crate::{
    args::AuthArgs,
    config::{GmailConfig, SourceConfig},
    credentials::configured_client,
    exit::Trouble,
};

/// No file of this kind is nearly as large.
const FILE_MAX: u64 = 64 * 1024;

pub(super) enum Way {
    Consent(Client),
    Import(Grant),
}

impl Way {
    pub(super) fn choose(args: &AuthArgs, source: &SourceConfig, gmail: &GmailConfig) -> Result<Way, Trouble> {
        if let Some(path) = &args.service_account {
            let robot = ServiceAccount::from_file(&read(path, "--service-account")?)
                .map_err(|error| Trouble::usage(format!("--service-account: {error}")))?;
            return Ok(Way::Import(Grant::ServiceAccount(robot)));
        }
        let client = match &args.client_secret {
            Some(path) => Some(
                Client::from_file(&read(path, "--client-secret")?)
                    .map_err(|error| Trouble::usage(format!("--client-secret: {error}")))?,
            ),
            None => configured_client(&source.name, &gmail.oauth)?,
        };
        match &args.refresh_token_file {
            Some(path) => imported(&read(path, "--refresh-token-file")?, client, source),
            None => client.map(Way::Consent).ok_or_else(|| no_client(source)),
        }
    }
}

/// A bare token, or the JSON in which Google's own tools keep one, with the client it was given to.
fn imported(text: &str, client: Option<Client>, source: &SourceConfig) -> Result<Way, Trouble> {
    let text = text.trim();
    let json: Option<Json> = serde_json::from_str(text).ok();
    let member = |name: &str| json.as_ref().and_then(|json| json[name].as_str()).map(str::to_owned);
    let (token, own) = if text.starts_with('{') {
        let own = member("client_id").zip(member("client_secret"));
        (member("refresh_token"), own.map(|(id, secret)| Client { id, secret: Secret::new(secret) }))
    } else {
        (Some(text.to_owned()), None)
    };
    let token = token.filter(|token| !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()));
    let token = token.ok_or_else(|| Trouble::usage("--refresh-token-file: there is no refresh token in it"))?;
    let client = own.or(client).ok_or_else(|| no_client(source))?;
    Ok(Way::Import(Grant::RefreshToken { refresh_token: Secret::new(token), client }))
}

/// `-` is standard input.
fn read(path: &Path, flag: &str) -> Result<String, Trouble> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(FILE_MAX).read_to_string(&mut text)
    } else {
        fs::File::open(path).and_then(|file| file.take(FILE_MAX).read_to_string(&mut text))
    };
    read.map_err(|error| Trouble::usage(format!("{flag}: cannot read {}: {error}", path.display())))?;
    Ok(text)
}

fn no_client(source: &SourceConfig) -> Trouble {
    Trouble::usage(format!("there is no OAuth client for source {:?}", source.name.as_str())).hint(format!(
        "make a client of type 'Desktop app' at console.cloud.google.com/auth/clients, then pass its file with \
         --client-secret, or set client_secret_file, or client_id and client_secret_env, in [sources.{}]",
        source.name
    ))
}
