//! The steps of a capture held against what probes of the device measured: how far the products, and the step as a whole, are
//! from the least time that the device needs for them.

use model::{Ns, StringId};
use rustc_hash::FxHashMap;

use super::{
    rule::Context,
    signals::{
        ceilings::{Ceilings, Origin},
        reading,
    },
};
use crate::{
    analysis::{Class, OpKind, Rank, op_shapes},
    i18n::{Text, Value},
    platform::CanonicalOp,
};

/// One quantity of the run and its ceiling.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Row {
    /// What is compared.
    pub what: Text,
    /// In the run.
    pub run: Value,
    /// At best, as it was measured.
    pub ceiling: Value,
    /// How much of what is possible the run reaches; above one where its operands come from a cache, or where the probe was
    /// disturbed.
    pub reached: f64,
}

/// A class held against measured ceilings.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Roofline {
    /// Rank of the job.
    pub rank: u32,
    /// Key of the class.
    pub class: String,
    /// The comparisons.
    pub rows: Vec<Row>,
    /// Kernels of products of known size, in no order.
    pub kernels: Vec<Kernel>,
    /// What disturbed the probes, if anything did.
    pub noise: Option<String>,
}

/// Products by one kernel, over the steps that count.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// Its canonical operator.
    pub op: &'static str,
    /// Time that they held alone, ns.
    pub busy: Ns,
    /// The least that the bytes and the arithmetic of these products take by measured ceilings, ns.
    pub least: f64,
}

impl Roofline {
    /// How much of what is possible the kernels reach that `pick` takes; `None` where none of them is of known size.
    pub fn reached(&self, pick: impl Fn(&Kernel) -> bool) -> Option<f64> {
        let taken = self.kernels.iter().filter(|kernel| pick(kernel));
        let (busy, least) =
            taken.fold((0, 0.0), |(busy, least): (Ns, f64), k| (busy.saturating_add(k.busy), least + k.least));
        (busy > 0).then(|| least / busy as f64)
    }
}

/// The main class with the most time; `None` where nothing was measured, or no product has a known size.
pub(super) fn of(cx: &Context<'_>) -> Option<Roofline> {
    let (rank, class) = cx.main_classes().max_by_key(|(rank, class)| (class.total, std::cmp::Reverse(rank.rank)))?;
    let ceilings = Ceilings::of(cx, rank);
    let bandwidth = ceilings.bandwidth().filter(|bandwidth| bandwidth.origin == Origin::Measured)?;
    let gemms = Gemms::of(cx, rank, class, &ceilings);
    if gemms.busy <= 0 || gemms.least <= 0.0 {
        return None;
    }
    let steps = class.steady.max(1) as Ns;
    let (busy, least) = (gemms.busy / steps, (gemms.least / steps as f64).round() as Ns);
    let rate = gemms.bytes as f64 / gemms.busy as f64;
    let mut rows = vec![
        Row {
            what: Text::new(
                "matrix products: time per step, and the least that their bytes and arithmetic take",
                "矩阵乘：每步耗时，以及其字节与运算所需的最短时间",
            ),
            run: Value::Ns(busy),
            ceiling: Value::Ns(least),
            reached: least as f64 / busy.max(1) as f64,
        },
        Row {
            what: Text::new(
                "matrix products: operands read, GB/s, and the read bandwidth of the memory",
                "矩阵乘：读取操作数的速率 GB/s，以及内存读取带宽",
            ),
            run: Value::Number(rate),
            ceiling: Value::Number(bandwidth.usual),
            reached: rate / bandwidth.usual,
        },
        Row {
            what: Text::new(
                "the whole step, and the least that its matrix products take",
                "整个步，以及其矩阵乘所需的最短时间",
            ),
            run: Value::Ns(class.p50),
            ceiling: Value::Ns(least),
            reached: least as f64 / class.p50.max(1) as f64,
        },
    ];
    if let Some(floor) = ceilings.floor().filter(|_| gemms.others > 0) {
        let (took, starts) = (gemms.others_busy / steps, floor.saturating_mul(gemms.others / steps));
        rows.push(Row {
            what: Text::new(
                "all other compute operations, and what as many empty ones take",
                "其余计算算子，以及同样数目空算子的耗时",
            ),
            run: Value::Ns(took),
            ceiling: Value::Ns(starts),
            reached: starts as f64 / took.max(1) as f64,
        });
    }
    let noise = ceilings.noise().map(str::to_owned);
    let kernels = gemms.kernels.iter().map(|(name, (busy, least))| Kernel {
        name: cx.trace.strings.get(*name).to_owned(),
        op: CanonicalOp::Gemm.name(),
        busy: *busy,
        least: *least,
    });
    Some(Roofline { rank: rank.rank, class: class.key.clone(), rows, kernels: kernels.collect(), noise })
}

/// Sums over the steps of a class that count.
#[derive(Default)]
struct Gemms {
    /// Time of products of known size, ns.
    busy: Ns,
    /// Their bytes.
    bytes: i64,
    /// The least time for them, ns.
    least: f64,
    /// Both by kernel.
    kernels: FxHashMap<StringId, (Ns, f64)>,
    /// All other compute operations: how many, and their time, ns.
    others: Ns,
    others_busy: Ns,
}

impl Gemms {
    fn of(cx: &Context<'_>, rank: &Rank, class: &Class, ceilings: &Ceilings<'_>) -> Self {
        let mut sums = Self::default();
        for step in rank.steady_steps(class) {
            for (_, op, exclusive) in reading::accounted(rank, step).filter(|(_, op, _)| op.kind == OpKind::Compute) {
                if op.op != CanonicalOp::Gemm {
                    sums.others += 1;
                    sums.others_busy = sums.others_busy.saturating_add(exclusive.busy);
                    continue;
                }
                let gemm = op_shapes::gemm(&op_shapes::inputs(cx.trace, rank, op));
                let measured = |gemm| ceilings.time(gemm).filter(|(_, _, origin)| *origin == Origin::Measured);
                let known = gemm.and_then(|gemm| Some((gemm.bytes?, measured(gemm)?.1)));
                if let Some((bytes, least)) = known {
                    sums.busy = sums.busy.saturating_add(exclusive.busy);
                    sums.bytes = sums.bytes.saturating_add(bytes);
                    sums.least += least;
                    let kernel = sums.kernels.entry(op.name).or_default();
                    *kernel = (kernel.0.saturating_add(exclusive.busy), kernel.1 + least);
                }
            }
        }
        sums
    }
}
