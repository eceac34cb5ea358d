//! The device was hardly touched: what its few copies take is no run, and the host is all that the capture tells of.

use model::Ns;

use super::{Case, Ruling, host_only};
use crate::{
    analysis::touched,
    i18n::{Message, Text, Value},
};

/// What it says.
const SENTENCE: Text = Text::new(
    "No kernel was recorded: all that ran on the device are {n} copies or fills of {total} in all, so the capture is in effect of the host alone.{largest}",
    "没有记录到 kernel：设备上只有 {n} 次拷贝或填充，共 {total}，因此该采集实际上只有主机侧。{largest}",
);
/// The same of one.
const ONE: Text = Text::new(
    "No kernel was recorded: all that ran on the device is one copy or fill of {total}, so the capture is in effect of the host alone.{largest}",
    "没有记录到 kernel：设备上只有一次拷贝或填充，为时 {total}，因此该采集实际上只有主机侧。{largest}",
);

pub(super) fn decide(case: &Case<'_>) -> Option<Ruling> {
    let analysis = case.cx.analysis;
    if !touched::hardly(case.cx.trace, &analysis.ranks) {
        return None;
    }
    let ops = || analysis.ranks.iter().flat_map(|rank| &rank.timeline.ops);
    let total: Ns = ops().map(|op| op.dur()).sum();
    let n = ops().count() as u64;
    let largest = host_only::largest(case.cx.trace).map_or(Value::Text(Text::new("", "")), Message::within);
    let args = [("n", Value::Count(n)), ("total", Value::Ns(total)), ("largest", largest)];
    Some(Ruling::undecided(Message::new(if n == 1 { ONE } else { SENTENCE }, args), []))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use model::Category;

    use crate::{analysis::script::Script, diagnose::diagnose, i18n::Lang, platform::Packs};

    /// One fill of 1.47 µs in a program of 0.4 s was told as a window of copies, of which a change saves 80 to 100 %.
    #[test]
    fn a_single_fill_is_no_run() {
        let said = |kernel: bool| {
            let mut s = Script::default();
            s.host(Category::FrameworkOp, "aten::linear", (0, 90_000_000));
            s.copy("cudaMemsetAsync", (1_000, 1_500), "device", "device", 64, (2_000, 3_470));
            if kernel {
                s.kernel(1, "gemm_kernel", (4_000, 5_000), None, None);
            }
            let (trace, analysis) = s.analyze();
            let found = diagnose(&trace, &analysis, &Packs::embedded().unwrap());
            let costs: Vec<_> = found.findings.iter().filter(|f| f.cost > 0).map(|f| (f.rule, &f.claim)).collect();
            let costs = format!("{costs:?}");
            (found.verdict.headline.render(Lang::En, |value| format!("{value:?}")), costs)
        };
        let (headline, costs) = said(false);
        assert!(headline.contains("one copy or fill of Ns(1470)"), "{headline}");
        assert!(headline.contains("aten::linear") && costs == "[]", "{headline} {costs}");
        assert!(!said(true).0.contains("No kernel was recorded"));
    }
}
