//! RT-23: the steps that count still get faster at the start.

use model::{EvidenceClass::Device, Ns};

use crate::{
    analysis::{Bucket, Class, Confidence, Layer, Rank, Selection, Step, equal_work},
    diagnose::{
        Competing, Evidence, Over, Severity, Trigger,
        estimate::{Estimate, Intervention, Method},
        relations::{Advice, Relations, Role},
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

/// A leading step so far above the steps after it was held up by something that happens once; own value, above the 3 % or
/// so of the fall that one of them has in a warm-up.
const ONCE: f64 = 1.25;
/// How many steps after it are looked at.
const NEXT: usize = 5;

/// Excess of the pairs of steps of the first third in which the later one has less work over those in which it has more, as
/// a share of all: random work has none; own value.
const FALLING: f64 = 0.5;
/// Steps of which the pairs are looked at; a trend shows in fewer.
const LOOKED_AT: usize = 1_000;

/// The rule.
pub struct WarmUp;

static DOC: Doc = Doc {
    id: "RT-23",
    title: Text::new("Warm-up not finished", "预热未完成"),
    layer: Layer::Runtime,
    needs: &[Device],
    advice: Advice::Device,
    relations: Relations { role: Some(Role::StartUp), ..Relations::NONE },
    sees: Text::new(
        "The recording begins before the run has warmed up: the first steps of a class are slower than the rest.",
        "记录在预热完成前就开始了：该类最初的步比其余步慢。",
    ),
    matters: Text::new(
        "Statistics over such a run describe the warm-up, and a comparison with it is not fair.",
        "用这样的运行做统计，描述的是预热过程；拿它做对比不公平。",
    ),
    trigger: Text::new(
        "Of the first 20 % of the recorded steps of a class the device works in four in five more than 3 % longer than the median of the rest, and longer than in three quarters of the rest; and over the first third its work falls (Kendall's tau at least 0.5).",
        "某类已记录步的前 20% 中，五分之四的步的设备工作时间比其余步的中位数长 3% 以上，且长于其余步的四分之三；并且前三分之一步的工作时间持续下降（Kendall τ 不小于 0.5）。",
    ),
    source: Text::new(
        "3 % trend over the first 20 %: own value. Kendall's tau: Mann, 1945; its limit of 0.5: own value.",
        "前 20% 的 3% 趋势：自定值。Kendall τ：Mann，1945；0.5 的限值：自定值。",
    ),
    guards: Text::new(
        "Where the batch changes, the steps are compared as if all had the same. Steps that get slower are not warm-up but growing contexts. A first step or two that is slow is no trend, and one above 1.25 times the median of the five after it is left out. Waiting for the host, for another rank or for a request is no work and does not count, nor do transfers. At least 15 steps are needed. Steps that were set aside as warm-up count here and in no other rule.",
        "批大小变化时，按相同工作量折算后再比较。越来越慢不是预热，而是上下文增长。仅头一两步慢不算趋势；开头超过其后五步中位数 1.25 倍的步不计入。等待主机、其他 rank 或请求不算工作，不计入，传输也不计入。至少需要 15 步。被划为预热的步只在本规则中计入。",
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
            let Some(Trend { early, late, mean, gain, steps }) = trend(rank, class) else { continue };
            let value = early as f64 / late as f64 - 1.0;
            let trigger = Trigger {
                formula: Text::new(
                    "median work of the device in the first 20 % of the steps / median in the rest - 1",
                    "前 20% 步的设备工作时间中位数 / 其余步的中位数 − 1",
                ),
                value,
                threshold: TREND,
            };
            let claim = Message::new(
                Text::new(
                    "In the first fifth of the steps of {class} the device works {excess} longer than in the rest ({early} against {late}): warm-up had not finished, and a step takes {mean} on average where it would take {settled} once warm.",
                    "{class} 前五分之一步的设备工作时间比其余步长 {excess}（{early} 对 {late}）：预热尚未完成；每步平均 {mean}，预热完成后为 {settled}。",
                ),
                [
                    ("class", Value::Raw(class.key.clone())),
                    ("excess", Value::Share(value)),
                    ("early", Value::Ns(early)),
                    ("late", Value::Ns(late)),
                    ("mean", Value::Ns(mean)),
                    ("settled", Value::Ns(mean - gain)),
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
            finding.over = Over::Class;
            finding.estimate = Estimate::gaining(mean, (gain, gain), Method::Bound);
            finding.severity = Severity::of_estimate(&finding.estimate);
            found.extend(finding.gated(Confidence::Medium));
        }
        found.into_iter().collect()
    }
}

/// What the steps of a class say of its start, times in ns.
struct Trend {
    /// Median work of the device in the first fifth.
    early: Ns,
    /// The same in the rest.
    late: Ns,
    /// Mean of all windows.
    mean: Ns,
    /// What the mean is above that of the second half, which a warm-up has long left behind.
    gain: Ns,
    steps: usize,
}

/// The trend, if the first fifth stands out and the first third falls. What the analysis set aside as warm-up was recorded
/// all the same. Waiting says nothing of the device: a host that stalls once, noise on the other ranks and a server without
/// requests make windows longer that are not warming up.
fn trend(rank: &Rank, class: &Class) -> Option<Trend> {
    let counts = |s: &&Step| s.class == class.index && matches!(s.selection, Selection::Steady | Selection::WarmUp);
    let steps: Vec<&Step> = rank.steps.iter().filter(counts).collect();
    // Fewer sequences or shorter prompts are no warmth.
    let windows = equal_work::windows(&steps, class.churns);
    // What happens once, such as loading or compilation, is no part of the trend.
    let once = windows.windows(1 + NEXT).take_while(|w| is_alone(w)).count();
    let (steps, windows) = (steps.get(once..)?, windows.get(once..)?);
    if steps.len() < FEW {
        return None;
    }
    let works = |b: Bucket| !b.is_idle() && !matches!(b, Bucket::CommTransfer | Bucket::CommWait);
    let work = |s: &Step| s.buckets.iter().filter(|(b, _)| works(*b)).map(|(_, ns)| ns).sum::<Ns>();
    let work = equal_work::of(steps, class.churns, work);
    let (first, rest) = work.split_at(work.len() / 5);
    let (early, late, upper) = (quantile(first, 2)?, quantile(rest, 2)?, quantile(rest, 3)?);
    let stands_out = |w: &&Ns| **w > upper && **w as f64 > late as f64 * (1.0 + TREND);
    let most = MOST.0 * first.len() <= MOST.1 * first.iter().filter(stands_out).count();
    if late <= 0 || !most || fall(work.get(..work.len() / 3)?) < FALLING {
        return None;
    }
    let half = steps.len() / 2;
    let (all, settled) = (mean(windows), mean(windows.get(half..)?));
    // The windows become shorter by no more than the work does.
    let share = 1.0 - mean(work.get(half..)?) as f64 / mean(&work).max(1) as f64;
    let gain = (all - settled).min((all as f64 * share) as Ns);
    (gain > 0).then_some(Trend { early, late, mean: all, gain, steps: steps.len() })
}

/// Whether the first of some steps is far above the median of the others.
fn is_alone(windows: &[Ns]) -> bool {
    let next = windows.get(1..).and_then(|next| quantile(next, 2));
    windows.first().zip(next).is_some_and(|(first, next)| *first as f64 > ONCE * next as f64)
}

/// Kendall's tau of a series against falling time: 1 where every value is below all before it, -1 where it is above them,
/// near 0 where there is no trend.
fn fall(series: &[Ns]) -> f64 {
    let series = series.get(..series.len().min(LOOKED_AT)).unwrap_or(series);
    let later = |i: usize| series.iter().skip(i + 1);
    let signs = series.iter().enumerate().flat_map(|(i, a)| later(i).map(move |b| (a - b).signum()));
    let (sum, pairs) = signs.fold((0, 0), |(sum, pairs), sign| (sum + sign, pairs + 1));
    sum as f64 / f64::from(pairs.max(1))
}

/// The value below which so many quarters lie.
fn quantile(of: &[Ns], quarters: usize) -> Option<Ns> {
    let mut sorted = of.to_vec();
    sorted.sort_unstable();
    sorted.get((sorted.len() * quarters / 4).min(sorted.len().saturating_sub(1))).copied()
}

fn mean(of: &[Ns]) -> Ns {
    of.iter().sum::<Ns>() / of.len().max(1) as Ns
}
