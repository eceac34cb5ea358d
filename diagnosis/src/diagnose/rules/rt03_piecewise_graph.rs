//! RT-03: a piecewise graph with so many pieces that launching them shows.

use model::{
    Area,
    EvidenceClass::{Device, Graph, HostApi},
};

use super::{
    exposed::{Exposed, Saying},
    reading,
};
use crate::{
    analysis::{Bucket, Class, Edit, Layer, Rank, Step, idle::Gap},
    diagnose::{
        Competing, Evidence, Finding, Intervention,
        relations::{Advice, Feeds, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Text, Value},
};

/// Pieces of a step; own value.
const PIECES: usize = 8;
/// Share of the step; own value.
const SHARE: f64 = 0.05;

/// The rule.
pub struct PiecewiseGraph;

static DOC: Doc = Doc {
    id: "RT-03",
    title: Text::new("Piecewise graph with too many pieces", "分段图的段数过多"),
    layer: Layer::Runtime,
    needs: &[Device, HostApi, Graph],
    advice: Advice::Device,
    relations: Relations { board: &[Feeds::Area(Area::Graph)], ..Relations::NONE },
    sees: Text::new(
        "One step replays many graphs, one after the other, and the device is idle from one piece to the next.",
        "一个步依次重放多个图，段与段之间设备空闲。",
    ),
    matters: Text::new(
        "Every piece costs a graph launch and leaves eager operations between the pieces; one full graph pays once.",
        "每段都要付一次图下发的代价，段间还留有 eager 算子；整图只付一次。",
    ),
    trigger: Text::new(
        "At least 8 graph launches in a step, and idle time before pieces and between them of at least 5 % of the mean step.",
        "每步至少 8 次图下发，且段前与段间的空闲至少占平均步时的 5%。",
    ),
    source: Text::new("8 pieces and 5 %: own values.", "8 段与 5%：自定值。"),
    guards: Text::new(
        "Gaps between the nodes of one piece do not count (RT-18). Pieces that hide behind device work cost nothing.",
        "同一段内节点之间的间隙不计入（见 RT-18）。被设备工作掩盖的段没有代价。",
    ),
    verify: Text::new(
        "Run with a full graph: one graph launch per step, and the idle time between pieces disappears.",
        "用整图再跑：每步一次图下发，段间空闲消失。",
    ),
};

impl Rule for PiecewiseGraph {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn needs_steps(&self) -> bool {
        true
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        reading::marked(cx).filter_map(|(rank, class)| cut_up(cx, rank, class)).collect()
    }
}

fn cut_up(cx: &Context<'_>, rank: &Rank, class: &Class) -> Option<Finding> {
    let count = rank.steady_steps(class).map(|s| pieces(rank, s)).max().unwrap_or(0);
    let exposed = |s: &Step| if pieces(rank, s) < PIECES { 0 } else { between(rank, s) };
    let idle = Exposed { cx, doc: &DOC, rank, class };
    let (finding, cost) = idle.recurring(SHARE, exposed, |cost| Saying {
        formula: Text::new(
            "idle before and between graph pieces / mean step, with at least 8 pieces",
            "段前与段间空闲 / 平均步时，且不少于 8 段",
        ),
        claim: Text::new(
            "A step of {class} is {pieces} graph pieces; getting from one to the next leaves the device idle for {idle} of {step} ({share}).",
            "{class} 的一个步由 {pieces} 段图组成；段间切换使设备空闲 {idle}，步时 {step}（{share}）。",
        ),
        more: vec![("pieces", Value::Count(count as u64))],
        change: Intervention {
            // One launch stays.
            removes: cost.per_step - cost.per_step / (count.max(1) as i64),
            layer: Layer::Runtime,
            edits: vec![whole(rank, class)],
        },
    })?;
    let launches = rank.steady_steps(class).flat_map(|s| reading::graph_launches(rank, s)).map(|c| c.slice);
    finding
        .with(Evidence::new(
            Text::new("graph launches in a step", "每步图下发次数"),
            Value::Count(count as u64),
            reading::sample(launches),
        ))
        .with(Evidence::new(
            Text::new("idle per step before and between pieces", "每步段前与段间的空闲"),
            Value::Ns(cost.per_step),
            reading::gap_rows(rank, rank.steady_steps(class), at_piece(rank)),
        ))
        .against(Competing::open(
            Text::new("the operations between the pieces cannot be captured", "段间的算子无法被捕获进图"),
            Text::new(
                "an attention backend that supports full graphs for decode would decide",
                "换用支持解码整图的注意力后端即可判定",
            ),
        ))
        .gated(cost.most)
}

fn pieces(rank: &Rank, step: &Step) -> usize {
    reading::graph_launches(rank, step).count()
}

fn between(rank: &Rank, step: &Step) -> i64 {
    reading::idle(rank, step, at_piece(rank))
}

/// Idle inside the forward pass that ends with the first operation of a launch: a piece, or an eager operation between
/// two pieces.
fn at_piece(rank: &Rank) -> impl Fn(&Gap, Bucket) -> bool + Copy + '_ {
    |gap, bucket| {
        !gap.between_steps
            && bucket != Bucket::GraphInternal
            && reading::owner(rank, gap).is_some_and(|op| op.first_of_call)
    }
}

/// All pieces of a step and what lies between them become one graph.
fn whole(rank: &Rank, class: &Class) -> Edit {
    let group = |step: &Step| {
        let ops = rank.ops_of(step);
        let first = ops.iter().position(|op| op.in_graph)?;
        let last = ops.iter().rposition(|op| op.in_graph)?;
        Some((step.ops.start + first..=step.ops.start + last).map(|i| i as u32).collect())
    };
    Edit::Graph(rank.steady_steps(class).filter_map(group).collect())
}
