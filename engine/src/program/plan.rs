//! The step of a model, operator after operator.

use std::ops::Range;

use super::{
    BufDesc, BufId, ExpertMatrix, Heads, Level, Logits, Matrix, OpCall, OpId, OpKind, OpName, Program, Shape, Vector,
};
use crate::{Config, Shard};

pub(super) struct Planner<'c> {
    config: &'c Config,
    shape: Shape,
    buffers: Vec<BufDesc>,
    ops: Vec<OpCall>,
    layer: Option<u16>,
    slot: u16,
}

impl<'c> Planner<'c> {
    pub(super) fn new(config: &'c Config, shape: Shape) -> Self {
        Self { config, shape, buffers: Vec::new(), ops: Vec::new(), layer: None, slot: 0 }
    }

    fn buffer(&mut self, name: &'static str, rows: usize, width: usize) -> BufId {
        self.buffers.push(BufDesc { name, rows, width });
        BufId(u16::try_from(self.buffers.len() - 1).unwrap_or(u16::MAX))
    }

    fn op(&mut self, name: OpName, kind: OpKind) {
        self.ops.push(OpCall { id: OpId { layer: self.layer, slot: self.slot }, name, kind });
        self.slot += 1;
    }

    fn linear(&mut self, name: OpName, x: BufId, matrix: Matrix, rows: Range<usize>, out: BufId) {
        self.op(name, OpKind::Linear { x, matrix, rows, out });
    }

    pub(super) fn plan(mut self) -> Program {
        let Shape { tokens, sequences, logits, .. } = self.shape;
        let (hidden, q, kv) = (self.config.hidden, self.config.q_width(), self.config.kv_width());
        let logit_rows = if logits == Logits::All { tokens } else { sequences };
        // Every expert of a token has a row of its own.
        let rows = tokens * self.config.experts.map_or(1, |experts| experts.active);
        let buffers = Buffers {
            residual: self.buffer("residual", tokens, hidden),
            normed: self.buffer("normed", tokens, hidden),
            qkv: self.buffer("qkv", tokens, q + 2 * kv),
            attended: self.buffer("attended", tokens, q),
            delta: self.buffer("delta", tokens, hidden),
            gate_up: self.buffer("gate_up", rows, 2 * self.config.intermediate),
            activated: self.buffer("activated", rows, self.config.intermediate),
        };
        let experts = self.config.experts.map(|experts| ExpertBuffers {
            scores: self.buffer("scores", tokens, experts.count),
            routes: self.buffer("routes", tokens, 2 * experts.active),
            made: self.buffer("made", rows, hidden),
        });
        let last = self.buffer("last", logit_rows, hidden);
        let normed_last = self.buffer("normed_last", logit_rows, hidden);
        let out = self.buffer("logits", logit_rows, self.config.vocab);

        self.op(OpName::Embed, OpKind::Embed { out: buffers.residual });
        for layer in 0..u16::try_from(self.config.layers).unwrap_or(u16::MAX) {
            (self.layer, self.slot) = (Some(layer), 0);
            self.attention(layer, &buffers);
            self.feed_forward(layer, &buffers, experts.as_ref());
        }
        (self.layer, self.slot) = (None, 1);
        if self.shape.level == Level::Fused {
            // The addition that the last layer left to the norm after it.
            self.op(OpName::ResidualAdd, OpKind::Add { x: buffers.residual, delta: buffers.delta });
        }
        let x = match logits {
            Logits::All => buffers.residual,
            Logits::Last => {
                self.op(OpName::LastToken, OpKind::LastToken { x: buffers.residual, out: last });
                last
            }
        };
        self.op(OpName::FinalNorm, OpKind::RmsNorm { x, weight: Vector::FinalNorm, out: normed_last });
        self.linear(OpName::LmHead, normed_last, Matrix::Head, 0..self.config.vocab, out);
        self.op(OpName::Argmax, OpKind::Argmax { logits: out });
        Program {
            shape: self.shape,
            shard: Shard::WHOLE,
            buffers: self.buffers,
            ops: self.ops,
            residual: buffers.residual,
            normed: normed_last,
            logits: out,
        }
    }

    fn attention(&mut self, layer: u16, b: &Buffers) {
        let (heads, kv_heads) = (self.config.heads, self.config.kv_heads);
        let (q, kv) = (self.config.q_width(), self.config.kv_width());
        let fused = self.shape.level == Level::Fused;
        let norm = Vector::InputNorm(layer);
        if fused && layer > 0 {
            let kind = OpKind::AddRmsNorm { x: b.residual, delta: b.delta, weight: norm, out: b.normed };
            self.op(OpName::AddRmsNorm, kind);
        } else {
            self.op(OpName::RmsNorm, OpKind::RmsNorm { x: b.residual, weight: norm, out: b.normed });
        }
        let parts: &[(OpName, Range<usize>)] = if fused {
            &[(OpName::QkvProj, 0..q + 2 * kv)]
        } else {
            &[(OpName::QProj, 0..q), (OpName::KProj, q..q + kv), (OpName::VProj, q + kv..q + 2 * kv)]
        };
        for (name, rows) in parts {
            self.linear(*name, b.normed, Matrix::Qkv(layer), rows.clone(), b.qkv);
        }
        let (queries, keys) = (Heads { at: 0, count: heads }, Heads { at: q, count: kv_heads });
        if self.config.qk_norm {
            for (heads, weight) in [(queries, Vector::QNorm(layer)), (keys, Vector::KNorm(layer))] {
                self.op(OpName::QkNorm, OpKind::HeadNorm { x: b.qkv, heads, weight });
            }
        }
        // Keys follow queries in the row, so one call turns both.
        let both = Heads { at: 0, count: heads + kv_heads };
        self.op(OpName::Rope, OpKind::Rope { x: b.qkv, heads: both });
        self.op(OpName::KvCacheAppend, OpKind::KvAppend { qkv: b.qkv, layer });
        let decode = self.shape.tokens == self.shape.sequences;
        let name = if decode { OpName::AttentionDecode } else { OpName::AttentionPrefill };
        self.op(name, OpKind::Attention { qkv: b.qkv, layer, out: b.attended });
        self.linear(OpName::OProj, b.attended, Matrix::O(layer), 0..self.config.hidden, b.delta);
    }

    fn feed_forward(&mut self, layer: u16, b: &Buffers, experts: Option<&ExpertBuffers>) {
        let fused = self.shape.level == Level::Fused;
        let weight = Vector::PostNorm(layer);
        if fused {
            let kind = OpKind::AddRmsNorm { x: b.residual, delta: b.delta, weight, out: b.normed };
            self.op(OpName::AddRmsNorm, kind);
        } else {
            self.op(OpName::ResidualAdd, OpKind::Add { x: b.residual, delta: b.delta });
            self.op(OpName::RmsNorm, OpKind::RmsNorm { x: b.residual, weight, out: b.normed });
        }
        match experts {
            Some(experts) => self.mixture(layer, b, experts),
            None => self.dense(layer, b),
        }
        if !fused {
            self.op(OpName::ResidualAdd, OpKind::Add { x: b.residual, delta: b.delta });
        }
    }

    fn dense(&mut self, layer: u16, b: &Buffers) {
        let width = self.config.intermediate;
        if self.shape.level == Level::Fused {
            self.linear(OpName::GateUpProj, b.normed, Matrix::GateUp(layer), 0..2 * width, b.gate_up);
        } else {
            self.linear(OpName::GateProj, b.normed, Matrix::GateUp(layer), 0..width, b.gate_up);
            self.linear(OpName::UpProj, b.normed, Matrix::GateUp(layer), width..2 * width, b.gate_up);
        }
        self.op(OpName::SiluMul, OpKind::SiluMul { gate_up: b.gate_up, out: b.activated });
        self.linear(OpName::DownProj, b.activated, Matrix::Down(layer), 0..self.config.hidden, b.delta);
    }

    /// Products of all experts are one operator at every level, as frameworks have them.
    fn mixture(&mut self, layer: u16, b: &Buffers, e: &ExpertBuffers) {
        let count = self.config.experts.map_or(0, |experts| experts.count);
        self.linear(OpName::Router, b.normed, Matrix::Router(layer), 0..count, e.scores);
        self.op(OpName::RouteTopk, OpKind::Route { scores: e.scores, out: e.routes });
        let (routes, matrix) = (e.routes, ExpertMatrix::GateUp(layer));
        let gate_up = OpKind::ExpertLinear { x: b.normed, routes, matrix, out: b.gate_up };
        self.op(OpName::ExpertGateUpProj, gate_up);
        self.op(OpName::SiluMul, OpKind::SiluMul { gate_up: b.gate_up, out: b.activated });
        let down = OpKind::ExpertLinear { x: b.activated, routes, matrix: ExpertMatrix::Down(layer), out: e.made };
        self.op(OpName::ExpertDownProj, down);
        self.op(OpName::ExpertCombine, OpKind::Combine { x: e.made, routes, out: b.delta });
    }
}

/// Buffers that every layer uses.
struct Buffers {
    residual: BufId,
    normed: BufId,
    qkv: BufId,
    attended: BufId,
    delta: BufId,
    gate_up: BufId,
    activated: BufId,
}

/// Those of a mixture of experts.
struct ExpertBuffers {
    scores: BufId,
    routes: BufId,
    made: BufId,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use crate::{
        preset,
        program::{Level, Logits, OpId, Program, Shape},
    };

    fn names(model: &str, level: Level, layer: Option<u16>) -> Vec<&'static str> {
        let shape = Shape { tokens: 1, sequences: 1, logits: Logits::Last, level };
        let program = Program::plan(&preset(model).unwrap(), shape);
        program.ops.iter().filter(|op| op.id.layer == layer).map(|op| op.name.text()).collect()
    }

    #[test]
    fn a_canonical_layer_has_one_operator_per_name_and_a_fused_one_half_of_them() {
        let canonical = names("qwen2.5-0.5b", Level::Canonical, Some(3));
        assert_eq!(canonical.len(), 15);
        assert_eq!(canonical[..5], ["rms_norm", "q_proj", "k_proj", "v_proj", "rope"]);
        assert_eq!(
            names("qwen2.5-0.5b", Level::Fused, Some(3)),
            [
                "add_rms_norm",
                "qkv_proj",
                "rope",
                "kv_cache_append",
                "attention_decode",
                "o_proj",
                "add_rms_norm",
                "gate_up_proj",
                "silu_mul",
                "down_proj"
            ]
        );
        assert_eq!(names("qwen3-0.6b", Level::Fused, Some(0))[..3], ["rms_norm", "qkv_proj", "qk_norm"]);
        assert_eq!(
            names("tiny-moe", Level::Fused, Some(1))[8..],
            [
                "add_rms_norm",
                "router",
                "route_topk",
                "expert_gate_up_proj",
                "silu_mul",
                "expert_down_proj",
                "expert_combine"
            ]
        );
        assert_eq!(
            names("tiny", Level::Fused, None),
            ["embed", "residual_add", "last_token", "final_norm", "lm_head", "argmax"]
        );
    }

    #[test]
    fn places_are_unique_within_a_step() {
        for level in [Level::Canonical, Level::Fused] {
            let shape = Shape { tokens: 6, sequences: 2, logits: Logits::All, level };
            let program = Program::plan(&preset("qwen3-0.6b").unwrap(), shape);
            let mut ids: Vec<OpId> = program.ops.iter().map(|op| op.id).collect();
            let count = ids.len();
            ids.sort_by_key(|id| (id.layer, id.slot));
            ids.dedup();
            assert_eq!(ids.len(), count);
        }
    }
}
