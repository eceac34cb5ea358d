//! Whether a file holds the same document twice, as where a trace was joined with itself.

use std::path::Path;

use crate::{ReadError, container::Source};

/// Whether the content has the bytes of the document at `first` (offset and length) at `at` too.
pub(super) fn again(path: &Path, (begin, length): (u64, u64), at: u64) -> Result<bool, ReadError> {
    let (mut one, mut other) = (Bytes::from(path, begin)?, Bytes::from(path, at)?);
    let mut left = length;
    while left > 0 {
        let (a, b) = (one.next()?, other.next()?);
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(a.len()).min(b.len());
        if most == 0 || a.get(..most) != b.get(..most) {
            return Ok(false);
        }
        one.at += most;
        other.at += most;
        left -= most as u64;
    }
    Ok(true)
}

/// The content from a place on.
struct Bytes {
    source: Source,
    block: Vec<u8>,
    at: usize,
}

impl Bytes {
    fn from(path: &Path, mut place: u64) -> Result<Self, ReadError> {
        let mut bytes = Self { source: Source::open(path)?, block: Vec::new(), at: 0 };
        while place > 0 {
            let step = usize::try_from(place).unwrap_or(usize::MAX).min(bytes.next()?.len());
            if step == 0 {
                break;
            }
            bytes.at += step;
            place -= step as u64;
        }
        Ok(bytes)
    }

    /// What is left of the block, or the next one; empty at the end.
    fn next(&mut self) -> Result<&[u8], ReadError> {
        if self.at >= self.block.len() {
            self.block.clear();
            self.at = 0;
            self.source.append_to(&mut self.block)?;
        }
        Ok(self.block.get(self.at..).unwrap_or_default())
    }
}
