//! A number for a text, the same in every process and on every machine.

/// FNV-1a of a text; of the name of a tensor, where its sequence begins.
pub(crate) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
