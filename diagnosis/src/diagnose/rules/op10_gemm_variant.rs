//! OP-10: a matrix product of few rows runs a kernel made for many.

use model::{EvidenceClass::Device, Ns};

use super::{
    launch_shape::tile,
    measured,
    product::Products,
    reading,
    share_of_step::{self, Kind, Part},
};
use crate::{
    analysis::{Confidence, DeviceOp, Layer, OpKind, Rank, op_shapes},
    diagnose::{
        relations::{Advice, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::Text,
    platform::{CanonicalOp, Stage},
};

/// Most rows of activations for which a skinny kernel exists everywhere.
const ROWS: i64 = 16;
/// Rows of the tile for each row there is, from which most of the tile is padding.
const PADDED: i64 = 2;
/// Least rows of a tile that is made for more.
const TILE: u32 = 64;
/// The same where the bytes are unknown: the tiles of prompts.
const PROMPT_TILE: u32 = 128;
/// Share of the best rate of the capture below which a product does not keep up with memory.
const RATE: f64 = 0.6;
/// Share of the best rate that a fitting kernel reaches at least; at best it reaches all of it.
const REACHED: f64 = 0.8;
/// Share of its time that a fitting kernel takes at best where the bytes are unknown; own value: a tile of 128 rows does at
/// least eight times the work that 16 rows need, and memory sets a limit to what that leaves to gain.
const BEST_UNKNOWN: f64 = 0.25;

/// The rule.
pub struct GemmVariant;

static DOC: Doc = Doc {
    id: "OP-10",
    title: Text::new("Matrix kernel of the wrong shape", "矩阵内核形状不符"),
    layer: Layer::Operator,
    needs: &[Device],
    advice: Advice::Device,
    relations: Relations::NONE,
    sees: Text::new(
        "Matrix products of few rows run kernels whose tiles have 64 rows or more, and at least twice as many as there are.",
        "少行的矩阵乘使用了分块至少 64 行、且至少为实际行数两倍的内核。",
    ),
    matters: Text::new(
        "Most of such a tile is padding, and there are too few tiles to keep all of memory busy; kernels made for few rows (gemv, split-K, skinny) read the weights at full speed.",
        "这样的分块大部分是补齐，且块数太少，喂不满显存；为少行设计的内核（gemv、split-K、skinny）能以全速读取权重。",
    ),
    trigger: Text::new(
        "At most half as many rows (from the recorded shapes, else the decoded sequences of the step, else the blocks that its norms and cache writes were launched with) as the smaller side of the tile in the kernel's name, which is at least 64, and the operands read at less than 0.6 of the best rate seen in the capture, or less than 0.8 where both sides are at least 128. Where the shapes are not recorded: both sides at least 128 and at most 16 rows, or fewer blocks than cores and, at most, half of the rate of memory (see OP-19). Where the kernel was measured, the measured use of the memory system takes the place of the rate. What a fitting kernel would save is at least 2 % of the mean step.",
        "行数（取自采集的形状，否则取该步解码序列数，再否则取归一化与缓存写入内核的块数）不超过内核名中分块较短边的一半，该边不小于 64，且读取操作数的速率低于采集中最佳速率的 0.6（两边均不小于 128 时为 0.8）。未采集形状时：两边均不小于 128 且不超过 16 行，或块数少于核心数且读取速率至多为显存速率的一半（见 OP-19）。内核有测量值时，以实测存储系统利用率代替速率。换用合适内核可省的时间至少占平均步时的 2%。",
    ),
    source: Text::new(
        "Half, 16 rows and 64: own values after vllm.cpp #487, where such a kernel took 77 % of the time. 0.6 and 0.8: latency and near-limit marks of Nsight Compute's speed-of-light texts.",
        "一半、16 行与 64：参考 vllm.cpp #487 的自定值，该例中此类内核占时 77%。0.6 与 0.8：Nsight Compute speed-of-light 文本中的延迟与接近上限标记。",
    ),
    guards: Text::new(
        "The tile's sides in a name come in either order, so both must be large. A product that keeps up with the best rate of the capture is fine whatever its name. Rows may be padded on purpose by the size of the graph.",
        "名字中分块两边的次序不定，因此两边都须很大。达到采集最佳速率的矩阵乘无论名字如何都无问题。图的尺寸可能有意补齐行数。",
    ),
    verify: Text::new(
        "Force a kernel made for few rows, or another library, on the same shapes: the time of the product falls towards its bytes over the bandwidth.",
        "在相同形状上强制使用少行内核或其他库：矩阵乘耗时应降向字节数除以带宽。",
    ),
};

static KIND: Kind = Kind {
    doc: &DOC,
    share: 0.02,
    per_layer: None,
    formula: Text::new(
        "time of ill-fitting matrix kernels beyond a fitting one / mean step",
        "不适配的矩阵内核超出适配内核的时间 / 平均步时",
    ),
    claim: Text::new(
        "{count} matrix products per step of {class} have few rows and run kernels with tiles for 64 or more and at least twice as many; they take {busy}, fitting kernels would save at least {time} of {step} ({share}).",
        "{class} 每步有 {count} 个少行的矩阵乘使用了 64 行以上、且至少为行数两倍的分块；耗时 {busy}，换用合适内核至少可省 {time}，步时 {step}（{share}）。",
    ),
    what: Text::new("time of matrix kernels with too large tiles per step", "每步分块过大的矩阵内核耗时"),
    rivals: &[
        (
            Text::new("the library has nothing faster for this shape", "该库对此形状没有更快的内核"),
            Text::new(
                "a microbenchmark of the same shape over all of its kernels decides",
                "对相同形状遍历其全部内核的微基准可以判定",
            ),
        ),
        (
            Text::new("the graph pads the rows on purpose", "图有意补齐行数"),
            Text::new("the captured sizes of the graph decide", "图的捕获尺寸可以判定"),
        ),
    ],
    most: Confidence::Medium,
};

impl Rule for GemmVariant {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let tiles = |least| reading::named(cx, |name| tile(name).is_some_and(|(a, b)| a.min(b) >= least));
        let (large, prompt) = (tiles(TILE), tiles(PROMPT_TILE));
        if large.is_empty() {
            return Outcome::Quiet;
        }
        let suspect =
            |op: &DeviceOp| op.kind == OpKind::Compute && op.op == CanonicalOp::Gemm && large.contains(&op.name);
        let mut found = Vec::new();
        for (rank, class) in cx.main_classes() {
            let fastest = op_shapes::fastest(cx.trace, rank);
            let products = Products::of(cx, rank, class);
            let finding = share_of_step::of_class(cx, &KIND, rank, class, |step| {
                let decoded = step.facts.batch.filter(|_| class.stage == Stage::Decode).map(i64::from);
                let rows = decoded.or_else(|| i64::try_from(step.rows?).ok());
                let target =
                    |op: &DeviceOp| target(cx, &products, rank, (op, rows), fastest, prompt.contains(&op.name));
                let ops = reading::accounted(rank, step).filter(|(_, op, _)| suspect(op));
                ops.filter_map(|part| {
                    let (best, worst) = target(part.1)?;
                    Some(Part::gone(part).to(worst).within(best, worst))
                })
                .collect()
            });
            found.extend(finding.map(|finding| {
                // Without shapes the bytes are unknown, and only measurements of the kernels say how fast they read.
                let known = fastest.is_some() || measured::covers(cx, rank, &finding);
                let mut finding = measured::witness(cx, rank, finding, None);
                finding.confidence = if known { finding.confidence } else { Confidence::Low };
                finding
            }));
        }
        found.into_iter().collect()
    }
}

/// Time that a fitting kernel would take at best and at worst, ns; `None` where nothing speaks against the one that ran.
fn target(
    cx: &Context<'_>,
    products: &Products<'_, '_>,
    rank: &Rank,
    (op, rows): (&DeviceOp, Option<i64>),
    fastest: Option<f64>,
    prompt_tile: bool,
) -> Option<(Ns, Ns)> {
    let gemm = op_shapes::gemm(&op_shapes::inputs(cx.trace, rank, op));
    let rows = gemm.map(|p| p.rows).or(rows)?;
    let (a, b) = tile(cx.trace.strings.get(op.name))?;
    if rows < 1 || rows.saturating_mul(PADDED) > i64::from(a.min(b)) {
        return None;
    }
    // Too few blocks to read at the rate of memory, whatever the rows: what filling the device would take bounds the gain.
    if let Some(filling) = products.filling(op) {
        return Some(filling);
    }
    if rows > ROWS && gemm.is_none_or(|gemm| gemm.bytes.is_none()) {
        return None;
    }
    if let Some(used) = measured::of(cx, op).and_then(measured::memory) {
        let least = if prompt_tile { REACHED } else { RATE };
        let takes = |share: f64| (op.dur() as f64 * share) as Ns;
        return (used < least).then(|| (takes(used), takes(used / REACHED)));
    }
    match (gemm.and_then(|p| p.bytes), fastest) {
        (Some(bytes), Some(fastest)) => {
            // The tile of a prompt does not fit whatever the rate; the rate says only that it costs something.
            let least = if prompt_tile { REACHED } else { RATE };
            let slow = (bytes as f64) < least * fastest * op.dur() as f64;
            let at = |rate: f64| (bytes as f64 / (rate * fastest)) as Ns;
            slow.then(|| (at(1.0), at(REACHED)))
        }
        // At most 0.6 of the ceiling now, 0.8 with a fitting kernel.
        _ => prompt_tile.then(|| {
            let part = |share: f64| (op.dur() as f64 * share) as Ns;
            (part(BEST_UNKNOWN), part(RATE / REACHED))
        }),
    }
}
