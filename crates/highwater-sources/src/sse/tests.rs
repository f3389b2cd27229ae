//! The decoder against a reader that has the whole text at once, in pieces of every size.

use proptest::prelude::*;

use super::*;

fn events(pieces: &[&[u8]]) -> Vec<(String, String)> {
    let mut decoder = Decoder::default();
    let mut events = VecDeque::new();
    for piece in pieces {
        decoder.push(piece, &mut events).unwrap();
    }
    events.into_iter().map(|event| (event.name, event.data)).collect()
}

fn check(text: &str, expected: &[(&str, &str)]) {
    let expected: Vec<_> = expected.iter().map(|(name, data)| ((*name).to_owned(), (*data).to_owned())).collect();
    assert_eq!(events(&[text.as_bytes()]), expected, "{text:?}");
    let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
    assert_eq!(events(&bytes), expected, "{text:?} byte by byte");
}

#[test]
fn events_are_read_as_firebase_sends_them() {
    check(
        "event: put\ndata: {\"path\":\"/\",\"data\":1}\n\nevent: keep-alive\ndata: null\n\n",
        &[("put", "{\"path\":\"/\",\"data\":1}"), ("keep-alive", "null")],
    );
}

#[test]
fn every_line_end_is_one() {
    for end in ["\n", "\r\n", "\r"] {
        let text = ["event: a", "data: 1", "", "", "data: 2", "data: 3", "", ""].join(end);
        check(&text, &[("a", "1"), ("message", "2\n3")]);
    }
    check("data: 1\r\ndata: 2\n\rdata: 3\r\n\r\n", &[("message", "1\n2"), ("message", "3")]);
}

#[test]
fn only_events_with_data_that_are_complete_are_told() {
    check("event: a\n\n", &[]);
    check("event: a\n\ndata\n\n", &[("message", "")]);
    check("data\ndata:\n\n", &[("message", "\n")]);
    check("data: 1\n", &[]);
    check("data: 1\n\ndata: 2", &[("message", "1")]);
}

#[test]
fn what_is_no_field_is_passed_over() {
    check("\u{feff}data: 1\n\n", &[("message", "1")]);
    check("\u{feff}\ndata: 1\n\n\u{feff}data: 2\n\n", &[("message", "1")]);
    check(": comment\n:\nid: 7\nretry: 1\ndata:  a:b\nnew: x\nDATA: x\n data: x\n\n", &[("message", " a:b")]);
    check("event: a\nevent:\ndata: 1\n\n", &[("message", "1")]);
}

#[test]
fn what_is_not_utf_8_is_replaced() {
    assert_eq!(events(&[b"event: \xff\ndata: a\xc3\n\n"]), [("\u{fffd}".into(), "a\u{fffd}".into())]);
}

#[test]
fn an_event_has_a_bound_wherever_its_bytes_are() {
    let mut events = VecDeque::new();
    for text in ["data: 123456789", ": a comment without an end", "event: 1234\ndata: 12", "data: 12\ndata: 12"] {
        let mut decoder = Decoder::bounded(10);
        assert_eq!(decoder.push(text.as_bytes(), &mut events), Err(TooLarge(10)), "{text:?}");
        let mut decoder = Decoder::bounded(10);
        assert!(text.bytes().any(|byte| decoder.push(&[byte], &mut events).is_err()), "{text:?}");
    }
    assert!(events.is_empty());
    let mut decoder = Decoder::bounded(10);
    assert_eq!(decoder.push("data: 1234\n\n:23456789\n".repeat(1_000).as_bytes(), &mut events), Ok(()));
    assert_eq!(events.len(), 1_000);
    assert!(decoder.push(b"data: 1\n\ndata: 12345", &mut events).is_err());
    assert_eq!(events.len(), 1_001, "what came before is told");
}

/// The same rules, on the whole text, line by line.
fn reference(bytes: &[u8]) -> Vec<(String, String)> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text).replace("\r\n", "\n").replace('\r', "\n");
    let (complete, _) = text.rsplit_once('\n').unwrap_or_default();
    let (mut events, mut name, mut data) = (Vec::new(), String::new(), Vec::new());
    for line in complete.split('\n') {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => name = value.to_owned(),
            "data" => data.push(value.to_owned()),
            _ if line.is_empty() => {
                let name = std::mem::take(&mut name);
                if !data.is_empty() {
                    let name = if name.is_empty() { "message".to_owned() } else { name };
                    events.push((name, std::mem::take(&mut data).join("\n")));
                }
            }
            _ => {}
        }
    }
    events
}

const FRAGMENTS: [&[u8]; 32] = [
    b"\n",
    b"\r",
    b"\r\n",
    b"\n\n",
    b"\r\r",
    b"\r\n\r\n",
    b"data",
    b"data:",
    b"data: ",
    b"event",
    b"event:",
    b"event: ",
    b":",
    b" ",
    b"id: 1",
    b"retry: 5",
    b": comment",
    b"\xef\xbb\xbf",
    b"\xef\xbb",
    b"\xbf",
    b"\xff",
    b"\xc3",
    b"\xa9",
    b"\0",
    b"null",
    b"{\"path\":\"/\",\"data\":[1,2]}",
    b"put",
    b"patch",
    b"keep-alive",
    b"dat",
    b"a:b",
    b"data: x\n\n",
];

/// Cuts the bytes where the numbers say.
fn pieces<'a>(bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).chain([0, bytes.len()]).collect();
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

fn nasty() -> impl Strategy<Value = Vec<u8>> {
    let fragment = prop_oneof![
        9 => prop::sample::select(FRAGMENTS.to_vec()).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 0..6),
    ];
    prop::collection::vec(fragment, 0..40).prop_map(|fragments| fragments.concat())
}

proptest! {
    #[test]
    fn pieces_never_change_what_is_told(bytes in nasty(), cuts in prop::collection::vec(any::<usize>(), 0..12)) {
        prop_assert_eq!(events(&pieces(&bytes, &cuts)), reference(&bytes));
    }

    #[test]
    fn no_bytes_can_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), max in 0_usize..20) {
        let (mut decoder, mut events) = (Decoder::bounded(max), VecDeque::new());
        decoder.push(&bytes, &mut events).ok();
        decoder.push(&bytes, &mut events).ok();
        prop_assert!(events.iter().all(|event| event.data.len() <= 3 * max));
    }
}

/// A small generator of its own (xorshift): two hundred thousand cases in the time proptest needs for a few thousand.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 32).unwrap() % bound
    }
}

#[test]
fn two_hundred_thousand_nasty_texts_are_read_as_the_reference_reads_them() {
    for seed in 1..=200_000_u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let fragments: Vec<&[u8]> = (0..dice.below(24)).map(|_| FRAGMENTS[dice.below(FRAGMENTS.len())]).collect();
        let bytes = fragments.concat();
        let cuts: Vec<usize> = (0..dice.below(6)).map(|_| dice.below(bytes.len() + 1)).collect();
        assert_eq!(events(&pieces(&bytes, &cuts)), reference(&bytes), "seed {seed}: {bytes:?} cut at {cuts:?}");
    }
}
