//! RT-02: some decode steps replay a graph and others do not, because their batch was not captured.

use std::collections::BTreeMap;

use model::{
    Area,
    EvidenceClass::{Device, Graph, HostApi},
    Ns,
};

use super::{
    exposed::{Exposed, Saying},
    gate::{Cost, LEAST_STEPS},
    graph_sizes, launching, reading,
};
use crate::{
    analysis::{Bucket, Confidence, Edit, GraphMode, Layer, Rank, Selection, Step, idle::Gap, median},
    diagnose::{
        Competing, Estimate, Evidence, Finding, Intervention, Method, Over, Severity,
        relations::{Advice, Feeds, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
    platform::Stage,
};

/// Share of eager steps from which it is no accident, and above which the run simply has no graph (RT-01).
const SHARE: f64 = 0.05;
/// Batches that the finding names.
const NAMED: usize = 8;

/// The rule.
pub struct PartialGraph;

static DOC: Doc = Doc {
    id: "RT-02",
    title: Text::new("Partial graph coverage", "图覆盖不全"),
    layer: Layer::Runtime,
    needs: &[Device, HostApi, Graph],
    advice: Advice::Device,
    relations: Relations { board: &[Feeds::Area(Area::Graph)], ..Relations::NONE },
    sees: Text::new(
        "Decode steps of some batch sizes replay a graph, and those of other batch sizes run operation by operation.",
        "某些批大小的解码步重放图，另一些批大小的解码步逐算子执行。",
    ),
    matters: Text::new(
        "Engines capture a grid of batch sizes. A batch off the grid or above it falls back to eager execution, several times slower in public cases.",
        "引擎只捕获一组批大小。不在该组内或超出最大值的批会退回 eager 执行，公开案例中慢数倍。",
    ),
    trigger: Text::new(
        "5 % to 95 % of the decode steps replay no graph, at a batch for which no step replays one, and a step of the next larger captured batch is faster (above the largest captured batch: the step waits for launches).",
        "5%～95% 的解码步没有图重放，且该批大小从未重放过图，而下一个更大的已捕获批的步更快（超出最大捕获批时：该步在等待下发）。",
    ),
    source: Text::new(
        "Structural: any batch off the grid. 5 % and 95 %: rule catalogue. Cases: vllm-ascend #16049, #16623, #16637, #16970; vllm #53407.",
        "结构性判据：任何不在捕获组内的批。5% 与 95%：规则目录。案例：vllm-ascend #16049、#16623、#16637、#16970；vllm #53407。",
    ),
    guards: Text::new(
        "A batch that sometimes replays a graph and sometimes does not is not off the grid. Steps without an annotated batch are not judged. The estimate is the mean over all decode steps, those that replay a graph included.",
        "同一批大小有时重放有时不重放，不属于未捕获。没有标注批大小的步不作判断。估计值为全部解码步的平均，包括重放图的步。",
    ),
    verify: Text::new(
        "Add the missing sizes to the capture list: every decode step replays a graph.",
        "把缺失的批大小加入捕获列表：所有解码步都重放图。",
    ),
};

impl Rule for PartialGraph {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn reads_logs(&self) -> bool {
        true
    }

    fn needs_steps(&self) -> bool {
        true
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        if cx.is_logged() && !cx.log_says(|step| step.graph.is_some()) {
            return Outcome::Abstain(Message::plain(Text::new(
                "the log does not say which steps replayed a graph; log graph_mode of each step",
                "日志未说明哪些步重放了图；请为每步记录 graph_mode",
            )));
        }
        let found: Vec<Finding> = cx.analysis.ranks.iter().filter_map(|rank| partial(cx, rank)).collect();
        if found.is_empty() && cx.analysis.ranks.iter().any(blind) {
            return Outcome::Abstain(Message::plain(Text::new(
                "some decode steps replay a graph and others do not, but their batches are not known; use the engine's step annotations or record its counter num_scheduled_tokens",
                "部分解码步重放图、部分没有，但不知道各步的批大小；请使用引擎的步标注或记录其计数器 num_scheduled_tokens",
            )));
        }
        found.into_iter().collect()
    }
}

/// The decode steps of a rank that count.
fn decodes(rank: &Rank) -> impl Iterator<Item = &Step> {
    rank.steps.iter().filter(|s| s.selection == Selection::Steady && s.facts.stage == Stage::Decode)
}

/// Whether a rank decodes with and without graphs in steps of unknown batch.
fn blind(rank: &Rank) -> bool {
    let unknown = || decodes(rank).filter(|step| step.facts.batch.is_none());
    unknown().any(|s| s.facts.graph == GraphMode::Eager) && unknown().any(|s| s.facts.graph != GraphMode::Eager)
}

/// Steps by their batch.
type Batches<'a> = BTreeMap<u32, Vec<&'a Step>>;

/// Time of steps, ns.
fn total(steps: &[&Step]) -> Ns {
    steps.iter().map(|step| step.window.len()).sum()
}

fn usual(steps: &[&Step]) -> Option<Ns> {
    median(steps.iter().map(|step| step.window.len()).collect())
}

fn partial(cx: &Context<'_>, rank: &Rank) -> Option<Finding> {
    let (mut eager, mut graphs): (Batches<'_>, Batches<'_>) = (BTreeMap::new(), BTreeMap::new());
    for step in decodes(rank).filter(|step| step.facts.graph != GraphMode::Unknown) {
        let of = if step.facts.graph == GraphMode::Eager { &mut eager } else { &mut graphs };
        of.entry(step.facts.batch?).or_default().push(step);
    }
    eager.retain(|batch, _| !graphs.contains_key(batch));
    let count = |of: &Batches<'_>| of.values().map(Vec::len).sum::<usize>();
    let off = count(&eager);
    let all = decodes(rank).filter(|step| step.facts.graph != GraphMode::Unknown).count();
    let share = off as f64 / all.max(1) as f64;
    if !(SHARE..=1.0 - SHARE).contains(&share) {
        return None;
    }
    let (&batch, steps) = eager.iter().max_by_key(|(batch, steps)| (total(steps), **batch))?;
    let class = rank.classes.get(steps.first()?.class)?;
    let next = graphs.range(batch + 1..).next().and_then(|(batch, steps)| Some((*batch, usual(steps)?)));
    let largest = *graphs.keys().next_back()?;
    let now = usual(steps)?;
    let per_step = match next {
        Some((_, graph)) => now - graph,
        None => steps.iter().map(|s| reading::idle(rank, s, |g, b| waits(cx, g, b))).sum::<Ns>() / steps.len() as Ns,
    };
    if per_step <= 0 {
        return None;
    }
    let most = if steps.len() < LEAST_STEPS { Confidence::Low } else { Confidence::High };
    let cost = Cost { per_step, share, most };
    let groups = eager.values().flatten().map(|s| (s.ops.start as u32..s.ops.end as u32).collect());
    let change = Intervention { removes: per_step, layer: Layer::Runtime, edits: vec![Edit::Graph(groups.collect())] };
    let most_gain = {
        let own = crate::diagnose::estimate::bound(&[class], &change);
        own.from - own.to_low
    };
    let claim = match next {
        Some(_) => Text::new(
            "{off} of {all} decode steps ({share}) replay no graph, because their batches ({batches}) are not captured: a step of {class} takes {step}, one of the next captured batch ({next}) {graph}.",
            "{all} 个解码步中有 {off} 个（{share}）没有重放图，因其批大小（{batches}）未被捕获：{class} 步时 {step}，下一个已捕获批（{next}）为 {graph}。",
        ),
        None => Text::new(
            "{off} of {all} decode steps ({share}) replay no graph, because their batches ({batches}) are above the largest captured one ({next}): a step of {class} takes {step}, and the device waits {idle} of it for launches.",
            "{all} 个解码步中有 {off} 个（{share}）没有重放图，因其批大小（{batches}）超出最大捕获批（{next}）：{class} 步时 {step}，其中设备等待下发 {idle}。",
        ),
    };
    let more = vec![
        ("off", Value::Count(off as u64)),
        ("all", Value::Count(all as u64)),
        ("batches", Value::Raw(listed(eager.keys().copied()))),
        ("next", Value::Count(u64::from(next.map_or(largest, |(batch, _)| batch)))),
        ("graph", Value::Ns(next.map_or(0, |(_, graph)| graph))),
    ];
    let formula = Text::new(
        "decode steps without a graph at a batch that is never replayed / decode steps",
        "批大小从未重放图的无图解码步数 / 解码步数",
    );
    let exposed = Exposed { cx, doc: &DOC, rank, class };
    let mut finding = exposed.finding(SHARE, &cost, Saying { formula, claim, more, change });
    // Only the eager steps gain; the run gains it on their part of its steps.
    let eager_time: Ns = eager.values().map(|steps| total(steps)).sum();
    let part = eager_time as f64 / total(&decodes(rank).collect::<Vec<_>>()).max(1) as f64;
    finding.over = Over::Workload;
    let (from, count) = finding.over.mean(rank, class);
    let gain = most_gain.saturating_mul(off as i64) / count;
    finding.estimate = Estimate { from, to_low: from - gain.clamp(0, from), to_high: from, method: Method::Bound };
    finding.severity = Severity::of_estimate(&finding.estimate);
    let rows = eager.values().flatten().filter_map(|s| rank.ops_of(s).first()).map(|op| op.slice);
    let captured = graph_sizes::declared(cx.trace).unwrap_or_else(|| graphs.keys().copied().collect());
    finding
        .with(Evidence::new(
            Text::new("decode steps without a graph at such a batch", "此类批大小的无图解码步数"),
            Value::Count(off as u64),
            reading::sample(rows),
        ))
        .with(Evidence::new(
            Text::new("batches that replay a graph", "会重放图的批大小"),
            Value::Raw(listed(captured.into_iter())),
            Vec::new(),
        ))
        .with(Evidence::new(
            Text::new("share of the decode time in those steps", "这些步占解码时间的比例"),
            Value::Share(part),
            Vec::new(),
        ))
        .against(Competing::open(
            Text::new("those steps are eager for another reason than their batch", "这些步因批大小以外的原因未用图"),
            Text::new(
                "the engine's list of captured sizes decides, and a run with the missing sizes added",
                "引擎的捕获批列表可以判定；补上缺失的批再跑一次也可以",
            ),
        ))
        .gated(most)
}

/// Idle inside the forward pass that a graph would take away.
fn waits(cx: &Context<'_>, gap: &Gap, bucket: Bucket) -> bool {
    !gap.between_steps && launching::is_launching(cx.analysis, gap, bucket)
}

fn listed(batches: impl Iterator<Item = u32>) -> String {
    let mut batches: Vec<u32> = batches.collect();
    batches.sort_unstable();
    batches.dedup();
    let more = if batches.len() > NAMED { ", …" } else { "" };
    let shown: Vec<String> = batches.iter().take(NAMED).map(u32::to_string).collect();
    shown.join(", ") + more
}
