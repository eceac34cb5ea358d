//! Whether a program fits a model. A program is plain data that anyone can make or change, and the threads of a backend
//! share its buffers without locks, so nothing runs that has not been looked at here.

use super::{BufId, ExpertMatrix, Heads, Logits, Matrix, OpCall, OpKind, Program, Vector};
use crate::{Config, Error};

pub(super) fn check(program: &Program, config: &Config) -> Result<(), Error> {
    let logit_rows = match program.shape.logits {
        Logits::Last => program.shape.sequences,
        Logits::All => program.shape.tokens,
    };
    let checker = Checker { program, config: &config.part(program.shard)?, logit_rows };
    match program.ops.iter().find(|op| !checker.fits(op)) {
        Some(op) => Err(Error::Request(format!(
            "operator '{}' (layer {:?}, place {}) does not fit the model; plan the program again for it",
            op.name.text(),
            op.id.layer,
            op.id.slot
        ))),
        None => Ok(()),
    }
}

struct Checker<'p> {
    program: &'p Program,
    config: &'p Config,
    logit_rows: usize,
}

impl Checker<'_> {
    fn fits(&self, op: &OpCall) -> bool {
        let config = self.config;
        let (tokens, hidden) = (self.program.shape.tokens, config.hidden);
        let qkv_width = config.q_width() + 2 * config.kv_width();
        match &op.kind {
            OpKind::Embed { out } => self.is(*out, tokens, hidden),
            OpKind::RmsNorm { x, weight, out } => {
                self.same(*x, *out) && self.width(*x) == self.length(*weight) && distinct(&[*x, *out])
            }
            OpKind::AddRmsNorm { x, delta, weight, out } => {
                self.same(*x, *delta)
                    && self.same(*x, *out)
                    && self.width(*x) == self.length(*weight)
                    && distinct(&[*x, *delta, *out])
            }
            OpKind::Linear { x, matrix, rows, out } => {
                let Some((outputs, inputs)) = self.matrix(*matrix) else { return false };
                self.width(*x) == Some(inputs)
                    && rows.start <= rows.end
                    && rows.end <= outputs
                    && self.width(*out).is_some_and(|width| rows.end <= width)
                    && self.rows(*x) == self.rows(*out)
                    && distinct(&[*x, *out])
            }
            OpKind::Route { scores, out } => config.experts.is_some_and(|experts| {
                self.is(*scores, tokens, experts.count)
                    && self.is(*out, tokens, 2 * experts.active)
                    && distinct(&[*scores, *out])
            }),
            OpKind::ExpertLinear { x, routes, matrix, out } => config.experts.is_some_and(|experts| {
                let Some((outputs, inputs)) = self.expert_matrix(*matrix) else { return false };
                let pairs = tokens * experts.active;
                self.is(*out, pairs, outputs)
                    && (self.is(*x, tokens, inputs) || self.is(*x, pairs, inputs))
                    && self.is(*routes, tokens, 2 * experts.active)
                    && distinct(&[*x, *routes, *out])
            }),
            OpKind::Combine { x, routes, out } => config.experts.is_some_and(|experts| {
                self.is(*x, tokens * experts.active, hidden)
                    && self.is(*out, tokens, hidden)
                    && self.is(*routes, tokens, 2 * experts.active)
                    && distinct(&[*x, *routes, *out])
            }),
            OpKind::HeadNorm { x, heads, weight } => {
                self.length(*weight) == Some(config.head_dim) && self.has_heads(*x, *heads)
            }
            OpKind::Rope { x, heads } => self.rows(*x) == Some(tokens) && self.has_heads(*x, *heads),
            OpKind::KvAppend { qkv, layer } => self.is_layer(*layer) && self.is(*qkv, tokens, qkv_width),
            OpKind::Attention { qkv, layer, out } => {
                self.is_layer(*layer)
                    && self.is(*qkv, tokens, qkv_width)
                    && self.is(*out, tokens, config.q_width())
                    && distinct(&[*qkv, *out])
            }
            OpKind::Add { x, delta } => self.same(*x, *delta) && distinct(&[*x, *delta]),
            OpKind::Square { x, out } => self.same(*x, *out) && distinct(&[*x, *out]),
            OpKind::Mean { x, out } => self.is(*out, self.rows(*x).unwrap_or(0), 1) && distinct(&[*x, *out]),
            OpKind::Rsqrt { x } => self.rows(*x).is_some(),
            OpKind::ScaleRows { x, by, out } => {
                self.same(*x, *out) && self.is(*by, self.rows(*x).unwrap_or(0), 1) && distinct(&[*x, *by, *out])
            }
            OpKind::ScaleColumns { x, weight } => self.width(*x).is_some() && self.width(*x) == self.length(*weight),
            OpKind::Transpose { x, out } => {
                self.rows(*x).zip(self.width(*x)).is_some_and(|(rows, width)| self.is(*out, width, rows))
                    && distinct(&[*x, *out])
            }
            OpKind::SiluMul { gate_up, out } | OpKind::Silu { gate_up, out } | OpKind::MulUp { gate_up, out } => {
                self.rows(*gate_up) == self.rows(*out)
                    && self.width(*gate_up) == self.width(*out).and_then(|width| width.checked_mul(2))
                    && distinct(&[*gate_up, *out])
            }
            OpKind::LastToken { x, out } => {
                self.rows(*x) == Some(tokens)
                    && self.is(*out, self.program.shape.sequences, self.width(*x).unwrap_or(0))
                    && distinct(&[*x, *out])
            }
            OpKind::Argmax { logits } => self.is(*logits, self.logit_rows, config.vocab),
            OpKind::AllReduce { x } => self.program.shard.of > 1 && self.rows(*x).is_some(),
            OpKind::AllGather { part, out } => {
                let width = self.width(*out).unwrap_or(0);
                self.program.shard.of > 1
                    && self.is(*part, self.rows(*out).unwrap_or(0), self.program.shard.range(width).len())
                    && distinct(&[*part, *out])
            }
        }
    }

    fn rows(&self, id: BufId) -> Option<usize> {
        self.program.buffer(id).map(|buffer| buffer.rows)
    }

    fn width(&self, id: BufId) -> Option<usize> {
        self.program.buffer(id).map(|buffer| buffer.width)
    }

    fn is(&self, id: BufId, rows: usize, width: usize) -> bool {
        self.rows(id) == Some(rows) && self.width(id) == Some(width)
    }

    fn same(&self, a: BufId, b: BufId) -> bool {
        let shape = |id| self.program.buffer(id).map(|buffer| (buffer.rows, buffer.width));
        shape(a).is_some() && shape(a) == shape(b)
    }

    fn has_heads(&self, x: BufId, heads: Heads) -> bool {
        let end = heads.count.checked_mul(self.config.head_dim).and_then(|width| width.checked_add(heads.at));
        self.width(x).zip(end).is_some_and(|(width, end)| end <= width)
    }

    fn is_layer(&self, layer: u16) -> bool {
        usize::from(layer) < self.config.layers
    }

    /// Outputs and inputs of a matrix, if the model has it.
    fn matrix(&self, matrix: Matrix) -> Option<(usize, usize)> {
        let c = self.config;
        let (layer, shape) = match matrix {
            Matrix::Head => return Some((self.program.shard.range(c.vocab).len(), c.hidden)),
            Matrix::Qkv(layer) => (layer, (c.q_width() + 2 * c.kv_width(), c.hidden)),
            Matrix::O(layer) => (layer, (c.hidden, c.q_width())),
            // In a mixture of experts these are the experts'.
            Matrix::GateUp(_) | Matrix::Down(_) if c.experts.is_some() => return None,
            Matrix::GateUp(layer) => (layer, (2 * c.intermediate, c.hidden)),
            Matrix::Down(layer) => (layer, (c.hidden, c.intermediate)),
            Matrix::Router(layer) => (layer, (c.experts?.count, c.hidden)),
        };
        self.is_layer(layer).then_some(shape)
    }

    /// Outputs and inputs of a matrix of each expert, if the model has experts.
    fn expert_matrix(&self, matrix: ExpertMatrix) -> Option<(usize, usize)> {
        let c = self.config;
        let (layer, shape) = match matrix {
            ExpertMatrix::GateUp(layer) => (layer, (2 * c.intermediate, c.hidden)),
            ExpertMatrix::Down(layer) => (layer, (c.hidden, c.intermediate)),
        };
        (self.is_layer(layer) && c.experts.is_some()).then_some(shape)
    }

    /// Length of a vector, if the model has it.
    fn length(&self, vector: Vector) -> Option<usize> {
        match vector {
            Vector::FinalNorm => Some(self.config.hidden),
            Vector::InputNorm(layer) | Vector::PostNorm(layer) => self.is_layer(layer).then_some(self.config.hidden),
            Vector::QNorm(layer) | Vector::KNorm(layer) => {
                (self.is_layer(layer) && self.config.qk_norm).then_some(self.config.head_dim)
            }
        }
    }
}

fn distinct(ids: &[BufId]) -> bool {
    ids.iter().enumerate().all(|(i, id)| !ids.iter().skip(i + 1).any(|other| other == id))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::{
        Shard, preset,
        program::{Change, Level, OpName, Shape},
    };

    fn program(model: &str, level: Level) -> (Program, Config) {
        let config = preset(model).unwrap();
        let shape = Shape { tokens: 6, sequences: 2, logits: Logits::Last, level };
        (Program::plan(&config, shape), config)
    }

    #[test]
    fn planned_programs_fit_their_model_and_no_other() {
        for (level, model, first) in [
            (Level::Canonical, "qwen3-0.6b", "'embed'"),
            (Level::Fused, "qwen3-0.6b", "'embed'"),
            (Level::Fused, "tiny-moe", "'gate_up_proj'"),
        ] {
            let (own, config) = program(model, level);
            own.check(&config).unwrap();
            let (other, _) = program("tiny", level);
            assert!(other.check(&config).unwrap_err().to_string().contains(first));
        }
    }

    #[test]
    fn a_rank_adds_up_what_it_has_a_part_of_and_its_program_fits_no_whole_model() {
        let config = preset("tiny").unwrap();
        let shape = Shape { tokens: 6, sequences: 2, logits: Logits::Last, level: Level::Fused };
        let mut program = Program::of_rank(&config, shape, Shard { rank: 1, of: 2 }).unwrap();
        program.check(&config).unwrap();
        let exchanges = program.ops.iter().filter(|op| op.kind.exchanged().is_some()).count();
        assert_eq!(exchanges, 1 + 2 * config.layers + 1, "embedding, two of each layer, logits");
        assert_eq!(program.largest_exchange(), (6 * config.hidden).max(2 * config.vocab / 2));
        program.shard = Shard::WHOLE;
        assert!(program.check(&config).is_err());
    }

    #[test]
    fn operators_that_would_write_what_they_read_or_beyond_their_buffers_are_refused() {
        let dense = preset("qwen3-0.6b").unwrap();
        let experts = preset("tiny-moe").unwrap();
        let mut refused = 0;
        let fitting = |config: &Config, level| {
            let shape = Shape { tokens: 6, sequences: 2, logits: Logits::Last, level };
            let mut program = Program::of_rank(config, shape, Shard { rank: 0, of: 2 }).unwrap();
            program.change(Change::CastBefore(OpName::DownProj), &config.part(program.shard).unwrap());
            program
        };
        let cases = [(&dense, Level::Fused), (&dense, Level::Composite), (&experts, Level::Fused)];
        for ((fitting, config), i) in
            cases.map(|(config, level)| (fitting(config, level), config)).iter().flat_map(|of| {
                let ops = 0..of.0.ops.len();
                ops.map(move |i| (of, i))
            })
        {
            let mut changed = fitting.clone();
            match &mut changed.ops[i].kind {
                OpKind::RmsNorm { x, out, .. }
                | OpKind::Linear { x, out, .. }
                | OpKind::LastToken { x, out }
                | OpKind::Square { x, out }
                | OpKind::Mean { x, out }
                | OpKind::ScaleRows { x, out, .. }
                | OpKind::Transpose { x, out }
                | OpKind::AddRmsNorm { x, out, .. } => *out = *x,
                OpKind::Attention { qkv, out, .. } => *out = *qkv,
                OpKind::SiluMul { gate_up, out } | OpKind::Silu { gate_up, out } | OpKind::MulUp { gate_up, out } => {
                    *out = *gate_up;
                }
                OpKind::Route { scores, out } => *out = *scores,
                OpKind::ExpertLinear { x, out, .. } | OpKind::Combine { x, out, .. } => *out = *x,
                OpKind::Add { x, delta } => *delta = *x,
                OpKind::Rope { heads, .. } | OpKind::HeadNorm { heads, .. } => heads.count += 100,
                OpKind::KvAppend { layer, .. } => *layer = u16::MAX,
                OpKind::Embed { out } | OpKind::Argmax { logits: out } => *out = BufId(u16::MAX),
                OpKind::AllReduce { x } | OpKind::Rsqrt { x } | OpKind::ScaleColumns { x, .. } => *x = BufId(u16::MAX),
                OpKind::AllGather { part, out } => *part = *out,
            }
            assert!(changed.check(config).is_err(), "{:?}", changed.ops[i]);
            refused += 1;
        }
        let mut longer = fitting(&dense, Level::Fused);
        assert!(refused > 2 * longer.ops.len());
        let linear = longer.ops.iter_mut().find_map(|op| match &mut op.kind {
            OpKind::Linear { rows, .. } => Some(rows),
            _ => None,
        });
        linear.unwrap().end += 1;
        assert!(longer.check(&dense).is_err());
    }
}
