//! A record as bytes. Its structures are packed: fields follow each other without gaps, and the whole is a multiple of 8.

/// A record under construction.
pub struct Layout(Vec<u8>);

impl Layout {
    /// A record of a kind and a size, bytes.
    pub fn new(kind: u32, size: usize) -> Self {
        Self(vec![0; size]).u32(0, kind)
    }

    fn put(mut self, at: usize, bytes: &[u8]) -> Self {
        if let Some(place) = self.0.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
        self
    }

    /// Sets a field of one byte.
    pub fn u8(self, at: usize, value: u8) -> Self {
        self.put(at, &[value])
    }

    /// Sets a field of four bytes.
    pub fn u32(self, at: usize, value: u32) -> Self {
        self.put(at, &value.to_ne_bytes())
    }

    /// Sets a field of eight bytes.
    pub fn u64(self, at: usize, value: u64) -> Self {
        self.put(at, &value.to_ne_bytes())
    }

    /// The record.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Bytes of the records of a kind, in their order from `MSPTI_ACTIVITY_KIND_INVALID` on.
pub const SIZES: [usize; 14] = [0, 56, 56, 48, 56, 64, 56, 56, 24, 72, 48, 48, 48, 56];
