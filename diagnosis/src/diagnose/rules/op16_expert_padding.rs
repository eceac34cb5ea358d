//! OP-16: the expert kernels of a mixture compute mostly padding.

use model::{Category, Detail, EvidenceClass::Device, Ns, Trace};

use super::{
    launch_shape::tile,
    reading,
    share_of_step::{self, Kind, Part},
};
use crate::{
    analysis::{
        Class, Confidence, DeviceOp, Layer, OpKind, Rank,
        op_shapes::{Tensor, tensors},
    },
    diagnose::{
        estimate::LEAST_GAIN,
        relations::{Advice, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text},
    platform::{CanonicalOp, Stage},
};

/// Least rows that are computed for one real row, where a bound on the padding is all there is.
const PADDING: f64 = 1.5;
/// The same where the engine counts both: nothing is left to doubt, and a quarter more rows is what RT-04 calls padding.
const COUNTED: f64 = 1.25;
/// Rows of the smallest tile that matrix units offer; padding up to it cannot be avoided.
const SMALLEST: i64 = 16;

/// Counters of an engine that counts its experts' rows, with and without padding.
const ROWS_COUNTER: &str = "moe_padded_tokens";
const TOKENS_COUNTER: &str = "moe_tokens";

/// The rule.
pub struct ExpertPadding;

static DOC: Doc = Doc {
    id: "OP-16",
    title: Text::new("Padded expert products", "专家矩阵乘补齐过多"),
    layer: Layer::Operator,
    needs: &[Device],
    advice: Advice::Device,
    relations: Relations::NONE,
    sees: Text::new(
        "The grouped matrix products of the experts use a tile with many more rows than an expert can have tokens.",
        "专家的分组矩阵乘使用的分块行数远多于单个专家可能分到的 token 数。",
    ),
    matters: Text::new(
        "Each active expert is padded to whole tiles. A token goes to different experts, so in decode no expert has more rows than there are tokens, and a large tile computes padding.",
        "每个激活的专家都补齐到整块。同一 token 去往不同专家，因此解码时单个专家的行数不超过 token 数，大分块算的都是补齐。",
    ),
    trigger: Text::new(
        "Rows computed over rows of the experts at least 1.25, where the engine counts both. Else at least 1.5 for rows of whole tiles over rows of whole 16-row tiles, for as many tokens as the step has: no distribution of the tokens pads less. The time that would go with the padding is at least 1 % of the mean step. The tile comes from the kernel's name or from the recorded shapes of the block alignment, the tokens from there or from the step.",
        "引擎同时计数时，专家计算行数与实际行数之比至少 1.25。否则以该步 token 数计整块行数与 16 行整块行数之比至少 1.5：无论 token 如何分布，补齐都不会更少。随补齐而去的时间至少占平均步时的 1%。分块取自内核名或块对齐算子的形状，token 数取自该形状或步标注。",
    ),
    source: Text::new(
        "1.25: as for the padding of graphs (RT-04). 1.5: own value. 16: rows of the matrix instructions.",
        "1.25：与图补齐（RT-04）相同。1.5：自定值。16：矩阵指令的行数。",
    ),
    guards: Text::new(
        "Padding up to 16 rows cannot be avoided. Expert products of few tokens are bound by reading weights, and padding then costs less than its share; the estimate is the most that it can cost.",
        "补齐到 16 行无法避免。token 很少时专家矩阵乘受权重读取限制，补齐的代价低于其占比；估计值是其上限。",
    ),
    verify: Text::new(
        "Tune the block size for the decoded batch: the expert kernels get shorter at the same number of tokens.",
        "针对解码批量调优块大小：相同 token 数下专家内核变短。",
    ),
};

const KIND: Kind = Kind {
    doc: &DOC,
    share: LEAST_GAIN,
    per_layer: None,
    formula: Text::new(
        "time of expert products x (1 - 1 / padding) / mean step",
        "专家矩阵乘时间 ×（1 − 1 / 填充比）/ 平均步时",
    ),
    claim: Text::new(
        "{count} expert products per step of {class} take {busy} with tiles far larger than the tokens of an expert; without the padding up to {time} of {step} would go ({share}).",
        "{class} 每步 {count} 个专家矩阵乘耗时 {busy}，其分块远大于单个专家的 token 数；去掉补齐最多可省 {time}，步时 {step}（{share}）。",
    ),
    what: Text::new("time of padded expert products per step", "每步补齐过多的专家矩阵乘耗时"),
    rivals: &[(
        Text::new("reading the experts' weights takes the time, not the padding", "耗时在读取专家权重而不是补齐"),
        Text::new(
            "the bytes of the active experts over the bandwidth, or a run with a smaller block, decide",
            "激活专家的字节数除以带宽，或用更小的块再跑，可以判定",
        ),
    )],
    most: Confidence::Low,
};

impl Rule for ExpertPadding {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let expert = |op: &DeviceOp| op.kind == OpKind::Compute && op.op == CanonicalOp::GroupedGemm;
        let mut unknown = false;
        let mut found = Vec::new();
        for (rank, class) in cx.main_classes().filter(|(_, c)| !matches!(c.stage, Stage::Prefill | Stage::Train)) {
            let measured = measured(cx.trace, rank);
            let aligned = alignment(cx.trace, rank, class);
            // Of several batches the smallest has the most padding; the largest promises least.
            let decoded = class.batches.filter(|_| class.stage == Stage::Decode).map(|(_, most)| i64::from(most));
            let tokens = aligned.map(|(_, tokens)| tokens).or(decoded);
            let rows = |op: &DeviceOp| {
                let named = tile(cx.trace.strings.get(op.name)).map(|(a, b)| i64::from(a.min(b)));
                named.or(aligned.map(|(block, _)| block))
            };
            unknown |= rank
                .steady_steps(class)
                .flat_map(|s| rank.ops_of(s))
                .any(|op| expert(op) && measured.is_none() && (tokens.is_none() || rows(op).is_none()));
            let most = if measured.is_some() { Confidence::Medium } else { KIND.most };
            found.extend(share_of_step::of_class(cx, &Kind { most, ..KIND }, rank, class, |step| {
                reading::accounted(rank, step)
                    .filter(|(_, op, _)| expert(op))
                    .filter_map(|part| {
                        let padding = match measured {
                            Some(ratio) => Some(ratio).filter(|r| *r >= COUNTED),
                            None => padding(rows(part.1)?, tokens?),
                        }?;
                        let without = |times: f64| (part.1.dur() as f64 * times / padding) as Ns;
                        let part = Part::gone(part).to(without(1.0));
                        // Whole tiles leave some padding: less than is worth naming is good enough.
                        Some(if measured.is_some() { part.within(without(1.0), without(COUNTED)) } else { part })
                    })
                    .collect()
            }));
        }
        if found.is_empty() && unknown {
            return Outcome::Abstain(Message::plain(Text::new(
                "the rows of the experts' tiles or the tokens of the step are unknown; record operator shapes",
                "专家分块的行数或该步的 token 数未知；请采集算子形状",
            )));
        }
        found.into_iter().collect()
    }
}

/// Rows that the experts of a rank compute per token they get, as the engine counts both; `None` where it does not.
fn measured(trace: &Trace, rank: &Rank) -> Option<f64> {
    let (rows, tokens) =
        (reading::mean_count(trace, rank, ROWS_COUNTER)?, reading::mean_count(trace, rank, TOKENS_COUNTER)?);
    (rows > 0.0 && tokens > 0.0).then(|| rows / tokens)
}

/// Rows computed per row that the smallest tile would compute, where that is worth looking at.
fn padding(tile: i64, tokens: i64) -> Option<f64> {
    if tile <= 0 || tokens <= 0 {
        return None;
    }
    let whole = |tile: i64| ((tokens - 1) / tile + 1).saturating_mul(tile);
    let padding = whole(tile) as f64 / whole(SMALLEST) as f64;
    (padding >= PADDING).then_some(padding)
}

/// Rows of a block and tokens, as the operator that aligns tokens to blocks recorded them in the steps that count: its
/// inputs are the chosen experts (tokens × k), the sorted tokens, and the expert of each block.
fn alignment(trace: &Trace, rank: &Rank, class: &Class) -> Option<(i64, i64)> {
    let spans: Vec<_> = rank.steady_steps(class).filter_map(|s| s.host.or(Some(s.window))).collect();
    let lanes = rank.timeline.threads.iter().filter_map(|t| trace.lanes.get(t.0 as usize));
    let from = spans.first()?.start;
    let to = spans.last()?.end;
    lanes
        .flat_map(|lane| {
            let rows = lane.start.partition_point(|s| *s < from)..lane.start.partition_point(|s| *s < to);
            rows.map(move |i| (lane, i))
        })
        .filter(|(lane, i)| lane.category[*i] == Category::FrameworkOp)
        .filter(|(lane, i)| trace.strings.get(lane.name[*i]).contains("moe_align_block_size"))
        .find_map(|(lane, i)| match trace.detail(lane, i) {
            Some(Detail::Op(detail)) => block_and_tokens(&tensors(trace, detail)),
            _ => None,
        })
}

fn block_and_tokens(inputs: &[Tensor]) -> Option<(i64, i64)> {
    let tokens = inputs.iter().find_map(|t| match t.dims.as_slice() {
        [tokens, _] => Some(*tokens),
        _ => None,
    })?;
    let mut lists = inputs.iter().filter_map(|t| match t.dims.as_slice() {
        [n] if *n > 1 => Some(*n),
        _ => None,
    });
    let (sorted, experts) = (lists.next()?, lists.next()?);
    let block = sorted.checked_div(experts)?;
    (block > 0 && tokens > 0).then_some((block, tokens))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_counts_above_the_smallest_tile_only() {
        assert_eq!(padding(16, 1), None);
        assert_eq!(padding(128, 8), Some(8.0));
        assert_eq!(padding(64, 60), None);
        assert_eq!(padding(128, 1000), None);
        assert_eq!(padding(0, 8), None);
        assert_eq!(padding(i64::MAX, i64::MAX), None);
    }

    #[test]
    fn block_and_tokens_come_from_the_alignment() {
        let tensor = |dims: &[i64]| Tensor { dims: dims.to_vec(), element: None, dtype: None };
        let inputs = [tensor(&[8, 2]), tensor(&[1024]), tensor(&[16]), tensor(&[1])];
        assert_eq!(block_and_tokens(&inputs), Some((64, 8)));
        assert_eq!(block_and_tokens(&inputs[..2]), None);
    }
}
