//! Raw mail as it is stored: compressed, and taken apart again only to the size it is said to have.

use crate::{ErrorKind, Result, StoreError};

/// What zstd itself takes if nothing is said.
const LEVEL: i32 = 3;

pub fn pack(raw: &[u8]) -> Result<Vec<u8>> {
    zstd::bulk::compress(raw, LEVEL)
        .map_err(|error| StoreError::new(ErrorKind::Refused, "compressing a mail").caused_by(error))
}

/// `size` is what the row says; whatever is packed, no more memory than that is taken. Anything else than exactly so
/// many bytes is corrupt.
pub fn unpack(packed: &[u8], size: usize) -> Result<Vec<u8>> {
    let corrupt = || StoreError::new(ErrorKind::Corrupt, "a packed mail is not what was stored");
    let raw = zstd::bulk::decompress(packed, size).map_err(|error| corrupt().caused_by(error))?;
    if raw.len() == size { Ok(raw) } else { Err(corrupt()) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn more_or_less_than_was_stored_is_corrupt() {
        let packed = pack(&[7; 1_000_000]).unwrap();
        assert!(packed.len() < 1_000);
        for size in [0, 999_999, 1_000_001] {
            assert_eq!(unpack(&packed, size).unwrap_err().kind, ErrorKind::Corrupt, "{size}");
        }
        assert_eq!(unpack(&packed[..packed.len() - 1], 1_000_000).unwrap_err().kind, ErrorKind::Corrupt);
        assert_eq!(unpack(b"no frame", 8).unwrap_err().kind, ErrorKind::Corrupt);
        assert_eq!(unpack(b"", 8).unwrap_err().kind, ErrorKind::Corrupt);
    }

    proptest! {
        #[test]
        fn what_was_packed_is_unpacked(raw: Vec<u8>) {
            prop_assert_eq!(unpack(&pack(&raw).unwrap(), raw.len()).unwrap(), raw);
        }

        #[test]
        fn no_bytes_break_unpacking(packed: Vec<u8>, size in 0usize..10_000) {
            prop_assert!(unpack(&packed, size).map_or(true, |raw| raw.len() == size));
        }
    }
}
