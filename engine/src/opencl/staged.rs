//! An operator through memory of the host: what ranks compute together, and what a run suffers that the host computes itself.
//! Its input is copied from the device, and its result back.

use crate::{
    Error,
    comm::Communicator,
    cpu::Kernels,
    faults::Faults,
    program::{BufId, OpCall, OpKind, OpName, Program},
};

/// What the host does with an operator's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    /// Adds up what all ranks have.
    Sum,
    /// Puts the columns of all ranks side by side.
    Gather,
    /// Computes silu of the first half times the second.
    SiluMul,
}

/// An operator through memory of the host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Staged {
    does: Does,
    pub from: BufId,
    pub to: BufId,
    rows: usize,
    /// Elements of a row of the input, and of the result.
    widths: [usize; 2],
}

/// The operator that a run may suffer to be computed by the host: the others need weights, which are on the device.
pub(super) const FALLBACK: OpName = OpName::SiluMul;

impl Staged {
    /// That of an operator which goes this way; `None` of one that is a kernel.
    pub(super) fn of(op: &OpCall, program: &Program, faults: &Faults) -> Option<Self> {
        let (does, from, to) = match op.kind {
            OpKind::AllReduce { x } => (Does::Sum, x, x),
            OpKind::AllGather { part, out } => (Does::Gather, part, out),
            OpKind::SiluMul { gate_up, out } if faults.host.fallback == Some(op.name) => (Does::SiluMul, gate_up, out),
            _ => return None,
        };
        let (input, result) = (program.buffer(from)?, program.buffer(to)?);
        Some(Self { does, from, to, rows: input.rows, widths: [input.width, result.width] })
    }

    /// Whether ranks compute it together.
    pub(super) fn is_collective(&self) -> bool {
        self.does != Does::SiluMul
    }

    /// Elements of the input, and of the result.
    pub(super) fn counts(&self) -> [usize; 2] {
        self.widths.map(|width| self.rows.saturating_mul(width))
    }

    /// Computes it: `input` holds what was copied from the device, `result` gets what is to be copied back.
    pub(super) fn compute(
        &self,
        ranks: Option<&mut Communicator>,
        kernels: &Kernels,
        input: &mut [f32],
        result: &mut [f32],
    ) -> Result<(), Error> {
        match (self.does, ranks) {
            (Does::SiluMul, _) => {
                let [gate_up, width] = self.widths;
                for (from, to) in input.chunks_exact(gate_up.max(1)).zip(result.chunks_exact_mut(width.max(1))) {
                    let (gate, up) = from.split_at(width.min(from.len()));
                    to.iter_mut().zip(gate).zip(up).for_each(|((to, g), up)| *to = g / (1.0 + (-g).exp()) * up);
                }
                Ok(())
            }
            (Does::Sum, Some(ranks)) => {
                result.copy_from_slice(input);
                ranks.sum(kernels, result)
            }
            (Does::Gather, Some(ranks)) => ranks.gather(input, result, self.widths),
            (Does::Sum | Does::Gather, None) => {
                Err(Error::Request("the program is that of a rank, and there are no others; plan the whole".to_owned()))
            }
        }
    }
}

/// Memory of the host that copies of staged operators go through. It is never moved: copies are not waited for.
#[derive(Default)]
pub(super) struct Stage {
    pub input: Box<[f32]>,
    pub result: Box<[f32]>,
}

impl Stage {
    /// Room for each of these operators, one at a time.
    pub(super) fn of<'s>(all: impl Iterator<Item = &'s Staged>) -> Self {
        let most = all.fold([0, 0], |[a, b], staged| {
            let [input, result] = staged.counts();
            [a.max(input), b.max(result)]
        });
        let [input, result] = most.map(|count| vec![0.0; count].into_boxed_slice());
        Self { input, result }
    }
}
