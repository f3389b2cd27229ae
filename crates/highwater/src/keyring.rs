//! Where the key is that credentials are sealed with: in `HIGHWATER_KEY`, or in a file. The file is beside a SQLite
//! store; for a PostgreSQL store it is beside the configuration, or in the working folder where there is none.

use std::{
    env,
    path::{Path, PathBuf},
};

use highwater_store::{KEY_FILE, Vault, VaultError, VaultKey};

use crate::{
    exit::{Exit, Trouble},
    location::Location,
};

const KEY: &str = "HIGHWATER_KEY";
const NEW_KEY: &str = "HIGHWATER_NEW_KEY";

#[derive(Clone, Debug)]
pub(crate) enum Keyring {
    Environment,
    File(PathBuf),
}

impl Keyring {
    pub(crate) fn find(store: &Location, config: Option<&Path>) -> Keyring {
        if env::var_os(KEY).is_some() {
            return Keyring::Environment;
        }
        Keyring::File(key_file(store, config))
    }

    /// To open what is sealed. While keys are being changed, both open.
    pub(crate) fn vault(&self) -> Result<Vault, VaultError> {
        match self {
            Keyring::Environment => Ok(Vault::new(from_environment(KEY)?)),
            Keyring::File(path) => {
                let key = VaultKey::read(path)?.ok_or_else(|| no_key(path))?;
                Ok(Vault::new(key).opening_also(VaultKey::read(&VaultKey::coming(path))?))
            }
        }
    }

    /// To seal: the first time, a key is made.
    pub(crate) fn vault_or_new(&self) -> Result<Vault, VaultError> {
        if let Keyring::File(path) = self {
            VaultKey::read_or_make(path)?;
        }
        self.vault()
    }

    /// Opens with the old key and seals with the new one, which is kept from now on; `finish_change` must follow.
    pub(crate) fn begin_change(&self) -> Result<Vault, Trouble> {
        match self {
            Keyring::Environment if env::var_os(NEW_KEY).is_none() => {
                let hint =
                    format!("set {NEW_KEY} to 64 new digits ('openssl rand -hex 32'), and {KEY} to them afterwards");
                Err(Trouble::usage(format!("the key is in {KEY}, and there is none in {NEW_KEY} to change it for"))
                    .hint(hint))
            }
            Keyring::Environment | Keyring::File(_) => self.changing().map_err(key_trouble),
        }
    }

    fn changing(&self) -> Result<Vault, VaultError> {
        let (old, new) = match self {
            Keyring::Environment => (from_environment(KEY)?, from_environment(NEW_KEY)?),
            Keyring::File(path) => {
                let old = VaultKey::read(path)?.ok_or_else(|| no_key(path))?;
                (old, VaultKey::read_or_make(&VaultKey::coming(path))?)
            }
        };
        Ok(Vault::new(new).opening_also(Some(old)))
    }

    /// Nothing is sealed with the old key any more.
    pub(crate) fn finish_change(&self) -> Result<(), VaultError> {
        match self {
            Keyring::Environment => Ok(()),
            Keyring::File(path) => VaultKey::replace(path),
        }
    }
}

fn key_file(store: &Location, config: Option<&Path>) -> PathBuf {
    let neighbour = match store {
        Location::Sqlite(path) => Some(path.as_path()),
        Location::Postgres(_) => config,
    };
    neighbour.and_then(Path::parent).unwrap_or(Path::new("")).join(KEY_FILE)
}

fn from_environment(variable: &str) -> Result<VaultKey, VaultError> {
    let text = env::var(variable).ok();
    text.and_then(|text| VaultKey::from_hex(&text)).ok_or_else(|| VaultError::NotAKey(variable.to_owned()))
}

fn no_key(path: &Path) -> VaultError {
    VaultError::NoKey(path.display().to_string())
}

pub(crate) fn key_trouble(error: VaultError) -> Trouble {
    let trouble = Trouble::new(Exit::Credentials, format!("the key: {}", highwater_engine::describe(&error)));
    match error {
        VaultError::WrongKey { .. } | VaultError::NoKey(_) => {
            trouble.hint("put the key back, or get new credentials with 'highwater auth SOURCE'")
        }
        VaultError::Altered | VaultError::Unknown => {
            trouble.hint("the row was changed by somebody else; get new credentials with 'highwater auth SOURCE'")
        }
        VaultError::NotAKey(_) | VaultError::Unusable { .. } => {
            trouble.hint("a key is 64 hexadecimal digits, in HIGHWATER_KEY or in the file highwater.key")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_file_is_beside_the_store_or_beside_the_configuration() {
        let file = |store: &str, config: Option<&str>| {
            key_file(&Location::parse(store, None).unwrap(), config.map(Path::new)).display().to_string()
        };
        assert_eq!(file("sqlite:highwater.db", Some("/etc/highwater.toml")), "highwater.key");
        assert_eq!(file("sqlite:/data/mail.db", None), "/data/highwater.key");
        assert_eq!(file("postgres://h/d", Some("/etc/highwater.toml")), "/etc/highwater.key");
        assert_eq!(file("postgres://h/d", Some("highwater.toml")), "highwater.key");
        assert_eq!(file("postgres://h/d", None), "highwater.key");
    }
}
