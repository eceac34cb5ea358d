//! What went into the kernels of a term that has several slots.

use std::collections::BTreeMap;

use crate::compare::waterfall::{Kernel, Shape};

/// The shape that all slots have, and the bytes that a call reads at least, mean over the calls of all of them; neither where any
/// slot has none: one product's weights are not those of the others.
pub(super) fn of(
    slots: &[u32],
    shapes: &BTreeMap<u32, Shape>,
    kernels: &BTreeMap<u32, Vec<Kernel>>,
) -> (Option<String>, Option<f64>) {
    let own: Option<Vec<&Shape>> = slots.iter().map(|slot| shapes.get(slot)).collect();
    let own = own.unwrap_or_default();
    let text = own.first().filter(|first| own.iter().all(|shape| shape.text == first.text));
    let calls = |slot: &u32| kernels.get(slot).into_iter().flatten().map(|kernel| kernel.count).sum::<f64>();
    let bytes: Option<f64> = slots.iter().zip(&own).map(|(slot, shape)| Some(shape.bytes? * calls(slot))).sum();
    let all: f64 = slots.iter().map(calls).sum();
    let bytes = bytes.filter(|bytes| *bytes > 0.0 && all > 0.0).map(|bytes| bytes / all);
    (text.map(|shape| shape.text.clone()), bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five products joined to one term took the weights of the widest for all: 21 842 GB/s on a device of 3 350.
    #[test]
    fn the_shape_of_one_slot_is_not_that_of_the_others() {
        let shape = |text: &str, bytes: f64| Shape { text: text.to_owned(), bytes: Some(bytes) };
        let kernel = |count: f64| vec![Kernel { name: String::new(), count, ns: 1.0, lasting: 1.0 }];
        let kernels = BTreeMap::from([(0, kernel(32.0)), (1, kernel(32.0)), (2, kernel(1.0))]);
        let head = BTreeMap::from([(2, shape("[32,4096]×[4096,128256]", 1e9))]);
        assert_eq!(of(&[0, 1, 2], &head, &kernels), (None, None));
        assert_eq!(of(&[2], &head, &kernels), (Some("[32,4096]×[4096,128256]".to_owned()), Some(1e9)));
        let both = BTreeMap::from([(0, shape("a", 64.0)), (1, shape("b", 32.0))]);
        assert_eq!(of(&[0, 1], &both, &kernels), (None, Some(48.0)), "mean over the calls");
        let alike = BTreeMap::from([(0, shape("a", 64.0)), (1, shape("a", 64.0))]);
        assert_eq!(of(&[0, 1], &alike, &kernels), (Some("a".to_owned()), Some(64.0)));
    }
}
