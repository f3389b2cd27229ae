//! A body in the pieces it came in, each given up as it is read.

use std::{
    collections::VecDeque,
    io::{self, BufRead, Read},
};

use bytes::{Buf, Bytes, BytesMut};

/// A smaller piece is copied out, which gives the connection its read buffer back: else every answer costs it a new one.
const COPIED_BELOW: usize = 4096;

#[derive(Default)]
pub(super) struct Pieces {
    whole: VecDeque<Bytes>,
    /// Small pieces together.
    last: BytesMut,
    len: usize,
}

impl Pieces {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// From here on everything is copied to its place in a body of that length.
    pub(super) fn make_room(&mut self, length: usize) {
        if self.last.capacity() < length {
            let mut room = BytesMut::with_capacity(length);
            self.seal();
            while let Some(piece) = self.whole.pop_front() {
                room.extend_from_slice(&piece);
            }
            self.last = room;
        }
    }

    pub(super) fn add(&mut self, piece: Bytes) {
        self.len += piece.len();
        if piece.len() < COPIED_BELOW || piece.len() <= self.last.capacity() - self.last.len() {
            self.last.extend_from_slice(&piece);
        } else {
            self.seal();
            self.whole.push_back(piece);
        }
    }

    fn seal(&mut self) {
        if !self.last.is_empty() {
            self.whole.push_back(self.last.split().freeze());
        }
    }

    pub(super) fn join(mut self) -> Bytes {
        // Most bodies are one small piece: it is passed on where it lies.
        if self.whole.is_empty() {
            return self.last.freeze();
        }
        self.seal();
        if self.whole.len() == 1
            && let Some(only) = self.whole.pop_front()
        {
            return only;
        }
        let mut joined = BytesMut::with_capacity(self.len);
        while let Some(piece) = self.whole.pop_front() {
            joined.extend_from_slice(&piece);
        }
        joined.freeze()
    }

    /// What a compressed body says at its end of how long it was before.
    pub(super) fn said_length(&self) -> usize {
        let pieces = self.whole.iter().map(|piece| &piece[..]).chain([&self.last[..]]);
        let mut end = pieces.rev().flat_map(|piece| piece.iter().rev().copied());
        let bytes = std::array::from_fn(|_| end.next().unwrap_or(0));
        u32::from_be_bytes(bytes) as usize
    }

    pub(super) fn into_reader(mut self) -> PiecesReader {
        self.seal();
        PiecesReader(self.whole)
    }
}

pub(super) struct PiecesReader(VecDeque<Bytes>);

impl BufRead for PiecesReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        Ok(self.0.front().map_or(&[], |piece| &piece[..]))
    }

    fn consume(&mut self, amount: usize) {
        if let Some(piece) = self.0.front_mut() {
            piece.advance(amount);
            if piece.is_empty() {
                self.0.pop_front();
            }
        }
    }
}

impl Read for PiecesReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pieces(lengths: &[usize]) -> (Pieces, Vec<u8>) {
        let (mut pieces, mut all) = (Pieces::default(), Vec::new());
        for length in lengths {
            let piece: Vec<u8> = (0..*length).map(|at| (at * 7 + all.len()) as u8).collect();
            all.extend_from_slice(&piece);
            pieces.add(piece.into());
        }
        (pieces, all)
    }

    proptest! {
        #[test]
        fn pieces_of_any_length_make_one_body(lengths in prop::collection::vec(0usize..9_000, 0..12)) {
            let (mut joined, all) = pieces(&lengths);
            prop_assert_eq!(joined.len(), all.len());
            joined.make_room(all.len() + 1);
            joined.add(Bytes::from_static(b"."));
            prop_assert_eq!(joined.join(), [&all[..], b"."].concat());
            prop_assert_eq!(pieces(&lengths).0.join(), all.clone());
            let mut read = Vec::new();
            pieces(&lengths).0.into_reader().read_to_end(&mut read).unwrap();
            prop_assert_eq!(&read, &all);
            let said = all.last_chunk().map_or(0, |end| u32::from_le_bytes(*end) as usize);
            prop_assert!(all.len() < 4 || pieces(&lengths).0.said_length() == said);
        }
    }
}
