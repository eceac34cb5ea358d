//! A step under way: what every worker sees, and its share of each operator.

use std::{
    sync::{Mutex, PoisonError},
    time::Instant,
};

use super::{
    Communicator, Kernels, attention,
    experts::{self, ExpertLinear},
    kernels::TILE_ROWS,
    linear::{Linear, Sums},
    memory::Rows,
    ops::{self, Part},
};
use crate::{
    Batch, Config, Weights,
    faults::Faults,
    hook::busy,
    kv::KvPlan,
    program::{BufId, ExpertMatrix, Matrix, OpCall, OpKind, Vector},
};

/// A step under way: what every thread sees.
pub(super) struct Step<'a> {
    pub config: &'a Config,
    /// Query heads and key heads of this rank.
    pub heads: (usize, usize),
    pub weights: &'a Weights,
    pub kernels: Kernels,
    pub plan: &'a KvPlan,
    pub ops: &'a [OpCall],
    /// What the run suffers, and how much slower this rank is.
    pub faults: &'a Faults,
    pub slow: Option<f64>,
    /// The other ranks.
    pub ranks: Option<&'a Communicator>,
    /// Collectives up to and with each operator.
    pub collectives: &'a [u32],
    pub buffers: Vec<Rows>,
    pub cache: Vec<[Rows; 2]>,
    pub batch: &'a Batch,
    pub last: Vec<usize>,
    pub turns: Vec<f32>,
    pub chosen: Mutex<Vec<(usize, u32)>>,
}

impl<'a> Step<'a> {
    pub(super) fn chosen(self) -> Vec<u32> {
        let mut chosen = self.chosen.into_inner().unwrap_or_else(PoisonError::into_inner);
        chosen.sort_unstable();
        chosen.into_iter().map(|(_, token)| token).collect()
    }

    fn rows(&self, id: BufId) -> Rows {
        self.buffers[usize::from(id.0)]
    }

    fn matrix(&self, matrix: Matrix) -> (&'a crate::Tensor, Option<&'a [f32]>) {
        let layer = |layer: u16| &self.weights.layers[usize::from(layer)];
        match matrix {
            Matrix::Head => (self.weights.head(), None),
            Matrix::Qkv(l) => (&layer(l).qkv, layer(l).qkv_bias.as_deref()),
            Matrix::O(l) => (&layer(l).o, None),
            Matrix::GateUp(l) => (&layer(l).gate_up, None),
            Matrix::Down(l) => (&layer(l).down, None),
            Matrix::Router(l) => (layer(l).router.as_ref().unwrap_or(&layer(l).gate_up), None),
        }
    }

    /// Matrices of all experts, one below the other.
    fn expert_matrix(&self, matrix: ExpertMatrix) -> &'a crate::Tensor {
        match matrix {
            ExpertMatrix::GateUp(layer) => &self.weights.layers[usize::from(layer)].gate_up,
            ExpertMatrix::Down(layer) => &self.weights.layers[usize::from(layer)].down,
        }
    }

    fn vector(&self, vector: Vector) -> &'a [f32] {
        let layer = |layer: u16| &self.weights.layers[usize::from(layer)];
        let of_heads = |l: u16, which: usize| layer(l).qk_norm.as_ref().map_or(&[][..], |norms| &norms[which][..]);
        match vector {
            Vector::InputNorm(l) => &layer(l).input_norm,
            Vector::PostNorm(l) => &layer(l).post_norm,
            Vector::FinalNorm => &self.weights.final_norm,
            Vector::QNorm(l) => of_heads(l, 0),
            Vector::KNorm(l) => of_heads(l, 1),
        }
    }

    fn attended(&self) -> attention::Heads<'_> {
        attention::Heads {
            plan: self.plan,
            heads: self.heads.0,
            kv_heads: self.heads.1,
            head_dim: self.config.head_dim,
            sequence: &self.batch.sequences,
            position: &self.batch.positions,
        }
    }

    /// Number of the collective that an operator is.
    fn seq(&self, op: usize) -> u32 {
        let before = self.collectives.get(op).copied().unwrap_or(0);
        self.ranks.map_or(0, |ranks| ranks.count).wrapping_add(before)
    }

    /// This worker's share of an operator, with what the run suffers.
    pub(super) fn execute(&self, number: usize, part: Part) {
        let Some(op) = self.ops.get(number).filter(|op| self.faults.host.fallback != Some(op.name)) else { return };
        match self.slow.filter(|_| op.kind.exchanged().is_none()) {
            None => self.compute(number, part),
            Some(factor) => {
                let began = Instant::now();
                self.compute(number, part);
                busy(began.elapsed().mul_f64(factor - 1.0));
            }
        }
    }

    /// A share of an operator.
    pub(super) fn compute(&self, number: usize, part: Part) {
        let Some(op) = self.ops.get(number) else { return };
        let (kernels, eps) = (&self.kernels, self.config.norm_eps);
        match &op.kind {
            OpKind::Embed { out } => {
                let first = self.weights.shard.range(self.config.vocab).start;
                ops::embed(part, &self.weights.embed, first, &self.batch.tokens, self.rows(*out));
            }
            OpKind::RmsNorm { x, weight, out } => {
                ops::rms_norm(part, kernels, self.rows(*x), self.vector(*weight), eps, self.rows(*out));
            }
            OpKind::AddRmsNorm { x, delta, weight, out } => {
                // The same rows are this thread's in both.
                ops::add(part, kernels, self.rows(*x), self.rows(*delta));
                ops::rms_norm(part, kernels, self.rows(*x), self.vector(*weight), eps, self.rows(*out));
            }
            OpKind::Linear { x, matrix, rows, out } => {
                let (weights, bias) = self.matrix(*matrix);
                let linear = Linear { weights, bias, rows: rows.clone(), sums: self.sums() };
                linear.compute(part, kernels, self.rows(*x), self.rows(*out));
                if let Matrix::Down(layer) = matrix
                    && self.faults.numeric.nan_at == Some(*layer)
                {
                    self.spoil(self.rows(*out), part);
                }
            }
            OpKind::Route { scores, out } => {
                let normed = self.config.experts.is_some_and(|experts| experts.normed);
                experts::route(part, self.rows(*scores), normed, self.rows(*out));
            }
            OpKind::ExpertLinear { x, routes, matrix, out } => {
                let weights = self.expert_matrix(*matrix);
                let linear = ExpertLinear { weights, routes: self.rows(*routes), sums: self.sums() };
                linear.compute(part, kernels, self.rows(*x), self.rows(*out));
                if let ExpertMatrix::Down(layer) = matrix
                    && self.faults.numeric.nan_at == Some(*layer)
                {
                    self.spoil(self.rows(*out), part);
                }
            }
            OpKind::Combine { x, routes, out } => {
                experts::combine(part, kernels, self.rows(*x), self.rows(*routes), self.rows(*out));
            }
            OpKind::HeadNorm { x, heads, weight } => {
                ops::head_norm(part, kernels, self.rows(*x), heads.at, heads.count, self.vector(*weight), eps);
            }
            OpKind::Rope { x, heads } => {
                ops::rope(part, self.rows(*x), heads.at, heads.count, self.config.head_dim, &self.turns);
            }
            OpKind::KvAppend { layer, .. }
                if self.faults.numeric.stale_kv == Some(*layer) && self.batch.tokens.len() == self.last.len() => {}
            OpKind::KvAppend { qkv, layer } => {
                let [keys, values] = self.cache[usize::from(*layer)];
                attention::append(part, self.attended(), self.rows(*qkv), keys, values);
            }
            OpKind::Attention { qkv, layer, out } => {
                let [keys, values] = self.cache[usize::from(*layer)];
                attention::attend(part, kernels, self.attended(), self.rows(*qkv), keys, values, self.rows(*out));
            }
            OpKind::Add { x, delta } => ops::add(part, kernels, self.rows(*x), self.rows(*delta)),
            OpKind::SiluMul { gate_up, out } => ops::silu_mul(part, kernels, self.rows(*gate_up), self.rows(*out)),
            OpKind::Square { x, out } => ops::square(part, self.rows(*x), self.rows(*out)),
            OpKind::Mean { x, out } => ops::mean(part, self.rows(*x), self.rows(*out)),
            OpKind::Rsqrt { x } => ops::rsqrt(part, self.rows(*x), eps),
            OpKind::ScaleRows { x, by, out } => ops::scale_rows(part, self.rows(*x), self.rows(*by), self.rows(*out)),
            OpKind::ScaleColumns { x, weight } => ops::scale_columns(part, self.rows(*x), self.vector(*weight)),
            OpKind::Silu { gate_up, out } => ops::half_silu_mul(part, self.rows(*gate_up), self.rows(*out), true),
            OpKind::MulUp { gate_up, out } => ops::half_silu_mul(part, self.rows(*gate_up), self.rows(*out), false),
            OpKind::Transpose { x, out } => ops::transpose(part, self.rows(*x), self.rows(*out)),
            OpKind::LastToken { x, out } => ops::select(part, self.rows(*x), &self.last, self.rows(*out)),
            OpKind::Argmax { logits } => self.argmax(self.rows(*logits), part),
            // What a lost rank leaves undone is told when the step is over; until then nobody waits for anybody.
            OpKind::AllReduce { x } => {
                if let Some(ranks) = self.ranks {
                    let _ = ranks.all_reduce(self.seq(number), part, kernels, self.rows(*x));
                }
            }
            OpKind::AllGather { part: piece, out } => {
                if let Some(ranks) = self.ranks {
                    let _ = ranks.all_gather(self.seq(number), part, self.rows(*piece), self.rows(*out));
                }
            }
        }
    }

    fn sums(&self) -> Sums {
        if self.faults.numeric.bf16_accum { Sums::Bf16 } else { Sums::Single }
    }

    /// Puts a NaN into the first element that this worker has written.
    #[allow(unsafe_code)]
    fn spoil(&self, out: Rows, part: Part) {
        let mine = part.of(out.width, TILE_ROWS);
        // SAFETY: this worker alone writes the columns of its share, by the division of matrix products.
        if let Some(first) = unsafe { out.part_mut(0, mine) }.first_mut() {
            *first = f32::NAN;
        }
    }

    #[allow(unsafe_code)]
    fn argmax(&self, logits: Rows, part: Part) {
        for row in part.of(logits.rows, 1) {
            // SAFETY: the operator before wrote the logits, and nobody does now.
            let token = ops::argmax(unsafe { logits.row(row) });
            self.chosen.lock().unwrap_or_else(PoisonError::into_inner).push((row, token));
        }
    }
}
