//! Fields of one manifest that others of it leave no choice for.

use model::manifest::Manifest;

/// The sizes whose product is the number of ranks.
const FACTORS: [&str; 4] = ["parallel.tp", "parallel.pp", "parallel.dp", "parallel.cp"];
/// Sizes that a job of one rank has one of.
const OF_ONE: [&str; 3] = ["parallel.ep", "parallel.sp", "parallel.nodes"];

/// A manifest with the fields that follow from what it holds. They come from where the number of ranks comes from.
pub fn completed(manifest: &Manifest) -> Manifest {
    let mut whole = manifest.clone();
    let Some(world) = manifest.count("parallel.world_size").filter(|world| *world > 0) else { return whole };
    let Some(entry) = manifest.get("parallel.world_size") else { return whole };
    let known = FACTORS.iter().filter_map(|key| manifest.count(key)).try_fold(1u64, u64::checked_mul);
    let ones = FACTORS.iter().filter(|_| known == Some(world)).chain(OF_ONE.iter().filter(|_| world == 1));
    for key in ones {
        if whole.get(key).is_none() {
            whole.set(key, "1", entry.provenance);
        }
    }
    whole
}
