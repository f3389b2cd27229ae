//! Words for titles, texts, links and names of the generated world. Everything here is already escaped for JSON and
//! for HTML the way the real API has it: entities, `<p>` as a separator, raw UTF-8.

use crate::rng::SplitMix64;

#[rustfmt::skip]
const WORDS: [&str; 128] = [
    "the", "a", "of", "to", "and", "in", "is", "it", "that", "for", "you", "with", "on", "this", "not", "are",
    "be", "have", "as", "but", "or", "if", "can", "was", "they", "at", "from", "an", "so", "just", "what", "more",
    "about", "would", "people", "there", "like", "my", "one", "all", "when", "will", "some", "how", "do", "than", "think", "time",
    "which", "has", "get", "out", "other", "because", "up", "use", "work", "even", "also", "much", "know", "only", "then", "good",
    "compiler", "memory", "latency", "database", "kernel", "browser", "startup", "founder", "market", "salary", "privacy", "license",
    "packet", "cache", "queue", "index", "schema", "thread", "socket", "pointer", "garbage", "collector", "borrow", "checker",
    "it&#x27;s", "don&#x27;t", "I&#x27;m", "that&#x27;s", "you&#x27;re", "can&#x27;t", "and&#x2F;or", "&quot;quoted&quot;", "&gt;", "R&amp;D", "&lt;tag&gt;", "C++",
    "naïve", "café", "“curly”", "—", "日本語", "🙂", "Zürich", "µs", "10%", "2x", "$100", "50k", "HTTP/2", "x86_64", "v1.2.3", "O(n)",
    "however,", "actually,", "though.", "maybe", "never", "always", "really?", "(sort of)",
    "<i>very</i>", "<p>", "<p>", "<p>",
];

/// Titles carry no markup.
const PLAIN_WORDS: usize = 88;

/// A word with the space behind it, and whatever follows: a fixed number of bytes is copied several times as fast as a
/// few of any number, and texts are most of what a simulator writes.
#[derive(Clone, Copy)]
struct Padded {
    bytes: [u8; WORD_MAX + 1],
    len: usize,
}

const WORD_MAX: usize = 23;

static VOCABULARY: [Padded; WORDS.len()] = padded();

/// What makes a text more than words; about one text in eight has one.
const FRAGMENTS: [&str; 4] = [
    r#"<a href=\"https:&#x2F;&#x2F;example.com&#x2F;post&#x2F;1\" rel=\"nofollow\">https:&#x2F;&#x2F;example.com&#x2F;post&#x2F;1</a>"#,
    r"<pre><code>    let x = 1;\n    x + 1\n</code></pre>",
    "<p>&gt; <i>as somebody said above</i><p>",
    r"C:\\temp\\new\tfile",
];

const HOSTS: [&str; 8] = [
    "example.com",
    "blog.example.org",
    "www.example.net",
    "github.com/example",
    "arxiv.org/abs",
    "en.wikipedia.org/wiki",
    "news.example.co.uk",
    "例え.example",
];

/// Longest url a real item was seen with.
const LONG_URL: usize = 6_598;
/// Longest title.
const TITLE_MAX: usize = 198;
/// Longest real body in the sample is 6,157 bytes.
const TEXT_MAX: usize = 6_000;

/// At least one word, at most about 6,000 bytes, distributed as real comments are: median 190, mean 330.
pub(super) fn text(out: &mut Vec<u8>, rng: &mut SplitMix64) {
    let goal = out.len() + text_len(rng.next_u64());
    if rng.chance(1, 8) {
        out.extend_from_slice(FRAGMENTS[rng.below(FRAGMENTS.len() as u64) as usize].as_bytes());
        out.push(b' ');
    }
    words(out, rng, &VOCABULARY, goal);
}

pub(super) fn title(out: &mut Vec<u8>, rng: &mut SplitMix64) {
    let start = out.len();
    let goal = start + 15 + rng.below(60) as usize;
    words(out, rng, &VOCABULARY[..PLAIN_WORDS], goal);
    debug_assert!(out.len() - start < TITLE_MAX);
}

pub(super) fn url(out: &mut Vec<u8>, rng: &mut SplitMix64) {
    out.extend_from_slice(b"https://");
    out.extend_from_slice(HOSTS[rng.below(HOSTS.len() as u64) as usize].as_bytes());
    out.push(b'/');
    for _ in 0..1 + rng.below(3) {
        letters(out, rng.next_u64());
        out.push(b'-');
    }
    letters(out, rng.next_u64());
}

pub(super) fn long_url(out: &mut Vec<u8>, rng: &mut SplitMix64) {
    let end = out.len() + LONG_URL;
    out.extend_from_slice(b"https://example.com/?q=");
    while out.len() + 8 <= end {
        letters(out, rng.next_u64());
    }
    out.resize(end, b'x');
}

/// Lognormal in spirit: 2 to the power of a sum of four uniform draws, in integers so that every machine agrees.
fn text_len(draw: u64) -> usize {
    let sum: u64 = (0..4).map(|part| (draw >> (16 * part)) & 0xFFFF).sum();
    // The exponent has 16 fractional bits: 7.5 at the middle of the sum, 1.5 bits a standard deviation.
    let exponent = ((sum * 167) >> 6) + (79 << 16) / 10 - (2 << 16) * 167 / 64;
    let (whole, fraction) = (exponent >> 16, exponent & 0xFFFF);
    (((1u64 << whole) * (0x1_0000 + fraction)) >> 16).clamp(4, TEXT_MAX as u64) as usize
}

fn words(out: &mut Vec<u8>, rng: &mut SplitMix64, vocabulary: &[Padded], goal: usize) {
    while out.len() < goal {
        for byte in rng.next_u64().to_le_bytes() {
            let word = &vocabulary[(usize::from(byte) * vocabulary.len()) >> 8];
            let end = out.len() + word.len;
            out.extend_from_slice(&word.bytes);
            if end >= goal {
                out.truncate(end);
                return;
            }
            out.truncate(end + 1);
        }
    }
}

const fn padded() -> [Padded; WORDS.len()] {
    let mut vocabulary = [Padded { bytes: [b' '; WORD_MAX + 1], len: 0 }; WORDS.len()];
    let mut place = 0;
    while place < WORDS.len() {
        let word = WORDS[place].as_bytes();
        // Compiled into a table: a word that is too long does not compile.
        let (bytes, _) = vocabulary[place].bytes.split_at_mut(word.len());
        bytes.copy_from_slice(word);
        vocabulary[place].len = word.len();
        place += 1;
    }
    vocabulary
}

/// Eight lower-case letters.
fn letters(out: &mut Vec<u8>, draw: u64) {
    out.extend_from_slice(&draw.to_le_bytes().map(|byte| b'a' + byte % 26));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_one_space_apart_up_to_the_goal() {
        for goal in 1..400 {
            let mut out = b"before".to_vec();
            words(&mut out, &mut SplitMix64::new(goal as u64), &VOCABULARY, 6 + goal);
            let text = str::from_utf8(&out[6..]).unwrap();
            assert!((goal..=goal + WORD_MAX).contains(&text.len()), "{goal}: {text}");
            // The one entry that is two words. A space may be the last to fit.
            let text = text.strip_suffix(' ').unwrap_or(text).replace("(sort of)", "maybe");
            assert!(text.split(' ').all(|word| WORDS.contains(&word)), "{goal}: {text}");
        }
    }
}
