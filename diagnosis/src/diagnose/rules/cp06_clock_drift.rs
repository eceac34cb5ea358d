//! CP-06: the device's clock drifts in the run, or every kernel slows down alike.

use model::{EvidenceClass::Device, Ns, Span, StringId, Trace};
use rustc_hash::FxHashMap;

use super::{measurement::about, reading};
use crate::{
    analysis::{Class, Confidence, Layer, OpKind, Rank, Step, median},
    diagnose::{
        Competing, Evidence, Finding, Trigger,
        relations::{Advice, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
    platform::CanonicalOp,
};

/// Drift from the first third of the steps to the last; the noise of a locked clock is below it (A/A runs).
const DRIFT: f64 = 0.03;
/// Steps below which there are no thirds.
const FEW: usize = 15;
/// Kernels whose drift may differ from the median drift by so much and still count as alike; own value.
const ALIKE: f64 = 0.01;
/// Share of the compared time that must drift alike; own value.
const UNIFORM: f64 = 0.8;
/// Samples of a counter in each third.
const SAMPLES: usize = 3;
/// Distinct kernels of which a common cause can be told.
const KERNELS: usize = 3;

/// The rule.
pub struct ClockDrift;

static DOC: Doc = Doc {
    id: "CP-06",
    title: Text::new("Clock or power state drifts", "时钟或功耗状态漂移"),
    layer: Layer::Measurement,
    needs: &[Device],
    advice: Advice::Device,
    relations: Relations::NONE,
    sees: Text::new(
        "From the first to the last third of the steps the device's clock changes, or the same kernels all take longer (or shorter) by the same factor.",
        "从前三分之一步到后三分之一步，设备时钟发生变化，或同样的内核全部以同一倍数变慢（或变快）。",
    ),
    matters: Text::new(
        "Two runs in different clock states cannot be compared, and a run that drifts has no single step time.",
        "时钟状态不同的两次运行不可比；漂移的运行没有单一的步时。",
    ),
    trigger: Text::new(
        "The median of a clock counter differs by more than 3 % between the first and the last third of the steps; without such a counter: the median durations of the same kernels (attention excepted) differ by more than 3 %, and kernels with 80 % of the compared time within 1 % of one another.",
        "时钟计数器的中位数在前后三分之一步之间相差超过 3%；没有该计数器时：同名内核（注意力除外）的中位时长相差超过 3%，且占比较时间 80% 的内核彼此相差不超过 1%。",
    ),
    source: Text::new(
        "3 %: spread of A/A runs. 80 % and 1 %: own values.",
        "3%：A/A 重复运行的离散度。80% 与 1%：自定值。",
    ),
    guards: Text::new(
        "Attention grows with the context and is left out. Kernels that drift apart have another cause than the clock. Steps of one class only are compared, at least 15.",
        "注意力随上下文增长，不参与比较。各内核漂移不一致说明另有原因。只比较同一类的步，且不少于 15 步。",
    ),
    verify: Text::new(
        "Lock the clocks, let the device warm up, and run again: the medians of both thirds agree.",
        "锁定时钟并充分预热后再跑：前后两段的中位数一致。",
    ),
};

impl Rule for ClockDrift {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn needs_steps(&self) -> bool {
        true
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        reading::marked(cx)
            .filter_map(|(rank, class)| {
                let thirds = thirds(rank, class)?;
                match clock(cx.trace, rank, thirds) {
                    Some((name, drift)) => (drift.abs() > DRIFT).then(|| counted(cx, rank, class, &name, drift)),
                    None => alike(rank, class).map(|drift| conjectured(cx, rank, class, drift)),
                }
            })
            .collect()
    }
}

/// The first and the last third of the steps of a class that count.
fn thirds(rank: &Rank, class: &Class) -> Option<[Span; 2]> {
    let windows: Vec<Span> = rank.steady_steps(class).map(|s| s.window).collect();
    if windows.len() < FEW {
        return None;
    }
    let third = windows.len() / 3;
    let whole = |part: &[Span]| Some(Span::new(part.first()?.start, part.last()?.end));
    Some([whole(windows.get(..third)?)?, whole(windows.get(windows.len() - third..)?)?])
}

/// A clock counter of the rank's device, and how its median changes.
fn clock(trace: &Trace, rank: &Rank, thirds: [Span; 2]) -> Option<(String, f64)> {
    let clocks = trace.counters.iter().filter(|c| c.device == Some(rank.device)).filter_map(|c| {
        let name = trace.strings.get(c.name);
        let lower = name.to_ascii_lowercase();
        let is_clock = ["clock", "freq"].iter().any(|word| lower.contains(word));
        // The compute clock; the memory's keeps its own state.
        (is_clock && !lower.contains("mem")).then_some((name, c))
    });
    clocks
        .filter_map(|(name, counter)| {
            let [early, late] = thirds.map(|span| {
                let samples = counter.t.iter().zip(&counter.value);
                let mut values: Vec<f64> =
                    samples.filter(|(t, v)| span.contains(**t) && v.is_finite()).map(|(_, v)| *v).collect();
                values.sort_by(f64::total_cmp);
                (values.len() >= SAMPLES).then(|| values.get(values.len() / 2).copied())?
            });
            let (early, late) = (early?, late?);
            (early > 0.0).then(|| (name.to_owned(), late / early - 1.0))
        })
        .max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))
}

/// By how much the same kernels all took longer in the last third, if they drift alike.
fn alike(rank: &Rank, class: &Class) -> Option<f64> {
    let steps: Vec<&Step> = rank.steady_steps(class).collect();
    let third = steps.len() / 3;
    // With other rows the same kernel has other work: each number of rows is compared with itself.
    let rows = |step: &Step| step.rows.or(step.facts.batch.map(u64::from)).filter(|_| class.churns);
    let durations = |part: &[&Step]| {
        let mut by_name: FxHashMap<(StringId, Option<u64>), Vec<Ns>> = FxHashMap::default();
        let attention = |op: CanonicalOp| matches!(op, CanonicalOp::AttnDecode | CanonicalOp::AttnPrefill);
        for (rows, op) in part.iter().flat_map(|s| rank.ops_of(s).iter().map(move |op| (rows(s), op))) {
            if op.kind == OpKind::Compute && !attention(op.op) {
                by_name.entry((op.name, rows)).or_default().push(op.dur());
            }
        }
        by_name
    };
    let (early, mut late) = (durations(steps.get(..third)?), durations(steps.get(steps.len() - third..)?));
    // Drift and time of every kernel that ran equally often in both thirds.
    let mut drifts: Vec<(f64, Ns)> = Vec::new();
    for (name, before) in early {
        let alike = |after: &Vec<Ns>| {
            if class.churns { after.len().min(before.len()) >= SAMPLES } else { after.len() == before.len() }
        };
        let Some(after) = late.remove(&name).filter(alike) else { continue };
        let time = before.iter().sum();
        if let (Some(a @ 1..), Some(b)) = (median(before), median(after)) {
            drifts.push((b as f64 / a as f64 - 1.0, time));
        }
    }
    if drifts.len() < KERNELS {
        return None;
    }
    drifts.sort_by(|a, b| a.0.total_cmp(&b.0));
    let all: Ns = drifts.iter().map(|(_, time)| time).sum();
    let mut below = 0;
    let median = drifts.iter().find(|(_, time)| {
        below += time;
        2 * below >= all
    })?;
    let close: Ns = drifts.iter().filter(|(d, _)| (d - median.0).abs() <= ALIKE).map(|(_, time)| time).sum();
    (median.0.abs() > DRIFT && close as f64 >= UNIFORM * all as f64).then_some(median.0)
}

fn counted(cx: &Context<'_>, rank: &Rank, class: &Class, name: &str, drift: f64) -> Finding {
    let claim = Message::new(
        Text::new(
            "The counter {name} changes by {drift} from the first to the last third of the steps of {class}: the run has no single clock state.",
            "计数器 {name} 从 {class} 的前三分之一步到后三分之一步变化 {drift}：本次运行没有单一的时钟状态。",
        ),
        [
            ("name", Value::Raw(name.to_owned())),
            ("drift", Value::Share(drift)),
            ("class", Value::Raw(class.key.clone())),
        ],
    );
    let formula =
        Text::new("clock in the last third / clock in the first third - 1", "后三分之一时钟 / 前三分之一时钟 − 1");
    let trigger = Trigger { formula, value: drift, threshold: DRIFT };
    about(cx, &DOC, rank, class, claim, trigger).with(Evidence::new(
        Text::new("change of the clock's median", "时钟中位数的变化"),
        Value::Share(drift),
        Vec::new(),
    ))
}

fn conjectured(cx: &Context<'_>, rank: &Rank, class: &Class, drift: f64) -> Finding {
    let claim = Message::new(
        Text::new(
            "The same kernels of {class} all take {drift} other time in the last third of the steps than in the first: the device's clock or power state changed.",
            "{class} 的同样内核在后三分之一步的耗时与前三分之一相比全部变化 {drift}：设备的时钟或功耗状态发生了变化。",
        ),
        [("class", Value::Raw(class.key.clone())), ("drift", Value::Share(drift))],
    );
    let formula = Text::new(
        "median duration of the same kernels in the last third / in the first third - 1, alike for 80 % of the time",
        "同样内核后三分之一的中位时长 / 前三分之一的中位时长 − 1，且 80% 的时间一致",
    );
    let trigger = Trigger { formula, value: drift, threshold: DRIFT };
    let mut finding = about(cx, &DOC, rank, class, claim, trigger)
        .with(Evidence::new(
            Text::new("change of the kernels' median durations", "内核中位时长的变化"),
            Value::Share(drift),
            Vec::new(),
        ))
        .against(Competing::open(
            Text::new("something else takes the device's memory bandwidth", "有其他负载占用设备访存带宽"),
            Text::new("samples of clock and power decide", "时钟与功耗采样可以判定"),
        ));
    finding.confidence = finding.confidence.min(Confidence::Medium);
    finding
}
