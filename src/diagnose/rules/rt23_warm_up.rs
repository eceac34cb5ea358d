//! RT-23: the steps that count still get faster at the start.

use model::EvidenceClass::Device;

use crate::{
    analysis::{Class, Confidence, Layer, Rank},
    diagnose::{
        Competing, Evidence, Severity, Trigger,
        estimate::{Estimate, Intervention},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
};

/// How much slower the first steps are; own value.
const TREND: f64 = 0.03;
/// Steps from which a fifth of them has a median worth the name.
const FEW: usize = 15;

/// The rule.
pub struct WarmUp;

static DOC: Doc = Doc {
    id: "RT-23",
    title: Text::new("Warm-up not finished", "预热未完成"),
    layer: Layer::Runtime,
    needs: &[Device],
    sees: Text::new(
        "After the claimed warm-up the first steps of a class are still slower than the rest.",
        "声称预热结束后，该类最初的步仍比其余步慢。",
    ),
    matters: Text::new(
        "Statistics over such a run describe the warm-up, and a comparison with it is not fair.",
        "用这样的运行做统计，描述的是预热过程；拿它做对比不公平。",
    ),
    trigger: Text::new(
        "The median of the first 20 % of the steps is more than 3 % above the median of the rest, and above three quarters of the rest.",
        "前 20% 步的中位数比其余步的中位数高 3% 以上，且高于其余步的四分之三。",
    ),
    source: Text::new("3 % trend over the first 20 %: own value.", "前 20% 的 3% 趋势：自定值。"),
    guards: Text::new(
        "Steps that get slower are not warm-up but growing contexts. At least 15 steps are needed.",
        "越来越慢不是预热，而是上下文增长。至少需要 15 步。",
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
        let mut found = Vec::new();
        for (rank, class) in cx.analysis.ranks.iter().flat_map(|r| r.classes.iter().map(move |c| (r, c))) {
            let Some((early, late, steps)) = trend(rank, class) else { continue };
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
                    "The first fifth of the steps of {class} is {excess} slower than the rest ({early} against {late}): warm-up had not finished.",
                    "{class} 的前五分之一步比其余步慢 {excess}（{early} 对 {late}）：预热尚未完成。",
                ),
                [
                    ("class", Value::Raw(class.key.clone())),
                    ("excess", Value::Share(value)),
                    ("early", Value::Ns(early)),
                    ("late", Value::Ns(late)),
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
            finding.estimate = Estimate::none(finding.estimate.from);
            finding.severity = Severity::Info;
            finding.confidence = finding.confidence.min(Confidence::Medium);
            found.push(finding);
        }
        found.into_iter().collect()
    }
}

/// Medians of the first fifth and of the rest, and the number of steps, if the first fifth stands out.
fn trend(rank: &Rank, class: &Class) -> Option<(i64, i64, usize)> {
    let windows: Vec<i64> = rank.steady_steps(class).map(|s| s.window.len()).collect();
    if windows.len() < FEW {
        return None;
    }
    let (first, rest) = windows.split_at(windows.len() / 5);
    let quantile = |of: &[i64], q: usize| {
        let mut sorted = of.to_vec();
        sorted.sort_unstable();
        sorted.get((sorted.len() * q / 4).min(sorted.len().saturating_sub(1))).copied()
    };
    let (early, late, upper) = (quantile(first, 2)?, quantile(rest, 2)?, quantile(rest, 3)?);
    (late > 0 && early as f64 > late as f64 * (1.0 + TREND) && early > upper).then_some((early, late, windows.len()))
}
