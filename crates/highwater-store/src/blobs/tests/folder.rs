//! Blobs in a folder.

use std::{fs, path::PathBuf, time::UNIX_EPOCH};

use tempfile::TempDir;

use super::*;

fn open(home: &TempDir) -> (Blobs, PathBuf) {
    let path = home.path().join("new/blobs");
    (Blobs::open(&format!("file:{}", path.display())).unwrap(), path)
}

#[tokio::test]
async fn a_folder_keeps_what_was_put() {
    let home = TempDir::new().unwrap();
    let (blobs, path) = open(&home);
    check(&blobs).await;
    let name = blobs.put(Bytes::from_static(b"one")).await.unwrap();
    assert_eq!(fs::read(path.join(name.to_string())).unwrap(), b"one", "the name is the path");
    assert_eq!(open(&home).0.read(&name).await.unwrap().as_deref(), Some(&b"one"[..]));
}

#[tokio::test]
async fn what_is_there_is_not_written_again() {
    let home = TempDir::new().unwrap();
    let (blobs, path) = open(&home);
    let name = blobs.put(Bytes::from_static(b"one")).await.unwrap();
    let file = path.join(name.to_string());
    fs::File::options().write(true).open(&file).unwrap().set_modified(UNIX_EPOCH).unwrap();
    blobs.put(Bytes::from_static(b"one")).await.unwrap();
    assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), UNIX_EPOCH);
}

#[tokio::test]
async fn what_a_crash_left_half_written_is_no_blob() {
    let home = TempDir::new().unwrap();
    let (blobs, path) = open(&home);
    let name = BlobName::of(b"one");
    let file = path.join(name.to_string());
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(format!("{}#1", file.display()), b"on").unwrap();
    assert_eq!(listed(&blobs).await, []);
    assert!(!blobs.exists(&name).await.unwrap());
    blobs.put(Bytes::from_static(b"one")).await.unwrap();
    assert_eq!(listed(&blobs).await, [(name.clone(), 3)]);
    assert_eq!(blobs.read(&name).await.unwrap().as_deref(), Some(&b"one"[..]));
}

#[tokio::test]
async fn many_may_put_the_same_at_once() {
    let home = TempDir::new().unwrap();
    let (blobs, _) = open(&home);
    let puts = (0..50).map(|n| blobs.put(Bytes::from(vec![n % 5; 10_000])));
    let names = futures_util::future::join_all(puts).await;
    assert!(names.iter().all(Result::is_ok));
    assert_eq!(listed(&blobs).await.len(), 5);
}

#[test]
fn a_folder_that_cannot_be_made_is_told_at_once() {
    let home = TempDir::new().unwrap();
    fs::write(home.path().join("file"), b"").unwrap();
    let error = Blobs::open(&format!("file:{}/file/blobs", home.path().display())).unwrap_err();
    assert_eq!(error.kind, ErrorKind::CannotOpen);
}
