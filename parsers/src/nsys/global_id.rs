//! Nsight Systems' serialized global ids: hardware, virtual machine, process and thread in one 64-bit number.

/// Bits of a global id that hold the thread.
const THREAD_BITS: u64 = 24;
const LOW_24: u64 = 0xFF_FFFF;

/// A `globalTid` or `globalPid`. SQLite returns ids with the top bit set as negative numbers, so the 64 bits are
/// reinterpreted, not converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct GlobalId(u64);

impl GlobalId {
    /// The id as the database holds it.
    pub fn new(raw: i64) -> Self {
        Self(raw.cast_unsigned())
    }

    /// The full process key. The pid alone is not enough: two containers merged into one report can reuse it.
    pub fn process(self) -> u64 {
        self.0 & !LOW_24
    }

    /// Process id; absent where the id holds none, as in exports that third parties trimmed.
    pub fn pid(self) -> Option<i64> {
        Some(((self.0 >> THREAD_BITS) & LOW_24).cast_signed()).filter(|pid| *pid != 0)
    }

    /// Thread id.
    pub fn tid(self) -> i64 {
        (self.0 & LOW_24).cast_signed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_id_decodes() {
        let id = GlobalId::new(281_476_838_981_743);
        assert_eq!((id.pid(), id.tid(), id.process()), (Some(111), 111, 281_476_838_981_632));
    }

    #[test]
    fn an_id_with_the_top_bit_set_is_not_a_negative_number() {
        let id = GlobalId::new(18_302_628_885_633_695_744_u64.cast_signed());
        assert_eq!(id.process(), 18_302_628_885_633_695_744 & !0xFF_FFFF);
        assert!(id.pid().is_none_or(|pid| pid > 0));
    }
}
