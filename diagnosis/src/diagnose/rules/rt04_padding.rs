//! RT-04: graphs are replayed with far more tokens than the step has.

use std::collections::BTreeMap;

use model::{
    Area,
    EvidenceClass::{Device, Graph},
    Ns,
};

use super::{
    ceilings::{Ceilings, NEAR, Origin},
    change,
    exposed::{Exposed, Saying},
    gate::{Cost, LEAST_STEPS},
    graph_sizes, reading,
};
use crate::{
    analysis::{
        Bucket, Class, Confidence, Edit, GraphMode, Layer, OpKind, Rank, RankCounter, Step, op_shapes,
        scheduler::Series,
    },
    diagnose::{
        Competing, Evidence, Finding, Intervention,
        estimate::LEAST_GAIN,
        relations::{Advice, Feeds, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
    platform::Stage,
};

/// Padded over real tokens; own value.
const RATIO: f64 = 1.25;

/// The rule.
pub struct Padding;

static DOC: Doc = Doc {
    id: "RT-04",
    title: Text::new("Graph padding waste", "图填充浪费"),
    layer: Layer::Runtime,
    needs: &[Device, Graph],
    advice: Advice::Device,
    relations: Relations { board: &[Feeds::Area(Area::Graph)], ..Relations::NONE },
    sees: Text::new(
        "A replayed graph was captured for clearly more tokens than the step decodes; the kernels compute the padding too.",
        "重放的图按明显多于本步实际的 token 数捕获；内核连填充部分一并计算。",
    ),
    matters: Text::new(
        "A coarse grid of captured sizes pads every batch up to the next size. Where kernels grow with the number of tokens, the padding is paid on every step.",
        "捕获批大小过于稀疏时，每个批都要填充到下一档。若内核随 token 数变慢，每步都要付出填充的代价。",
    ),
    trigger: Text::new(
        "Padded over real tokens of a decode step at least 1.25. The gain is what the compute time of two captured sizes, interpolated, says the padding costs; with one size only it is what the matrix products take beyond what probes of the step's own tokens took, else beyond 0.8 of their measured ceilings there; without probes at most the padding's share of the compute time, at low confidence.",
        "解码步的填充后与实际 token 数之比至少 1.25。收益由两个捕获批的计算时间插值得出；只有一个批大小时，收益为矩阵乘超出实际 token 数下探针耗时的部分，没有该探针时为超出其实测上限 0.8 的部分；没有探针时以填充部分占计算时间的比例为上界，且置信度为低。",
    ),
    source: Text::new("1.25: own value.", "1.25：自定值。"),
    guards: Text::new(
        "Memory-bound kernels hardly change with the number of tokens: then the two sizes take the same time, or the products are near their ceilings, and the rule keeps quiet. The padded size is what the engine counts, else the next one of the run's declared capture list, or the rows that the norm kernels of the graph work on if some class shows that these are its batch or cache writes have as many; without any the rule abstains.",
        "访存受限的内核几乎不随 token 数变化：此时两个批大小耗时相同，或矩阵乘已接近其上限，本规则不报。填充后的大小取自引擎计数，其次取自运行声明的捕获列表，或图内归一化内核处理的行数（须有某一类证明该行数就是其批大小，或缓存写入的行数与之相同）；皆无则不作判断。",
    ),
    verify: Text::new(
        "Capture a finer grid of sizes: the rows of the kernels equal the batch, and the compute time of the step falls.",
        "捕获更密的批大小：内核处理的行数等于批大小，步内计算时间下降。",
    ),
};

impl Rule for Padding {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn needs_steps(&self) -> bool {
        true
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let (mut found, mut known, mut graphs) = (Vec::new(), false, false);
        for rank in &cx.analysis.ranks {
            graphs |= replays(rank).next().is_some();
            let sizes = padded(cx, rank);
            known |= !sizes.is_empty();
            let wasteful = sizes.iter().filter(|s| s.padded as f64 >= RATIO * f64::from(s.real));
            // The class with the most time stands for the rank.
            let worst = wasteful.max_by_key(|s| (s.class.total, s.real));
            found.extend(worst.and_then(|s| wasted(cx, rank, s, &sizes)));
        }
        if graphs && !known {
            return Outcome::Abstain(Message::plain(Text::new(
                "nothing says for how many tokens the graphs were captured; declare caps.graph_sizes, or record the engine's counters num_scheduled_tokens and num_padded_tokens",
                "没有信息说明图按多少 token 捕获；请声明 caps.graph_sizes，或记录引擎计数器 num_scheduled_tokens 与 num_padded_tokens",
            )));
        }
        found.into_iter().collect()
    }
}

/// A class of decode steps, its tokens, and those of its graph.
struct Size<'a> {
    class: &'a Class,
    real: u32,
    padded: u32,
}

fn replays(rank: &Rank) -> impl Iterator<Item = &Class> {
    rank.classes.iter().filter(|c| c.stage == Stage::Decode && c.graph != GraphMode::Eager && c.steady > 0)
}

fn padded<'a>(cx: &Context<'_>, rank: &'a Rank) -> Vec<Size<'a>> {
    // What the engine counts of its steps holds however they are launched.
    let decodes = rank.classes.iter().filter(|c| c.stage == Stage::Decode && c.steady > 0);
    let counted: Vec<Size<'a>> = decodes.filter_map(|class| counted(cx, rank, class)).collect();
    if !counted.is_empty() {
        return counted;
    }
    let batches = || replays(rank).filter_map(|c| Some((c, c.batch?)));
    if let Some(grid) = graph_sizes::declared(cx.trace) {
        let size = |(class, real): (&'a Class, u32)| {
            let padded = *grid.get(grid.partition_point(|n| *n < real))?;
            Some(Size { class, real, padded })
        };
        return batches().filter_map(size).collect();
    }
    let rows = |(class, real): (&'a Class, u32)| {
        Some(Size { class, real, padded: graph_sizes::rows_of_graph(cx.trace, rank, class)? })
    };
    let sizes: Vec<Size<'a>> = batches().filter_map(rows).collect();
    // That a norm has a block per token is shown by a class without padding, or by cache writes with as many; fewer rows than
    // tokens refute it.
    let written = |s: &Size<'_>| rank.steady_steps(s.class).all(|step| step.rows == Some(u64::from(s.padded)));
    let shown = sizes.iter().any(|s| s.padded == s.real) || sizes.iter().all(written);
    if shown && sizes.iter().all(|s| s.padded >= s.real) { sizes } else { Vec::new() }
}

/// The tokens and padded tokens that the engine counted in most steps of a class.
fn counted<'a>(cx: &Context<'_>, rank: &Rank, class: &'a Class) -> Option<Size<'a>> {
    let tokens = RankCounter::Tokens.of(cx.trace, rank.process)?;
    let rows = RankCounter::PaddedTokens.of(cx.trace, rank.process)?;
    let of = |series: &Series, step: &Step| {
        let said = series.of_step(&rank.timeline, rank.ops_of(step));
        said.filter(|n| (1.0..1e9).contains(n)).map(|n| n as u32)
    };
    let mut pairs: BTreeMap<(u32, u32), usize> = BTreeMap::new();
    for pair in rank.steady_steps(class).filter_map(|s| of(&tokens, s).zip(of(&rows, s))) {
        *pairs.entry(pair).or_default() += 1;
    }
    let ((real, padded), steps) = pairs.into_iter().max_by_key(|(_, steps)| *steps)?;
    (2 * steps > class.steady).then_some(Size { class, real, padded })
}

fn compute(class: &Class) -> Ns {
    class.per_step(|b| matches!(b, Bucket::Compute(_)))
}

/// Every computing operation of a class, shorter so that each of its steps computes `ns` less.
fn resized(rank: &Rank, class: &Class, ns: Ns) -> Vec<(u32, Ns)> {
    let all = compute(class).max(1);
    let cheaper = |dur: Ns| (i128::from(dur) * i128::from((all - ns).max(0)) / i128::from(all)) as Ns;
    let ops = rank.steady_steps(class).flat_map(|s| s.ops.clone());
    let computes = ops.filter_map(|i| Some((i, rank.timeline.ops.get(i)?)));
    computes.filter(|(_, op)| op.kind == OpKind::Compute).map(|(i, op)| (i as u32, cheaper(op.dur()))).collect()
}

/// What matrix products would take without padding, by what was measured of the device.
struct Narrowed {
    /// Products and what they would take at worst, ns.
    worst: Vec<(u32, Ns)>,
    /// The same at best, where all that is no product has as many times less to do as there are fewer tokens.
    best: Vec<(u32, Ns)>,
    /// What is saved at worst, ns per step.
    removes: Ns,
}

/// The products that compute the padding, at the step's own tokens.
fn narrowed(cx: &Context<'_>, rank: &Rank, size: &Size<'_>) -> Option<Narrowed> {
    let ceilings = Ceilings::of(cx, rank);
    let (mut worst, mut best, mut saved) = (Vec::new(), Vec::new(), 0);
    for (index, op, busy) in rank.steady_steps(size.class).flat_map(|step| reading::accounted(rank, step)) {
        let gemm = op_shapes::gemm(&op_shapes::inputs(cx.trace, rank, op));
        let Some(gemm) = gemm.filter(|gemm| gemm.rows == i64::from(size.padded)) else {
            if op.kind == OpKind::Compute && gemm.is_none() {
                best.push((index as u32, change::scale(op.dur(), size.real.into(), size.padded.into())));
            }
            continue;
        };
        let own = gemm.of_rows(i64::from(size.real));
        let (least, most) = match (ceilings.probed(own), ceilings.time(own)) {
            (Some((probed, _)), _) => (probed.min, probed.median),
            (None, Some((least, usual, Origin::Measured))) => (least, usual / NEAR),
            (None, _) => continue,
        };
        let most = (most as Ns).min(op.dur());
        worst.push((index as u32, most));
        best.push((index as u32, (least as Ns).min(most)));
        saved += (op.dur() - most).clamp(0, busy.busy);
    }
    let removes = saved / (size.class.steady.max(1) as Ns);
    (!worst.is_empty()).then_some(Narrowed { worst, best, removes })
}

fn wasted(cx: &Context<'_>, rank: &Rank, size: &Size<'_>, sizes: &[Size<'_>]) -> Option<Finding> {
    let class = size.class;
    let other = sizes.iter().filter(|s| s.padded != size.padded).max_by_key(|s| s.class.steady);
    // Compute time per token of padding, from two sizes of graph.
    let removes = other.map(|other| {
        let slope = (compute(class) - compute(other.class)) as f64 / (f64::from(size.padded) - f64::from(other.padded));
        (slope * f64::from(size.padded - size.real)) as Ns
    });
    if removes.is_some_and(|ns| (ns as f64) < LEAST_GAIN * class.mean() as f64) {
        return None;
    }
    let ratio = f64::from(size.padded) / f64::from(size.real.max(1));
    let narrowed = if removes.is_none() { narrowed(cx, rank, size) } else { None };
    // The kernels become shorter, and the device's own work with them.
    let (removes, edits) = match (removes, &narrowed) {
        (Some(ns), _) => (ns, vec![Edit::Resize(resized(rank, class, ns))]),
        (None, Some(narrowed)) => {
            let hoped = Edit::Hoped(Box::new(Edit::Resize(narrowed.best.clone())));
            (narrowed.removes, vec![Edit::Resize(narrowed.worst.clone()), hoped])
        }
        (None, None) => ((compute(class) as f64 * (1.0 - 1.0 / ratio)) as Ns, Vec::new()),
    };
    if narrowed.is_some() && (removes as f64) < LEAST_GAIN * class.mean() as f64 {
        return None;
    }
    let change = Intervention { removes, layer: Layer::Operator, edits };
    let is_known = other.is_some() || narrowed.is_some();
    let most = if is_known && class.steady >= LEAST_STEPS { Confidence::Medium } else { Confidence::Low };
    let cost = Cost { per_step: if is_known { removes } else { 0 }, share: ratio, most };
    let saying = Saying {
        formula: Text::new("tokens of the replayed graph / tokens of the step", "重放图的 token 数 / 本步的 token 数"),
        claim: if class.graph == GraphMode::Eager {
            Text::new(
                "A step of {class} decodes {real} tokens and computes {padded} ({ratio}).",
                "{class} 每步解码 {real} 个 token，却计算 {padded} 个（{ratio}）。",
            )
        } else {
            Text::new(
                "A step of {class} decodes {real} tokens and replays a graph for {padded} ({ratio}).",
                "{class} 每步解码 {real} 个 token，却重放 {padded} 个 token 的图（{ratio}）。",
            )
        },
        more: vec![
            ("real", Value::Count(u64::from(size.real))),
            ("padded", Value::Count(u64::from(size.padded))),
            ("ratio", Value::Ratio(ratio)),
        ],
        change,
    };
    let rows = rank.steady_steps(class).flat_map(|s| reading::graph_launches(rank, s)).map(|c| c.slice);
    let mut finding = Exposed { cx, doc: &DOC, rank, class }.finding(RATIO, &cost, saying).with(Evidence::new(
        if class.graph == GraphMode::Eager {
            Text::new("tokens that the step computes, by the engine's count", "本步计算的 token 数（引擎计数）")
        } else {
            Text::new("tokens that the replayed graph was captured for", "重放的图捕获时的 token 数")
        },
        Value::Count(u64::from(size.padded)),
        reading::sample(rows),
    ));
    finding.confidence = finding.confidence.min(most);
    let bound = Text::new("the kernels are memory-bound and do not mind the padding", "内核受访存限制，填充没有代价");
    Some(match (other, narrowed) {
        (Some(other), _) => finding
            .with(Evidence::new(
                Text::new(
                    "compute time per step that the padding costs, interpolated",
                    "填充造成的每步计算时间（插值）",
                ),
                Value::Ns(removes),
                Vec::new(),
            ))
            .with(Evidence::new(
                Text::new("tokens of the other graph compared with", "用于比较的另一张图的 token 数"),
                Value::Count(u64::from(other.padded)),
                Vec::new(),
            ))
            .against(Competing::refuted(
                bound,
                Text::new("two graph sizes of the run take different compute time", "本次运行的两个图大小计算时间不同"),
            )),
        (None, Some(_)) => finding
            .with(Evidence::new(
                Text::new(
                    "time per step of matrix products beyond what probes allow at the step's own tokens",
                    "每步矩阵乘超出探针所示实际 token 数下耗时的时间",
                ),
                Value::Ns(removes),
                Vec::new(),
            ))
            .against(Competing::refuted(
                bound,
                Text::new(
                    "reading the weights takes less time on this device, as probes measured it",
                    "按探针实测，在该设备上读取这些权重所需时间更短",
                ),
            )),
        (None, None) => finding.against(Competing::open(
            bound,
            Text::new("a run with a graph of the step's own size decides", "用与本步大小一致的图再跑一次可以判定"),
        )),
    })
}
