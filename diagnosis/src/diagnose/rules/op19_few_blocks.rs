//! OP-19: a matrix product has blocks for a fraction of the cores.

use model::EvidenceClass::Device;

use super::{
    product::{self, Products},
    share_of_step::{self, Kind, Part},
};
use crate::{
    analysis::{Confidence, Layer},
    diagnose::{
        relations::{Advice, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::Text,
};

/// A product of at most one block for so many cores leaves most of the device idle.
const CORES_PER_BLOCK: u64 = 2;
/// Cores that every accelerator has at least, where the capture does not say how many there are; own value.
const LEAST_CORES: u64 = 64;
/// A kernel below this is bound by starting and ending (OP-08), ns.
const SHORTEST: i64 = 10_000;

/// The rule.
pub struct FewBlocks;

static DOC: Doc = Doc {
    id: "OP-19",
    title: Text::new("Product on a fraction of the cores", "矩阵乘只用到少数核心"),
    layer: Layer::Operator,
    needs: &[Device],
    advice: Advice::Device,
    relations: Relations { yields_to: &["OP-10"], shares_time_with: &["OP-01"], ..Relations::NONE },
    sees: Text::new(
        "A matrix product is cut into so few blocks that at least half of the cores have nothing to do while it runs, and it does not keep memory busy either.",
        "矩阵乘切出的块太少，运行期间至少一半核心空闲，也没有占满显存带宽。",
    ),
    matters: Text::new(
        "A few cores can neither compute nor read as fast as all of them. Smaller tiles, or a split of the inner dimension (split-K, stream-K), give every core a part.",
        "少数核心的计算与读取速度远低于全部核心。更小的分块或切分内积维（split-K、stream-K）能让每个核心都有工作。",
    ),
    trigger: Text::new(
        "Blocks at most half of the cores (of the launch, else tiles of the recorded size), at least 10 µs, whatever the rows; and the product reads at less than half of the rate of memory (the bandwidth measured or published, else the best rate of the capture). Where sizes are not recorded, it reads at most the columns that blocks and tile give times its input (half of what a gated activation was given, else the widest activation of a layer). What filling the device would save is at least 2 % of the mean step.",
        "块数（取自下发，否则为采集尺寸对应的分块数）不超过核心数的一半，至少 10 µs，不限行数；且读取速率低于显存速率的一半（实测或公布带宽，否则采集中最佳速率）。未采集尺寸时，其读取量不超过“块数与分块给出的列数 × 其输入（门控激活之后为其输入的一半，否则为层内最宽激活）”。占满设备可省的时间至少占平均步时的 2%。",
    ),
    source: Text::new(
        "Wave arithmetic of the rule catalogue. Half of the cores, half of the rate: own values. Four times its share of the rate is the most that one core is trusted to reach.",
        "规则目录的波数算术。一半核心、一半速率：自定值。认为单个核心最多达到其速率份额的四倍。",
    ),
    guards: Text::new(
        "A product that reads its operands at half of the rate of memory or more is left alone, however few its blocks. Persistent and stream-K kernels have a block for each core and do not count. Where the tile is made for many more rows than there are, OP-10 names the cause. Where the number of cores or the rate of memory is unknown nothing is certain of the gain.",
        "读取速率达到显存速率一半以上的矩阵乘，无论块数多少都不计入。常驻与 stream-K 内核每核一块，不计入。分块面向的行数远多于实际行数时由 OP-10 指明原因。核心数或显存速率未知时收益没有保证。",
    ),
    verify: Text::new(
        "Choose a smaller tile, split-K or stream-K for this shape: blocks reach the number of cores and the product's time falls.",
        "为该形状选择更小分块、split-K 或 stream-K：块数达到核心数，矩阵乘耗时下降。",
    ),
};

static KIND: Kind = Kind {
    doc: &DOC,
    share: 0.02,
    per_layer: None,
    formula: Text::new(
        "time of products on at most half of the cores, beyond that on all / mean step",
        "只用到至多一半核心的矩阵乘超出占满时的时间 / 平均步时",
    ),
    claim: Text::new(
        "{count} matrix products per step of {class} have blocks for at most half of the cores; they take {busy}, and on all cores up to {time} of {step} less ({share}).",
        "{class} 每步有 {count} 个矩阵乘的块数至多够一半核心使用；耗时 {busy}，占满全部核心最多可省 {time}，步时 {step}（{share}）。",
    ),
    what: Text::new("time of products on a fraction of the cores per step", "每步只用到少数核心的矩阵乘耗时"),
    rivals: &[(
        Text::new("the library has nothing faster for this shape", "该库对此形状没有更快的内核"),
        Text::new(
            "a microbenchmark of the same shape over all of its tiles and splits decides",
            "对相同形状遍历其全部分块与切分的微基准可以判定",
        ),
    )],
    most: Confidence::Medium,
};

impl Rule for FewBlocks {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let found = cx.main_classes().filter_map(|(rank, class)| {
            let products = Products::of(cx, rank, class);
            share_of_step::of_class(cx, &KIND, rank, class, |step| {
                let long = product::of_step(rank, step).filter(|(_, op, _)| op.dur() >= SHORTEST);
                long.filter_map(|part| {
                    let took = part.1.dur();
                    match products.filled(part.1) {
                        Some(filled) => {
                            let few = filled.blocks.saturating_mul(CORES_PER_BLOCK) <= filled.cores;
                            let (best, worst) = products.filling(part.1).filter(|_| few)?;
                            Some(Part::gone(part).to(best).within(best, worst))
                        }
                        // Of a launch that is not recorded the tiles tell, of unknown cores the least there are.
                        None => {
                            let tiles = product::tiles(cx, rank, part.0)?;
                            let few = tiles.saturating_mul(CORES_PER_BLOCK) <= LEAST_CORES;
                            let best = (took as f64 * tiles as f64 / LEAST_CORES as f64) as i64;
                            few.then(|| Part::gone(part).to(best).within(best, took))
                        }
                    }
                })
                .collect()
            })
        });
        found.collect()
    }
}
