//! CM-02: collectives take far longer than their bytes take on the link between the devices.

use std::collections::BTreeMap;

use model::{Area, EvidenceClass, Ns};

use super::{
    exposed::{Exposed, Saying},
    late::counted,
    link::Link,
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
        "Transfer (the shortest duration over the ranks) above 2.5 times, even for the fast ones of its kind (5th percentile), what the library's own model gives the message on the published link: base latency, a latency per hop of the ring, and bytes times 2(n−1)/n (all-reduce) or (n−1)/n (all-gather, reduce-scatter) over the bandwidth, by the fastest protocol. What lies beyond 2 times the model is at least 3 % of the mean step.",
        "传输时间（各 rank 中的最短时长），即使取同类中较快者（第 5 百分位），也超过通信库自身模型在公布链路上所给时间的 2.5 倍；模型为：基础延迟、环的每跳延迟，以及字节乘 2(n−1)/n（all-reduce）或 (n−1)/n（all-gather、reduce-scatter）除以带宽，取最快协议。超出模型 2 倍的部分至少占平均步时的 3%。",
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

/// What a transfer would take on a healthy link, at best and at worst, ns.
fn healthy(transfer: &Transfer) -> (Ns, Ns) {
    let best = transfer.best.map_or(transfer.ns as f64, |(best, _)| best);
    ((best as Ns).min(transfer.ns), ((HEALTHY * best) as Ns).min(transfer.ns))
}

/// How many times the model the fast transfers of each kind take: the 5th percentile.
fn fastest(transfers: &[Transfer]) -> BTreeMap<(usize, u32), f64> {
    let mut kinds: BTreeMap<(usize, u32), Vec<f64>> = BTreeMap::new();
    for transfer in transfers {
        kinds.entry(transfer.kind).or_default().extend(transfer.ratio());
    }
    let fast = |mut ratios: Vec<f64>| {
        ratios.sort_unstable_by(f64::total_cmp);
        ratios.get(ratios.len() / 20).copied()
    };
    kinds.into_iter().filter_map(|(kind, ratios)| Some((kind, fast(ratios)?))).collect()
}

fn judge(cx: &Context<'_>, index: usize, rank: &Rank, class: &Class) -> Option<Finding> {
    let link = Link::of(cx, rank)?;
    let mut far = transfers::of(cx, index, rank, class);
    // What stages send to each other is rule CM-13's, and kinds of which some are fast rule CM-07's.
    far.retain(|t| !t.is_pair && t.ratio().is_some());
    let usual = fastest(&far);
    far.retain(|t| usual.get(&t.kind).is_some_and(|ratio| *ratio > FAR) && t.ratio().is_some_and(|r| r > HEALTHY));
    let lost = |t: &Transfer| (t.ns - healthy(t).1).min(t.exposed).max(0);
    let of = |step: &Step| {
        let inside = far.partition_point(|t| (t.op as usize) < step.ops.start);
        far.iter().skip(inside).take_while(|t| (t.op as usize) < step.ops.end).map(lost).sum::<Ns>()
    };
    let all: Ns = far.iter().map(|t| t.ns).sum();
    let count = far.len().max(1) as Ns;
    let moved: f64 = far.iter().filter_map(|t| t.message).map(|m| m.rate(1)).sum();
    let (rate, usable) = (
        moved / all.max(1) as f64,
        far.iter().filter_map(|t| t.message).map(|m| link.usable(m.ranks)).fold(0.0, f64::max),
    );
    let expected = far.iter().map(|t| healthy(t).0).sum::<Ns>() / count;
    let modelled = far.iter().any(|t| t.message.is_some_and(|m| m.modelled));
    let mut sizes: Vec<i64> = far.iter().filter_map(|t| t.message).map(|m| m.bytes).collect();
    sizes.sort_unstable();
    let size = sizes.get(sizes.len() / 2).copied()?;
    let claim = if modelled {
        Text::new(
            "{n} collectives per step of {class} take {took} each with every rank there, {ratio} what their {size} (modelled: hidden size times rows) need on the published link; beyond a healthy transfer that is {idle} of {step} ({share}).",
            "{class} 每步有 {n} 次集合通信在所有 rank 到齐后各需 {took}，是其 {size}（推算：隐藏维度 × 行数）在公布链路上所需时间的 {ratio}；超出正常传输的部分为 {idle}，步时 {step}（{share}）。",
        )
    } else {
        Text::new(
            "{n} collectives per step of {class} take {took} each with every rank there, {ratio} what their {size} need on the published link; beyond a healthy transfer that is {idle} of {step} ({share}).",
            "{class} 每步有 {n} 次集合通信在所有 rank 到齐后各需 {took}，是其 {size} 在公布链路上所需时间的 {ratio}；超出正常传输的部分为 {idle}，步时 {step}（{share}）。",
        )
    };
    let steps = class.steady.max(1);
    let more = vec![
        ("n", Value::Count((far.len() / steps) as u64)),
        ("took", Value::Ns(all / count)),
        ("ratio", Value::Ratio(all as f64 / (expected * count).max(1) as f64)),
        ("size", Value::Bytes(size)),
    ];
    let takes = |of: fn((Ns, Ns)) -> Ns| far.iter().map(|t| (t.op, of(healthy(t)))).collect::<Vec<_>>();
    let edits =
        vec![Edit::Transfer(takes(|(_, worst)| worst)), Edit::Hoped(Box::new(Edit::Transfer(takes(|(best, _)| best))))];
    let (finding, cost) = Exposed { cx, doc: &DOC, rank, class }.recurring(SHARE, of, |cost| Saying {
        formula: Text::new(
            "transfer beyond twice the library's model on the published link / mean step",
            "超出通信库模型两倍（按公布链路）的传输时间 / 平均步时",
        ),
        claim,
        more,
        change: Intervention { removes: cost.per_step, layer: Layer::Communication, edits },
    })?;
    let fact = |what: Text, value: Value| Evidence { what: Message::plain(what), value, rows: Vec::new() };
    finding
        .with(Evidence::new(
            Text::new("transfer, shortest over the ranks, mean", "传输时间（各 rank 最短）均值"),
            Value::Ns(all / count),
            reading::sample(far.iter().map(|t| t.row)),
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
        .gated(cost.most.min(if modelled { Confidence::Low } else { Confidence::Medium }))
}
