//! Every kernel begins and ends in one nanosecond: the clock of the device gave no durations, so that every share of time is of
//! nothing.

use super::{Case, Ruling};
use crate::{
    analysis::OpKind,
    i18n::{Message, Text, Value},
};

/// What it says.
const SENTENCE: Text = Text::new(
    "All {n} kernels begin and end at the same time: the profiler's device clock is broken, so no kernel has a duration and nothing can be said about where the time goes. Record again with another version of the profiler or driver; under WSL and in virtual machines, record on the host.",
    "全部 {n} 个内核的开始与结束时间相同：profiler 的设备时钟失效，内核没有时长，无法判断时间花在哪里。请更换 profiler 或驱动版本后重新采集；在 WSL 或虚拟机中请改在宿主机上采集。",
);

pub(super) fn decide(case: &Case<'_>) -> Option<Ruling> {
    let ops = || case.cx.analysis.ranks.iter().flat_map(|rank| &rank.timeline.ops);
    let kernels = || ops().filter(|op| matches!(op.kind, OpKind::Compute | OpKind::Comm));
    let n = kernels().count() as u64;
    let broken = n > 0 && kernels().all(|op| op.start == op.end);
    broken.then(|| Ruling::undecided(Message::new(SENTENCE, [("n", Value::Count(n))]), []))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use model::Category;

    use crate::{analysis::script::Script, diagnose::diagnose, i18n::Lang, platform::Packs};

    fn headline(kernels: &[(i64, i64)]) -> String {
        let mut s = Script::default();
        for (start, end) in kernels {
            s.host(Category::HostApi, "cudaLaunchKernel", (*start - 5, *start - 1));
            s.kernel(1, "gemm_kernel", (*start, *end), None, None);
        }
        let (trace, analysis) = s.analyze();
        let diagnosis = diagnose(&trace, &analysis, &Packs::embedded().unwrap());
        diagnosis.verdict.headline.render(Lang::En, |value| format!("{value:?}"))
    }

    /// Such a capture was one with 0 ns of work and a share of 0.0 % for every kernel.
    #[test]
    fn kernels_without_duration_are_a_broken_clock() {
        assert!(headline(&[(1_000, 1_000), (9_000, 9_000)]).contains("device clock is broken"));
        assert!(!headline(&[(1_000, 1_000), (9_000, 9_500)]).contains("device clock is broken"));
    }
}
