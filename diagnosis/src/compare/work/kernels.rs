//! The kernels of one step as far as they show its work.

use std::collections::BTreeMap;

use model::{Detail, Ns};

use crate::{
    analysis::{CopyDir, DeviceOp, OpKind, Step, dtype, launch_shape, op_shapes},
    compare::chosen::Chosen,
    platform::{CanonicalOp, OpClass},
};

/// Calls and launches of one kernel, or of one family of operators.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// Calls.
    pub calls: u64,
    /// Their time, ns.
    pub ns: Ns,
    /// Blocks of all calls whose launch says how many.
    pub blocks: f64,
    /// Calls whose launch says how many blocks.
    pub gridded: u64,
}

/// What the kernels of a step show.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kernels {
    /// By operator.
    pub ops: BTreeMap<CanonicalOp, Tally>,
    /// By name.
    pub names: BTreeMap<String, Tally>,
    /// Matrix products with weights by format of their operands, ns; those of unknown format under the empty name.
    pub formats: BTreeMap<&'static str, Ns>,
    /// Formats of the cache that is written.
    pub cache: Vec<&'static str>,
    /// Products by (rows, inputs, outputs) with their number.
    pub products: BTreeMap<(i64, i64, i64), u64>,
    /// Elements of the largest input of a convolution, and kernels of convolutions that were recorded with shapes.
    pub convolved: (u64, u64),
    /// Widths of what is written into the cache, elements of a token.
    pub cached: Vec<i64>,
    /// Keys of a sequence that attention reads or has room for.
    pub context: Vec<i64>,
    /// Sizes of the groups that exchange something.
    pub groups: Vec<u32>,
    /// Calls that exchange something with another rank.
    pub exchanges: u64,
    /// Bytes of the largest copy to the host; the most there is where a copy does not say how many.
    pub read_back: u64,
    /// Calls of kernels that apply adapters.
    pub adapters: u64,
    /// Calls whose operator nobody knows, and replays recorded as one: their time, ns.
    pub hidden: Ns,
    /// All time in kernels, ns.
    pub busy: Ns,
}

/// Fragments of names of kernels that apply low-rank adapters (vLLM's and SGLang's `lora_shrink` and `lora_expand`, punica's
/// `bgmv` and `sgmv`, also those of vLLM-Ascend).
const ADAPTERS: [&str; 5] = ["lora", "bgmv", "sgmv", "Lora", "LoRA"];

impl Kernels {
    /// Of one step.
    pub fn of(side: &Chosen<'_>, step: &Step) -> Self {
        let mut own = Self::default();
        for op in side.rank.ops_of(step) {
            own.add(side, op);
        }
        own.cache.sort_unstable();
        own.cache.dedup();
        own.cached.sort_unstable();
        own.context.sort_unstable();
        own.groups.sort_unstable();
        own.groups.dedup();
        own
    }

    fn add(&mut self, side: &Chosen<'_>, op: &DeviceOp) {
        let name = side.trace.strings.get(op.name);
        match op.kind {
            OpKind::Opaque => {
                (self.hidden, self.busy) = (self.hidden.saturating_add(op.dur()), self.busy.saturating_add(op.dur()));
                return;
            }
            OpKind::Copy(CopyDir::PtoP) => self.exchanges += 1,
            OpKind::Copy(CopyDir::DtoH) => {
                self.read_back = self.read_back.max(copied(side, op).unwrap_or(u64::MAX));
                return;
            }
            OpKind::Copy(_) => return,
            OpKind::Comm => {
                self.exchanges += 1;
                self.groups.extend(group_size(side, op));
            }
            OpKind::Compute => {}
        }
        let blocks = launch_shape::blocks(side.trace, op);
        let of_op = self.ops.entry(op.op).or_default();
        let of_name = self.names.entry(name.to_owned()).or_default();
        for tally in [of_op, of_name] {
            tally.calls += 1;
            tally.ns = tally.ns.saturating_add(op.dur());
            tally.blocks += blocks.unwrap_or(0) as f64;
            tally.gridded += u64::from(blocks.is_some());
        }
        self.busy = self.busy.saturating_add(op.dur());
        if op.op == CanonicalOp::Other {
            self.hidden = self.hidden.saturating_add(op.dur());
        }
        self.adapters += u64::from(ADAPTERS.iter().any(|part| name.contains(part)));
        if op.op == CanonicalOp::Conv {
            let inputs = op_shapes::inputs(side.trace, side.rank, op);
            if let Some(first) = inputs.first().filter(|first| first.dims.len() >= 3) {
                let elements = u64::try_from(first.elements()).unwrap_or(0);
                self.convolved = (self.convolved.0.max(elements), self.convolved.1 + 1);
            }
        }
        match op.op.class() {
            OpClass::Matrix => self.product(side, op, name),
            OpClass::CacheWrite => self.write(side, op, name),
            OpClass::Attention => self.context.extend(context(side, op)),
            _ => {}
        }
    }

    fn product(&mut self, side: &Chosen<'_>, op: &DeviceOp, name: &str) {
        let gemm = op_shapes::gemm(&op_shapes::inputs(side.trace, side.rank, op));
        if let Some(gemm) = gemm {
            // An outer product, such as that of positions and frequencies, has no weights.
            if gemm.inputs == 1 {
                return;
            }
            *self.products.entry((gemm.rows, gemm.inputs, gemm.outputs)).or_default() += 1;
        }
        // What a kernel multiplies its name says; the operator may have been given something that was quantised before.
        let named = dtype::format_of_product(name);
        let recorded = gemm.and_then(|gemm| gemm.types).map(|[_, weights]| weights);
        let format = named.or(recorded).unwrap_or_default();
        let ns = self.formats.entry(format).or_default();
        *ns = ns.saturating_add(op.dur());
    }

    fn write(&mut self, side: &Chosen<'_>, op: &DeviceOp, name: &str) {
        let inputs = op_shapes::inputs(side.trace, side.rank, op);
        self.cached.extend(inputs.first().filter(|t| t.dims.len() >= 2).and_then(|t| {
            let rows = t.dims.first().copied().filter(|rows| *rows > 0)?;
            Some(t.elements() / rows)
        }));
        self.cache.extend(dtype::format_of_cache(name));
    }

    /// Rows that most products work on, where products were recorded with shapes.
    pub fn rows(&self) -> Option<u64> {
        let mut of: BTreeMap<i64, i64> = BTreeMap::new();
        for ((rows, inputs, outputs), calls) in &self.products {
            let weight = inputs.saturating_mul(*outputs).saturating_mul(i64::try_from(*calls).unwrap_or(i64::MAX));
            let own = of.entry(*rows).or_default();
            *own = own.saturating_add(weight);
        }
        let (rows, _) = of.into_iter().max_by_key(|(rows, weight)| (*weight, *rows))?;
        u64::try_from(rows).ok()
    }

    /// Elements of the largest input of a convolution, where nearly all were recorded with shapes.
    pub fn images(&self) -> Option<u64> {
        let (largest, shaped) = self.convolved;
        let all = self.calls(|op| op == CanonicalOp::Conv);
        (shaped > 0 && shaped * 10 >= all * 9).then_some(largest)
    }

    /// Inputs and outputs of the widest product.
    pub fn widest(&self) -> Option<(i64, i64)> {
        let widest = self.products.keys().max_by_key(|(_, inputs, outputs)| (*outputs, *inputs))?;
        Some((widest.1, widest.2))
    }

    /// Elements of the weights of all products, in millions, where the shapes of nearly all were recorded.
    pub fn weights(&self) -> Option<u64> {
        let products = self.calls(|op| op == CanonicalOp::Gemm);
        let shaped: u64 = self.products.values().sum();
        let all =
            self.products.iter().map(|((_, inputs, outputs), calls)| *inputs as f64 * *outputs as f64 * *calls as f64);
        (shaped > 0 && shaped * 10 >= products * 9).then(|| (all.sum::<f64>() / 1e6).round() as u64)
    }

    /// Operations of all products, where the shapes of nearly all were recorded.
    pub fn operations(&self) -> Option<f64> {
        let own = |((rows, inputs, outputs), calls): (&(i64, i64, i64), &u64)| {
            2.0 * *rows as f64 * *inputs as f64 * *outputs as f64 * *calls as f64
        };
        self.weights().map(|_| self.products.iter().map(own).sum())
    }

    /// Share of the kernels' time whose operator is known.
    pub fn known(&self) -> f64 {
        1.0 - self.hidden as f64 / self.busy.max(1) as f64
    }

    /// Calls of operators that `pick` takes.
    pub fn calls(&self, pick: impl Fn(CanonicalOp) -> bool) -> u64 {
        self.ops.iter().filter(|(op, _)| pick(**op)).map(|(_, tally)| tally.calls).sum()
    }
}

/// Bytes of a copy, where it says how many.
pub fn copied(side: &Chosen<'_>, op: &DeviceOp) -> Option<u64> {
    let (track, row) = side.trace.locate(op.slice)?;
    match side.trace.detail(side.trace.lanes.get(track.0 as usize)?, row)? {
        Detail::Copy(copy) => u64::try_from(copy.bytes?).ok(),
        _ => None,
    }
}

fn group_size(side: &Chosen<'_>, op: &DeviceOp) -> Option<u32> {
    let (track, row) = side.trace.locate(op.slice)?;
    match side.trace.detail(side.trace.lanes.get(track.0 as usize)?, row)? {
        Detail::Kernel(kernel) => kernel.collective.as_ref()?.group_size,
        _ => None,
    }
}

/// Keys of a sequence as the operator of an attention was given them: with the documented layout of queries and keys their
/// length; with a table of the cache's blocks by sequence the blocks of a sequence.
fn context(side: &Chosen<'_>, op: &DeviceOp) -> Option<i64> {
    table(&op_shapes::inputs(side.trace, side.rank, op)).map(|(_, blocks)| blocks)
}

/// Sequences and blocks of each of the table of the cache's blocks among the inputs of an attention.
pub fn table(inputs: &[op_shapes::Tensor]) -> Option<(i64, i64)> {
    let table = inputs.iter().rev().find(|t| t.dims.len() == 2 && t.dtype.is_none() && t.element.is_some())?;
    // A table has a row for each sequence, which is at most a row of the queries.
    let queries = inputs.first().and_then(|t| t.dims.first())?;
    let rows = table.dims.first().filter(|rows| *rows <= queries)?;
    table.dims.get(1).filter(|blocks| **blocks > 1).map(|blocks| (*rows, *blocks))
}
