//! What the profiler itself summed contradicts the rows, or another of its sums: they are not whole, or not of the run that was
//! summed.

use model::{Ns, Stated};

use super::{Case, UNEXPLAINED, Unjudged};
use crate::{
    analysis::contradiction::{Against, Contradiction},
    i18n::{Message, Text, Value},
};

/// What it says of times.
const TIMES: Text = Text::new(
    "`{source}` beside the tables says that rank {rank} has {stated} of {what}, the rows that were read add up to {read}: rows are missing or are of another run, so export the profile again whole",
    "表旁的 `{source}` 称 rank {rank} 的{what}为 {stated}，而读到的行合计为 {read}：表中缺行或属于另一次运行，请重新完整导出",
);
/// What it says of counts.
const COUNTS: Text = Text::new(
    "`{source}` beside the tables counts {stated} of the {what} of rank {rank}, {read} rows were read: rows are missing or are of another run, so export the profile again whole",
    "表旁的 `{source}` 称 rank {rank} 的{what}共 {stated} 个，而读到 {read} 行：表中缺行或属于另一次运行，请重新完整导出",
);

/// What it says of two files of sums.
const SUMS: Text = Text::new(
    "the sums of rank {rank}, of which nothing else was kept, contradict each other: `{source}` says {stated} of {what}, `{other}` adds up to {read}. One of the two was changed or is of another run, so that what rests on them is uncertain: export the profile of that rank again",
    "rank {rank} 只保留了合计，且合计相互矛盾：`{source}` 称{what}为 {stated}，而由 `{other}` 得出 {read}。其中之一被改动过或属于另一次运行，依据它们的结论不确定：请重新导出该 rank 的采集",
);
/// The same of how many were summed.
const SUMMED: Text = Text::new(
    "the sums of rank {rank}, of which nothing else was kept, contradict each other: `{source}` counts {stated} {what}, `{other}` {read}. One of the two was changed or is of another run, so that what rests on them is uncertain: export the profile of that rank again",
    "rank {rank} 只保留了合计，且合计相互矛盾：`{source}` 计有 {stated} 个{what}，`{other}` 为 {read} 个。其中之一被改动过或属于另一次运行，依据它们的结论不确定：请重新导出该 rank 的采集",
);
/// What it says of a file whose parts do not add up to its whole.
const ITSELF: Text = Text::new(
    "the sums of rank {rank}, of which nothing else was kept, contradict each other: `{source}` says {stated} of {what}, and its own parts add up to {read}. The file was changed or cut, so that what rests on it is uncertain: export the profile of that rank again",
    "rank {rank} 只保留了合计，且合计相互矛盾：`{source}` 称{what}为 {stated}，而其各部分之和为 {read}。该文件被改动或截断过，依据它的结论不确定：请重新导出该 rank 的采集",
);

fn words(what: Stated) -> Text {
    match what {
        Stated::Computing => Text::new("computing", "计算时间"),
        Stated::Communication => Text::new("communication", "通信时间"),
        Stated::ExposedCommunication => Text::new("communication that no computing hides", "未被计算掩盖的通信时间"),
        Stated::OverlappedCommunication => Text::new("communication that computing hides", "被计算掩盖的通信时间"),
        Stated::Free => Text::new("free time", "空闲时间"),
        Stated::Stage => Text::new("steps", "步时间"),
        Stated::Receives => Text::new("bubbles (receives from another stage)", "气泡（从其他阶段接收）"),
        Stated::Collectives => Text::new("collectives", "集合通信"),
        Stated::Kernels => Text::new("kernels", "内核"),
        Stated::HostCalls => Text::new("calls of the host", "主机调用"),
    }
}

/// How far apart the two times are, ns, and the two counts.
fn distance(of: &Contradiction) -> (u64, u64) {
    (of.stated.abs_diff(of.read), of.counts.map_or(0, |(a, b)| a.abs_diff(b)))
}

/// What the first sentence says of the whole run where the rows are only some of it.
const WHOLE: Text = Text::new(
    "The profiler's own sums ({source}) say of the whole run: {free} of {all} idle, {exposed} in communication with nothing beside it, {computing} computing.",
    "profiler 自己的合计（{source}）给出整个运行的情况：{all} 中空闲占 {free}，未被掩盖的通信占 {exposed}，计算占 {computing}。",
);

/// The profiler's own sums of the steps, where they contradict the rows: the rows are a sample then.
pub(in super::super) fn first(case: &Case<'_>) -> Option<Message> {
    let contradictions = &case.cx.analysis.contradictions;
    let more = contradictions.iter().filter(|of| of.against == Against::Rows && of.stated > of.read);
    more.map(|of| of.source.as_str()).find_map(|source| whole(case, source))
}

/// What one file says of all steps.
fn whole(case: &Case<'_>, source: &str) -> Option<Message> {
    let trace = case.cx.trace;
    let own = trace.stated.iter().filter(|sum| trace.strings.get(sum.source) == source && sum.name.is_none());
    let part = |what| own.clone().filter(|sum| sum.what == what).map(|sum| sum.time).reduce(Ns::saturating_add);
    let [free, exposed, computing] =
        [Stated::Free, Stated::ExposedCommunication, Stated::Computing].map(|what| part(what).filter(|ns| *ns >= 0));
    let (free, exposed, computing) = (free?, exposed.unwrap_or(0), computing?);
    let all = free.saturating_add(exposed).saturating_add(computing);
    let share = |ns: Ns| Value::Share(ns as f64 / all.max(1) as f64);
    let args = [
        ("source", Value::Raw(source.to_owned())),
        ("all", Value::Ns(all)),
        ("free", share(free)),
        ("exposed", share(exposed)),
        ("computing", share(computing)),
    ];
    (all > 0).then(|| Message::new(WHOLE, args))
}

pub(super) fn ask(case: &Case<'_>) -> Option<Unjudged> {
    let all = &case.cx.analysis.contradictions;
    // What was recorded comes before sums, the device's time before calls, and the rank that the verdict speaks of before others.
    let spoken = |of: &Contradiction| case.longest.is_some_and(|(rank, _)| rank.rank == of.rank);
    let of_device = |of: &Contradiction| of.what != Stated::HostCalls;
    let of_rows = |of: &Contradiction| of.against == Against::Rows;
    let worst = all.iter().max_by(|a, b| {
        let key = |of: &Contradiction| {
            (of_rows(of) && of_device(of), of_device(of), spoken(of), distance(of), std::cmp::Reverse(of.rank))
        };
        key(a).cmp(&key(b))
    })?;
    let counted = matches!(worst.what, Stated::Kernels | Stated::HostCalls | Stated::Collectives);
    let by_count = worst.counts.filter(|(a, b)| a != b && counted);
    let (stated, read) = match by_count {
        Some((stated, read)) => (Value::Count(stated), Value::Count(read)),
        None => (Value::Ns(worst.stated), Value::Ns(worst.read)),
    };
    let (text, other) = match (&worst.against, by_count) {
        (Against::Rows, Some(_)) => (COUNTS, ""),
        (Against::Rows, None) => (TIMES, ""),
        (Against::Sums(other), _) if *other == worst.source => (ITSELF, ""),
        (Against::Sums(other), Some(_)) => (SUMMED, other.as_str()),
        (Against::Sums(other), None) => (SUMS, other.as_str()),
    };
    let args = [
        ("source", Value::Raw(worst.source.clone())),
        ("other", Value::Raw(other.to_owned())),
        ("rank", Value::Count(u64::from(worst.rank))),
        ("what", Value::Text(words(worst.what))),
        ("stated", stated),
        ("read", read),
    ];
    // Nobody can tell what the missing rows are: all of the step stands in doubt. Sums are in doubt themselves.
    let of_step = |ns: i64| case.longest.map_or(1.0, |(_, class)| ns as f64 / class.total.max(1) as f64);
    let share = match worst.against {
        Against::Rows => 1.0,
        Against::Sums(_) => of_step(worst.stated.max(worst.read)).clamp(UNEXPLAINED, 1.0),
    };
    let decides = of_device(worst) && (of_rows(worst) || spoken(worst));
    Some(Unjudged { share, sentence: Message::new(text, args), because: Vec::new(), decides })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use model::{Stated, StatedSum, TraceSink};

    use crate::{analysis::script::Script, diagnose::diagnose, i18n::Lang, platform::Packs};

    /// 200 rows of a run of 31 s were "66 % not shown", next to a file that said 88 % idle.
    #[test]
    fn the_profilers_totals_come_first_where_the_rows_are_a_sample() {
        let said = |computing: i64| {
            let mut s = Script::default();
            for i in 0..20 {
                s.kernel(1, "gemm_kernel", (i * 10_000, i * 10_000 + 5_000), None, None);
            }
            let source = s.builder.intern("step_trace_time.csv");
            for (what, time) in [(Stated::Computing, computing), (Stated::Free, 9_000_000_000)] {
                s.builder.stated(StatedSum { process: None, source, what, name: None, count: None, time });
            }
            let (trace, analysis) = s.analyze();
            let found = diagnose(&trace, &analysis, &Packs::embedded().unwrap());
            found
                .verdict
                .place
                .unwrap()
                .outside
                .map_or_else(String::new, |said| said.render(Lang::En, |v| format!("{v:?}")))
        };
        let sample = said(1_000_000_000);
        assert!(sample.contains("say of the whole run: Share(0.9) of Ns(10000000000) idle"), "{sample}");
        assert!(!said(100_000).contains("whole run"), "the rows are all there");
    }
}
