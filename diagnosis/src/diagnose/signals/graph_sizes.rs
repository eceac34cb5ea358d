//! Which batch sizes a run has graphs for.

use std::collections::BTreeSet;

use model::Trace;

/// The captured sizes as the run's manifest says them, in ascending order.
pub fn declared(trace: &Trace) -> Option<Vec<u32>> {
    let text = trace.manifest.value("caps.graph_sizes")?;
    let numbers = text.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
    let sizes: BTreeSet<u32> = numbers.filter_map(|part| part.parse().ok()).filter(|n| *n > 0).collect();
    (!sizes.is_empty()).then(|| sizes.into_iter().collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use model::Provenance;

    use super::*;

    #[test]
    fn a_list_is_read_in_any_of_its_spellings() {
        let sizes = |text: &str| {
            let mut trace = Trace::default();
            trace.manifest.set("caps.graph_sizes", text, Provenance::Declared);
            declared(&trace)
        };
        assert_eq!(sizes("[8, 1,2,4]"), Some(vec![1, 2, 4, 8]));
        assert_eq!(sizes("1 2 2"), Some(vec![1, 2]));
        assert_eq!((sizes("none"), sizes("0"), sizes("99999999999")), (None, None, None));
    }
}
