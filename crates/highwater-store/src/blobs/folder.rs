//! Folders on disk: made, and made to last.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use super::BlobName;
use crate::{ErrorKind, Result, StoreError};

/// With everything above it, and absolute, so that a change of the working directory moves nothing.
pub(super) fn create(path: &Path) -> Result<PathBuf> {
    let made = fs::create_dir_all(path).and_then(|()| fs::canonicalize(path));
    made.map_err(|error| {
        StoreError::new(ErrorKind::CannotOpen, format!("cannot open the folder {}", path.display())).caused_by(error)
    })
}

/// Has the entries that lead to a blob on disk.
pub(super) async fn sync(folder: PathBuf, name: &BlobName) -> Result<()> {
    let innermost = folder.join(name.algorithm()).join(name.fan());
    let synced = tokio::task::spawn_blocking(move || {
        let mut folders = innermost.ancestors().take_while(|path| path.starts_with(&folder));
        folders.try_for_each(sync_folder)
    });
    let synced = synced.await.map_err(io::Error::other).flatten();
    synced.map_err(|error| StoreError::new(ErrorKind::Unavailable, "syncing the folder of a blob").caused_by(error))
}

#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Windows opens no folder as a file.
#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}
