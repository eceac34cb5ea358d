//! What sums over a run, or measurements of kernels that were run alone, say of the kernels: where their time is, and what
//! limits the longest.

mod largest;
mod totals;
#[cfg(test)]
mod totals_tests;

use std::collections::BTreeMap;

use model::{Conditions, KernelSummary, Metric, Ns, ProbeUnit, Reading, Trace};

use super::signals::measured::{self, LATENCY, NEAR_LIMIT};
use crate::{
    i18n::{Message, Text, Value},
    platform::{CanonicalOp, Packs, moves_memory},
};

/// Kernels of one operator, in sums over a run.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct OperatorSum {
    /// The operator.
    pub op: CanonicalOp,
    /// Executions.
    pub count: u64,
    /// Sum of their durations, ns.
    pub total: Ns,
    /// Name of its kernel with the largest sum.
    pub kernel: String,
    /// Sum of that kernel, ns.
    pub most: Ns,
}

/// The sums over the run that have times, by operator; the largest first.
pub fn by_operator(trace: &Trace, packs: &Packs) -> Vec<OperatorSum> {
    let mut kernels: BTreeMap<&str, (u64, Ns)> = BTreeMap::new();
    for sum in trace.summaries.iter().filter(|s| s.conditions == Conditions::Run) {
        let Some(total) = sum.total else { continue };
        let name = trace.strings.get(sum.kernel);
        if moves_memory(name) {
            continue;
        }
        let known = kernels.entry(name).or_default();
        *known = (known.0.saturating_add(sum.count), known.1.saturating_add(total));
    }
    let mut found: BTreeMap<CanonicalOp, OperatorSum> = BTreeMap::new();
    for (kernel, (count, total)) in kernels {
        let op = packs.op(kernel).op;
        let none = || OperatorSum { op, count: 0, total: 0, kernel: kernel.to_owned(), most: total };
        let sum = found.entry(op).or_insert_with(none);
        sum.count = sum.count.saturating_add(count);
        sum.total = sum.total.saturating_add(total);
        if total > sum.most {
            (sum.kernel, sum.most) = (kernel.to_owned(), total);
        }
    }
    let mut found: Vec<OperatorSum> = found.into_values().collect();
    found.sort_by_key(|sum| std::cmp::Reverse(sum.total));
    found
}

/// The headline of a capture of such numbers and no timeline; `None` where it holds none.
pub(super) fn headline(trace: &Trace, packs: &Packs) -> Option<Message> {
    let of_run = trace.summaries.iter().any(|sum| sum.conditions == Conditions::Run && sum.total.is_some());
    let totals = || totals::headline(trace, packs);
    if of_run { totals() } else { of_alone(trace).or_else(totals) }
}

fn of_alone(trace: &Trace) -> Option<Message> {
    // A kernel that the profiler lists and measured nothing of is no measurement.
    let says = |s: &&KernelSummary| s.total.is_some() || !s.metrics.is_empty() || !s.counters.is_empty();
    let alone = || trace.summaries.iter().filter(|s| s.conditions == Conditions::Isolated).filter(says);
    let n = Value::Count(alone().count() as u64);
    let first = alone().next()?;
    let timed = alone().filter(|s| s.total.is_some()).max_by_key(|s| s.total);
    let Some((longest, total)) = timed.and_then(|s| Some((s, s.total?))) else {
        return Some(Message::new(
            Text::new(
                "The capture holds measurements of kernels that were run alone ({n}, {kernel} first), without durations and without a timeline: nothing can be said of time.",
                "采集仅含单独执行的内核的测量值（{n} 个，首个为 {kernel}），没有时长也没有时间线：无法说明时间。",
            ),
            [("n", n), ("kernel", Value::Kernel(trace.strings.get(first.kernel).to_owned()))],
        ));
    };
    let args = [
        ("n", n),
        ("kernel", Value::Kernel(trace.strings.get(longest.kernel).to_owned())),
        ("time", Value::Ns(total / i64::try_from(longest.count.max(1)).unwrap_or(Ns::MAX))),
        ("limit", limit(trace, longest).within()),
        ("pipe", busiest_pipe(trace, longest).within()),
    ];
    Some(Message::new(
        Text::new(
            "The capture holds measurements of kernels that were run alone ({n}), and no timeline: nothing can be said of the time of a run. The longest, {kernel}, takes {time}{limit}{pipe}.",
            "采集仅含单独执行的内核的测量值（{n} 个），没有时间线：无法说明一次运行的时间。其中最长的 {kernel} 耗时 {time}{limit}{pipe}。",
        ),
        args,
    ))
}

/// What the memory of the device reached when it was measured, or what its maker says, B/s, with the words for it.
pub(crate) fn peak_of_memory(trace: &Trace) -> Option<(f64, Text)> {
    const MEASURED: Text = Text::new("the measured peak", "实测峰值");
    const PUBLISHED: Text = Text::new("the published peak", "标称峰值");
    let measured = trace.probes.rows.iter().filter(|row| row.unit == ProbeUnit::BytesPerSecond && row.probe == "read");
    let measured = measured.filter_map(|row| match &row.value {
        Reading::Value(statistic) => Some(statistic.median),
        _ => None,
    });
    let published = || trace.manifest.value("hardware.memory_bandwidth")?.parse().ok();
    let found = measured.reduce(f64::max).map(|rate| (rate, MEASURED));
    found.or_else(|| Some((published()?, PUBLISHED))).filter(|(rate, _)| *rate > 0.0)
}

/// Ratio to the peak of the memory up to which a rate is believed: caches of the device's memory side can exceed it a little; own
/// value.
const BELIEVED: f64 = 1.2;

/// The pipe of a core that worked most of its cycles, where the source counts pipes under names of its own: `aiv_vec_ratio` of
/// `vector0`. Source: msprof op, `PipeUtilization.csv`.
fn busiest_pipe(trace: &Trace, kernel: &KernelSummary) -> Message {
    const PIPE: Text = Text::new("; its busiest pipe is {pipe} ({use})", "；最忙的流水是 {pipe}（{use}）");
    let pipes = kernel.counters.iter().map(|(name, value)| (trace.strings.get(*name), *value));
    let pipes = pipes.filter(|(name, value)| name.ends_with("_ratio") && (0.0..=1.0).contains(value));
    let busiest = pipes.max_by(|a, b| a.1.total_cmp(&b.1));
    busiest.map_or(Message::plain(Text::new("", "")), |(pipe, share)| {
        Message::new(PIPE, [("pipe", Value::Raw(pipe.to_owned())), ("use", Value::Share(share))])
    })
}

/// The rate at which a kernel moved data from and to the device's memory, next to the peak where one is known; empty where the
/// rate was not measured.
pub(crate) fn rate_of(trace: &Trace, kernel: &KernelSummary) -> Message {
    let moved = kernel.metric(Metric::DramBytesPerSecond).map(|rate| {
        (
            Text::new(
                ", and moves {rate} from and to the device's memory{beside}",
                "，与显存间的传输速率为 {rate}{beside}",
            ),
            rate,
        )
    });
    let read = kernel.metric(Metric::DramReadBytesPerSecond).map(|rate| {
        (Text::new(", and reads {rate} from the device's memory{beside}", "，从显存读取的速率为 {rate}{beside}"), rate)
    });
    let Some((text, rate)) = moved.or(read) else { return Message::plain(Text::new("", "")) };
    // Counters of the whole device count what others moved, or several runs of the kernel.
    const BEYOND: Text = Text::new(
        ", and its counters give {rate}, more than {peak} of {most}: they count more than this kernel",
        "，其计数器给出 {rate}，超过{peak} {most}：计入的不止该内核",
    );
    if let Some((most, words)) = peak_of_memory(trace).filter(|(most, _)| rate > BELIEVED * most) {
        let args = [("peak", Value::Text(words)), ("most", Value::BytesPerSecond(most))];
        return Message::new(BEYOND, args.into_iter().chain([("rate", Value::BytesPerSecond(rate))]));
    }
    const BESIDE: Text = Text::new(" ({share} of {peak}, {most})", "（达{peak} {most} 的 {share}）");
    let beside = peak_of_memory(trace).map_or(Value::Text(Text::new("", "")), |(most, words)| {
        let args =
            [("share", Value::Share(rate / most)), ("peak", Value::Text(words)), ("most", Value::BytesPerSecond(most))];
        Message::new(BESIDE, args).within()
    });
    Message::new(text, [("rate", Value::BytesPerSecond(rate)), ("beside", beside)])
}

/// What limits a kernel, as far as that was measured. The marks are those of the rules on measured kernels.
fn limit(trace: &Trace, kernel: &KernelSummary) -> Message {
    let scalar = kernel.metric(Metric::Scalar).map(|percent| percent / 100.0);
    match (measured::compute(kernel), measured::memory(kernel)) {
        (Some(compute), _) if compute >= NEAR_LIMIT && scalar == Some(compute) => Message::new(
            Text::new(
                ", and the scalar unit of its busiest core works for {use} of that: control flow, addresses and scalar arithmetic set the pace",
                "，其最忙核心的标量单元工作占 {use}：控制流、地址与标量运算决定其快慢",
            ),
            [("use", Value::Share(compute))],
        ),
        (Some(compute), Some(memory)) => {
            let units = of_units(compute, memory, kernel.metric(Metric::CoresBusy));
            let rate = rate_of(trace, kernel);
            Message::new(
                Text::new("{units}{rate}", "{units}{rate}"),
                [("units", units.within()), ("rate", rate.within())],
            )
        }
        _ => of_busy_units(kernel).unwrap_or_else(|| rate_of(trace, kernel)),
    }
}

/// Which units are at work, where only the time of that was counted and no share of a peak. What waits for memory counts as
/// busy, so the busiest is what the kernel runs into, not how well it is used.
fn of_busy_units(kernel: &KernelSummary) -> Option<Message> {
    let [vector, memory] =
        [Metric::VectorBusy, Metric::LoadStoreBusy].map(|metric| Some(kernel.metric(metric)? / 100.0));
    let (busiest, vector) = (memory?, vector.unwrap_or(0.0));
    (busiest >= NEAR_LIMIT && busiest > vector).then(|| {
        Message::new(
            Text::new(
                ", and the units that load and store are busy or wait for the memory for {use} of that: most likely access to memory sets its pace",
                "，其间 {use} 的时间访存单元在工作或等待存储：很可能由存储访问决定其快慢",
            ),
            [("use", Value::Share(busiest))],
        )
    })
}

fn of_units(compute: f64, memory: f64, cores: Option<f64>) -> Message {
    let cores = cores.map_or(1.0, |percent| percent / 100.0);
    let text = match (compute.max(memory), memory >= compute) {
        // Idle cores lower every average over the device: the units of those at work may be near their limit.
        (most, _) if most < LATENCY && cores < NEAR_LIMIT => Text::new(
            ", and its cores have work for {cores} of their cycles: too few blocks or the tail of the last ones limit it (arithmetic {compute} of its peak, memory system {memory})",
            "，各核心仅 {cores} 的周期有工作：限制它的是块数太少或末尾几块的拖尾（算力 {compute}，存储系统 {memory}）",
        ),
        (most, _) if most < LATENCY => Text::new(
            ", and uses neither its arithmetic ({compute}) nor the memory system ({memory}) to 60 %: latency is the usual cause, or a data type that does not reach that peak",
            "，算力（{compute}）与存储系统（{memory}）的利用率均不到 60%：通常是延迟所致，或其数据类型达不到该峰值",
        ),
        (most, true) if most >= NEAR_LIMIT => Text::new(
            ", and the memory system limits it ({memory} of its peak; arithmetic {compute})",
            "，受存储系统限制（达其峰值的 {memory}；算力 {compute}）",
        ),
        (most, false) if most >= NEAR_LIMIT => Text::new(
            ", and arithmetic limits it ({compute} of its peak; memory system {memory})",
            "，受算力限制（达其峰值的 {compute}；存储系统 {memory}）",
        ),
        (_, true) => Text::new(
            ", and the memory system is its busiest unit ({memory} of its peak; arithmetic {compute})",
            "，最忙的是存储系统（达其峰值的 {memory}；算力 {compute}）",
        ),
        (_, false) => Text::new(
            ", and arithmetic is its busiest unit ({compute} of its peak; memory system {memory})",
            "，最忙的是算力（达其峰值的 {compute}；存储系统 {memory}）",
        ),
    };
    let shares = [("compute", compute), ("memory", memory), ("cores", cores)];
    Message::new(text, shares.map(|(name, share)| (name, Value::Share(share))))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use model::TraceSink;

    use super::*;
    use crate::{analysis::script::Script, diagnose::diagnose, i18n::Lang};

    /// Name, conditions, duration and what was measured.
    type Row<'r> = (&'r str, Conditions, Option<Ns>, &'r [(Metric, f64)]);

    fn headline_of(rows: &[Row<'_>]) -> String {
        let mut script = Script::default();
        for (name, conditions, total, metrics) in rows {
            let kernel = script.builder.intern(name);
            let metrics = metrics.to_vec();
            script.builder.summary(KernelSummary { total: *total, metrics, ..KernelSummary::of(kernel, *conditions) });
        }
        let (trace, analysis) = script.analyze();
        let diagnosis = diagnose(&trace, &analysis, &Packs::embedded().unwrap());
        diagnosis.verdict.headline.render(Lang::En, |value| format!("{value:?}"))
    }

    #[test]
    fn the_longest_kernel_that_ran_alone_is_named_with_what_limits_it() {
        let said = |metrics: &[(Metric, f64)]| {
            headline_of(&[
                ("short", Conditions::Isolated, Some(10), &[(Metric::Memory, 99.0)]),
                ("long", Conditions::Isolated, Some(1_000), metrics),
            ])
        };
        let units = |compute: f64, memory: f64| said(&[(Metric::Compute, compute), (Metric::Memory, memory)]);
        for (headline, part) in [
            (units(20.0, 94.0), "the memory system limits it"),
            (units(85.0, 30.0), "arithmetic limits it"),
            (units(70.0, 30.0), "arithmetic is its busiest unit"),
            (units(32.0, 25.0), "latency is the usual cause"),
            (
                said(&[(Metric::Compute, 32.0), (Metric::Memory, 25.0), (Metric::CoresBusy, 66.0)]),
                "the tail of the last ones",
            ),
            (said(&[(Metric::Compute, 5.0), (Metric::Scalar, 99.0)]), "the scalar unit of its busiest core works"),
            (said(&[(Metric::DramReadBytesPerSecond, 2e11)]), "and reads {rate}"),
            (said(&[(Metric::LoadStoreBusy, 99.7), (Metric::Occupancy, 79.4)]), "most likely access to memory"),
            (said(&[(Metric::LoadStoreBusy, 90.0), (Metric::VectorBusy, 95.0)]), r#"en: "", zh"#),
            (said(&[(Metric::LoadStoreBusy, 40.0)]), r#"en: "", zh"#),
            (said(&[]), r#"takes Ns(1000)Message(Message { text: Text { en: "", zh"#),
        ] {
            assert!(headline.contains(r#"Kernel("long")"#) && headline.contains(part), "{headline}");
        }
        let untimed = headline_of(&[("k", Conditions::Isolated, None, &[(Metric::Registers, 32.0)])]);
        assert!(untimed.contains("without durations"), "{untimed}");
    }
}
