//! Terms that are one fact in several places.

use std::collections::BTreeMap;

use model::Ns;

use super::{Draft, How, Key, how};
use crate::compare::{align::Alignment, waterfall::Waterfall};

/// How far the relative changes of slots may lie from that of all together, as a factor, to be one change: own value.
const AS_MUCH: f64 = 2.0;

/// Terms of one kernel that changed by the same in several places are one: a product that is half as fast in every layer and
/// behind the layers is one fact.
pub(super) fn joined(
    mut drafts: BTreeMap<Key, Draft>,
    alignment: &Alignment,
    waterfall: &Waterfall,
) -> BTreeMap<Key, Draft> {
    let mut alike: BTreeMap<Key, Vec<Key>> = BTreeMap::new();
    for (key, draft) in &drafts {
        let first = draft.slots.first().and_then(|index| Some((*index, alignment.slots.get(*index as usize)?)));
        let (Key::Slot(_) | Key::Alike(..), Some((index, slot))) = (key, first) else { continue };
        if how(slot, index, waterfall) != How::SameKernel
            || draft.ns.iter().any(|ns| *ns <= 0)
            || draft.ns[0] == draft.ns[1]
        {
            continue;
        }
        let names = [0, 1].map(|n| Some(waterfall.kernels[n].get(&index)?.first()?.name.clone()));
        let sign = (draft.ns[1] - draft.ns[0]).signum();
        alike.entry(Key::Kernel(slot.operator().to_owned(), sign, names)).or_default().push(key.clone());
    }
    for (whole, keys) in alike.into_iter().filter(|(_, keys)| keys.len() > 1) {
        let own = || keys.iter().filter_map(|key| drafts.get(key));
        let all = own().fold([0; 2], |[a, b], draft| [a + draft.ns[0], b + draft.ns[1]]);
        // By logarithms, so that the two sides exchanged join the same.
        let change = |[a, b]: [Ns; 2]| (b as f64 / a as f64).ln().abs();
        let fits = |draft: &Draft| (change(all) / AS_MUCH..=change(all) * AS_MUCH).contains(&change(draft.ns));
        let keys: Vec<Key> = keys.iter().filter(|key| drafts.get(key).is_some_and(&fits)).cloned().collect();
        if keys.len() > 1 {
            let parts: Vec<Draft> = keys.iter().filter_map(|key| drafts.remove(key)).collect();
            let mut sum = Draft::default();
            parts.into_iter().for_each(|part| sum.join(part));
            drafts.insert(whole, sum);
        }
    }
    drafts
}
