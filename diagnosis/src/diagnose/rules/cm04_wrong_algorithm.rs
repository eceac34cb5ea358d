//! CM-04: the algorithm or protocol of a collective does not fit the size of its message.

use std::collections::BTreeMap;

use model::{Area, EvidenceClass, Ns, StringId};

use super::{
    exposed::{Exposed, Saying},
    late::counted,
    link::{Collective, Link},
    reading,
    transfers::{self, Transfer},
};
use crate::{
    analysis::{Class, Confidence, Edit, Layer, Rank, Step, median},
    diagnose::{
        Competing, Evidence, Finding, Intervention,
        relations::{Advice, Feeds, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Text, Value},
};

/// Least share of the mean step that a fitting choice would save; own value.
const SHARE: f64 = 0.02;
/// Share of the time of one choice below which the other is the right one (rule catalogue).
const BETTER: f64 = 0.7;
/// Instances from which the time of a kind is known; own value.
const INSTANCES: usize = 8;

/// The rule.
pub struct WrongAlgorithm;

static DOC: Doc = Doc {
    id: "CM-04",
    title: Text::new("Wrong algorithm or protocol", "算法或协议不当"),
    layer: Layer::Communication,
    needs: &[EvidenceClass::Device, EvidenceClass::MultiRank],
    advice: Advice::Device,
    relations: Relations { board: &[Feeds::Area(Area::Communication)], ..Relations::NONE },
    sees: Text::new(
        "Messages of one size take longer than larger ones of the same group by another kernel, or a kernel's name shows a protocol that the library's own model puts far behind another at this size.",
        "同一通信组中，某一大小的消息比更大的消息（由另一内核传输）耗时更长；或内核名显示的协议在该大小下按通信库自身模型远逊于另一协议。",
    ),
    matters: Text::new(
        "A protocol for large messages pays its latency on every hop of a small one, and one for small messages halves or quarters the bandwidth of a large one.",
        "面向大消息的协议在小消息的每一跳都付出延迟；面向小消息的协议则使大消息带宽减到一半或四分之一。",
    ),
    trigger: Text::new(
        "By evidence of the capture: the median transfer of a size at most 0.7 of that of a smaller or equal one of the same collective and group by another kernel, at least 8 of each. By names: a protocol (SIMPLE, LL128) whose modelled time is at least 1/0.7 of the best one's, and a transfer that is at least as long as it gives. What the fitting choice would save is at least 2 % of the mean step.",
        "依据采集：同一集合操作、同一通信组中，另一内核传输同等或更大消息的中位时间不超过其 0.7 倍，双方各至少 8 次。依据名称：所示协议（SIMPLE、LL128）的模型时间至少为最佳协议的 1/0.7，且实际传输不短于该模型时间。换用合适选择可省的时间至少占平均步时的 2%。",
    ),
    source: Text::new(
        "0.7: rule catalogue (MiaAI #163, SGLang on V100). Models of protocols: src/graph/tuning.cc of NCCL and RCCL.",
        "0.7：规则目录（MiaAI #163、SGLang V100 案例）。协议模型：NCCL 与 RCCL 的 src/graph/tuning.cc。",
    ),
    guards: Text::new(
        "Only groups of which every rank is in the capture. The kernels of NCCL and RCCL carry LL in their names whatever protocol ran, because they are compiled once for all: LL in a name proves nothing and is not judged.",
        "只判断全部 rank 均在采集中的通信组。NCCL 与 RCCL 的内核统一编译，名称带 LL 而实际协议可能不同：名称中的 LL 不构成证据，不作判断。",
    ),
    verify: Text::new(
        "Leave NCCL_ALGO and NCCL_PROTO (HCCL_ALGO) unset, or set them for this size, and measure the size alone; NCCL_DEBUG_SUBSYS=TUNING prints what is chosen.",
        "不设置 NCCL_ALGO 与 NCCL_PROTO（HCCL_ALGO），或针对该大小设置，并单独测量；NCCL_DEBUG_SUBSYS=TUNING 可打印所选方案。",
    ),
};

impl Rule for WrongAlgorithm {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        counted(cx).filter_map(|(index, rank, class)| judge(cx, index, rank, class)).collect()
    }
}

/// A transfer with the time that a fitting choice would take, at worst and at best, ns.
type Better = (Transfer, Ns, Ns);

/// Messages of one size that one kernel carries in one group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    group: usize,
    name: StringId,
    what: Collective,
    bytes: i64,
}

impl Kind {
    fn of(transfer: &Transfer) -> Option<Self> {
        let message = transfer.message.filter(|m| !m.modelled && m.what != Collective::Pair)?;
        Some(Self { group: transfer.kind.0, name: transfer.name, what: message.what, bytes: message.bytes })
    }

    /// Whether another kernel of the same group carries as much or more of the same.
    fn is_carried_by(self, other: Self) -> bool {
        (other.group, other.what) == (self.group, self.what) && other.name != self.name && other.bytes >= self.bytes
    }
}

/// Median transfers of the kinds of which there are enough, ns.
fn medians(transfers: &[Transfer]) -> BTreeMap<Kind, Ns> {
    let mut by: BTreeMap<Kind, Vec<Ns>> = BTreeMap::new();
    for transfer in transfers {
        if let Some(kind) = Kind::of(transfer) {
            by.entry(kind).or_default().push(transfer.ns);
        }
    }
    let known = by.into_iter().filter(|(_, times)| times.len() >= INSTANCES);
    known.filter_map(|(kind, times)| Some((kind, median(times)?))).collect()
}

/// The protocol that a kernel's name shows, where the name is not the one that all protocols share.
fn shown(name: &str) -> Option<&'static str> {
    ["LL128", "SIMPLE"].into_iter().find(|protocol| {
        name.to_ascii_uppercase().split(|c: char| !c.is_ascii_alphanumeric()).any(|part| part == *protocol)
    })
}

fn judge(cx: &Context<'_>, index: usize, rank: &Rank, class: &Class) -> Option<Finding> {
    let all = transfers::of(cx, index, rank, class);
    let (medians, link) = (medians(&all), Link::of(cx, rank));
    let by_size = |t: &Transfer| {
        let kind = Kind::of(t)?;
        let own = medians.get(&kind)?;
        let others = medians.iter().filter(|(other, _)| kind.is_carried_by(**other));
        let best = others.map(|(_, ns)| *ns).min().filter(|best| *best as f64 <= BETTER * *own as f64)?;
        Some((*t, best.min(t.ns), best.min(t.ns)))
    };
    let by_name = |t: &Transfer| {
        let (message, (best, _)) = (t.message?, t.best?);
        let given = link?.named(message, shown(cx.trace.strings.get(t.name))?)?;
        let fits = best > BETTER * given || (t.ns as f64) < given;
        (!fits && !t.is_pair).then(|| {
            let scaled = (t.ns as f64 * best / given) as Ns;
            // What holds the transfer up beyond its protocol stays.
            (*t, (t.ns - (given - best) as Ns).clamp(scaled, t.ns), scaled)
        })
    };
    let found: Vec<Better> = all.iter().filter_map(|t| by_size(t).or_else(|| by_name(t))).collect();
    let saved = |b: &Better| (b.0.ns - b.1).min(b.0.exposed).max(0);
    let of = |step: &Step| {
        let inside = found.partition_point(|b| (b.0.op as usize) < step.ops.start);
        let inside = found.iter().skip(inside).take_while(|b| (b.0.op as usize) < step.ops.end);
        inside.map(saved).sum::<Ns>()
    };
    let count = found.len().max(1) as Ns;
    let first = found.first()?;
    let took = found.iter().map(|b| b.0.ns).sum::<Ns>() / count;
    let better = found.iter().map(|b| b.1).sum::<Ns>() / count;
    let more = vec![
        ("n", Value::Count((found.len() / class.steady.max(1)) as u64)),
        ("kernel", Value::Kernel(cx.trace.strings.get(first.0.name).to_owned())),
        ("size", Value::Bytes(first.0.message.map_or(0, |m| m.bytes))),
        ("took", Value::Ns(took)),
        ("better", Value::Ns(better)),
    ];
    let takes = |of: fn(&Better) -> Ns| found.iter().map(|b| (b.0.op, of(b))).collect::<Vec<_>>();
    let edits = vec![Edit::Transfer(takes(|b| b.1)), Edit::Hoped(Box::new(Edit::Transfer(takes(|b| b.2))))];
    let (finding, cost) = Exposed { cx, doc: &DOC, rank, class }.recurring(SHARE, of, |cost| Saying {
        formula: Text::new(
            "transfer beyond that of the fitting choice / mean step",
            "超出合适选择的传输时间 / 平均步时",
        ),
        claim: Text::new(
            "{n} collectives per step of {class} by {kernel} ({size}) take {took} each; another algorithm or protocol takes {better} for that much. That is {idle} of {step} ({share}).",
            "{class} 每步有 {n} 次由 {kernel} 执行的集合通信（{size}）各需 {took}；另一种算法或协议传同样多只需 {better}。合计 {idle}，步时 {step}（{share}）。",
        ),
        more,
        change: Intervention { removes: cost.per_step, layer: Layer::Communication, edits },
    })?;
    finding
        .with(Evidence::new(
            Text::new("transfer by the ill-fitting choice, mean", "不当选择的平均传输时间"),
            Value::Ns(took),
            reading::sample(found.iter().map(|b| b.0.row)),
        ))
        .with(Evidence::new(
            Text::new("transfer by a fitting choice", "合适选择的传输时间"),
            Value::Ns(better),
            Vec::new(),
        ))
        .against(Competing::open(
            Text::new("what runs beside these collectives slows them", "与之并行的工作拖慢了这些集合通信"),
            Text::new("the same size alone, with both choices, decides", "以两种选择单独测量同一大小可以判定"),
        ))
        .gated(cost.most.min(Confidence::Medium))
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn a_name_that_all_protocols_share_shows_none() {
        assert_eq!(shown("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"), None);
        assert_eq!(shown("ncclDevKernel_AllGather_RING_SIMPLE(ncclDevComm*)"), Some("SIMPLE"));
        assert_eq!(shown("ncclKernel_AllReduce_TREE_LL128_Sum_half"), Some("LL128"));
        assert_eq!(shown("simple_reduce"), Some("SIMPLE"));
    }
}
