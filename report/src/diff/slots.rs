//! The slots of a step in which a device works, with the kernels of both sides.

use std::collections::BTreeMap;

use model::Ns;

use diagnosis::compare::{Difference, align::Slot, waterfall::Kernel};

/// A slot with the kernels that each side has in it.
#[derive(Clone, Copy, Debug)]
pub struct Kernels<'a> {
    /// Its position among the slots of the alignment.
    pub index: u32,
    /// The slot.
    pub slot: &'a Slot,
    /// Kernels of A and of B, the longest first.
    pub of: [&'a [Kernel]; 2],
    /// Exclusive device time of A and of B, ns.
    pub ns: [Ns; 2],
}

/// All slots that hold a kernel of either side, in the order of a step.
pub fn kernels(difference: &Difference) -> Vec<Kernels<'_>> {
    let waterfall = &difference.waterfall;
    let mut worked: BTreeMap<u32, [Ns; 2]> = BTreeMap::new();
    for row in waterfall.rows.iter().filter(|row| !row.waited && is_work(&row.bucket)) {
        let [a, b] = worked.entry(row.slot).or_default();
        (*a, *b) = (*a + row.a.ns, *b + row.b.ns);
    }
    let slots = (0..).zip(&difference.alignment.slots).map(|(index, slot)| {
        let of = [0, 1].map(|n| waterfall.kernels[n].get(&index).map_or(&[][..], Vec::as_slice));
        Kernels { index, slot, of, ns: worked.get(&index).copied().unwrap_or_default() }
    });
    slots.filter(|kernels| kernels.of.iter().any(|list| !list.is_empty())).collect()
}

/// Whether time of a bucket is that of a device at work.
fn is_work(bucket: &str) -> bool {
    ["compute.", "copy.", "comm.", "graph.opaque"].iter().any(|start| bucket.starts_with(start))
}
