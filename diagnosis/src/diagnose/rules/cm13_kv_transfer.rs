//! CM-13: what one device sends to another is on its way while nothing is computed: a KV cache, or what a pipeline stage hands on.

use model::{Area, Detail, EvidenceClass::Device, Ns, Trace};

use super::{
    exposed::{Exposed, Saying},
    late::counted,
    reading,
    transfers::{self, Transfer},
};
use crate::{
    analysis::{Class, Confidence, CopyDir, DeviceOp, Edit, Layer, OpKind, Rank, Step},
    diagnose::{
        Competing, Evidence, Finding, Intervention,
        relations::{Advice, Feeds, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Text, Value},
    platform::{CanonicalOp, Stage},
};

/// Share of the step; own value.
const SHARE: f64 = 0.03;
/// So many times the library's model on the published link a healthy transfer takes at most (rule CM-02).
const HEALTHY: f64 = 2.0;

/// The rule.
pub struct KvTransfer;

static DOC: Doc = Doc {
    id: "CM-13",
    title: Text::new("Point-to-point transfer exposed", "点对点传输暴露"),
    layer: Layer::Communication,
    needs: &[Device],
    advice: Advice::Device,
    relations: Relations { board: &[Feeds::Area(Area::Communication)], ..Relations::NONE },
    sees: Text::new(
        "Copies between devices, or sends and receives, move data with no computation beside them: the KV cache that arrives from a prefill instance, or what one pipeline stage sends to the next.",
        "设备间拷贝或收发操作搬运数据期间没有计算并行：来自预填充实例的 KV 缓存，或流水线前一阶段发来的数据。",
    ),
    matters: Text::new(
        "A decode step that waits for the cache of a new request delays every other sequence of the batch; a slow transfer between stages is added to every step.",
        "解码步等待新请求的缓存会拖慢批内所有其他序列；阶段间传输慢则每一步都要多花这段时间。",
    ),
    trigger: Text::new(
        "Exposed time at least 3 % of the mean step: of copies from device to device and, where something shows that they carry a cache (the run says so, a connector's name, one per layer), of send and receive kernels; or of the transfers of sends whose both ends are in the capture, each as long as the shorter of the two.",
        "暴露时间至少占平均步时的 3%：设备间拷贝；有证据表明搬运的是缓存时（运行声明、连接器名称、每层一次）的收发内核；或两端均在采集中的收发，取两端中较短者为传输时间。",
    ),
    source: Text::new("3 %: own value.", "3%：自定值。"),
    guards: Text::new(
        "Training steps are not judged. What a healthy link needs is certain to stay: the library's model of the size on the published link; where no size is recorded, that of two tensors of the hidden size times the rows. That a stage waits for the one before it is no transfer: a send of which the other end is not in the capture says nothing, unless it carries a cache. In a step with experts sends are the exchange of tokens. Without a statement that prefill and decode are separate the confidence is low.",
        "训练步不作判断。健康链路所需的时间必然保留：按公布链路上该大小的通信库模型计算；未记录大小时按两个“隐藏维度 × 行数”的张量计。某一阶段等待前一阶段不算传输：另一端不在采集中的收发不作判断，除非其搬运缓存。含专家的步中收发是 token 交换。没有说明预填充与解码分离部署时置信度为低。",
    ),
    verify: Text::new(
        "Push the cache layer by layer or ahead of the step, or put the stages on devices that are joined directly: the exposed time disappears.",
        "逐层推送或提前传输缓存，或把各阶段放到直连的设备上：暴露时间消失。",
    ),
};

impl Rule for KvTransfer {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        // Training exchanges gradients and embeddings; a cache is handed over only where tokens are served.
        let serves = |c: &Class| matches!(c.stage, Stage::Decode | Stage::Prefill | Stage::Mixed);
        let served = || counted(cx).filter(|(.., class)| serves(class));
        let connected = served().next().is_some() && is_connected(cx);
        let caches = served().filter_map(|(_, rank, class)| cache(cx, rank, class, connected));
        let stages = served().filter_map(|(index, rank, class)| stages(cx, index, rank, class));
        caches.chain(stages).collect()
    }
}

/// Parts of names that only what moves a KV cache has, in lower case.
const CONNECTORS: [&str; 10] = [
    "kv_connector",
    "kvconnector",
    "kv_transfer",
    "nixl",
    "mooncake",
    "lmcache",
    "save_kv_layer",
    "wait_for_layer_load",
    "start_load_kv",
    "pull_kv",
];

/// What shows that transfers are those of a cache.
enum Shown {
    /// The run says that prefill and decode are separate.
    Said,
    /// A record bears the name of a connector.
    Named,
    /// At least one per layer.
    PerLayer,
    /// They are copies between devices, and no stages exchange anything.
    Copies,
}

/// Whether any record bears the name of a connector.
fn is_connected(cx: &Context<'_>) -> bool {
    let holds = |text: &str| CONNECTORS.iter().any(|part| text.contains(part));
    cx.trace.strings.iter().any(|(_, text)| holds(&text.to_ascii_lowercase()))
}

/// Transfers of a KV cache: copies from device to device, and sends of which something shows what they carry.
fn cache(cx: &Context<'_>, rank: &Rank, class: &Class, connected: bool) -> Option<Finding> {
    let says = |key: &str| cx.trace.manifest.value(key);
    let pipeline = says("parallel.pp").and_then(|v| v.trim().parse::<u32>().ok()).is_some_and(|n| n > 1);
    let experts = rank
        .steady_steps(class)
        .flat_map(|s| rank.ops_of(s))
        .any(|op| matches!(op.op, CanonicalOp::GroupedGemm | CanonicalOp::MoeRoute));
    let separate =
        says("parallel.pd_separation").is_some_and(|v| !matches!(v.trim(), "" | "0" | "no" | "none" | "false"));
    let layers = rank.period.as_ref().map(|period| period.repeats).filter(|layers| *layers > 1);
    let is_layerwise = |step: &Step| {
        let sends = rank.ops_of(step).iter().filter(|op| is_send(cx.trace, op)).count();
        layers.is_some_and(|layers| sends >= layers)
    };
    let shown = if separate {
        Shown::Said
    } else if connected {
        Shown::Named
    } else if rank.steady_steps(class).all(is_layerwise) {
        Shown::PerLayer
    } else {
        Shown::Copies
    };
    let kernels = !pipeline && !experts && !matches!(shown, Shown::Copies);
    let moves = |op: &DeviceOp| op.kind == OpKind::Copy(CopyDir::PtoP) || (kernels && is_send(cx.trace, op));
    let exposed =
        |s: &Step| reading::accounted(rank, s).filter(|(_, op, _)| moves(op)).map(|(_, _, x)| x.busy).sum::<Ns>();
    let ops = || rank.steady_steps(class).flat_map(|s| reading::accounted(rank, s)).filter(|(_, op, _)| moves(op));
    // What is hidden stays.
    let hidden = || ops().map(|(i, op, x)| (i as u32, (op.dur() - x.busy).max(0)));
    let (mut finding, cost) = Exposed { cx, doc: &DOC, rank, class }.recurring(SHARE, exposed, |cost| Saying {
        formula: Text::new("exposed point-to-point transfer / mean step", "暴露的点对点传输 / 平均步时"),
        claim: Text::new(
            "Point-to-point transfers of {class} run for {idle} of {step} ({share}) with no computation beside them.",
            "{class} 的点对点传输有 {idle} 没有计算并行，步时 {step}（{share}）。",
        ),
        more: Vec::new(),
        change: Intervention {
            removes: cost.per_step,
            layer: Layer::Communication,
            edits: vec![Edit::Resize(hidden().collect())],
        },
    })?;
    finding.remedy.retain(|remedy| remedy.is_about(["kv cache"].into_iter()));
    let other = Text::new("the transfers carry something else than the KV cache", "这些传输搬运的不是 KV 缓存");
    let rival = match shown {
        Shown::Said => Competing::refuted(
            other,
            Text::new("the run says that prefill and decode are separate", "运行声明预填充与解码分离部署"),
        ),
        Shown::Named => Competing::refuted(
            other,
            Text::new("records bear the name of a connector for the KV cache", "记录中出现了 KV 缓存连接器的名称"),
        ),
        Shown::PerLayer | Shown::Copies => {
            Competing::open(other, Text::new("the engine's parallel settings decide", "引擎的并行设置可以判定"))
        }
    };
    let most = if separate { Confidence::High } else { Confidence::Low };
    finding
        .with(Evidence::new(
            Text::new("exposed point-to-point transfer per step", "每步暴露的点对点传输"),
            Value::Ns(cost.per_step),
            reading::sample(ops().filter(|(_, _, x)| x.busy > 0).map(|(_, op, _)| op.slice)),
        ))
        .against(rival)
        .gated(cost.most.min(most))
}

/// What the stages of a pipeline send to each other: the transfer itself, both ends there, without the waiting for the stage
/// before, which is the pipeline's.
fn stages(cx: &Context<'_>, index: usize, rank: &Rank, class: &Class) -> Option<Finding> {
    let sent: Vec<Transfer> = transfers::of(cx, index, rank, class).into_iter().filter(|t| t.is_pair).collect();
    let of = |step: &Step| {
        let inside = sent.partition_point(|t| (t.op as usize) < step.ops.start);
        sent.iter().skip(inside).take_while(|t| (t.op as usize) < step.ops.end).map(|t| t.exposed).sum::<Ns>()
    };
    // What a healthy link takes is certain to stay; at best all of it is hidden.
    let healthy = |t: &Transfer| t.best.map(|(best, _)| ((HEALTHY * best) as Ns).min(t.ns));
    let certain: Vec<(u32, Ns)> = sent.iter().filter_map(|t| Some((t.op, healthy(t)?))).collect();
    let hoped: Vec<(u32, Ns)> = sent.iter().map(|t| (t.op, t.ns - t.exposed)).collect();
    let all: Ns = sent.iter().map(|t| t.ns).sum();
    let known: Vec<f64> =
        sent.iter().filter_map(|t| t.message.filter(|m| !m.modelled).map(|m| m.bytes as f64)).collect();
    let waits: Ns = sent.iter().filter_map(|t| Some(rank.timeline.ops.get(t.op as usize)?.dur() - t.ns)).sum();
    let steps = class.steady.max(1) as Ns;
    let (mut finding, cost) = Exposed { cx, doc: &DOC, rank, class }.recurring(SHARE, of, |cost| Saying {
        formula: Text::new("exposed transfer between stages / mean step", "阶段间暴露的传输 / 平均步时"),
        claim: Text::new(
            "Transfers between pipeline stages of {class} take {idle} of {step} ({share}) with both ends there and no computation beside them; waiting for the other stage ({waits} per step) is not counted.",
            "{class} 的流水线阶段间传输在两端到齐且没有计算并行时耗时 {idle}，步时 {step}（{share}）；等待另一阶段的时间（每步 {waits}）不计入。",
        ),
        more: vec![("waits", Value::Ns(waits / steps))],
        change: Intervention {
            removes: cost.per_step,
            layer: Layer::Communication,
            edits: vec![Edit::Transfer(certain), Edit::Hoped(Box::new(Edit::Transfer(hoped)))],
        },
    })?;
    finding.remedy.retain(|remedy| remedy.is_about(["pipeline stages"].into_iter()));
    finding = finding
        .with(Evidence::new(
            Text::new("transfer between stages per step, both ends there", "每步阶段间传输（两端到齐）"),
            Value::Ns(cost.per_step),
            reading::sample(sent.iter().filter(|t| t.exposed > 0).map(|t| t.row)),
        ))
        .against(Competing::refuted(
            Text::new("a stage waits for the one before it", "某一阶段在等待前一阶段"),
            Text::new(
                "the shorter of send and receive is counted: the one that came last waits for no one",
                "取收发两端中较短者：后到的一端不等待任何人",
            ),
        ));
    if known.len() == sent.len() && all > 0 {
        let rate = known.iter().sum::<f64>() / all as f64;
        finding = finding.with(Evidence::new(
            Text::new("rate of these transfers, GB/s", "这些传输的速率，GB/s"),
            Value::Number(rate),
            Vec::new(),
        ));
    }
    finding.gated(cost.most.min(Confidence::Medium))
}

/// Whether a kernel sends to or receives from one peer.
fn is_send(trace: &Trace, op: &DeviceOp) -> bool {
    if op.kind != OpKind::Comm {
        return false;
    }
    let lower = |text: &str| text.to_ascii_lowercase();
    let said = trace.locate(op.slice).and_then(|(track, row)| {
        match trace.detail(trace.lanes.get(track.0 as usize)?, row)? {
            Detail::Kernel(k) => k.collective.as_ref()?.op.map(|id| lower(trace.strings.get(id))),
            _ => None,
        }
    });
    match said {
        // An exchange of all with all runs as the same kernel.
        Some(call) => ["send", "recv", "receive"].iter().any(|part| call.contains(part)) && !call.contains("all"),
        None => lower(trace.strings.get(op.name)).contains("sendrecv"),
    }
}
