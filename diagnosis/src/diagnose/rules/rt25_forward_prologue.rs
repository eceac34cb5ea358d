//! RT-25: the host takes long inside the model's forward pass before it launches anything.

use model::{
    EvidenceClass::{Correlation, Device, HostApi},
    Span,
};

use super::{
    exposed::{Exposed, Saying},
    gate::recurring,
    owned::{self, Owned},
    reading,
};
use crate::{
    analysis::{Bucket, Class, Layer, Owner, Rank, idle::Gap},
    diagnose::{
        Competing, Evidence, Finding, Intervention,
        relations::{Advice, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
};

/// Share of the step; own value.
const SHARE: f64 = 0.05;
/// Shortest time before the first launch that counts, ns; own value: an eager framework takes less from one operation to the
/// next.
const SHORTEST: i64 = 100_000;

/// Shortest pause of a step between its last operation and its graph, of which nothing but the step's own mark was recorded, that
/// counts, ns; own value, several times what an engine takes there.
const BEFORE_GRAPH: i64 = 300_000;

/// The rule.
pub struct ForwardPrologue;

static DOC: Doc = Doc {
    id: "RT-25",
    title: Text::new("Host prologue of the forward pass", "前向的主机序幕"),
    layer: Layer::Runtime,
    needs: &[Device, HostApi, Correlation],
    advice: Advice::Host,
    relations: Relations { precedes: &["RT-12"], shares_time_with: &["RT-01", "RT-16"], ..Relations::NONE },
    sees: Text::new(
        "The model's forward pass has begun on the host and launches nothing yet, while the device is idle: guards of compiled code, look-ups of parameters, Python glue.",
        "模型的前向已在主机上开始但尚未下发任何工作，设备空闲：编译代码的守卫检查、参数查找、Python 胶水代码。",
    ),
    matters: Text::new(
        "It is paid in every step, and neither faster kernels nor a larger graph shortens it: it lies before the first launch.",
        "每一步都要付出，且更快的算子或更大的图都不能缩短它：它位于首次下发之前。",
    ),
    trigger: Text::new(
        "Host code from the beginning of the outermost forward record to the first launch inside it, at least 100 µs of idle time each, or from the inputs of a step to its graph where nothing inside the step's mark was recorded, at least 300 µs each, together at least 5 % of the mean step.",
        "从最外层前向记录开始到其中首次下发之间的主机代码，每次空闲不少于 100 µs；或步标记内无其他记录时，从该步输入到图下发之间，每次不少于 300 µs；合计至少占平均步时的 5%。",
    ),
    source: Text::new("100 µs, 300 µs and 5 %: own values.", "100 µs、300 µs 与 5%：自定值。"),
    guards: Text::new(
        "Input preparation (RT-08), the input pipeline (RT-24), allocation, compilation and synchronisation inside it have rules of their own and are not counted.",
        "其中的输入准备（RT-08）、输入流水线（RT-24）、分配、编译与同步另有规则，不计入。",
    ),
    verify: Text::new(
        "Record the forward pass alone with stacks: the time from its beginning to its first launch shrinks.",
        "单独采集带调用栈的前向：从其开始到首次下发的时间缩短。",
    ),
};

impl Rule for ForwardPrologue {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        cx.main_classes().filter_map(|(rank, class)| late_start(cx, rank, class)).collect()
    }
}

fn late_start(cx: &Context<'_>, rank: &Rank, class: &Class) -> Option<Finding> {
    let pick =
        |gap: &Gap, owner: Option<&Owner>, bucket: Bucket, part: Span| prologue(cx, rank, (gap, owner), bucket, part);
    let cost = recurring(rank, class, SHARE, |step| Owned::of(rank, std::iter::once(step), pick).total)?;
    let prologue = Owned::of(rank, rank.steady_steps(class), pick);
    let spoken = prologue.spoken(cx, rank);
    let owner = spoken.as_ref().map(|spoken| ("owner", Value::Raw(spoken.place.clone())));
    let saying = Saying {
        formula: Text::new(
            "idle from the beginning of the forward pass to its first launch / mean step",
            "从前向开始到首次下发的空闲 / 平均步时",
        ),
        claim: match owner {
            Some(_) => Text::new(
                "In {class} the device waits {idle} of {step} ({share}) while the host is inside the forward pass and has launched nothing yet: {owner}.",
                "{class} 中主机已进入前向但尚未下发，设备等待 {idle}，步时 {step}（{share}）：{owner}。",
            ),
            None => Text::new(
                "In {class} the device waits {idle} of {step} ({share}) between the inputs of a step and its graph; what the host does there was not recorded.",
                "{class} 中，从该步的输入到图下发之间设备等待 {idle}，步时 {step}（{share}）；其间主机在做什么没有记录。",
            ),
        },
        more: owner.into_iter().collect(),
        change: Intervention { removes: cost.per_step, layer: Layer::Runtime, edits: prologue.gone() },
    };
    let mut finding = Exposed { cx, doc: &DOC, rank, class }.finding(SHARE, &cost, saying).with(Evidence::new(
        Text::new("idle per step before the first launch of the forward pass", "每步前向首次下发之前的空闲"),
        Value::Ns(cost.per_step),
        reading::sample(prologue.rows.iter().copied()),
    ));
    if spoken.is_none() {
        finding = finding.against(Competing::open(
            Text::new("it prepares the inputs or the metadata of the step", "其间在准备该步的输入或元数据"),
            Text::new("Python frames decide; record with stacks", "Python 帧可以判定：请开启调用栈采集"),
        ));
    }
    if let Some(spoken) = spoken.filter(|spoken| !spoken.children.is_empty()) {
        finding = finding.with(Evidence {
            what: Message::new(
                Text::new("of it in the first owner, which holds {children}", "其中属于首要归属者，其内有 {children}"),
                [("children", Value::Raw(spoken.children))],
            ),
            value: Value::Ns(spoken.ns / class.steady.max(1) as i64),
            rows: Vec::new(),
        });
    }
    finding
        .against(Competing::open(
            Text::new("the profiler slows Python code down", "剖析器拖慢了 Python 代码"),
            Text::new("a run without stacks, timed from outside, decides", "关闭调用栈采集并从外部计时可以判定"),
        ))
        .gated(cost.most)
}

/// What of a part of a gap the host spends inside the forward pass before its first launch.
fn prologue(
    cx: &Context<'_>,
    rank: &Rank,
    (gap, owner): (&Gap, Option<&Owner>),
    bucket: Bucket,
    part: Span,
) -> Option<Span> {
    let owner = owner.filter(|owner| owner.ns >= SHORTEST)?;
    let begun = match owner.forward {
        Some(begun) => begun.saturating_sub(rank.timeline.lag),
        None if ends_with_graph(rank, gap, owner) && is_silent(cx, bucket) => part.start,
        None => return None,
    };
    let own = owned::is_code(cx, bucket)
        && !owned::is_input(cx, Some(owner), bucket)
        && !reading::is_host(cx.analysis, bucket, "prepare_inputs");
    own.then(|| Span::new(part.start.max(begun), part.end)).filter(|part| !part.is_empty())
}

/// Whether a long pause inside a step ends with the step's graph, and only the step's own mark says what the host did: the graph is
/// the forward pass.
fn ends_with_graph(rank: &Rank, gap: &Gap, owner: &Owner) -> bool {
    let graph = reading::owner(rank, gap).is_some_and(|op| op.in_graph && op.first_of_call);
    graph && owner.wraps && !gap.between_steps && gap.span.len() >= BEFORE_GRAPH
}

/// Whether no record of the host but a range says what it does.
fn is_silent(cx: &Context<'_>, bucket: Bucket) -> bool {
    ["range", "unknown"].iter().any(|label| reading::is_host(cx.analysis, bucket, label))
}
