//! RT-23: the steps that count still get faster at the start.

use model::{EvidenceClass::Device, Ns};

use super::reading;
use crate::{
    analysis::{Class, Confidence, Layer, Rank, Scheduler, Selection, Step},
    diagnose::{
        Competing, Evidence, Severity, Trigger,
        estimate::{Estimate, Intervention, Method},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
};

/// How much slower the first steps are; own value.
const TREND: f64 = 0.03;
/// Steps from which a fifth of them has a median worth the name.
const FEW: usize = 15;
/// Four of five of the first steps have to stand out; own value.
const MOST: (usize, usize) = (4, 5);

/// Halves of the first fifth's median above which a leading step was held up by something that happens once; own value.
const ONCE: Ns = 3;

/// The rule.
pub struct WarmUp;

static DOC: Doc = Doc {
    id: "RT-23",
    title: Text::new("Warm-up not finished", "预热未完成"),
    layer: Layer::Runtime,
    needs: &[Device],
    sees: Text::new(
        "The recording begins before the run has warmed up: the first steps of a class are slower than the rest.",
        "记录在预热完成前就开始了：该类最初的步比其余步慢。",
    ),
    matters: Text::new(
        "Statistics over such a run describe the warm-up, and a comparison with it is not fair.",
        "用这样的运行做统计，描述的是预热过程；拿它做对比不公平。",
    ),
    trigger: Text::new(
        "Of the first 20 % of the recorded steps of a class four in five are more than 3 % above the median of the rest, and above three quarters of the rest.",
        "某类已记录步的前 20% 中，五分之四的步比其余步的中位数高 3% 以上，且高于其余步的四分之三。",
    ),
    source: Text::new("3 % trend over the first 20 %: own value.", "前 20% 的 3% 趋势：自定值。"),
    guards: Text::new(
        "Steps that get slower are not warm-up but growing contexts. A first step or two that is slow is no trend, and one above 1.5 times the median of the first fifth is left out of the means. Time in which the engine counts no request does not count. At least 15 steps are needed. Steps that were set aside as warm-up count here and in no other rule.",
        "越来越慢不是预热，而是上下文增长。仅头一两步慢不算趋势；开头超过前五分之一中位数 1.5 倍的步不计入均值。引擎计数为无请求的时间不计入。至少需要 15 步。被划为预热的步只在本规则中计入。",
    ),
    verify: Text::new(
        "Discard more steps or warm up longer: the trend disappears.",
        "丢弃更多步或延长预热：趋势消失。",
    ),
};

impl Rule for WarmUp {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let scheduler = Scheduler::of(cx.trace);
        let mut found = Vec::new();
        for (rank, class) in cx.analysis.ranks.iter().flat_map(|r| r.classes.iter().map(move |c| (r, c))) {
            let Some(Trend { early, late, mean, settled, steps }) = trend(rank, class, &scheduler) else { continue };
            let value = early as f64 / late as f64 - 1.0;
            let trigger = Trigger {
                formula: Text::new(
                    "median of the first 20 % of the steps / median of the rest - 1",
                    "前 20% 步的中位数 / 其余步的中位数 − 1",
                ),
                value,
                threshold: TREND,
            };
            let claim = Message::new(
                Text::new(
                    "The first fifth of the steps of {class} is {excess} slower than the rest ({early} against {late}): warm-up had not finished, and a step takes {mean} over all of them but {settled} in the second half.",
                    "{class} 的前五分之一步比其余步慢 {excess}（{early} 对 {late}）：预热尚未完成；全部步平均 {mean}，后半段平均 {settled}。",
                ),
                [
                    ("class", Value::Raw(class.key.clone())),
                    ("excess", Value::Share(value)),
                    ("early", Value::Ns(early)),
                    ("late", Value::Ns(late)),
                    ("mean", Value::Ns(mean)),
                    ("settled", Value::Ns(settled)),
                ],
            );
            let none = Intervention::none(Layer::Runtime);
            let mut finding = cx
                .finding(&DOC, rank, class, claim, trigger, none)
                .with(Evidence::new(
                    Text::new("steps looked at", "参与判断的步数"),
                    Value::Count(steps as u64),
                    Vec::new(),
                ))
                .against(Competing::open(
                    Text::new("the first steps had other work", "最初的步工作量不同"),
                    Text::new("batch and context of each step decide", "每步的批大小与上下文长度可以判定"),
                ));
            // Measured, not modelled: what the mean of the recorded steps is above that of the settled ones.
            let gain = mean - settled;
            finding.estimate = Estimate::gaining(mean, (gain, gain), Method::Bound);
            finding.severity = Severity::of(finding.estimate.mid_gain_share());
            found.extend(finding.gated(Confidence::Medium));
        }
        found.into_iter().collect()
    }
}

/// What the steps of a class say of its start, times in ns.
struct Trend {
    /// Median of the first fifth.
    early: Ns,
    /// Median of the rest.
    late: Ns,
    /// Mean of all.
    mean: Ns,
    /// Mean of the second half, which a warm-up has long left behind.
    settled: Ns,
    steps: usize,
}

/// The trend, if the first fifth stands out. What the analysis set aside as warm-up was recorded all the same. Time without
/// a request is no part of a step's own.
fn trend(rank: &Rank, class: &Class, scheduler: &Scheduler) -> Option<Trend> {
    let counts = |s: &&Step| s.class == class.index && matches!(s.selection, Selection::Steady | Selection::WarmUp);
    let empty = |s: &Step| reading::gaps(rank, s).iter().map(|g| scheduler.empty_in(g.span)).sum::<Ns>();
    let windows: Vec<Ns> = rank.steps.iter().filter(counts).map(|s| s.window.len() - empty(s)).collect();
    if windows.len() < FEW {
        return None;
    }
    let (first, rest) = windows.split_at(windows.len() / 5);
    let quantile = |of: &[Ns], q: usize| {
        let mut sorted = of.to_vec();
        sorted.sort_unstable();
        sorted.get((sorted.len() * q / 4).min(sorted.len().saturating_sub(1))).copied()
    };
    let (early, late, upper) = (quantile(first, 2)?, quantile(rest, 2)?, quantile(rest, 3)?);
    let stands_out = |w: &&Ns| **w > upper && **w as f64 > late as f64 * (1.0 + TREND);
    let most = MOST.0 * first.len() <= MOST.1 * first.iter().filter(stands_out).count();
    // What happens once, such as loading or compilation, is no part of the trend.
    let once = first.iter().take_while(|w| 2 * **w > ONCE * early).count();
    let trending = windows.get(once..).unwrap_or(&[]);
    let mean = |of: &[Ns]| of.iter().sum::<Ns>() / of.len().max(1) as Ns;
    let (all, settled) = (mean(trending), mean(windows.get(windows.len() / 2..).unwrap_or(&[])));
    (late > 0 && most && settled < all).then_some(Trend { early, late, mean: all, settled, steps: windows.len() })
}
