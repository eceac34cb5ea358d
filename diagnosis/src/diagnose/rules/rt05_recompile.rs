//! RT-05: compilation in the steady part of the run.

use model::{Area, EvidenceClass::HostApi, SliceId, Span};

use super::{
    change,
    gate::interrupting,
    pauses,
    reading::{self, Recurs},
};
use crate::{
    analysis::{Bucket, Call, Confidence, Edit, Layer, Workload, idle::Gap},
    diagnose::{
        Competing, Evidence, Intervention, Trigger,
        estimate::LEAST_GAIN,
        relations::{Advice, Feeds, Relations, Role},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
    platform::HostCall,
};

/// The rule.
pub struct Recompile;

static DOC: Doc = Doc {
    id: "RT-05",
    title: Text::new("Compilation or module load in the steps", "步内编译或加载模块"),
    layer: Layer::Runtime,
    needs: &[HostApi],
    advice: Advice::Device,
    relations: Relations {
        yields_to: &["RT-06"],
        board: &[Feeds::Area(Area::CompileStability)],
        role: Some(Role::StartUp),
        ..Relations::NONE
    },
    sees: Text::new(
        "Steps after warm-up hold compilation, autotuning or module loads while the device is idle.",
        "预热之后的步里仍出现编译、自动调优或模块加载，期间设备空闲。",
    ),
    matters: Text::new(
        "A new shape that reaches the compiler stalls every sequence of the batch, often for many steps' worth of time.",
        "触发编译的新形状会让整批序列停顿，往往相当于很多个步的时间。",
    ),
    trigger: Text::new(
        "Any compilation in a step that counts, of whatever batch, with the pause of 1 ms and more that ends directly in a module load: at least two such steps (without marked steps, two such pauses), or one longer than 5 median steps; together at least 1 % of the time of the workload.",
        "计入统计的步（不论批大小）中出现编译（含不短于 1 ms、紧接模块加载的停顿）：至少两个这样的步（无步标记时为两次这样的停顿），或单次超过 5 个中位步时；合计至少占该工作负载时间的 1%。",
    ),
    source: Text::new(
        "Structural: a steady run compiles nothing. The two-or-five-steps gate is the common gate for stalls.",
        "结构性判据：稳态不应编译。两次或五步的门槛是停顿类规则的通用门槛。",
    ),
    guards: Text::new(
        "Steps that compile at the start of the run do not count. A module that is loaded lazily once is not a recompilation. Graphs that are built again have their own rule (RT-06).",
        "运行开头的编译步不计入。仅一次的惰性模块加载不算重编译。重建图另有规则（RT-06）。",
    ),
    verify: Text::new(
        "Warm up with every batch size and length that is served: no compile call is left in the steps that count.",
        "用服务中出现的全部批大小与长度预热：计入统计的步中不再有编译调用。",
    ),
};

impl Rule for Recompile {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn reads_logs(&self) -> bool {
        true
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let compiles = || cx.analysis.ranks.iter().any(|rank| !rank.gaps.is_empty());
        if cx.is_logged() && !compiles() && !cx.log_says(|step| step.compile_hit.is_some()) {
            return Outcome::Abstain(Message::plain(Text::new(
                "the log does not say which steps compiled; log compile_hit and compile_ms of each step",
                "日志未说明哪些步发生了编译；请为每步记录 compile_hit 与 compile_ms",
            )));
        }
        let mut found = Vec::new();
        for workload in cx.workloads() {
            let (rank, class) = (workload.rank, workload.class);
            let builds = reading::graph_builds(cx.trace, rank);
            let pauses = reading::pauses(&workload, Recurs::Step, |gap| compiling(cx, gap, &builds));
            let Some(cost) = interrupting(&workload, &pauses, LEAST_GAIN) else { continue };
            let (rows, loads) = compile_calls(&workload);
            let trigger = Trigger {
                formula: Text::new(
                    "idle time in compilation or module load / class time",
                    "编译或模块加载造成的空闲 / 该类总时间",
                ),
                value: cost.share,
                threshold: LEAST_GAIN,
            };
            let claim = Message::new(
                Text::new(
                    "{stalls} stalls to compile code or load a module in the steady steps of {class}: {cost} per step on average ({share}), the longest {longest}.",
                    "{class} 在稳态步中因编译或模块加载停顿 {stalls} 次：平均每步 {cost}（{share}），最长 {longest}。",
                ),
                [
                    ("class", Value::Raw(class.key.clone())),
                    ("stalls", Value::Count(pauses.len() as u64)),
                    ("cost", Value::Ns(cost.per_step)),
                    ("share", Value::Share(cost.share)),
                    ("longest", Value::Ns(pauses.iter().copied().max().unwrap_or(0))),
                ],
            );
            let change =
                Intervention { removes: cost.per_step, layer: Layer::Runtime, edits: compiled(cx, &workload, &builds) };
            let once = Text::new("a module was loaded lazily, once", "仅一次惰性加载模块");
            let first = Text::new("modules were loaded lazily, each once", "各模块仅被惰性加载一次");
            let rival = match loads {
                Loads::Once => Competing::open(
                    once,
                    Text::new(
                        "there is a single module load; a longer capture decides",
                        "只有一次模块加载；更长的采集可以判定",
                    ),
                ),
                Loads::OneStep => Competing::open(
                    first,
                    Text::new(
                        "all of it lies in one step, and nothing is compiled; a capture of several steps decides",
                        "全部位于一个步内，且没有编译；包含多步的采集可以判定",
                    ),
                ),
                Loads::Again => Competing::refuted(
                    once,
                    Text::new("it happens more than once, or compiles", "不止一次，或确有编译"),
                ),
            };
            let finding = cx
                .event(&DOC, &workload, claim, trigger, change)
                .with(Evidence::new(
                    Text::new("idle per step in compilation", "每步编译造成的空闲"),
                    Value::Ns(cost.per_step),
                    rows,
                ))
                .against(rival);
            found.extend(finding.gated(if loads == Loads::Again { cost.most } else { Confidence::Low }));
        }
        found.into_iter().collect()
    }
}

/// Idle time of a gap in compilation that is no construction of a graph, with the time in which the host made what it then loads.
fn compiling(cx: &Context<'_>, gap: &Gap, builds: &[Span]) -> i64 {
    let compiles = gap.parts.iter().filter(|(b, _)| *b == Bucket::Compile).map(|(_, s)| *s);
    let spans: Vec<Span> = reading::merged(compiles.chain(pauses::before_load(cx, gap)).collect());
    spans.iter().map(|s| s.len()).sum::<i64>() - reading::overlap(&spans, builds)
}

/// How often modules are loaded in the steps that count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Loads {
    /// A single time, and nothing is compiled.
    Once,
    /// In one step only, and nothing is compiled: as many modules may have been used for the first time.
    OneStep,
    /// In several steps, or something is compiled.
    Again,
}

/// Compile calls of the steps that count, and how often there are any.
fn compile_calls(workload: &Workload<'_>) -> (Vec<SliceId>, Loads) {
    let of = |step| reading::calls(workload.rank, step).iter().filter(|call| is_compile(call.kind));
    let calls = || workload.steps().flat_map(of);
    let loads_only = calls().all(|call| call.kind == HostCall::ModuleLoad);
    let steps = workload.steps().filter(|step| of(step).next().is_some()).count();
    let loads = match calls().count() {
        1 if loads_only => Loads::Once,
        _ if loads_only && steps == 1 => Loads::OneStep,
        _ => Loads::Again,
    };
    (reading::sample(calls().map(|call| call.slice)), loads)
}

/// Nothing is compiled or loaded any more; what builds a graph stays.
fn compiled(cx: &Context<'_>, workload: &Workload<'_>, builds: &[Span]) -> Vec<Edit> {
    let building = |span: Span| reading::overlap(&[span], builds) > 0;
    let compiles = |gap: &Gap, b: Bucket| b == Bucket::Compile && !building(gap.span);
    let mut edits = change::host_time(workload.rank, workload.steps(), compiles, 0);
    let rank = workload.rank;
    let made = workload.steps().flat_map(|step| reading::gaps(rank, step)).filter(|gap| !building(gap.span));
    let made =
        made.filter_map(|gap| Some((gap, reading::owner(rank, gap).and_then(|op| rank.timeline.call(op))?.track)));
    let made = made.flat_map(|(gap, track)| pauses::before_load(cx, gap).into_iter().map(move |span| (track, span)));
    edits.extend(change::shortened(made, 0));
    let calls = |c: &Call| is_compile(c.kind) && !building(Span::new(c.start, c.end));
    edits.extend(workload.classes.iter().flat_map(|class| change::without_calls(workload.rank, class, calls)));
    edits
}

fn is_compile(kind: HostCall) -> bool {
    matches!(kind, HostCall::Compile | HostCall::ModuleLoad)
}
