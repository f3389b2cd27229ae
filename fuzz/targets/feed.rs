//! Bytes of a stream of events, in any pieces.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| highwater_sources::fuzzing::feed(bytes));
