//! CM-03: many collectives whose messages are so small that each of them is all latency.

use model::{Area, EvidenceClass, Ns};

use super::{
    exposed::{Exposed, Saying},
    late::counted,
    link::{Collective, Link, Message as Size},
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
    i18n::{Text, Value},
};

/// Share of the mean step; own value, that of rule CM-13 for exposed transfers.
const SHARE: f64 = 0.03;
/// Part of the library's time of a message from which it is all latency; own value.
const LATENCY: f64 = 0.6;
/// Largest message that kernels of one shot win at: crossover of SGLang on V100 384 KiB, of vLLM's custom all-reduce 512 KiB
/// on more than four ranks.
const LARGEST: i64 = 512 << 10;
/// Messages of a step from which they are many; own value.
const MANY: usize = 8;
/// What a kernel of one shot takes at best before its bytes, ns (case of the rule catalogue: 4 µs beside 20 µs of NCCL).
const ONE_SHOT: f64 = 4_000.0;

/// The rule.
pub struct SmallMessages;

static DOC: Doc = Doc {
    id: "CM-03",
    title: Text::new("Collectives of small messages", "小消息集合通信"),
    layer: Layer::Communication,
    needs: &[EvidenceClass::Device, EvidenceClass::MultiRank],
    advice: Advice::Device,
    relations: Relations {
        shares_time_with: &["CM-06", "CM-07"],
        board: &[Feeds::Area(Area::Communication)],
        ..Relations::NONE
    },
    sees: Text::new(
        "Each step runs many all-reduces of a few kilobytes through the general library: their time is latency, not data.",
        "每步通过通用通信库执行大量仅有数 KB 的 all-reduce：耗时都是延迟，而不是数据。",
    ),
    matters: Text::new(
        "A ring passes 2(n−1) times from rank to rank whatever the size. A kernel in which every rank reads the others' memory at once needs one pass, and a collective fused with its neighbour needs none of its own.",
        "无论大小，环形算法都要在 rank 间传递 2(n−1) 次。让每个 rank 直接读取其他 rank 显存的内核只需一次；与相邻算子融合的集合通信则无需单独一次。",
    ),
    trigger: Text::new(
        "At least 8 all-reduces of at most 512 KiB per step by NCCL or RCCL, of whose modelled time at least 60 % is latency; their exposed transfers are at least 3 % of the mean step.",
        "每步至少 8 次不超过 512 KiB 的 NCCL 或 RCCL all-reduce，其模型时间中延迟至少占 60%；暴露的传输时间至少占平均步时的 3%。",
    ),
    source: Text::new(
        "512 KiB: limit of vLLM's custom all-reduce; crossover 384 KiB measured by SGLang on V100, with 4 µs beside 20 µs. 8, 60 % and 3 %: own values.",
        "512 KiB：vLLM 自定义 all-reduce 的上限；SGLang 在 V100 上测得的交叉点为 384 KiB（4 µs 对 20 µs）。8、60% 与 3%：自定值。",
    ),
    guards: Text::new(
        "Only groups of which every rank is in the capture. Nothing is certain of the gain: such kernels need devices that reach each other's memory, and a run with them decides. Transfers far above the model are CM-02's.",
        "只判断全部 rank 均在采集中的通信组。收益没有保证：此类内核要求设备可互访显存，需换用后实测判定。远超模型的传输归 CM-02。",
    ),
    verify: Text::new(
        "Switch the custom, one-shot or symmetric-memory all-reduce on and run again: the mean transfer of these messages falls by half or more.",
        "启用自定义、单次（one-shot）或对称内存 all-reduce 后重跑：这些消息的平均传输时间应减半或更多。",
    ),
};

impl Rule for SmallMessages {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        counted(cx).filter_map(|(index, rank, class)| judge(cx, index, rank, class)).collect()
    }
}

/// What a kernel of one shot would take at best, ns.
fn one_shot(link: &Link, transfer: &Transfer) -> Ns {
    let ns = transfer.message.map_or(transfer.ns as f64, |m| {
        // Every rank reads the whole message of every other.
        ONE_SHOT + m.bytes as f64 * f64::from(m.ranks.saturating_sub(1)) / link.usable(m.ranks)
    });
    (ns as Ns).min(transfer.ns)
}

const RECORDED: Text = Text::new(
    "{n} all-reduces of {size} per step of {class} go through the general library and take {took} each, nearly all of it latency: {idle} of {step} ({share}). A kernel of one shot may take {best}.",
    "{class} 每步有 {n} 次 {size} 的 all-reduce 经由通用通信库，各需 {took}，几乎全是延迟：合计 {idle}，步时 {step}（{share}）。单次（one-shot）内核可能只需 {best}。",
);
const MODELLED: Text = Text::new(
    "{n} all-reduces of {size} (modelled: hidden size times rows) per step of {class} go through the general library and take {took} each, nearly all of it latency: {idle} of {step} ({share}). A kernel of one shot may take {best}.",
    "{class} 每步有 {n} 次 {size}（推算：隐藏维度 × 行数）的 all-reduce 经由通用通信库，各需 {took}，几乎全是延迟：合计 {idle}，步时 {step}（{share}）。单次（one-shot）内核可能只需 {best}。",
);

fn judge(cx: &Context<'_>, index: usize, rank: &Rank, class: &Class) -> Option<Finding> {
    let link = Link::of(cx, rank)?;
    let general = reading::named(cx, |name| {
        let name = name.to_ascii_lowercase();
        name.contains("nccl") || name.contains("rccl")
    });
    let mut small = transfers::of(cx, index, rank, class);
    small.retain(|t| {
        let is_small = |m: Size| m.what == Collective::AllReduce && m.bytes <= LARGEST && link.latency(m) >= LATENCY;
        general.contains(&t.name) && t.best.is_some() && t.message.is_some_and(is_small)
    });
    let steps = class.steady.max(1);
    if small.len() < MANY * steps {
        return None;
    }
    let of = |step: &Step| {
        let inside = small.partition_point(|t| (t.op as usize) < step.ops.start);
        let inside = small.iter().skip(inside).take_while(|t| (t.op as usize) < step.ops.end);
        inside.map(|t| t.exposed).sum::<Ns>()
    };
    let count = small.len() as Ns;
    let took = small.iter().map(|t| t.ns).sum::<Ns>() / count;
    let hoped = small.iter().map(|t| (t.op, one_shot(&link, t))).collect::<Vec<_>>();
    let best = hoped.iter().map(|(_, ns)| *ns).sum::<Ns>() / count;
    let mut sizes: Vec<i64> = small.iter().filter_map(|t| t.message).map(|m| m.bytes).collect();
    sizes.sort_unstable();
    let size = sizes.get(sizes.len() / 2).copied()?;
    let modelled = small.iter().any(|t| t.message.is_some_and(|m| m.modelled));
    let more = vec![
        ("n", Value::Count(small.len() as u64 / steps as u64)),
        ("size", Value::Bytes(size)),
        ("took", Value::Ns(took)),
        ("best", Value::Ns(best)),
    ];
    let edits = vec![Edit::Hoped(Box::new(Edit::Transfer(hoped)))];
    let (finding, cost) = Exposed { cx, doc: &DOC, rank, class }.recurring(SHARE, of, |cost| Saying {
        formula: Text::new(
            "exposed transfers of small all-reduces / mean step",
            "小消息 all-reduce 的暴露传输 / 平均步时",
        ),
        claim: if modelled { MODELLED } else { RECORDED },
        more,
        change: Intervention { removes: cost.per_step, layer: Layer::Communication, edits },
    })?;
    finding
        .with(Evidence::new(
            Text::new(
                "transfer of a small all-reduce, shortest over the ranks, mean",
                "小消息 all-reduce 的传输时间（各 rank 最短）均值",
            ),
            Value::Ns(took),
            reading::sample(small.iter().map(|t| t.row)),
        ))
        .against(Competing::open(
            Text::new("these devices cannot read each other's memory", "这些设备不能互访显存"),
            Text::new("the topology, or a run with such a kernel, decides", "查看拓扑或换用该内核重跑可以判定"),
        ))
        .gated(cost.most.min(Confidence::Low))
}
