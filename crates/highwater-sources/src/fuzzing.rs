//! What fuzzing drives: the readers of foreign bytes, and what must hold of them. Compiled for the targets in `fuzz/`
//! only.

use std::collections::VecDeque;

use crate::{
    gmail,
    sse::{Decoder, Event},
};

/// The first byte says how large the pieces are that the rest comes in: no cut changes what is told.
pub fn feed(bytes: &[u8]) {
    let Some((size, bytes)) = bytes.split_first() else { return };
    let whole = told(std::iter::once(bytes));
    let cut = told(bytes.chunks(usize::from(*size).max(1)));
    assert_eq!(whole, cut, "the same bytes in pieces of {size} tell something else");
}

fn told<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Option<Vec<Event>> {
    let (mut decoder, mut events) = (Decoder::default(), VecDeque::new());
    for piece in pieces {
        decoder.push(piece, &mut events).ok()?;
    }
    Some(events.into())
}

/// No message breaks its reader, and its bytes come back as they went in.
pub fn mail(bytes: &[u8]) {
    gmail::read_and_pack(bytes);
}
