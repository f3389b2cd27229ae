//! Where blobs are kept, from the URL in the configuration. Reading it touches nothing; opening it makes the folder.

use std::{net::IpAddr, path::PathBuf, str::FromStr, sync::Arc, time::Duration};

use object_store::{
    RetryConfig,
    aws::{AmazonS3Builder, AmazonS3ConfigKey},
    local::LocalFileSystem,
    path::Path,
};

use super::{Blobs, error::failed, folder};
use crate::{ErrorKind, Result, StoreError};

/// A run waits for what may heal by itself; here only what is over in a moment is waited out.
const RETRIES: usize = 3;
const RETRY_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Folder(PathBuf),
    S3 { bucket: String, prefix: String },
}

impl FromStr for Place {
    type Err = StoreError;

    fn from_str(url: &str) -> Result<Self> {
        if let Some(path) = url.strip_prefix("file:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return if path.is_empty() { Err(bad("file: names no folder")) } else { Ok(Place::Folder(path.into())) };
        }
        let Some(location) = url.strip_prefix("s3://") else {
            return Err(bad("blobs are kept at file:PATH or s3://BUCKET/PREFIX"));
        };
        let (bucket, prefix) = location.split_once('/').unwrap_or((location, ""));
        // No password belongs into this URL, and none may end up in an error.
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        if bucket.is_empty() || !bucket.bytes().all(is_name) {
            return Err(bad("s3:// names no bucket"));
        }
        Ok(Place::S3 { bucket: bucket.into(), prefix: prefix.trim_matches('/').into() })
    }
}

impl Place {
    pub(super) fn open(self) -> Result<Blobs> {
        match self {
            Place::Folder(path) => open_folder(&path),
            Place::S3 { bucket, prefix } => open_s3(AmazonS3Builder::from_env(), &bucket, &prefix),
        }
    }
}

fn open_folder(path: &std::path::Path) -> Result<Blobs> {
    let folder = folder::create(path)?;
    let objects = LocalFileSystem::new_with_prefix(&folder).map_err(|error| failed("opening the blobs", error))?;
    Ok(Blobs { objects: Arc::new(objects.with_fsync(true)), prefix: Path::default(), folder: Some(folder) })
}

/// The builder has what the environment says.
pub(super) fn open_s3(builder: AmazonS3Builder, bucket: &str, prefix: &str) -> Result<Blobs> {
    let is_plain = is_plain(&builder)?;
    let retry = RetryConfig { max_retries: RETRIES, retry_timeout: RETRY_TIMEOUT, ..RetryConfig::default() };
    let built = builder.with_bucket_name(bucket).with_allow_http(is_plain).with_retry(retry).build();
    let objects = built.map_err(|error| {
        StoreError::new(ErrorKind::CannotOpen, "the S3 store is not fully configured").caused_by(error)
    })?;
    let prefix = Path::parse(prefix).map_err(|error| bad("the prefix is no path").caused_by(error))?;
    Ok(Blobs { objects: Arc::new(objects), prefix, folder: None })
}

/// Whether an endpoint is reached without TLS: only on this machine, whatever else the environment allows.
fn is_plain(builder: &AmazonS3Builder) -> Result<bool> {
    let endpoint = [AmazonS3ConfigKey::S3Endpoint, AmazonS3ConfigKey::Endpoint];
    let endpoint = endpoint.iter().find_map(|key| builder.get_config_value(key));
    let scheme = endpoint.as_deref().and_then(|url| url.split_once("://"));
    match scheme {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => {
            if is_loopback(rest) {
                Ok(true)
            } else {
                Err(bad("the S3 endpoint is neither https nor on this machine"))
            }
        }
        _ => Ok(false),
    }
}

fn is_loopback(rest: &str) -> bool {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or("");
    let host = match authority.strip_prefix('[') {
        Some(inner) => inner.split(']').next().unwrap_or(""),
        None => authority.split(':').next().unwrap_or(""),
    };
    let is_named = host.eq_ignore_ascii_case("localhost") && !authority.contains('@');
    is_named || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback() && !authority.contains('@'))
}

fn bad(what: &str) -> StoreError {
    StoreError::new(ErrorKind::CannotOpen, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s3(bucket: &str, prefix: &str) -> Option<Place> {
        Some(Place::S3 { bucket: bucket.into(), prefix: prefix.into() })
    }

    #[test]
    fn urls_name_folders_and_buckets() {
        for (url, expected) in [
            ("file:blobs", Some(Place::Folder("blobs".into()))),
            ("file:/var/blobs", Some(Place::Folder("/var/blobs".into()))),
            ("file:///var/blobs", Some(Place::Folder("/var/blobs".into()))),
            ("s3://bucket", s3("bucket", "")),
            ("s3://my.bucket-1/a/b/", s3("my.bucket-1", "a/b")),
            ("file:", None),
            ("s3://", None),
            ("s3:///prefix", None),
            ("s3://key:secret@bucket/x", None),
            ("blobs", None),
            ("https://example.com/bucket", None),
        ] {
            assert_eq!(url.parse::<Place>().ok(), expected, "{url}");
        }
        let error = "s3://key:secret@bucket/x".parse::<Place>().unwrap_err();
        assert!(!error.to_string().contains("secret"));
    }

    #[test]
    fn only_endpoints_on_this_machine_go_without_tls() {
        let with = |url: &str| AmazonS3Builder::new().with_endpoint(url).with_allow_http(true);
        for url in ["http://127.0.0.1:9000", "http://localhost", "HTTP://[::1]:9000/x"] {
            assert!(is_plain(&with(url)).unwrap(), "{url}");
        }
        assert!(!is_plain(&with("https://example.com")).unwrap());
        assert!(!is_plain(&AmazonS3Builder::new()).unwrap());
        for url in
            ["http://example.com", "http://localhost.example.com", "http://127.0.0.1@example.com", "http://10.0.0.1"]
        {
            assert_eq!(is_plain(&with(url)).unwrap_err().kind, ErrorKind::CannotOpen, "{url}");
        }
    }
}
