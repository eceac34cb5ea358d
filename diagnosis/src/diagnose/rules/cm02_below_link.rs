//! CM-02: collectives take far longer than their bytes take on the link between the devices.

use std::collections::{BTreeMap, BTreeSet};

use model::{Area, EvidenceClass, Ns};

use super::{
    exposed::{Exposed, Saying},
    late::counted,
    link::{Collective, Link},
    reading,
    transfers::{self, Transfer},
};
use crate::{
    analysis::{Class, Confidence, Edit, Layer, Rank, Step},
    diagnose::{
        Competing, Evidence, Finding, Intervention,
        relations::{Advice, Feeds, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
};

/// Share of the mean step; own value, that of rule CM-13 for exposed transfers.
const SHARE: f64 = 0.03;
/// So many times what the library's model gives the size on the published link is far below the link. Own value: healthy
/// transfers of serving lie at 0.8 to 2 times the model.
const FAR: f64 = 2.5;
/// So many times the model a healthy transfer takes at most; own value, as above.
const HEALTHY: f64 = 2.0;

/// Part of a transfer's time that its start takes up to which it tells the bandwidth of its link; own value.
const TELLS: f64 = 0.5;
/// Share of the time that the bandwidth of another kind on the same link explains from which a transfer counts as one of them, and the share of what
/// it would take by that bandwidth that it takes at least; own values.
const EXPLAINED: (f64, f64) = (0.25, 0.7);

/// What is said of transfers whose size was recorded.
const RECORDED: Text = Text::new(
    "{n} collectives per step of {class} take {took} each with every rank of the group there, {ratio} what their {size} need on the published link.{others} Beyond a healthy transfer that is {idle} of {step} ({share}).",
    "{class} 每步有 {n} 次集合通信在组内所有 rank 到齐后各需 {took}，是其 {size} 在公布链路上所需时间的 {ratio}。{others}超出正常传输的部分为 {idle}，步时 {step}（{share}）。",
);
/// The same where it follows from the model.
const MODELLED: Text = Text::new(
    "{n} collectives per step of {class} take {took} each with every rank of the group there, {ratio} what their {size} (modelled: hidden size times rows) need on the published link.{others} Beyond a healthy transfer that is {idle} of {step} ({share}).",
    "{class} 每步有 {n} 次集合通信在组内所有 rank 到齐后各需 {took}，是其 {size}（推算：隐藏维度 × 行数）在公布链路上所需时间的 {ratio}。{others}超出正常传输的部分为 {idle}，步时 {step}（{share}）。",
);

/// The rule.
pub struct BelowLink;

static DOC: Doc = Doc {
    id: "CM-02",
    title: Text::new("Transfer far below the link", "传输远低于链路能力"),
    layer: Layer::Communication,
    needs: &[EvidenceClass::Device, EvidenceClass::MultiRank],
    advice: Advice::Device,
    relations: Relations {
        precedes: &["CM-03"],
        shares_time_with: &["CM-07", "CM-04"],
        board: &[Feeds::Area(Area::Communication)],
        ..Relations::NONE
    },
    sees: Text::new(
        "Collectives take far longer than their bytes need on the link between the devices, even on the rank that arrives last.",
        "即使在最后到达的 rank 上，集合通信的耗时也远多于其字节在设备间链路上所需的时间。",
    ),
    matters: Text::new(
        "All ranks wait out each transfer: a route over PCIe or the host, a link that is down, or a library that does not know the topology costs every layer of every step.",
        "每次传输所有 rank 都要等完：绕行 PCIe 或主机、链路断开、或通信库未识别拓扑，都会让每一步的每一层付出代价。",
    ),
    trigger: Text::new(
        "Transfer (the shortest duration over the ranks) above 2.5 times, even for the fast ones of its kind (5th percentile), what the library's own model gives the message on the published link: base latency, a latency per hop of the ring, and bytes times 2(n−1)/n (all-reduce) or (n−1)/n (all-gather, reduce-scatter) over the bandwidth, by the fastest protocol. Where one kind is that far, the others of its group count too as far as the bandwidth that it reaches explains a quarter of their time and more. What lies beyond a healthy transfer is at least 3 % of the mean step.",
        "传输时间（各 rank 中的最短时长），即使取同类中较快者（第 5 百分位），也超过通信库自身模型在公布链路上所给时间的 2.5 倍；模型为：基础延迟、环的每跳延迟，以及字节乘 2(n−1)/n（all-reduce）或 (n−1)/n（all-gather、reduce-scatter）除以带宽，取最快协议。某一类已如此之慢时，同组其他各类只要有四分之一以上的时间能由其实际带宽解释，也一并计入。超出正常传输的部分至少占平均步时的 3%。",
    ),
    source: Text::new(
        "Latencies and protocol efficiencies: tuning models of NCCL and RCCL (src/graph/tuning.cc). Bus bandwidth: nccl-tests. 2.5, 2 and 3 %: own values.",
        "延迟与协议效率：NCCL 与 RCCL 的调优模型（src/graph/tuning.cc）。总线带宽：nccl-tests。2.5、2 与 3%：自定值。",
    ),
    guards: Text::new(
        "Only groups of which every rank is in the capture and that fit into one node, on chips whose link is published. Waiting for a late rank is no transfer. A kind of which some are fast is CM-07's. Sizes come from the capture; where it holds none, those of all-reduces after a product are the hidden size (the model's, else the most columns that the blocks of these products cover) times the rows of the step, and the claim says so. Whether the published link joins these very devices the capture does not show.",
        "只判断全部 rank 均在采集中且能置于一个节点内的通信组，且该芯片的链路带宽已公布。等待迟到的 rank 不算传输。同类中有快有慢者归 CM-07。消息大小取自采集；若无，则矩阵乘之后的 all-reduce 按“隐藏维度（取自模型，否则取这些矩阵乘的块最多覆盖的列数）× 该步行数”推算，并在结论中注明。采集无法显示这些设备之间是否就是公布的链路。",
    ),
    verify: Text::new(
        "Measure the same size between the same devices alone (nccl-tests, rccl-tests) and read the topology (nvidia-smi topo -m, rocm-smi --showtopo); after the repair the transfer falls to the model's time.",
        "在相同设备上单独测量同样大小（nccl-tests、rccl-tests），并查看拓扑（nvidia-smi topo -m、rocm-smi --showtopo）；修复后传输时间应降到模型给出的时间。",
    ),
};

impl Rule for BelowLink {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        counted(cx).filter_map(|(index, rank, class)| judge(cx, index, rank, class)).collect()
    }
}

/// A transfer that is slow, and what it would take on a healthy link at best and at worst, ns.
struct Slow {
    transfer: Transfer,
    best: Ns,
    worst: Ns,
}

impl Slow {
    /// One that is far above the model.
    fn by_model(transfer: &Transfer) -> Self {
        let best = transfer.best.map_or(transfer.ns as f64, |(best, _)| best);
        let (best, worst) = ((best as Ns).min(transfer.ns), ((HEALTHY * best) as Ns).min(transfer.ns));
        Self { transfer: *transfer, best, worst }
    }

    /// One on a link of which others tell the bandwidth that it has: without what that costs, or without half of it. A healthy
    /// transfer may take twice its model, so that by itself it tells nothing.
    fn by_bandwidth(transfer: &Transfer, link: &Link, reached: Reached) -> Option<Self> {
        let Reached { rate: reached, ranks } = reached;
        let Some((message, (least, _))) = transfer.message.zip(transfer.best) else {
            // Of unknown size: what its start does not take the bytes do. Nothing is sure of that.
            let start = link.least_start(Collective::AllReduce, ranks);
            let costs = (transfer.ns as f64 - start) * (1.0 - reached / link.usable(ranks));
            let explained = costs >= EXPLAINED.0 * transfer.ns as f64;
            let best = transfer.ns - costs as Ns;
            return explained.then_some(Self { transfer: *transfer, best, worst: transfer.ns });
        };
        let moved = message.rate(1);
        let costs = moved / reached - moved / link.usable(message.ranks);
        let takes = least * link.latency(message) + moved / reached;
        let ns = transfer.ns as f64;
        let explained = costs >= EXPLAINED.0 * ns && costs < ns && ns >= EXPLAINED.1 * takes;
        let without = |share: f64| transfer.ns - (share * costs) as Ns;
        explained.then(|| Self { transfer: *transfer, best: without(1.0), worst: without(0.5) })
    }
}

/// Bandwidth that the transfers of a group reach, bytes per ns, and its ranks.
#[derive(Clone, Copy)]
struct Reached {
    rate: f64,
    ranks: u32,
}

/// That between the members of each group with transfers which tell it: replays do not say by which communicator they go.
fn reached(cx: &Context<'_>, far: &[Slow], link: &Link) -> BTreeMap<Vec<usize>, Reached> {
    let mut groups: BTreeMap<Vec<usize>, (f64, f64, u32)> = BTreeMap::new();
    for Slow { transfer, .. } in far {
        let Some((message, (least, _))) = transfer.message.zip(transfer.best) else { continue };
        let start = least * link.latency(message);
        if start <= TELLS * transfer.ns as f64 {
            let (moved, ns, ranks) = groups.entry(members(cx, transfer)).or_default();
            *ranks = message.ranks;
            *moved += message.rate(1);
            *ns += transfer.ns as f64 - start;
        }
    }
    let of = |(members, (moved, ns, ranks)): (Vec<usize>, (f64, f64, u32))| {
        (ns > 0.0).then_some((members, Reached { rate: moved / ns, ranks }))
    };
    groups.into_iter().filter_map(of).collect()
}

/// The ranks that a transfer joins.
fn members(cx: &Context<'_>, transfer: &Transfer) -> Vec<usize> {
    cx.analysis.job.groups.get(transfer.kind.0).map(|group| group.ranks.clone()).unwrap_or_default()
}

/// What the transfers that are far above the model say together.
struct Proven {
    /// Their time, ns, and how many they are.
    all: Ns,
    count: Ns,
    /// Mean of what the model gives them, ns.
    expected: Ns,
    /// The middle one of their sizes, bytes.
    size: i64,
    /// Whether a size follows from the model and the rows.
    modelled: bool,
    /// Bus bandwidth reached, and that of the link, bytes per ns.
    rate: f64,
    usable: f64,
}

impl Proven {
    /// `None` where there are none.
    fn of(far: &[Slow], link: &Link) -> Option<Self> {
        let messages = || far.iter().filter_map(|slow| slow.transfer.message);
        let all: Ns = far.iter().map(|slow| slow.transfer.ns).sum();
        let count = Ns::try_from(far.len()).ok().filter(|n| *n > 0)?;
        let mut sizes: Vec<i64> = messages().map(|message| message.bytes).collect();
        sizes.sort_unstable();
        Some(Self {
            all,
            count,
            expected: far.iter().map(|slow| slow.best).sum::<Ns>() / count,
            size: sizes.get(sizes.len() / 2).copied()?,
            modelled: messages().any(|message| message.modelled),
            rate: messages().map(|message| message.rate(1)).sum::<f64>() / all.max(1) as f64,
            usable: messages().map(|message| link.usable(message.ranks)).fold(0.0, f64::max),
        })
    }
}

/// What is said of the others on that link; those of unknown size may be slow.
fn also(others: &[Slow], steps: usize) -> Option<Value> {
    const SIZED: Text = Text::new(
        " By the bandwidth that they reach {n} others per step on that link are slow too, {took} each.",
        "按其实际带宽，同一链路上每步另有 {n} 次也偏慢，每次 {took}。",
    );
    const UNSIZED: Text = Text::new(
        " Others on that link, {n} per step of {took} each, are of unknown size and may be as slow.",
        "同一链路上每步另有 {n} 次大小未知，每次 {took}，可能同样偏慢。",
    );
    let (sized, unsized_): (Vec<&Slow>, Vec<&Slow>) = others.iter().partition(|slow| slow.transfer.ratio().is_some());
    let say = |text: Text, of: Vec<&Slow>| {
        let each = of.iter().map(|slow| slow.transfer.ns).sum::<Ns>() / of.len().max(1) as Ns;
        let args = [("n", Value::Count((of.len() / steps) as u64)), ("took", Value::Ns(each))];
        (of.len() >= steps).then(|| Message::new(text, args).within())
    };
    // Sizes are known of all of a kind or of none: where both are, the sure ones speak.
    say(SIZED, sized).or_else(|| say(UNSIZED, unsized_))
}

/// How many times the model the fast transfers of each kind take: the 5th percentile.
fn fastest(transfers: &[Transfer]) -> BTreeMap<(usize, u32), f64> {
    let mut kinds: BTreeMap<(usize, u32), Vec<f64>> = BTreeMap::new();
    for transfer in transfers {
        kinds.entry(transfer.kind).or_default().extend(transfer.ratio());
    }
    kinds.into_iter().filter_map(|(kind, ratios)| Some((kind, percentile(ratios)?))).collect()
}

/// The 5th percentile.
fn percentile(mut ratios: Vec<f64>) -> Option<f64> {
    ratios.sort_unstable_by(f64::total_cmp);
    ratios.get(ratios.len() / 20).copied()
}

/// The kinds of known size whose every transfer, fast ones too, takes what the bandwidth that its link is known to have leaves it.
fn carried_kinds(
    cx: &Context<'_>,
    known: &[Transfer],
    reached: &BTreeMap<Vec<usize>, Reached>,
    link: &Link,
) -> BTreeSet<(usize, u32)> {
    let mut kinds: BTreeMap<(usize, u32), Vec<f64>> = BTreeMap::new();
    for transfer in known {
        let rate = reached.get(&members(cx, transfer)).map(|reached| reached.rate);
        let takes = rate.and_then(|rate| {
            let (message, (least, _)) = transfer.message.zip(transfer.best)?;
            Some(least * link.latency(message) + message.rate(1) / rate)
        });
        kinds.entry(transfer.kind).or_default().extend(takes.map(|takes| transfer.ns as f64 / takes.max(1.0)));
    }
    let slow = |(kind, ratios): (_, Vec<f64>)| (percentile(ratios)? >= EXPLAINED.1).then_some(kind);
    kinds.into_iter().filter_map(slow).collect()
}

fn judge(cx: &Context<'_>, index: usize, rank: &Rank, class: &Class) -> Option<Finding> {
    let link = Link::of(cx, rank)?;
    let mut known = transfers::of(cx, index, rank, class);
    // What stages send to each other is rule CM-13's, and kinds of which some are fast rule CM-07's.
    known.retain(|t| !t.is_pair);
    let usual = fastest(&known);
    let is_far = |t: &Transfer| usual.get(&t.kind).is_some_and(|ratio| *ratio > FAR);
    let above = |t: &&Transfer| is_far(t) && t.ratio().is_some_and(|r| r > HEALTHY);
    let far: Vec<Slow> = known.iter().filter(above).map(Slow::by_model).collect();
    let reached = reached(cx, &far, &link);
    let carried = carried_kinds(cx, &known, &reached, &link);
    let others = known.iter().filter(|t| !is_far(t) && (t.ratio().is_none() || carried.contains(&t.kind)));
    let others = others.filter_map(|t| Slow::by_bandwidth(t, &link, *reached.get(&members(cx, t))?));
    let others: Vec<Slow> = others.collect();
    let steps = class.steady.max(1);
    let claim = Proven::of(&far, &link)?;
    let (all, count) = (claim.all, claim.count);
    let also = also(&others, steps);
    let of_model = |slow: &Slow| slow.transfer.message.is_some_and(|message| message.modelled);
    let unsure = claim.modelled || others.iter().any(of_model);
    let text = if claim.modelled { MODELLED } else { RECORDED };
    let more = vec![
        ("n", Value::Number((far.len() as f64 * 10.0 / steps as f64).round() / 10.0)),
        ("took", Value::Ns(all / count)),
        ("ratio", Value::Ratio(all as f64 / (claim.expected * count).max(1) as f64)),
        ("size", Value::Bytes(claim.size)),
        ("others", also.unwrap_or(Value::Text(Text::new("", "")))),
    ];
    let Proven { rate, usable, expected, .. } = claim;
    let rows = reading::sample(far.iter().map(|slow| slow.transfer.row));
    let mut slow: Vec<Slow> = far.into_iter().chain(others).collect();
    slow.sort_by_key(|slow| slow.transfer.op);
    let lost = |slow: &Slow| (slow.transfer.ns - slow.worst).min(slow.transfer.exposed).max(0);
    let of = |step: &Step| {
        let inside = slow.partition_point(|slow| (slow.transfer.op as usize) < step.ops.start);
        slow.iter().skip(inside).take_while(|s| (s.transfer.op as usize) < step.ops.end).map(lost).sum::<Ns>()
    };
    let takes = |of: fn(&Slow) -> Ns| slow.iter().map(|slow| (slow.transfer.op, of(slow))).collect::<Vec<_>>();
    let edits =
        vec![Edit::Transfer(takes(|slow| slow.worst)), Edit::Hoped(Box::new(Edit::Transfer(takes(|slow| slow.best))))];
    let (finding, cost) = Exposed { cx, doc: &DOC, rank, class }.recurring(SHARE, of, |cost| Saying {
        formula: Text::new(
            "transfer beyond a healthy one on the published link / mean step",
            "超出公布链路上正常传输的时间 / 平均步时",
        ),
        claim: text,
        more,
        change: Intervention { removes: cost.per_step, layer: Layer::Communication, edits },
    })?;
    let fact = |what: Text, value: Value| Evidence { what: Message::plain(what), value, rows: Vec::new() };
    finding
        .with(Evidence::new(
            Text::new("transfer, shortest over the ranks, mean", "传输时间（各 rank 最短）均值"),
            Value::Ns(all / count),
            rows,
        ))
        .with(fact(
            Text::new("least time by the library's model, mean", "通信库模型给出的最短时间均值"),
            Value::Ns(expected),
        ))
        .with(fact(
            Text::new(
                "bus bandwidth reached, GB/s (as nccl-tests counts it)",
                "达到的总线带宽 GB/s（按 nccl-tests 口径）",
            ),
            Value::Number(rate),
        ))
        .with(fact(
            Text::new(
                "bandwidth of the link, published and not measured, one direction, GB/s",
                "链路带宽（厂商公布，未实测，单向），GB/s",
            ),
            Value::Number(usable),
        ))
        .against(Competing::refuted(
            Text::new("a rank is late", "有 rank 迟到"),
            Text::new(
                "the last rank to arrive is slow too, and it waits for no one",
                "最后到达的 rank 同样慢，而它不等待任何人",
            ),
        ))
        .against(Competing::open(
            Text::new("these devices are not joined by the published link", "这些设备之间并非公布的链路"),
            Text::new(
                "the topology of the machine decides; then the route is the cause and another placement the cure",
                "查看机器拓扑可以判定；若如此，原因在路由，应更换设备组合",
            ),
        ))
        .gated(cost.most.min(if unsure { Confidence::Low } else { Confidence::Medium }))
}
