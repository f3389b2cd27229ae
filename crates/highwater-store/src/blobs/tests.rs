//! Every place must pass the same; a folder also keeps what a crash leaves behind to itself.

mod folder;
mod s3;

use futures_util::TryStreamExt;
use object_store::memory::InMemory;

use super::*;

fn in_memory(prefix: &str) -> Blobs {
    Blobs { objects: Arc::new(InMemory::new()), prefix: Path::parse(prefix).unwrap(), folder: None }
}

async fn listed(blobs: &Blobs) -> Vec<(BlobName, u64)> {
    let mut all: Vec<_> = blobs.list().try_collect().await.unwrap();
    all.sort();
    all
}

/// What every place must do, from empty to empty.
async fn check(blobs: &Blobs) {
    let (one, two) = (Bytes::from_static(b"one"), Bytes::from(vec![2; 100_000]));
    assert_eq!(listed(blobs).await, []);
    let name = blobs.put(one.clone()).await.unwrap();
    assert_eq!(name, BlobName::of(b"one"));
    assert_eq!(blobs.put(one.clone()).await.unwrap(), name, "twice is once");
    let big = blobs.put(two.clone()).await.unwrap();
    let empty = blobs.put(Bytes::new()).await.unwrap();
    assert_eq!(blobs.read(&name).await.unwrap(), Some(one));
    assert_eq!(blobs.read(&big).await.unwrap(), Some(two));
    assert_eq!(blobs.read(&empty).await.unwrap(), Some(Bytes::new()));
    let mut expected = [(name.clone(), 3), (big.clone(), 100_000), (empty.clone(), 0)];
    expected.sort();
    assert_eq!(listed(blobs).await, expected);
    assert!(blobs.exists(&name).await.unwrap());
    for name in [&name, &big, &empty, &name] {
        blobs.delete(name).await.unwrap();
        assert_eq!(blobs.read(name).await.unwrap(), None);
    }
    assert!(!blobs.exists(&name).await.unwrap());
    assert_eq!(listed(blobs).await, []);
}

#[tokio::test]
async fn a_place_keeps_what_was_put() {
    check(&in_memory("")).await;
    check(&in_memory("some/prefix")).await;
}

#[tokio::test]
async fn what_is_not_what_its_name_says_is_not_handed_out() {
    let blobs = in_memory("");
    let name = blobs.put(Bytes::from_static(b"one")).await.unwrap();
    blobs.write(&name, Bytes::from_static(b"two")).await.unwrap();
    assert_eq!(blobs.read(&name).await.unwrap_err().kind, ErrorKind::Corrupt);
}

#[tokio::test]
async fn half_a_blob_is_written_again() {
    let blobs = in_memory("");
    let name = blobs.put(Bytes::from_static(b"one")).await.unwrap();
    blobs.write(&name, Bytes::from_static(b"on")).await.unwrap();
    blobs.put(Bytes::from_static(b"one")).await.unwrap();
    assert_eq!(blobs.read(&name).await.unwrap().as_deref(), Some(&b"one"[..]));
}

#[tokio::test]
async fn what_lies_beside_the_blobs_is_left_alone() {
    let blobs = in_memory("p");
    let name = blobs.put(Bytes::from_static(b"one")).await.unwrap();
    for other in ["p/readme.txt", "p/sha256/ab/short", "other/sha256/x", "pp/x"] {
        blobs.objects.put(&Path::from(other), Bytes::from_static(b"x").into()).await.unwrap();
    }
    assert_eq!(listed(&blobs).await, [(name, 3)]);
}
