//! How long a healthy kernel takes with the shapes of a step: the longer of reading and computing at the rate that good
//! kernels reach, and a floor. Rows that only fill up a graph cost nothing while reading is the longer of the two.

use super::{
    Serving, geometry,
    model::{Ability, CHOSEN},
};
use crate::{
    config::Config,
    kernel::{Class, Slot},
    step::Step,
};

/// Bytes of an activation.
const HALF: i64 = 2;

/// Share of the memory's bandwidth, in parts per thousand.
const READ: i64 = 800;
/// Share of the peak of products.
const COMPUTE: i64 = 620;
/// Share of bandwidth that attention reaches.
const CACHE: i64 = 720;
/// Share of a link that collectives reach.
const LINK: i64 = 600;

fn read(ability: &Ability, bytes: i64, permille: i64) -> i64 {
    bytes / (ability.memory * permille / 1000).max(1)
}

/// A product of `rows` with a weight of `inner` by `outer`.
fn product(serving: &Serving, rows: i64, inner: i64, outer: i64) -> i64 {
    let ability = serving.accelerator.ability();
    let rate = ability.products * 2 / serving.weight_bytes.max(1);
    let reading = read(&ability, inner * outer * serving.weight_bytes + rows * (inner + outer) * HALF, READ);
    1_600 + reading.max(2 * rows * inner * outer / (rate * COMPUTE / 1000).max(1))
}

/// Products of the experts that the tokens of `rows` go to.
fn experts(config: &Config, serving: &Serving, rows: i64, inner: i64, outer: i64) -> i64 {
    let (ability, all) = (serving.accelerator.ability(), config.experts.max(1));
    let picks = rows * CHOSEN;
    // Of `all` experts that picks fall on at random, about this many are hit at all.
    let active = (all * picks / (all + picks)).max(CHOSEN.min(all));
    let reading = read(&ability, active * inner * outer * serving.weight_bytes, READ * 9 / 10);
    4_000 + reading.max(2 * picks * inner * outer / (ability.products * COMPUTE / 2000).max(1))
}

fn attention(config: &Config, serving: &Serving, step: &Step) -> i64 {
    let (model, ability) = (serving.model, serving.accelerator.ability());
    let ranks = config.tensor_parallel.max(1);
    let cache = 2 * (model.kv_heads / ranks).max(1) * model.head * HALF;
    let decode = if step.prefill { 0 } else { read(&ability, step.context * cache, CACHE) };
    let width = (model.heads / ranks).max(1) * model.head;
    let prompt = 2 * step.prompt * step.prompt * width / (ability.products * 400 / 1000).max(1);
    5_000 + decode + prompt
}

/// Time of a kernel of `slot` in `step`.
pub(crate) fn ns(config: &Config, serving: &Serving, step: &Step, slot: Slot) -> i64 {
    let (model, ability, ranks) = (serving.model, serving.accelerator.ability(), config.tensor_parallel.max(1));
    let rows = step.rows;
    // Small kernels move their rows a few times at half of the bandwidth.
    let small = |floor: i64, bytes: i64| floor + read(&ability, bytes, 500);
    let logits = step.batch.max(1) * model.vocab / ranks;
    match slot {
        Slot::Attention | Slot::AttentionWhole => attention(config, serving, step),
        Slot::AttentionCombine => small(2_200, rows * model.heads / ranks * model.head * 16),
        Slot::ExpertUp => experts(config, serving, rows, model.hidden, 2 * model.inner / ranks),
        Slot::ExpertDown => experts(config, serving, rows, model.inner / ranks, model.hidden),
        Slot::AttentionReduce | Slot::MlpReduce | Slot::TreeReduce => {
            let bytes = 2 * (ranks - 1) * rows * model.hidden * HALF / ranks;
            8_000 + 1_500 * ranks + bytes / (ability.link * LINK / 1000).max(1)
        }
        Slot::ExtraGather => 9_000 + 2_000 * ranks + logits * HALF * (ranks - 1) / (ability.link * LINK / 1000).max(1),
        Slot::Dispatch | Slot::Combine => 14_000 + CHOSEN * rows * model.hidden * HALF / ability.link.max(1),
        Slot::Send | Slot::Recv => 11_000 + rows * model.hidden * HALF / (ability.link * LINK / 1000).max(1),
        Slot::LogitsCast | Slot::Softmax => small(3_500, logits * 8),
        Slot::Argmax => small(5_000, logits * 4),
        Slot::Sort => small(9_000, logits * 8),
        _ => match geometry::weight(config, serving, slot) {
            Some((inner, outer)) => {
                product(serving, if slot == Slot::LmHead { step.batch } else { rows }, inner, outer)
            }
            None => {
                let bytes = rows * model.hidden * HALF;
                match slot.card().class {
                    Some(Class::Norm | Class::Quant) => small(2_200, 3 * bytes),
                    Some(Class::Act) => small(2_300, 3 * rows * geometry::inner(config, serving) * HALF),
                    Some(Class::Rope | Class::KvWrite) => small(1_900, bytes),
                    Some(Class::Moe) => small(3_200, bytes),
                    _ => small(1_800, 2 * bytes),
                }
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{seat::Seat, serving::Load};

    #[test]
    fn padding_costs_nothing_and_attention_grows_with_its_context() {
        let config = Config::serve(5, Load::OddBatch, false, &[]);
        assert!(config.serving.is_some());
        let Some(serving) = config.serving else { return };
        let step = Step::of(&Seat::new(&config, 0), 0);
        assert!(step.rows > step.batch, "{} {}", step.rows, step.batch);
        let exact = Step { rows: step.batch, ..step };
        for slot in [Slot::Qkv, Slot::GateUp, Slot::Down] {
            let (padded, bare) = (ns(&config, &serving, &step, slot), ns(&config, &serving, &exact, slot));
            assert!(padded - bare < bare / 50, "{slot:?}: {bare} {padded}");
        }
        let longer = Step { context: 4 * step.context, ..step };
        let attention = |step| ns(&config, &serving, step, Slot::Attention) - 5_000;
        assert!(attention(&longer) >= 4 * attention(&step) - 4);
    }
}
