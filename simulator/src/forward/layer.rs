//! The kernels of one decoder layer.

use super::{Builder, MAIN, SIDE, shape};
use crate::{fault::FaultKind, kernel::Slot, random::Of, serving::names};

/// The kernels of a norm that is not fused, by how many they are: at least the square, its mean, the root and the product;
/// in turn the epsilon, the residual, the product with the weight and a second one.
const NORM: [&[Slot]; 5] = {
    use Slot::{SideAdd as Add, Small as Mul, UnfusedMean as Mean, UnfusedNorm as Pow, UnfusedRsqrt as Rsqrt};
    [
        &[Pow, Mean, Rsqrt, Mul],
        &[Pow, Mean, Add, Rsqrt, Mul],
        &[Pow, Mean, Add, Rsqrt, Mul, Mul],
        &[Add, Pow, Mean, Add, Rsqrt, Mul, Mul],
        &[Add, Pow, Mean, Add, Rsqrt, Mul, Mul, Mul],
    ]
};
/// Those of a rotary embedding: x·cos + cat(−x₂, x₁)·sin.
const ROPE: [&[Slot]; 2] = {
    use Slot::{SideAdd as Add, Small as Mul, UnfusedCat as Cat, UnfusedRope as Neg};
    [&[Neg, Cat, Mul, Add], &[Mul, Neg, Cat, Mul, Add]]
};
/// Those of an activation with a gate.
const ACT: [&[Slot]; 1] = [&[Slot::UnfusedAct, Slot::Small]];

/// The one of `chains` that has about so many kernels.
fn chain(chains: &[&'static [Slot]], kernels: i64) -> &'static [Slot] {
    let fits = chains.iter().rfind(|chain| chain.len() as i64 <= kernels);
    fits.or(chains.first()).copied().unwrap_or_default()
}

impl Builder<'_> {
    /// Kernels that each take what one of `slot` takes.
    fn unfused(&mut self, slot: Slot, kernels: &[Slot], layer: i64, first: i64) {
        for (nth, kernel) in (first..).zip(kernels) {
            self.push(slot, layer, nth).kernel = *kernel;
        }
    }

    /// A norm, or the elementwise kernels that stand for it.
    pub(super) fn norm(&mut self, slot: Slot, layer: i64, place: i64) {
        match self.config.dose(FaultKind::Unfused, 6) {
            0 => self.upcast(slot, layer, place),
            pieces => self.unfused(Slot::UnfusedNorm, chain(&NORM, pieces), layer, place * 64),
        }
    }

    /// A kernel, between casts where activations are kept in 32 bits around it.
    fn upcast(&mut self, slot: Slot, layer: i64, place: i64) {
        let casts = self.config.dose(FaultKind::Upcast, 2).clamp(0, 4);
        // Of less than a pair per kernel, only every other layer has one.
        let casts = if self.config.has(FaultKind::Upcast) && casts == 0 { (layer + 1) % 2 } else { casts };
        self.several(Slot::CastUp, layer, place * 64, casts);
        self.push(slot, layer, 0);
        self.several(Slot::CastDown, layer, place * 64, casts);
    }

    fn gemm(&mut self, slot: Slot, layer: i64, place: i64) {
        let config = self.config;
        let transpose = config.dose(FaultKind::Transposes, config.kernel(Slot::Transpose));
        if transpose > 0 {
            let key = self.key(Slot::Transpose, layer, place);
            let ns = self.seat.own.around(Of::Duration, key, transpose, config.jitter_permille);
            self.push(Slot::Transpose, layer, place).ns = ns;
        }
        // Serving has the tile that fits the rows.
        let prompt = self.step.prefill && config.serving.is_none();
        let few = slot == Slot::Down && config.dose(FaultKind::FewBlocks, 1000) > 0;
        let task = self.push(slot, layer, 0);
        if few {
            let name = config.serving.as_ref().and_then(names::few_blocks);
            (task.name, task.blocks) =
                (name.or(task.name), ((config.hidden + 255) / 256 * ((task.rows + 127) / 128)).max(1));
        }
        if prompt || config.has(FaultKind::PrefillTile) && config.dose(FaultKind::PrefillTile, 1000) > 0 {
            (task.kernel, task.name) = (Slot::PrefillTile, None);
            task.blocks = shape::weight(config, slot).map_or(1, |(_, outer)| (outer + 127) / 128);
        }
        if config.dose(FaultKind::WaveTail, 1000) > 0 && matches!(slot, Slot::GateUp | Slot::Down) {
            let cores = shape::cores(config);
            task.blocks = cores + cores / 20;
        }
        let small = config.dose(FaultKind::SmallOps, 4);
        self.several(Slot::Small, layer, place * 64, small);
    }

    pub(super) fn layer(&mut self, layer: i64) {
        let config = self.config;
        self.norm(Slot::InputNorm, layer, 0);
        if config.quantized {
            self.push(Slot::InputQuant, layer, 0);
        }
        self.gemm(Slot::Qkv, layer, 1);
        match config.dose(FaultKind::Unfused, 3) {
            rope if rope > 1 => self.unfused(Slot::UnfusedRope, chain(&ROPE, rope), layer, 0),
            _ => {
                self.push(Slot::Rope, layer, 0);
            }
        }
        let fills = config.dose(FaultKind::ExtraFills, 6);
        self.several(Slot::Fill, layer, 0, fills);
        self.push(Slot::KvWrite, layer, 0);
        self.attention(layer);
        self.gemm(Slot::OutProj, layer, 2);
        if config.tensor_parallel > 1 && !config.expert_parallel {
            self.reduce(Slot::AttentionReduce, layer, 1);
            let extra = config.dose(FaultKind::ExtraCollective, 1000);
            let whole = extra / 1000 + i64::from(layer % 3 == 0 && extra % 1000 > 0);
            self.several(Slot::ExtraGather, layer, 0, whole);
        }
        self.norm(Slot::PostNorm, layer, 1);
        if config.quantized {
            self.push(Slot::PostQuant, layer, 0);
        }
        if config.experts > 0 { self.experts(layer) } else { self.dense(layer) }
    }

    fn attention(&mut self, layer: i64) {
        let (config, rows, prompt) = (self.config, self.step.rows, self.step.prefill);
        let task = self.push(Slot::Attention, layer, 0);
        if prompt || config.dose(FaultKind::NoSplitKv, 1000) > 0 {
            task.kernel = Slot::AttentionWhole;
            task.blocks = shape::unsplit(config, rows);
            return;
        }
        if config.split_attention {
            let combines = match config.dose(FaultKind::ManyCombines, 10) {
                0 => 1,
                several => several.max(5),
            };
            self.several(Slot::AttentionCombine, layer, 0, combines);
        }
    }

    fn activation(&mut self, layer: i64) {
        if self.config.has(FaultKind::Unfused) {
            self.unfused(Slot::UnfusedAct, chain(&ACT, 2), layer, 0);
        } else {
            self.upcast(Slot::Act, layer, 2);
        }
    }

    fn dense(&mut self, layer: i64) {
        let config = self.config;
        let side = config.streams > SIDE && config.side_work;
        if side {
            let task = self.push(Slot::SideProjection, layer, 0);
            (task.stream, task.after) = (SIDE, Some(MAIN));
        }
        self.gemm(Slot::GateUp, layer, 3);
        self.activation(layer);
        self.gemm(Slot::Down, layer, 4);
        if side {
            self.push(Slot::SideAdd, layer, 0).after = Some(SIDE);
        }
        if config.tensor_parallel > 1 {
            self.reduce(Slot::MlpReduce, layer, 0);
        }
    }

    fn experts(&mut self, layer: i64) {
        let config = self.config;
        let apart = config.expert_parallel && config.tensor_parallel > 1;
        self.push(Slot::Route, layer, 0);
        self.push(Slot::Align, layer, 0);
        if apart {
            self.push(Slot::Dispatch, layer, 0);
        }
        self.push(Slot::ExpertUp, layer, 0);
        self.activation(layer);
        self.push(Slot::ExpertDown, layer, 0);
        self.push(Slot::Gather, layer, 0);
        if apart {
            self.push(Slot::Combine, layer, 0);
        } else if config.tensor_parallel > 1 {
            self.reduce(Slot::MlpReduce, layer, 0);
        }
    }

    /// An all-reduce. Where work of the next block can run beside it, that work is on the second stream, unless it is
    /// the fault that it is not.
    fn reduce(&mut self, slot: Slot, layer: i64, place: i64) {
        let config = self.config;
        let aside = config.overlap && config.streams > SIDE;
        if aside {
            let serial = config.dose(FaultKind::NoOverlap, 1000);
            let before = match place {
                0 => serial >= 1000 || (serial > 0 && layer % 3 == 0),
                _ => serial >= 2000,
            };
            let task = self.push(Slot::SideProjection, layer, place);
            if !before {
                (task.stream, task.after) = (SIDE, Some(MAIN));
            }
        }
        let tree = config.dose(FaultKind::WrongAlgorithm, 1000) > 0;
        let task = self.push(slot, layer, 0);
        if tree {
            task.kernel = Slot::TreeReduce;
        }
        if aside {
            self.push(Slot::SideAdd, layer, place).after = Some(SIDE);
        }
    }

    /// Moves small kernels to the second stream without anything to run beside them.
    pub(super) fn move_aside(&mut self) {
        let moved = self.config.dose(FaultKind::SerialStreams, 6);
        if moved == 0 {
            return;
        }
        let slots = [Slot::PostNorm, Slot::Act, Slot::InputNorm, Slot::Rope, Slot::KvWrite, Slot::OutProj];
        let moved = slots.get(..usize::try_from(moved).unwrap_or(0)).unwrap_or(&slots);
        let mut back = false;
        for task in &mut self.tasks {
            let aside = moved.contains(&task.slot);
            if aside {
                (task.stream, task.after) = (SIDE, Some(MAIN));
            } else if back {
                task.after = Some(SIDE);
            }
            back = aside;
        }
    }
}
