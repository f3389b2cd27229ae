//! A key: from text, from chance, or from the file beside a store, which is made whole or not at all and for nobody
//! else to read.

use std::{
    fmt,
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    str::FromStr,
};

use aws_lc_rs::{
    digest::{SHA256, digest},
    rand,
};
use highwater_core::hex;
use zeroize::Zeroizing;

use super::VaultError;

/// How the file is called, wherever it is.
pub const KEY_FILE: &str = "highwater.key";

const LENGTH: usize = 32;

pub struct VaultKey(Zeroizing<[u8; LENGTH]>);

/// The first eight hexadecimal digits of the key's SHA-256: tells keys apart and says nothing about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyId([u8; 4]);

impl VaultKey {
    /// 64 hexadecimal digits, blanks around them allowed.
    pub fn from_hex(text: &str) -> Option<VaultKey> {
        let text = text.trim().as_bytes();
        let mut key = Zeroizing::new([0; LENGTH]);
        if text.len() != 2 * LENGTH {
            return None;
        }
        for (byte, digits) in key.iter_mut().zip(text.chunks_exact(2)) {
            *byte = (digit(digits[0])? << 4) | digit(digits[1])?;
        }
        Some(VaultKey(key))
    }

    pub fn generate() -> VaultKey {
        let mut key = Zeroizing::new([0; LENGTH]);
        rand::fill(&mut *key).expect("the system has random bytes");
        VaultKey(key)
    }

    pub fn id(&self) -> KeyId {
        let hash = digest(&SHA256, &*self.0);
        KeyId(std::array::from_fn(|index| hash.as_ref()[index]))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &*self.0
    }

    /// `None` where there is no such file.
    pub fn read(path: &Path) -> Result<Option<VaultKey>, VaultError> {
        let text = match fs::read_to_string(path) {
            Ok(text) => Zeroizing::new(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unusable(path, error)),
        };
        VaultKey::from_hex(&text).map(Some).ok_or_else(|| VaultError::NotAKey(path.display().to_string()))
    }

    /// The key in the file, which is made if it is not there.
    pub fn read_or_make(path: &Path) -> Result<VaultKey, VaultError> {
        if let Some(key) = VaultKey::read(path)? {
            return Ok(key);
        }
        VaultKey::generate().write_new(path).map_err(|error| unusable(path, error))?;
        // Another process may have been quicker: what is in the file counts.
        VaultKey::read(path)?.ok_or_else(|| VaultError::NoKey(path.display().to_string()))
    }

    /// Leaves alone what is there already.
    fn write_new(&self, path: &Path) -> io::Result<()> {
        let draft = beside(path, &format!("{}.tmp", std::process::id()));
        let text = Zeroizing::new(format!("{}\n", hex(&*self.0)));
        let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        let linked = match fs::hard_link(&draft, path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        };
        fs::remove_file(&draft)?;
        linked?;
        sync_folder(path)
    }

    /// The file that holds the coming key while everything is sealed anew.
    pub fn coming(path: &Path) -> PathBuf {
        beside(path, "new")
    }

    /// Everything is sealed with the coming key: it takes the place of the old one.
    pub fn replace(path: &Path) -> Result<(), VaultError> {
        fs::rename(VaultKey::coming(path), path).and_then(|()| sync_folder(path)).map_err(|error| unusable(path, error))
    }
}

impl fmt::Debug for VaultKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VaultKey({})", self.id())
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl FromStr for KeyId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        if text.len() != 8 || !text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(());
        }
        u32::from_str_radix(text, 16).map(|id| KeyId(id.to_be_bytes())).map_err(drop)
    }
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

/// A name in a folder is on disk when the folder is.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

fn unusable(path: &Path, source: io::Error) -> VaultError {
    VaultError::Unusable { path: path.display().to_string(), source }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_is_64_digits() {
        let digits = "00ff".repeat(16);
        assert_eq!(VaultKey::from_hex(&format!(" {digits}\n")).unwrap().bytes()[..2], [0, 255]);
        for wrong in ["", "00ff", &"0".repeat(63), &"0".repeat(65), &"g".repeat(64), &"é".repeat(32)] {
            assert!(VaultKey::from_hex(wrong).is_none(), "{wrong}");
        }
        let key = VaultKey::from_hex(&"0".repeat(64)).unwrap();
        // sha256sum of 32 zero bytes.
        assert_eq!((key.id().to_string().as_str(), format!("{key:?}").as_str()), ("66687aad", "VaultKey(66687aad)"));
        assert_eq!("66687aad".parse(), Ok(key.id()));
    }

    #[test]
    fn a_key_file_is_made_once_and_is_its_owner_s_alone() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join(KEY_FILE);
        assert!(VaultKey::read(&path).unwrap().is_none());
        let made = VaultKey::read_or_make(&path).unwrap();
        assert_eq!(VaultKey::read_or_make(&path).unwrap().id(), made.id());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        VaultKey::generate().write_new(&path).unwrap();
        assert_eq!(VaultKey::read(&path).unwrap().unwrap().id(), made.id(), "what is there is left alone");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no draft is left behind");
        fs::write(&path, "no key").unwrap();
        assert!(matches!(VaultKey::read_or_make(&path), Err(VaultError::NotAKey(_))));
    }

    #[test]
    fn a_coming_key_takes_the_place_of_the_old_one() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join(KEY_FILE);
        let old = VaultKey::read_or_make(&path).unwrap().id();
        let new = VaultKey::read_or_make(&VaultKey::coming(&path)).unwrap().id();
        assert_ne!(old, new);
        VaultKey::replace(&path).unwrap();
        assert_eq!(VaultKey::read(&path).unwrap().unwrap().id(), new);
        assert!(VaultKey::read(&VaultKey::coming(&path)).unwrap().is_none());
    }
}
