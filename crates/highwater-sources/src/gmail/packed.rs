//! The bytes of a message as they are kept: compressed, and never larger again than they were said to be.

use std::{cell::RefCell, io::Read};

use zstd::bulk::Compressor;

/// A text mail shrinks to 0.39 with it. The library's own choice, 3, comes to 0.38, and takes half as long again.
const LEVEL: i32 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the bytes of the message cannot be unpacked")]
pub struct NotPacked;

thread_local! {
    /// Its tables take longer to make than a short mail to pack.
    static PACKER: RefCell<Compressor<'static>> =
        RefCell::new(Compressor::new(LEVEL).expect("the library knows its own level"));
}

pub(super) fn pack(raw: &[u8]) -> Vec<u8> {
    let packed = PACKER.with_borrow_mut(|packer| packer.compress(raw));
    let mut packed = packed.expect("compressing into memory does not fail");
    // Room for what does not shrink was taken; of what is large it was never touched.
    if packed.capacity() <= TRIMMED_MAX {
        packed.shrink_to_fit();
    }
    packed
}

const TRIMMED_MAX: usize = 1 << 20;

/// `size` as it was before.
pub fn unpack(packed: &[u8], size: usize) -> Result<Vec<u8>, NotPacked> {
    let decoder = zstd::stream::read::Decoder::with_buffer(packed).map_err(|_| NotPacked)?;
    let mut raw = Vec::with_capacity(size.min(CAPACITY_MAX));
    decoder.take(size as u64 + 1).read_to_end(&mut raw).map_err(|_| NotPacked)?;
    if raw.len() == size { Ok(raw) } else { Err(NotPacked) }
}

/// What a row says of its size is believed only as it proves true.
const CAPACITY_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_packed_comes_back(raw: Vec<u8>) {
            prop_assert_eq!(unpack(&pack(&raw), raw.len()), Ok(raw));
        }
    }

    #[test]
    fn neither_another_size_nor_damage_passes() {
        let packed = pack(&[7; 1000]);
        assert_eq!(unpack(&packed, 999), Err(NotPacked));
        assert_eq!(unpack(&packed, 1001), Err(NotPacked));
        assert_eq!(unpack(&packed[..packed.len() - 1], 1000), Err(NotPacked));
        assert_eq!(unpack(b"no", 2), Err(NotPacked));
        assert_eq!(unpack(&pack(&vec![0; 10 << 20]), 10), Err(NotPacked));
    }
}
