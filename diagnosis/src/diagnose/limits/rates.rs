//! How fast each operator of a class runs, and how far that is from what the device can do.

use std::rc::Rc;

use model::{Detail, Ns, SliceId, StringId, Trace};
use rustc_hash::FxHashMap;

use super::{
    tile,
    work::{self, Work},
};
use crate::{
    analysis::{
        Class, CopyDir, DeviceOp, OpKind, Rank, launch_shape,
        op_shapes::{self, Operator},
    },
    diagnose::{
        rule::Context,
        signals::{
            ceilings::{Ceiling, Ceilings, Origin},
            reading,
        },
    },
    i18n::{Message, Text, Value},
    platform::{CanonicalOp, OpClass},
};

/// Rows that are kept: what lies beyond is a small part of any step.
pub const MOST: usize = 200;
/// Least time of an operation, ns, below which starting and ending is most of what it does, whatever its kernel; own value.
const START: f64 = 2_000.0;
/// Share of the limit from which there is nothing left to explain (latency mark of Nsight Compute's speed-of-light texts).
const NEAR: f64 = 0.6;
/// Share of the limit above which its model is wrong; own value.
const ABOVE: f64 = 1.02;
/// Share of the bandwidth from which memory is named first; own value.
const USED: f64 = 0.1;
/// Device operations that are looked at; the rest of a capture has the same.
const MOST_OPERATIONS: usize = 2_000_000;
/// Share of an execution's time that must be of one class for the bytes of its tensors to be what it moved: own value.
const OF_ONE_KIND: f64 = 0.9;

/// What an operation is bound by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Reading and writing memory.
    Memory,
    /// Arithmetic.
    Compute,
    /// Starting and ending: it has too little to do.
    Latency,
    /// The link between devices.
    Link,
}

impl Bound {
    /// Key in JSON.
    pub fn key(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Compute => "compute",
            Self::Latency => "latency",
            Self::Link => "link",
        }
    }
}

/// Where a peak comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PeakSource {
    /// From probes of this device.
    Measured,
    /// From its maker: no kernel reaches it.
    Published,
}

impl PeakSource {
    /// Key in JSON.
    pub fn key(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Published => "published",
        }
    }
}

impl From<Origin> for PeakSource {
    fn from(origin: Origin) -> Self {
        match origin {
            Origin::Measured => Self::Measured,
            Origin::Published => Self::Published,
        }
    }
}

/// What a rate counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub enum RateUnit {
    /// Operations per second; a multiply-add is two.
    #[serde(rename = "FLOP/s")]
    Flops,
    /// Bytes per second.
    #[serde(rename = "B/s")]
    Bytes,
}

impl RateUnit {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Flops => "FLOP/s",
            Self::Bytes => "B/s",
        }
    }
}

/// Executions of one operator with one kernel and one shape.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Rate {
    /// Canonical operator.
    pub operator: &'static str,
    /// What of the layer it computes, where a model says it.
    pub slot: Option<&'static str>,
    /// Its longest kernel.
    pub kernel: String,
    /// Its sizes.
    pub shape: String,
    /// Number format of its arithmetic.
    pub dtype: Option<&'static str>,
    /// Executions over the steps that count.
    pub count: u64,
    /// Time of one execution, mean, ns.
    pub ns: f64,
    /// Time per step, ns.
    pub per_step: Ns,
    /// Operations of one execution.
    pub flops: f64,
    /// Bytes of one execution.
    pub bytes: f64,
    /// Bytes of its weights, or of its second operand; 0 of what is no product.
    pub operands: f64,
    /// What it is bound by, where the limits are known.
    pub bound_by: Option<Bound>,
    /// Rate towards the limit that binds it.
    pub achieved: f64,
    /// What that and the peak count.
    pub unit: RateUnit,
    /// The most that the device can do of it, per second.
    pub peak: Option<f64>,
    /// Where that comes from.
    pub peak_source: Option<PeakSource>,
    /// What of the limit it stays below, and why, as far as shape and launch tell.
    pub why: Vec<Message>,
}

impl Rate {
    /// Share of the limit; above one where operands lie in a cache.
    pub fn share(&self) -> Option<f64> {
        self.peak.filter(|peak| *peak > 0.0).map(|peak| self.achieved / peak)
    }
}

/// One execution of an operator: what it does, and the device operations that do it.
struct Execution {
    op: CanonicalOp,
    work: Rc<Work>,
    /// The longest of the device operations of its kind.
    kernel: StringId,
    blocks: Option<u64>,
    time: Ns,
}

/// The device operations that one execution of an operator launched.
struct Launched<'a> {
    operator: Operator,
    ops: Vec<&'a DeviceOp>,
}

/// The rates of a class, the longest in total first.
pub fn of(cx: &Context<'_>, rank: &Rank, class: &Class, ceilings: &Ceilings<'_>) -> Vec<Rate> {
    let mut launched: FxHashMap<SliceId, Launched<'_>> = FxHashMap::default();
    let mut copies: Vec<(&DeviceOp, Option<SliceId>)> = Vec::new();
    let all = rank.steady_steps(class).flat_map(|step| reading::accounted(rank, step));
    for (n, (_, op, _)) in all.filter(|(_, op, _)| op.dur() > 0).enumerate() {
        if n >= MOST_OPERATIONS {
            break;
        }
        let operator = match op.kind {
            OpKind::Compute | OpKind::Copy(_) => op_shapes::operator(cx.trace, rank, op),
            _ => continue,
        };
        if matches!(op.kind, OpKind::Copy(_)) {
            copies.push((op, operator.map(|operator| operator.slice)));
        } else if let Some(operator) = operator {
            let slice = operator.slice;
            launched.entry(slice).or_insert_with(|| Launched { operator, ops: Vec::new() }).ops.push(op);
        }
    }
    // Executions of one description do the same.
    let mut works: FxHashMap<(StringId, u32, CanonicalOp), Option<Rc<Work>>> = FxHashMap::default();
    let mut executions: FxHashMap<SliceId, Execution> = FxHashMap::default();
    for (slice, Launched { operator, ops }) in &launched {
        let Some(longest) = longest(ops) else { continue };
        let kernel = cx.trace.strings.get(longest.name);
        let inputs = || work::typed(&operator.inputs, longest.op.class(), kernel);
        let work = || work::of(cx.trace.strings.get(operator.name), &inputs(), longest.op).map(Rc::new);
        let kind = (operator.name, operator.described, longest.op);
        let Some(work) = works.entry(kind).or_insert_with(work).clone() else { continue };
        if let Some(execution) = Execution::of(cx.trace, ops, longest, work) {
            executions.insert(*slice, execution);
        }
    }
    for (op, operator) in copies {
        // What a product clears or copies for itself is part of it.
        match operator.and_then(|slice| executions.get_mut(&slice)).filter(|execution| execution.work.flops > 0.0) {
            Some(execution) => execution.time = execution.time.saturating_add(op.dur()),
            None => {
                let copied = copied(cx.trace, op).and_then(|work| Execution::of(cx.trace, &[op], op, Rc::new(work)));
                executions.extend(copied.map(|execution| (op.slice, execution)));
            }
        }
    }
    let mut groups: FxHashMap<_, (Rc<Work>, Sums)> = FxHashMap::default();
    for Execution { op, work, kernel, blocks, time } in executions.into_values() {
        let nothing = Sums { time: 0, count: 0, kernel, blocks };
        let key = (op, kernel, work.shape.clone(), work.dtype);
        let (_, sums) = groups.entry(key).or_insert_with(|| (work, nothing));
        (sums.time, sums.count) = (sums.time.saturating_add(time), sums.count + 1);
    }
    let steps = class.steady.max(1) as Ns;
    let groups = groups.into_iter();
    let mut rates: Vec<Rate> =
        groups.map(|((op, ..), (work, sums))| rate(cx, ceilings, (op, &work), sums, steps)).collect();
    rates.sort_by(|a, b| b.per_step.cmp(&a.per_step).then_with(|| (&a.kernel, &a.shape).cmp(&(&b.kernel, &b.shape))));
    rates.truncate(MOST);
    rates
}

/// The longest kernel of the class that has most of an execution's time: what the operator is there for. What it casts, clears or
/// transposes for that is a part of it.
fn longest<'a>(ops: &[&'a DeviceOp]) -> Option<&'a DeviceOp> {
    let time = |class: OpClass| ops.iter().filter(|op| op.op.class() == class).map(|op| op.dur()).sum::<Ns>();
    let rank = |op: &&&DeviceOp| (time(op.op.class()), op.dur(), std::cmp::Reverse(op.start));
    ops.iter().max_by_key(rank).copied()
}

impl Execution {
    /// Of these device operations; `None` where they do more than the work that the shapes tell of.
    fn of(trace: &Trace, ops: &[&DeviceOp], longest: &DeviceOp, work: Rc<Work>) -> Option<Self> {
        let sum = |counts: &dyn Fn(&DeviceOp) -> bool| -> Ns {
            ops.iter().filter(|op| counts(op)).fold(0, |sum, op| sum.saturating_add(op.dur()))
        };
        let time = sum(&|op| op.slice == longest.slice || (work.done_by)(op.op));
        let own = sum(&|op| op.op.class() == longest.op.class());
        let more = work.flops == 0.0 && (own as f64) < OF_ONE_KIND * sum(&|_| true) as f64;
        let blocks = launch_shape::blocks(trace, longest);
        (!more).then_some(Self { op: longest.op, work, kernel: longest.name, blocks, time })
    }
}

/// What a copy within the device's memory, or a fill, has to do.
fn copied(trace: &Trace, op: &DeviceOp) -> Option<Work> {
    let times = match op.kind {
        OpKind::Copy(CopyDir::DtoD) => 2.0,
        OpKind::Copy(CopyDir::Memset) => 1.0,
        _ => return None,
    };
    let (track, row) = trace.locate(op.slice)?;
    let Some(Detail::Copy(copy)) = trace.detail(trace.lanes.get(track.0 as usize)?, row) else { return None };
    let bytes = copy.bytes.filter(|bytes| *bytes >= LEAST_COPY)?;
    let shape = format!("{bytes} B");
    Some(Work {
        flops: 0.0,
        bytes: times * bytes as f64,
        operands: 0.0,
        dtype: None,
        shape,
        gemm: None,
        done_by: |_| false,
    })
}

/// Bytes from which a copy is more than its start.
const LEAST_COPY: i64 = 1 << 20;

/// Executions of one work, summed.
pub(super) struct Sums {
    /// Their time, ns.
    pub time: Ns,
    /// How many.
    pub count: u64,
    /// Their kernel.
    pub kernel: StringId,
    /// Blocks of its launch.
    pub blocks: Option<u64>,
}

/// The number format that a manifest names, in the words of operators.
pub(super) fn dtype_of(said: &str) -> Option<&'static str> {
    ["bf16", "f16", "f32", "int8", "fp8 e4m3", "fp8 e5m2"].into_iter().find(|known| *known == said)
}

/// The rate of a work over so many steps.
pub(super) fn rate(
    cx: &Context<'_>,
    ceilings: &Ceilings<'_>,
    (op, work): (CanonicalOp, &Work),
    sums: Sums,
    steps: Ns,
) -> Rate {
    let ns = sums.time as f64 / sums.count.max(1) as f64;
    let memory = ceilings.bandwidth();
    let arithmetic = if work.flops > 0.0 { ceilings.arithmetic(work.dtype) } else { None };
    let kernel = cx.trace.strings.get(sums.kernel);
    let limit = Limit::of(work, ns, memory, arithmetic);
    let mut why = Vec::new();
    if let Some(gemm) = work.gemm.filter(|_| limit.share.is_none_or(|share| share < NEAR)) {
        let cores = ceilings.chip().and_then(|chip| chip.cores);
        why = tile::reasons(kernel, gemm, sums.blocks, cores);
    }
    if let (Some(Bound::Memory), Some(memory), Some(arithmetic)) = (limit.bound, memory, arithmetic) {
        let text = Text::new(
            "memory side of the roofline: {n} operations per byte, below the {ridge} that the device does in the time of one",
            "位于屋顶线的访存一侧：每字节 {n} 次运算，低于设备在读一字节的时间内可做的 {ridge} 次",
        );
        let whole = |n: f64| Value::Number((10.0 * n).round() / 10.0);
        let ridge = arithmetic.best / memory.best;
        let args = [("n", whole(work.flops / work.bytes.max(1.0))), ("ridge", whole(ridge))];
        // Where next to nothing of the bandwidth is used, something else leads.
        let first = if limit.share.is_some_and(|share| share >= USED) { 0 } else { why.len() };
        why.insert(first, Message::new(text, args));
    }
    if limit.share.is_some_and(|share| share > ABOVE) {
        why.push(Message::plain(Text::new(
            "above the limit: the operands lay in a cache, or the shapes name more than was read",
            "高于上限：操作数位于缓存中，或形状所示多于实际读取",
        )));
    }
    Rate {
        operator: if op == CanonicalOp::Other { CanonicalOp::Copy.name() } else { op.name() },
        slot: None,
        kernel: kernel.to_owned(),
        shape: work.shape.clone(),
        dtype: work.dtype,
        count: sums.count,
        ns,
        per_step: sums.time / steps.max(1),
        flops: work.flops,
        bytes: work.bytes,
        operands: work.operands,
        bound_by: limit.bound,
        achieved: limit.achieved,
        unit: limit.unit,
        peak: limit.peak,
        peak_source: limit.source,
        why,
    }
}

/// The limit that binds an operation.
pub(super) struct Limit {
    pub bound: Option<Bound>,
    pub achieved: f64,
    pub unit: RateUnit,
    pub peak: Option<f64>,
    pub source: Option<PeakSource>,
    pub share: Option<f64>,
}

impl Limit {
    /// The one whose least time is longer. Without the arithmetic of a type nobody knows which that is.
    pub fn of(work: &Work, ns: f64, memory: Option<Ceiling>, arithmetic: Option<Ceiling>) -> Self {
        let ns = ns.max(1.0);
        let side = |amount: f64, ceiling: Option<Ceiling>| ceiling.map(|c| (amount / c.best, c));
        let (moving, computing) = (side(work.bytes, memory), side(work.flops, arithmetic));
        let (bound, amount, least) = match (moving, computing) {
            (Some(moving), Some(computing)) if computing.0 > moving.0 => (Bound::Compute, work.flops, computing),
            (Some(moving), Some(_)) => (Bound::Memory, work.bytes, moving),
            (Some(moving), None) if work.flops == 0.0 => (Bound::Memory, work.bytes, moving),
            (None, Some(computing)) => (Bound::Compute, work.flops, computing),
            _ => {
                let (amount, unit) =
                    if work.flops > 0.0 { (work.flops, RateUnit::Flops) } else { (work.bytes, RateUnit::Bytes) };
                return Self { bound: None, achieved: amount / ns * 1e9, unit, peak: None, source: None, share: None };
            }
        };
        let share = least.0 / ns;
        let is_short = least.0 < START && share < NEAR;
        Self {
            bound: Some(if is_short { Bound::Latency } else { bound }),
            achieved: amount / ns * 1e9,
            unit: if bound == Bound::Compute { RateUnit::Flops } else { RateUnit::Bytes },
            peak: Some(least.1.best * 1e9),
            source: Some(least.1.origin.into()),
            share: Some(share),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn work(flops: f64, bytes: f64) -> Work {
        Work { flops, bytes, operands: 0.0, dtype: Some("bf16"), shape: String::new(), gemm: None, done_by: |_| true }
    }

    fn ceiling(best: f64) -> Option<Ceiling> {
        Some(Ceiling { usual: best, best, origin: Origin::Published })
    }

    #[test]
    fn the_longer_of_both_least_times_binds() {
        let limit = |flops, bytes, ns| Limit::of(&work(flops, bytes), ns, ceiling(1000.0), ceiling(100_000.0));
        let memory = limit(1e9, 1e8, 200_000.0);
        assert_eq!((memory.bound, memory.share, memory.achieved), (Some(Bound::Memory), Some(0.5), 5e14 / 1e3));
        let compute = limit(1e11, 1e8, 2e6);
        assert_eq!((compute.bound, compute.share), (Some(Bound::Compute), Some(0.5)));
        assert_eq!(limit(1e6, 1e5, 5_000.0).bound, Some(Bound::Latency));
        assert_eq!(limit(1e6, 1e5, 120.0).bound, Some(Bound::Memory), "short and fast is no latency");
        let unknown = Limit::of(&work(1e11, 1e8), 2e6, ceiling(1000.0), None);
        assert_eq!((unknown.bound, unknown.peak, unknown.achieved), (None, None, 5e13));
        assert_eq!(Limit::of(&work(0.0, 1e8), 2e5, ceiling(1000.0), None).bound, Some(Bound::Memory));
    }
}
