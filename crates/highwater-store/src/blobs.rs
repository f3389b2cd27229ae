//! Large contents, kept outside the database under the name of their own hash: in a folder, or in a store that speaks
//! S3. It knows no rows; who writes a row that names a blob has written the blob before.

mod error;
mod folder;
mod name;
mod place;
#[cfg(test)]
mod tests;

use std::{path::PathBuf, sync::Arc};

use bytes::Bytes;
use futures_util::{StreamExt, stream::BoxStream};
use object_store::{Error, ObjectStore, ObjectStoreExt, memory::InMemory, path::Path};

use self::{error::failed, place::Place};
use crate::{ErrorKind, Result, StoreError};
pub use name::BlobName;

/// Clones are the same store.
#[derive(Clone, Debug)]
pub struct Blobs {
    objects: Arc<dyn ObjectStore>,
    prefix: Path,
    /// None if the blobs are not in a folder.
    folder: Option<PathBuf>,
}

impl Blobs {
    /// `file:PATH`, which is made if it is not there, or `s3://BUCKET/PREFIX`, with credentials and endpoint from the
    /// usual `AWS_*` variables. Nothing is sent yet.
    pub fn open(url: &str) -> Result<Blobs> {
        url.parse::<Place>()?.open()
    }

    /// Gone with its last clone: for simulations, which must not wait for a disk.
    pub fn in_memory() -> Blobs {
        Blobs { objects: Arc::new(InMemory::new()), prefix: Path::default(), folder: None }
    }

    /// When it returns, the content survives a loss of power. What is there already is not written again.
    pub async fn put(&self, content: Bytes) -> Result<BlobName> {
        let name = BlobName::of(&content);
        match self.size(&name).await? {
            Some(size) if size == content.len() as u64 => self.sync(&name).await?,
            // Half of it can be there if a disk lost the rest.
            _ => self.write(&name, content).await?,
        }
        Ok(name)
    }

    /// None if it is not there. What is there and is not what its name says is an error.
    pub async fn read(&self, name: &BlobName) -> Result<Option<Bytes>> {
        let Some(found) = present(self.objects.get(&self.key(name)).await, "reading a blob")? else { return Ok(None) };
        let Some(content) = present(found.bytes().await, "reading a blob")? else { return Ok(None) };
        if BlobName::of(&content) != *name {
            return Err(StoreError::new(ErrorKind::Corrupt, format!("{name} is not what its name says")));
        }
        Ok(Some(content))
    }

    pub async fn exists(&self, name: &BlobName) -> Result<bool> {
        Ok(self.size(name).await?.is_some())
    }

    /// Every blob and its size, in no order. What has another name is none of ours, or was never finished.
    pub fn list(&self) -> BoxStream<'static, Result<(BlobName, u64)>> {
        let prefix = self.prefix.clone();
        let all = self.objects.list(Some(&self.prefix));
        let named = all.filter_map(move |found| {
            let named = found.map_err(|error| failed("listing blobs", error)).map(|meta| {
                let name = name_of(&prefix, &meta.location)?;
                Some((name, meta.size))
            });
            std::future::ready(named.transpose())
        });
        named.boxed()
    }

    /// What is not there is deleted already.
    pub async fn delete(&self, name: &BlobName) -> Result<()> {
        present(self.objects.delete(&self.key(name)).await, "deleting a blob").map(|_| ())
    }

    async fn size(&self, name: &BlobName) -> Result<Option<u64>> {
        let meta = present(self.objects.head(&self.key(name)).await, "looking for a blob")?;
        Ok(meta.map(|meta| meta.size))
    }

    async fn write(&self, name: &BlobName, content: Bytes) -> Result<()> {
        let written = self.objects.put(&self.key(name), content.into()).await;
        written.map(|_| ()).map_err(|error| failed("writing a blob", error))
    }

    /// Whoever put it there may have been stopped just before its folder was on disk.
    async fn sync(&self, name: &BlobName) -> Result<()> {
        match &self.folder {
            Some(folder) => folder::sync(folder.clone(), name).await,
            None => Ok(()),
        }
    }

    fn key(&self, name: &BlobName) -> Path {
        self.prefix.clone().join(name.algorithm()).join(name.fan()).join(name.rest())
    }
}

fn name_of(prefix: &Path, location: &Path) -> Option<BlobName> {
    let path: Vec<_> = location.prefix_match(prefix)?.collect();
    let path: Vec<_> = path.iter().map(AsRef::as_ref).collect();
    path.join("/").parse().ok()
}

fn present<T>(outcome: object_store::Result<T>, doing: &str) -> Result<Option<T>> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(failed(doing, error)),
    }
}
