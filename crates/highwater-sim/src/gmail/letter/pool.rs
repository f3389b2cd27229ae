//! Text and noise that are made once, and of which long bodies are cut: benchmarks want thousands of them a second.

use std::sync::LazyLock;

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::{body::noise, words};
use crate::rng::SplitMix64;

const LINES: usize = 8_192;
/// Both with their ends.
const TEXT_LINE: usize = 80;
const BASE64_LINE: usize = 78;
/// What one line of base64 stands for.
const LINE_BYTES: usize = 57;

static TEXT: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut rng = SplitMix64::new(1);
    let mut pool = Vec::with_capacity(LINES * TEXT_LINE);
    for _ in 0..LINES {
        let line = words::text(&mut rng, 2 * TEXT_LINE).replace("\r\n", " ");
        pool.extend_from_slice(&line.as_bytes()[..TEXT_LINE - 3]);
        pool.extend_from_slice(b".\r\n");
    }
    pool
});

static BASE64: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let noise = noise(2, LINES * LINE_BYTES);
    let lines = noise.chunks(LINE_BYTES).flat_map(|line| [STANDARD.encode(line).into_bytes(), b"\r\n".to_vec()]);
    lines.flatten().collect()
});

/// At least so many bytes, in whole lines.
pub(super) fn text(rng: &mut SplitMix64, bytes: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes + TEXT_LINE);
    fill(&mut out, &TEXT, TEXT_LINE, rng, bytes.div_ceil(TEXT_LINE));
    out
}

/// The base64 of at least so many bytes. The first line is like no other, so that no two contents are the same.
pub(super) fn base64(rng: &mut SplitMix64, bytes: usize) -> Vec<u8> {
    let lines = bytes.div_ceil(LINE_BYTES).max(1);
    let mut out = Vec::with_capacity(lines * BASE64_LINE);
    out.extend_from_slice(STANDARD.encode(noise(rng.next_u64(), LINE_BYTES)).as_bytes());
    out.extend_from_slice(b"\r\n");
    fill(&mut out, &BASE64, BASE64_LINE, rng, lines - 1);
    out
}

fn fill(out: &mut Vec<u8>, pool: &[u8], line: usize, rng: &mut SplitMix64, lines: usize) {
    let mut left = lines * line;
    let mut at = rng.below(LINES as u64) as usize * line;
    while left > 0 {
        let len = left.min(pool.len() - at);
        out.extend_from_slice(&pool[at..at + len]);
        (left, at) = (left - len, 0);
    }
}
