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
    gate::LEAST_STEPS,
    graph_sizes, reading,
};
use crate::{
    analysis::{
        Confidence, DeviceOp, Edit, GraphMode, Layer, OpKind, Rank, RankCounter, Selection, Step, Workload,
        launch_shape::norm_rows, median, op_shapes, scheduler::Series,
    },
    diagnose::{
        Competing, Evidence, Finding, Intervention, Trigger,
        estimate::LEAST_GAIN,
        relations::{Advice, Feeds, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
    platform::{OpClass, Stage},
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
        "Padded over real tokens of decode steps at least 1.25, and time that grows with the padded rows: of steps close to each other that replay different sizes, the median change per row of the time of what works on every row (not of attention, cache writes and sampling, which follow the real tokens); or, with one size only, what the matrix products take beyond what probes of the step's own tokens took, else beyond 0.8 of their measured ceilings there. Without either the rule abstains.",
        "解码步的填充后与实际 token 数之比至少 1.25，且耗时随填充后的行数增长：取彼此相近、重放不同大小的步，比较处理全部行的内核（不含随实际 token 数变化的注意力、缓存写入与采样）每行耗时变化的中位数；只有一个批大小时，取矩阵乘超出实际 token 数下探针耗时的部分，没有该探针时为超出其实测上限 0.8 的部分。两者皆无则不作判断。",
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
        let (mut found, mut sized, mut unknown, mut judged) = (Vec::new(), false, false, true);
        for rank in &cx.analysis.ranks {
            let sizes = padded(cx, rank);
            sized |= !sizes.is_empty();
            unknown |= sizes.is_empty() && decodes(rank).any(replays);
            for workload in rank.workloads() {
                let Some(waste) = Waste::of(&workload, &sizes) else { continue };
                match waste.by_size(&workload).or_else(|| waste.by_probes(cx, &workload)) {
                    Some(cost) => found.extend(wasted(cx, &workload, &waste, cost)),
                    None => judged = false,
                }
            }
        }
        if unknown && !sized {
            return Outcome::Abstain(Message::plain(Text::new(
                "nothing says for how many tokens the graphs were captured; declare caps.graph_sizes, or record the engine's counters num_scheduled_tokens and num_padded_tokens",
                "没有信息说明图按多少 token 捕获；请声明 caps.graph_sizes，或记录引擎计数器 num_scheduled_tokens 与 num_padded_tokens",
            )));
        }
        if found.is_empty() && !judged {
            return Outcome::Abstain(Message::plain(Text::new(
                "all steps compute the same number of rows, so nothing shows whether the padding takes time; probes of this platform, or steps that replay another size, decide",
                "所有步计算的行数相同，无法看出填充是否耗时；可由本平台探针或重放其他大小的步判定",
            )));
        }
        found.into_iter().collect()
    }
}

/// A decode step, its tokens, and the rows that it computes.
#[derive(Clone, Copy)]
struct Sized<'a> {
    step: &'a Step,
    real: u32,
    padded: u32,
}

impl Sized<'_> {
    fn is_wasteful(&self) -> bool {
        self.padded as f64 >= RATIO * f64::from(self.real)
    }
}

fn replays(step: &Step) -> bool {
    step.facts.stage == Stage::Decode && step.facts.graph != GraphMode::Eager
}

fn decodes(rank: &Rank) -> impl Iterator<Item = &Step> {
    rank.steps.iter().filter(|s| s.selection == Selection::Steady && s.facts.stage == Stage::Decode)
}

fn padded<'a>(cx: &Context<'_>, rank: &'a Rank) -> Vec<Sized<'a>> {
    // What the engine counts of its steps holds however they are launched.
    let tokens = RankCounter::Tokens.of(cx.trace, rank.process);
    if let Some((tokens, rows)) = tokens.zip(RankCounter::PaddedTokens.of(cx.trace, rank.process)) {
        let of = |series: &Series, step: &Step| {
            let said = series.of_step(&rank.timeline, rank.ops_of(step));
            said.filter(|n| (1.0..1e9).contains(n)).map(|n| n as u32)
        };
        let sized = |step| Some(Sized { step, real: of(&tokens, step)?, padded: of(&rows, step)? });
        return decodes(rank).filter_map(sized).filter(|of| of.padded >= of.real).collect();
    }
    let batches = || decodes(rank).filter(|step| replays(step)).filter_map(|step| Some((step, step.facts.batch?)));
    if let Some(grid) = graph_sizes::declared(cx.trace) {
        let size = |(step, real): (&'a Step, u32)| {
            Some(Sized { step, real, padded: *grid.get(grid.partition_point(|n| *n < real))? })
        };
        return batches().filter_map(size).collect();
    }
    let rows = |(step, real): (&'a Step, u32)| {
        Some(Sized { step, real, padded: u32::try_from(norm_rows(cx.trace, rank.ops_of(step))?).ok()? })
    };
    let sizes: Vec<Sized<'a>> = batches().filter_map(rows).collect();
    // That a norm has a block per token is shown by a step without padding, or by cache writes with as many; fewer rows than
    // tokens refute it.
    let written = |s: &Sized<'_>| s.step.rows == Some(u64::from(s.padded));
    let shown = sizes.iter().any(|s| s.padded == s.real) || sizes.iter().all(written);
    if shown && sizes.iter().all(|s| s.padded >= s.real) { sizes } else { Vec::new() }
}

/// Steps that lie at most so far from each other in the run are compared: a clock that drifts changes little between them;
/// own value.
const CLOSE: usize = 8;

/// The decode steps of a rank, with those of one workload that have too much padding.
struct Waste<'s, 'a> {
    rank: &'a Rank,
    sizes: &'s [Sized<'a>],
    classes: Vec<usize>,
}

/// What the padding costs.
struct Cost {
    /// Over all wasteful steps, ns.
    total: Ns,
    edits: Vec<Edit>,
    /// Pairs of steps of different sizes, where these show it.
    pairs: Option<usize>,
}

/// Whether an operation works on every row that the step computes, padding included. Attention, cache writes and sampling
/// follow the real sequences.
fn is_padded(op: &DeviceOp) -> bool {
    let follows = matches!(op.op.class(), OpClass::Attention | OpClass::CacheWrite | OpClass::Sample);
    op.kind == OpKind::Compute && !follows
}

impl<'s, 'a> Waste<'s, 'a> {
    fn of(workload: &Workload<'a>, sizes: &'s [Sized<'a>]) -> Option<Self> {
        let classes = workload.classes.iter().map(|class| class.index).collect();
        let waste = Self { rank: workload.rank, sizes, classes };
        let wasteful = waste.wasteful().count();
        (wasteful > 0).then_some(waste)
    }

    fn wasteful(&self) -> impl Iterator<Item = &Sized<'a>> {
        self.sizes.iter().filter(|size| size.is_wasteful() && self.classes.contains(&size.step.class))
    }

    /// What steps of different sizes say: the time that each further row takes.
    fn by_size(&self, workload: &Workload<'_>) -> Option<Cost> {
        let work = |of: &Sized<'_>| -> Ns {
            reading::accounted(self.rank, of.step).filter(|(_, op, _)| is_padded(op)).map(|(.., own)| own.busy).sum()
        };
        let times: Vec<Ns> = self.sizes.iter().map(work).collect();
        let mut slopes = Vec::new();
        for (i, (a, before)) in self.sizes.iter().zip(&times).enumerate() {
            let near = self.sizes.iter().zip(&times).skip(i + 1).take(CLOSE).filter(|(b, _)| b.padded != a.padded);
            slopes.extend(near.map(|(b, after)| (after - before) as f64 / (f64::from(b.padded) - f64::from(a.padded))));
        }
        if slopes.len() < LEAST_STEPS {
            slopes = self.between_groups(&times);
        }
        let pairs = slopes.len();
        slopes.sort_by(f64::total_cmp);
        let slope = slopes.get(pairs / 2)?.max(0.0);
        let (mut total, mut resized) = (0, Vec::new());
        for of in self.wasteful() {
            let time = &work(of);
            let less = ((slope * f64::from(of.padded - of.real)) as Ns).min(*time);
            total += less;
            let shorter = |(i, op): (usize, &DeviceOp)| {
                ((of.step.ops.start + i) as u32, change::scale(op.dur(), time - less, *time))
            };
            resized.extend(self.rank.ops_of(of.step).iter().enumerate().filter(|(_, op)| is_padded(op)).map(shorter));
        }
        let visible = total as f64 >= LEAST_GAIN * workload.total() as f64;
        Some(Cost { total: if visible { total } else { 0 }, edits: vec![Edit::Resize(resized)], pairs: Some(pairs) })
    }

    /// The same of sizes that the run holds for long, one after the other: from the median of each that has enough steps.
    fn between_groups(&self, times: &[Ns]) -> Vec<f64> {
        let mut groups: BTreeMap<u32, Vec<Ns>> = BTreeMap::new();
        for (of, time) in self.sizes.iter().zip(times) {
            groups.entry(of.padded).or_default().push(*time);
        }
        let usual = groups.into_iter().filter(|(_, times)| times.len() >= LEAST_STEPS);
        let usual: Vec<(u32, Ns)> = usual.filter_map(|(padded, times)| Some((padded, median(times)?))).collect();
        usual.windows(2).map(|w| (w[1].1 - w[0].1) as f64 / f64::from(w[1].0 - w[0].0)).collect()
    }

    /// What matrix products would take at the steps' own tokens, by what was measured of the device. At best, where all that
    /// is no product has as many times less to do as there are fewer tokens.
    fn by_probes(&self, cx: &Context<'_>, workload: &Workload<'_>) -> Option<Cost> {
        let ceilings = Ceilings::of(cx, self.rank);
        let (mut worst, mut best, mut saved) = (Vec::new(), Vec::new(), 0);
        for size in self.wasteful() {
            for (index, op, busy) in reading::accounted(self.rank, size.step) {
                let gemm = op_shapes::gemm(&op_shapes::inputs(cx.trace, self.rank, op));
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
        }
        let visible = saved as f64 >= LEAST_GAIN * workload.total() as f64;
        let hoped = Edit::Hoped(Box::new(Edit::Resize(best)));
        let total = if visible { saved } else { 0 };
        (!worst.is_empty()).then(|| Cost { total, edits: vec![Edit::Resize(worst), hoped], pairs: None })
    }

    /// Mean over the wasteful steps of what `of` a step.
    fn mean(&self, of: impl Fn(&Sized<'a>) -> u32) -> u64 {
        let count = self.wasteful().count().max(1) as u64;
        (self.wasteful().map(|size| u64::from(of(size))).sum::<u64>() + count / 2) / count
    }
}

fn wasted(cx: &Context<'_>, workload: &Workload<'_>, waste: &Waste<'_, '_>, cost: Cost) -> Option<Finding> {
    if cost.total <= 0 {
        return None;
    }
    let rank = workload.rank;
    let steps = waste.wasteful().count();
    let (real, padded) = (waste.mean(|size| size.real), waste.mean(|size| size.padded));
    let ratio = padded as f64 / real.max(1) as f64;
    let per_step = cost.total / workload.steady().max(1) as Ns;
    let is_graph = waste.wasteful().any(|size| replays(size.step));
    let claim = Message::new(
        if is_graph {
            Text::new(
                "{steps} steps of {class} decode {real} tokens and replay a graph for {padded} ({ratio}), and the rows too many take time.",
                "{class} 有 {steps} 步解码 {real} 个 token，却重放 {padded} 个 token 的图（{ratio}），多余的行确实耗时。",
            )
        } else {
            Text::new(
                "{steps} steps of {class} decode {real} tokens and compute {padded} ({ratio}), and the rows too many take time.",
                "{class} 有 {steps} 步解码 {real} 个 token，却计算 {padded} 个（{ratio}），多余的行确实耗时。",
            )
        },
        [
            ("steps", Value::Count(steps as u64)),
            ("class", Value::Raw(workload.class.key.clone())),
            ("real", Value::Count(real)),
            ("padded", Value::Count(padded)),
            ("ratio", Value::Ratio(ratio)),
        ],
    );
    let trigger = Trigger {
        formula: Text::new("tokens of the replayed graph / tokens of the step", "重放图的 token 数 / 本步的 token 数"),
        value: ratio,
        threshold: RATIO,
    };
    // The kernels become shorter, and the device's own work with them.
    let change = Intervention { removes: per_step, layer: Layer::Operator, edits: cost.edits };
    let rows = waste.wasteful().flat_map(|s| reading::graph_launches(rank, s.step)).map(|call| call.slice);
    let mut finding = cx.event(&DOC, workload, claim, trigger, change).with(Evidence::new(
        if is_graph {
            Text::new("tokens that the replayed graph was captured for", "重放的图捕获时的 token 数")
        } else {
            Text::new("tokens that the step computes, by the engine's count", "本步计算的 token 数（引擎计数）")
        },
        Value::Count(padded),
        reading::sample(rows),
    ));
    let most = if steps >= LEAST_STEPS { Confidence::Medium } else { Confidence::Low };
    finding.confidence = finding.confidence.min(most);
    let bound = Text::new("the kernels are memory-bound and do not mind the padding", "内核受访存限制，填充没有代价");
    Some(match cost.pairs {
        Some(pairs) => finding
            .with(Evidence::new(
                Text::new("compute time per step that the padding costs", "填充造成的每步计算时间"),
                Value::Ns(per_step),
                Vec::new(),
            ))
            .with(Evidence::new(
                Text::new("pairs of steps of different sizes that show it", "体现这一点的不同大小的步对数"),
                Value::Count(pairs as u64),
                Vec::new(),
            ))
            .against(Competing::refuted(
                bound,
                Text::new(
                    "steps of other sizes, close by, take other times for what works on every row",
                    "相近的其他大小的步，处理全部行的内核耗时不同",
                ),
            )),
        None => finding
            .with(Evidence::new(
                Text::new(
                    "time per step of matrix products beyond what probes allow at the step's own tokens",
                    "每步矩阵乘超出探针所示实际 token 数下耗时的时间",
                ),
                Value::Ns(per_step),
                Vec::new(),
            ))
            .against(Competing::refuted(
                bound,
                Text::new(
                    "reading the weights takes less time on this device, as probes measured it",
                    "按探针实测，在该设备上读取这些权重所需时间更短",
                ),
            )),
    })
}
