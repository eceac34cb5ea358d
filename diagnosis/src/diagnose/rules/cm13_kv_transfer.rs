//! CM-13: the step waits for the KV cache to arrive from another device.

use model::{Area, Detail, EvidenceClass::Device, Ns, Trace};

use super::{
    exposed::{Exposed, Saying},
    reading,
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
        "Copies between devices, or sends and receives, run with no computation beside them. Where prefill and decode run on separate instances, this is the KV cache arriving.",
        "设备间拷贝或收发操作期间没有计算并行。预填充与解码分离部署时，这通常是 KV 缓存的到达。",
    ),
    matters: Text::new(
        "A decode step that waits for the cache of a new request delays every other sequence of the batch.",
        "解码步等待新请求的缓存，会拖慢批内所有其他序列。",
    ),
    trigger: Text::new(
        "Exposed time of copies from device to device and of send and receive kernels at least 3 % of the mean step.",
        "设备间拷贝与收发内核的暴露时间至少占平均步时的 3%。",
    ),
    source: Text::new("3 %: own value.", "3%：自定值。"),
    guards: Text::new(
        "Training steps are not judged. Under pipeline parallelism sends and receives carry activations, and in a step with experts they are the exchange of tokens: then only copies count. Without a statement that prefill and decode are separate the confidence is low.",
        "训练步不作判断。流水线并行下收发传的是激活，含专家的步中收发是 token 交换：此时只计拷贝。没有说明预填充与解码分离部署时置信度为低。",
    ),
    verify: Text::new(
        "Push the cache layer by layer or ahead of the step: the transfers hide behind computation, and the exposed time disappears.",
        "逐层推送或提前传输缓存：传输被计算掩盖，暴露时间消失。",
    ),
};

impl Rule for KvTransfer {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        // Training exchanges gradients and embeddings; a cache is handed over only where tokens are served.
        let serves = |c: &Class| matches!(c.stage, Stage::Decode | Stage::Prefill | Stage::Mixed);
        let served = cx.main_classes().filter(|(_, class)| serves(class));
        served.filter_map(|(rank, class)| exposed(cx, rank, class)).collect()
    }
}

fn exposed(cx: &Context<'_>, rank: &Rank, class: &Class) -> Option<Finding> {
    let says = |key: &str| cx.trace.manifest.value(key);
    let pipeline = says("parallel.pp").and_then(|v| v.trim().parse::<u32>().ok()).is_some_and(|n| n > 1);
    let experts = rank
        .steady_steps(class)
        .flat_map(|s| rank.ops_of(s))
        .any(|op| matches!(op.op, CanonicalOp::GroupedGemm | CanonicalOp::MoeRoute));
    let separate =
        says("parallel.pd_separation").is_some_and(|v| !matches!(v.trim(), "" | "0" | "no" | "none" | "false"));
    let kernels = !pipeline && !experts;
    let moves = |op: &DeviceOp| op.kind == OpKind::Copy(CopyDir::PtoP) || (kernels && is_send(cx.trace, op));
    let shown =
        |s: &Step| reading::accounted(rank, s).filter(|(_, op, _)| moves(op)).map(|(_, _, x)| x.busy).sum::<Ns>();
    let ops = || rank.steady_steps(class).flat_map(|s| reading::accounted(rank, s)).filter(|(_, op, _)| moves(op));
    // What is hidden stays.
    let hidden = || ops().map(|(i, op, x)| (i as u32, (op.dur() - x.busy).max(0)));
    let (finding, cost) = Exposed { cx, doc: &DOC, rank, class }.recurring(SHARE, shown, |cost| Saying {
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
    let other = Text::new("the transfers carry something else than the KV cache", "这些传输搬运的不是 KV 缓存");
    let rival = if separate {
        Competing::refuted(
            other,
            Text::new("the run says that prefill and decode are separate", "运行声明预填充与解码分离部署"),
        )
    } else {
        Competing::open(other, Text::new("the engine's parallel settings decide", "引擎的并行设置可以判定"))
    };
    finding
        .with(Evidence::new(
            Text::new("exposed point-to-point transfer per step", "每步暴露的点对点传输"),
            Value::Ns(cost.per_step),
            reading::sample(ops().filter(|(_, _, x)| x.busy > 0).map(|(_, op, _)| op.slice)),
        ))
        .against(rival)
        .gated(cost.most.min(if separate { Confidence::High } else { Confidence::Low }))
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
        Some(call) => (call.contains("send") || call.contains("recv")) && !call.contains("all"),
        None => lower(trace.strings.get(op.name)).contains("sendrecv"),
    }
}
