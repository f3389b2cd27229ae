//! Large mail, many at once, in little memory.

use std::time::Duration;

use super::{desk::Desk, mirror::assert_mail};
use crate::support::{Running, Sim, until};

const LARGE: u32 = 24;
/// Attachments of up to 26 MB, which are 35 MB within a mail and 47 MB within an answer.
const PLAN: &str = "[shares]\nodd = 0.0\nsent = 0.0\ndrafts = 0.0\nspam = 0.0\ntrash = 0.0\nchats = 0.0\n\
    [size]\nlarge = 1.0\nlarge_max = 26000000\n[body]\ngzip = ";
const ALL_AT_ONCE: &str = "[sources.mail.limits]\nrate = \"unlimited\"\nin_flight = 64\n";
const PATIENCE: Duration = Duration::from_secs(400);
const MEGABYTE: u64 = 1 << 20;

#[test]
fn large_mail_comes_whole_in_little_memory() {
    for gzip in ["false", "true"] {
        let desk = Desk::new(Sim::gmail_planned(LARGE, &format!("{PLAN}{gzip}\n")), ALL_AT_ONCE);
        let peak = peak_until_done(desk.start());
        let expected = assert_mail(&desk.database(), &desk.sim, &[]);
        assert_eq!((expected.stored, desk.gets()), (u64::from(LARGE), u64::from(LARGE)), "each is fetched once");
        let bytes: i64 = desk.database().one("SELECT sum(size_bytes) FROM mail_raw");
        assert!(bytes.cast_unsigned() > 300 * MEGABYTE, "{bytes} bytes are too few to tell");
        assert!(peak < 200 * MEGABYTE, "{} MB with gzip {gzip}", peak / MEGABYTE);
    }
}

/// The most memory that was resident.
fn peak_until_done(mut sync: Running) -> u64 {
    let mut peak = 0;
    until("the end of the sync", PATIENCE, || {
        // The kernel keeps the peak, so the last look before the end is the one that counts.
        peak = sync.peak_memory().unwrap_or(peak);
        sync.has_ended().then_some(())
    });
    sync.wait().exits(0);
    peak
}
