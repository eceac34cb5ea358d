//! No kernel was recorded: whatever is said of copies and pauses is not what the program computes.

use super::{Case, Unjudged};
use crate::{
    analysis::OpKind,
    i18n::{Message, Text, Value},
};

/// What it says.
const SENTENCE: Text = Text::new(
    "what the program computes: no kernel was recorded, only {n} copies and fills; record a part of the run in which kernels run",
    "程序计算了什么：没有记录到 kernel，只有 {n} 次拷贝与填充；请采集有 kernel 运行的部分",
);

/// The same where other devices of the capture ran kernels.
const ELSEWHERE: Text = Text::new(
    "what the program computes on this device: only {n} copies and fills were recorded there; kernels ran on {others} further devices or ranks",
    "程序在该设备上计算了什么：其上只记录到 {n} 次拷贝与填充；kernel 运行在另外 {others} 个设备或 rank 上",
);

pub(super) fn ask(case: &Case<'_>) -> Option<Unjudged> {
    let (rank, _) = case.longest?;
    let ops = &rank.timeline.ops;
    let copies = ops.iter().filter(|op| matches!(op.kind, OpKind::Copy(_))).count();
    let computes = |rank: &&crate::analysis::Rank| rank.timeline.ops.iter().any(|op| op.kind == OpKind::Compute);
    let others = case.cx.analysis.ranks.iter().filter(computes).count() as u64;
    let says = if others > 0 { ELSEWHERE } else { SENTENCE };
    let sentence = Message::new(says, [("n", Value::Count(copies as u64)), ("others", Value::Count(others))]);
    (copies > 0 && copies == ops.len()).then(|| Unjudged { share: 1.0, sentence, because: Vec::new(), decides: false })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::{analysis::script::Script, diagnose::diagnose, i18n::Lang, platform::Packs};

    /// A window of copies alone was told as a run that waits for its host.
    #[test]
    fn a_capture_of_copies_alone_says_that_no_kernel_was_recorded() {
        let doubts = |kernel: bool| {
            let mut s = Script::default();
            for i in 0..20 {
                s.copy(
                    "cudaMemcpyAsync",
                    (i * 10_000, i * 10_000 + 500),
                    "HtoD",
                    "pinned",
                    64,
                    (i * 10_000 + 900, i * 10_000 + 6_000),
                );
            }
            if kernel {
                s.kernel(1, "gemm_kernel", (900_000, 905_000), None, None);
            }
            let (trace, analysis) = s.analyze();
            let verdict = diagnose(&trace, &analysis, &Packs::embedded().unwrap()).verdict;
            verdict
                .unjudged
                .iter()
                .map(|doubt| doubt.sentence.render(Lang::En, |v| format!("{v:?}")))
                .collect::<String>()
        };
        assert!(doubts(false).contains("no kernel was recorded, only Count(20) copies and fills"), "{}", doubts(false));
        assert!(!doubts(true).contains("no kernel"), "{}", doubts(true));
    }
}
