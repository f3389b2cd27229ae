//! Answers of all sizes at once: within the bound, and to their end.

use std::time::Duration;

use futures_util::{FutureExt, StreamExt, stream::FuturesUnordered};
use proptest::prelude::*;
use tokio::time::{sleep, timeout};

use super::*;

const MEGABYTE: usize = 1 << 20;

/// Longer than all of these take together.
const FOREVER: Duration = Duration::from_secs(1_000_000);

impl Memory {
    fn used(&self) -> usize {
        self.most + units(FREE) - self.room.available_permits()
    }
}

/// An answer that comes in pieces, and is put away after a while or when somebody needs its room.
#[derive(Clone, Copy, Debug)]
struct Body {
    bytes: usize,
    piece: usize,
    says_length: bool,
    kept: u64,
}

async fn read(memory: &Memory, body: Body) -> Option<Held> {
    let mut growth = Growth::new(Some(memory));
    let length = body.says_length.then_some(body.bytes);
    let mut read = 0;
    while read < body.bytes {
        read = (read + body.piece).min(body.bytes);
        growth.reach(read, length).await;
        assert!(memory.used() <= memory.most + units(FREE));
        sleep(Duration::from_millis(1)).await;
    }
    growth.finish(body.bytes).await
}

async fn read_and_keep(memory: &Memory, body: Body) {
    let held = read(memory, body).await.unwrap();
    tokio::select! {
        () = sleep(Duration::from_millis(body.kept)) => {}
        () = held.wanted() => {}
    }
}

/// Each is put away at once, or kept as long as nobody needs its room.
fn bodies() -> impl Strategy<Value = Vec<Body>> {
    let sizes = prop_oneof![0..FREE, FREE..4 * MEGABYTE, 4 * MEGABYTE..40 * MEGABYTE];
    let body =
        (sizes, 16usize << 10..2 * MEGABYTE, any::<bool>(), prop_oneof![Just(0), Just(FOREVER.as_millis() as u64)]);
    let body = body.prop_map(|(bytes, piece, says_length, kept)| Body { bytes, piece, says_length, kept });
    prop::collection::vec(body, 1..64)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn all_get_through_within_the_bound_and_nobody_waits_for_ever(bodies in bodies(), megabytes in 1usize..24) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let memory = Memory::new(megabytes * MEGABYTE);
        let all = async {
            let mut reading: FuturesUnordered<_> = bodies.iter().map(|body| read_and_keep(&memory, *body)).collect();
            while reading.next().await.is_some() {}
        };
        // Whoever has all the room to himself keeps it as long as he likes.
        let patience = FOREVER * (bodies.len() as u32 + 1);
        let ended = runtime.block_on(async { timeout(patience, all).await });
        prop_assert!(ended.is_ok());
        prop_assert_eq!(memory.used(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_is_larger_than_everything_passes_alone() {
    let memory = Memory::new(4 * MEGABYTE);
    let whale = Body { bytes: 100 * MEGABYTE, piece: MEGABYTE, says_length: false, kept: 0 };
    let small = Body { bytes: 10_000, says_length: true, ..whale };
    let medium = Body { bytes: MEGABYTE, ..small };
    let first = read(&memory, medium).await.unwrap();
    let mut waiting = Box::pin(read(&memory, whale));
    assert!(timeout(FOREVER, &mut waiting).await.is_err(), "another has some of the room");
    assert!(first.wanted().now_or_never().is_some());
    drop(first);
    let whale = waiting.await.unwrap();
    assert!(whale.wanted().now_or_never().is_none());
    let mut other = Box::pin(read(&memory, medium));
    assert!(timeout(FOREVER, &mut other).await.is_err());
    assert!(read(&memory, small).now_or_never().is_none(), "whoever comes later waits as well");
    drop(whale);
    other.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_was_taken_and_not_needed_is_given_back() {
    let memory = Memory::new(64 * MEGABYTE);
    let mut growth = Growth::new(Some(&memory));
    growth.reach(3 * MEGABYTE, None).await;
    assert_eq!(memory.used(), units(6 * MEGABYTE));
    let held = growth.finish(3 * MEGABYTE + 5).await;
    assert_eq!(memory.used(), units(3 * MEGABYTE + 5));
    drop(held);
    let mut left = Growth::new(Some(&memory));
    left.reach(MEGABYTE, None).await;
    drop(left);
    assert_eq!(memory.used(), 0);
}

#[tokio::test]
async fn without_a_memory_to_share_nothing_is_held() {
    let mut growth = Growth::new(None);
    growth.reach(usize::MAX, None).await;
    assert!(growth.finish(usize::MAX).await.is_none());
}
