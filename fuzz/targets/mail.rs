//! The bytes of a message.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| highwater_sources::fuzzing::mail(bytes));
