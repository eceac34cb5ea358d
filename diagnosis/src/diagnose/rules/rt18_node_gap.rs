//! RT-18: the gaps between the nodes of a graph replay add up.

use model::{
    EvidenceClass::{Device, Graph},
    Ns,
};

use super::{ceilings::Ceilings, change, gate::recurring, reading};
use crate::{
    analysis::{Bucket, Class, Edit, GraphMode, Layer, Rank, Step, idle::Gap},
    diagnose::{
        Competing, Evidence, Intervention, Trigger,
        estimate::Estimate,
        relations::{Advice, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
};

/// Share of the step; own value.
const SHARE: f64 = 0.10;

/// So many times what a probe took for an empty node a gap must be to be a fault.
const PROBED: i64 = 2;
/// Gaps above so many medians are no property of the graph: something else took the device away, or had it wait (own value).
const STALL: i64 = 10;
/// Median gap above which something is wrong where nobody probed it, ns: twice the microsecond or so that is known of CUDA.
/// Healthy graphs have shorter ones that nobody can remove; only fewer nodes make their sum smaller.
const WRONG: i64 = 2_000;
/// Gap between graph nodes that needs no explanation, ns: own value, from captures of current devices.
const USUAL_GAP: i64 = 1_500;
/// The shortest gaps seen in such captures, ns.
const SHORT_GAP: i64 = 400;

/// The rule.
pub struct NodeGap;

static DOC: Doc = Doc {
    id: "RT-18",
    title: Text::new("Large gaps between graph nodes", "图节点间隙大"),
    layer: Layer::Runtime,
    needs: &[Device, Graph],
    advice: Advice::Device,
    relations: Relations::NONE,
    sees: Text::new(
        "Inside a graph replay the device is idle from the end of one node to the start of the next.",
        "图重放内部，设备在一个节点结束到下一个节点开始之间空闲。",
    ),
    matters: Text::new(
        "About a microsecond per edge is normal; a step of many hundred short nodes pays it many hundred times.",
        "每条边约一微秒属正常；含数百个短节点的步要付数百次。",
    ),
    trigger: Text::new(
        "Idle time between nodes is at least 10 % of the mean step, no gap counting for more than ten medians. With a probe of this device, a median gap above twice what an empty node took is a fault; without one, a median gap above 2 µs is. Shorter gaps are stated as a fact without a gain.",
        "节点间空闲至少占平均步时的 10%，单个间隙最多按中位数的十倍计。若有该设备的探针，中位间隙超过空节点耗时的两倍即为故障；没有探针时以中位间隙超过 2 µs 为准。更短的间隙只作为事实陈述，不估计收益。",
    ),
    source: Text::new(
        "10 %, 2 µs, ten medians and twice the probe: own values. Known gaps: about 1 µs on CUDA, 1.67 µs per operation on gfx936.",
        "10%、2 µs、十倍中位数与探针两倍：自定值。已知间隙：CUDA 约 1 µs，gfx936 每算子 1.67 µs。",
    ),
    guards: Text::new(
        "Formats that fold the dispatch into the duration (more than 80 % of the gaps are zero) show no node gaps, and the rule keeps quiet.",
        "把调度时间折入算子时长的格式（超过 80% 的间隙为零）看不到节点间隙，本规则不作判断。",
    ),
    verify: Text::new(
        "Fuse nodes or use programmatic launch: fewer nodes per step, and the sum of the gaps falls with them.",
        "融合节点或使用可编程下发：每步节点数减少，间隙总和随之下降。",
    ),
};

const LARGE: Text = Text::new(
    "Inside the graph of {class} the device is idle between nodes for {idle} of {step} ({share}); the median gap is {median}.",
    "{class} 的图内节点之间设备空闲 {idle}，步时 {step}（{share}）；中位间隙 {median}。",
);
const AS_USUAL: Text = Text::new(
    "Inside the graph of {class} the device is idle between nodes for {idle} of {step} ({share}). The median gap of {median} is as short as usual: only fewer nodes make the sum smaller.",
    "{class} 的图内节点之间设备空闲 {idle}，步时 {step}（{share}）。中位间隙 {median} 属正常水平：只有减少节点才能降低总和。",
);

impl Rule for NodeGap {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let integrity = &cx.analysis.integrity;
        if !cx.main_classes().any(|(_, class)| class.graph != GraphMode::Eager) {
            return Outcome::Quiet;
        }
        if integrity.is_folded() {
            return Outcome::Abstain(Message::plain(Text::new(
                "durations of this format hold the dispatch time; a probe of empty kernels is needed to tell the gaps",
                "该格式的算子时长包含调度时间；需要空内核探针才能区分间隙",
            )));
        }
        let internal = |_: &Gap, b: Bucket| b == Bucket::GraphInternal;
        let mut found = Vec::new();
        for (rank, class) in cx.main_classes() {
            let mut lengths: Vec<i64> = rank.steady_steps(class).flat_map(|s| between_nodes(rank, s)).collect();
            lengths.sort_unstable();
            let median = lengths.get(lengths.len() / 2).copied().unwrap_or(0);
            let most = median.saturating_mul(STALL);
            let idle = |s: &Step| between_nodes(rank, s).map(|gap| gap.min(most)).sum();
            let Some(cost) = recurring(rank, class, SHARE, idle) else { continue };
            let trigger = Trigger {
                formula: Text::new("idle between graph nodes / mean step", "图节点间空闲 / 平均步时"),
                value: cost.share,
                threshold: SHARE,
            };
            let node = Ceilings::of(cx, rank).node();
            let usual = median <= node.map_or(WRONG, |node| PROBED.saturating_mul(node));
            let claim = Message::new(
                if usual { AS_USUAL } else { LARGE },
                [
                    ("class", Value::Raw(class.key.clone())),
                    ("idle", Value::Ns(cost.per_step)),
                    ("step", Value::Ns(class.mean())),
                    ("share", Value::Share(cost.share)),
                    ("median", Value::Ns(median)),
                ],
            );
            let change = match usual {
                true => Intervention::none(Layer::Runtime),
                false => {
                    Intervention { removes: cost.per_step, layer: Layer::Runtime, edits: closer(rank, class, node) }
                }
            };
            let mut finding = cx
                .finding(&DOC, rank, class, claim, trigger, change)
                .with(Evidence::new(
                    Text::new("median gap between nodes", "节点间隙中位数"),
                    Value::Ns(median),
                    reading::gap_rows(rank, rank.steady_steps(class), internal),
                ))
                .against(least(usual, node));
            if let Some(node) = node {
                let what = Text::new(
                    "an empty node of a replay takes, measured by a probe",
                    "重放一个空节点的耗时（探针实测）",
                );
                finding = finding.with(Evidence::new(what, Value::Ns(node), Vec::new()));
            }
            if usual {
                finding.estimate = Estimate::none(finding.estimate.from);
                finding.confidence = finding.confidence.min(cost.most);
                found.push(finding);
            } else {
                found.extend(finding.gated(cost.most));
            }
        }
        found.into_iter().collect()
    }
}

/// Idle time between nodes of a step, gap by gap.
fn between_nodes<'a>(rank: &'a Rank, step: &'a Step) -> impl Iterator<Item = Ns> + 'a {
    let parts = reading::gaps(rank, step).iter().flat_map(|gap| &gap.parts);
    parts.filter(|(bucket, _)| *bucket == Bucket::GraphInternal).map(|(_, span)| span.len())
}

/// Whether the gaps are the least that the device can do.
fn least(usual: bool, node: Option<Ns>) -> Competing {
    let claim = Text::new("the gaps are the least that this device can do", "间隙已是该设备的最小值");
    match node {
        Some(_) if !usual => Competing::refuted(
            claim,
            Text::new("a probe replayed empty nodes in less than half the time", "探针重放空节点所用时间不到其一半"),
        ),
        _ => Competing::open(
            claim,
            Text::new("a probe that replays a graph of empty kernels decides", "重放空内核图的探针可以判定"),
        ),
    }
}

/// Gaps between nodes as short as a probe had them, else as graphs usually have them; hopefully as short as they get.
fn closer(rank: &Rank, class: &Class, node: Option<Ns>) -> Vec<Edit> {
    let nodes = change::ops(rank, class, |op| op.in_graph && !op.first_of_call);
    let at_most = |ns: i64| Edit::Gap(nodes.iter().map(|o| (*o, ns)).collect());
    let (usual, best) = node.map_or((USUAL_GAP, SHORT_GAP), |node| (node, node.min(SHORT_GAP)));
    vec![at_most(usual), Edit::Hoped(Box::new(at_most(best)))]
}
