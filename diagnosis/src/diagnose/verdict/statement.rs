//! The headline of a capture on which nothing forbids a verdict: where the time is, and what to change first.

use model::{EvidenceClass, Ns};

use super::{
    First, Place, VerdictLayer,
    case::{BECAUSE, Case, Ruling},
    doubts::Unjudged,
    headline::subject,
};
use crate::{
    analysis::{AnchorKind, Class, Confidence, Layer, Rank},
    diagnose::limits::{PeakSource, Rate},
    i18n::{Message, Text, Value},
};

/// Share of the step from which a layer is blamed whatever comes first (decided form of the verdict).
const MOST: f64 = 0.60;

/// Time of the host alone over the step from which the headline names it; own value, below it the mark and the step agree.
const ALONE: f64 = 0.05;

/// Where the time is.
const WHERE: Text = Text::new(
    "{subject} ({class}{beside}{of}): {lasts} {step}{around}; the device is busy for {busy} of it. {share} is {layer}, {bucket} alone {part}. {change}",
    "{subject}（{class}{beside}{of}）：{lasts} {step}{around}，设备忙碌占 {busy}。{layer}层占 {share}，其中 {bucket} 占 {part}。{change}",
);
/// The same of time whose cause the capture does not show.
const NOWHERE: Text = Text::new(
    "{subject} ({class}{beside}{of}): {lasts} {step}{around}; the device is busy for {busy} of it. For {share} the capture does not show the cause, {bucket} alone {part}. {change}",
    "{subject}（{class}{beside}{of}）：{lasts} {step}{around}，设备忙碌占 {busy}。{share} 的时间采集未显示原因，其中 {bucket} 占 {part}。{change}",
);
/// What comes first lies where most of the time is.
const SAME: Text = Text::new("Fix first: {gain}.", "首先应改：{gain}。");
/// The same where the findings of that layer explain little of its time.
const PARTLY: Text = Text::new(
    "The findings explain {explained} of that layer. Fix first: {gain}.",
    "各发现只解释了该层的 {explained}。首先应改：{gain}。",
);
/// It lies elsewhere, and nobody knows what most of the time was.
const UNKNOWN: Text = Text::new(
    "No cause was found there. Fix first, in the {other} layer: {gain}.",
    "该部分未找到原因。首先应改的在{other}层：{gain}。",
);
/// It lies elsewhere, and most of the time has no finding.
const ELSEWHERE: Text = Text::new(
    "No finding in that layer saves 1 %. Fix first, in the {other} layer: {gain}.",
    "该层没有收益达到 1% 的发现；首先应改的在{other}层：{gain}。",
);
/// It lies elsewhere, and what was found where most of the time is gains less, or may gain nothing.
const LESS: Text = Text::new(
    "Fix first, in the {other} layer: {gain}. The findings in the {layer} layer save less or are less certain.",
    "首先应改的在{other}层：{gain}；{layer}层中的发现收益更小或更不确定。",
);
/// Nothing was found.
const NOTHING: Text = Text::new("No cause was found.", "未找到原因。");
/// Nothing was found, and nobody knows how fast the operators could be.
const UNJUDGED: Text = Text::new(
    "No cause was found. How fast the operators could be was not judged.",
    "未找到原因。算子还能多快未作判断。",
);

/// Nothing was found, and of the longest operator of known work its rate says how fast it could be.
const RATED: Text = Text::new(
    "No cause was found. {operator} takes {part} of the time and reaches {rate} of its limit by {peak} peaks.",
    "未找到原因。{operator} 占时间的 {part}，按{peak}峰值达到其上限的 {rate}。",
);
/// Share of a layer's time below which its findings do not explain it (decided form of the verdict).
const EXPLAINED: f64 = 1.0 / 3.0;
/// Part of the time that an operator has at least for its rate to be in the headline; own value.
const LONG: f64 = 0.1;

/// What is said where no gate of the verdict forbids it; `None` without a step that counts.
pub(super) fn of(case: &Case<'_>, place: Option<&Place>, first: Option<&First>, doubts: &[Unjudged]) -> Option<Ruling> {
    let (rank, class) = case.longest?;
    let place = place?;
    let deciding = doubts.iter().find(|doubt| doubt.decides);
    let blames_place = place.share >= MOST || first.is_some_and(|first| first.layer == place.layer);
    let layer = match first {
        _ if blames_place => place.layer,
        _ if deciding.is_some() => VerdictLayer::Undecided,
        Some(first) => first.layer,
        None => VerdictLayer::None,
    };
    let own = case.weighty().filter(|f| first.is_some_and(|first| VerdictLayer::of(f.layer) == first.layer));
    let doubted = deciding.into_iter().flat_map(|doubt| doubt.because.iter().copied());
    let rests: Vec<&'static str> = match first {
        Some(_) if layer != VerdictLayer::Undecided => own.map(|f| f.rule).collect(),
        _ => doubted.collect(),
    };
    let mut because: Vec<&'static str> = Vec::new();
    for rule in rests {
        if !because.contains(&rule) && because.len() < BECAUSE {
            because.push(rule);
        }
    }
    // That no rule fired is weaker evidence than a rule that fired.
    let confidence = match first {
        Some(first) => first.confidence,
        None if layer == VerdictLayer::Undecided => Confidence::Low,
        None => case.cx.confidence(rank).min(Confidence::Medium),
    };
    Some(Ruling { layer, headline: headline(case, (rank, class), place, first), confidence, because })
}

fn headline(case: &Case<'_>, (rank, class): (&Rank, &Class), place: &Place, first: Option<&First>) -> Message {
    let change = match first {
        None if case.cx.analysis.evidence.has(EvidenceClass::Probes) || place.layer != VerdictLayer::Operator => {
            Message::plain(NOTHING)
        }
        None => rated(case, (rank, class), place).unwrap_or_else(|| Message::plain(UNJUDGED)),
        Some(first) => {
            let found = case.weighty().any(|f| VerdictLayer::of(f.layer) == place.layer);
            // Of waits for others, and of another rank's steps, what is explained here says nothing.
            let of_place =
                |own: &&Explained| own.layer != Layer::Communication && VerdictLayer::of(own.layer) == place.layer;
            let own = case.explained.iter().find(of_place).filter(|_| first.rank.is_none());
            let explained = own.map_or(1.0, |own| own.share);
            let text = match () {
                () if first.layer == place.layer && place.share >= MOST && explained < EXPLAINED => PARTLY,
                () if first.layer == place.layer => SAME,
                () if found => LESS,
                () if place.layer == VerdictLayer::Undecided => UNKNOWN,
                () => ELSEWHERE,
            };
            Message::new(
                text,
                [
                    ("gain", first.gain().within()),
                    ("explained", Value::Share(explained)),
                    ("other", Value::Text(first.layer.words())),
                    ("layer", Value::Text(place.layer.words())),
                ],
            )
        }
    };
    let whole = rank.anchor.kind == AnchorKind::WholeCapture;
    let lasts = if whole { Text::new("it lasts", "时长") } else { Text::new("a step takes", "每步平均") };
    let args = [
        ("subject", subject(rank, class)),
        ("class", Value::Raw(class.key.clone())),
        ("beside", beside(rank, class)),
        ("of", of_rank(case, rank)),
        ("lasts", Value::Text(lasts)),
        ("step", Value::Ns(place.mean)),
        ("around", around(rank, place.mean)),
        ("busy", Value::Share(place.busy)),
        ("share", Value::Share(place.share)),
        ("layer", Value::Text(place.layer.words())),
        ("bucket", Value::Raw(place.bucket.clone())),
        ("part", Value::Share(place.part)),
        ("change", change.within()),
    ];
    Message::new(if place.layer == VerdictLayer::Undecided { NOWHERE } else { WHERE }, args)
}

/// How fast the longest operator of known work is, where that operator is a visible part of the time.
fn rated(case: &Case<'_>, (rank, class): (&Rank, &Class), place: &Place) -> Option<Message> {
    // Rates are those of one class.
    case.limits.class.as_ref().filter(|(of, key)| *of == rank.rank && *key == class.key)?;
    let part = |rate: &Rate| rate.per_step as f64 / place.mean.max(1) as f64;
    let known =
        case.limits.rates.iter().filter(|rate| rate.share().is_some_and(|share| share <= 1.0) && part(rate) >= LONG);
    let rate = known.max_by_key(|rate| rate.per_step)?;
    let peak = match rate.peak_source? {
        PeakSource::Measured => Text::new("measured", "实测"),
        PeakSource::Published => Text::new("published", "公布"),
    };
    let args = [
        ("operator", Value::Raw(format!("{} {}", rate.operator, rate.shape))),
        ("part", Value::Share(part(rate))),
        ("rate", Value::Share(rate.share()?)),
        ("peak", Value::Text(peak)),
    ];
    Some(Message::new(RATED, args))
}

/// Steps of other classes that the mean is over too: the tables are about the class alone.
fn beside(rank: &Rank, class: &Class) -> Value {
    const SAYS: Text =
        Text::new(" with {others} of {steps} steps in other classes", "，连同 {steps} 步中属于其他类的 {others} 步");
    let workload = rank.workload(class);
    let others = workload.steady().saturating_sub(class.steady);
    match others {
        0 => Value::Text(Text::new("", "")),
        _ => {
            let counts = [("others", others), ("steps", workload.steady())];
            Message::new(SAYS, counts.map(|(name, count)| (name, Value::Count(count as u64)))).within()
        }
    }
}

/// Of which rank the headline speaks, where there are several.
fn of_rank(case: &Case<'_>, rank: &Rank) -> Value {
    match case.cx.analysis.ranks.len() {
        0 | 1 => Value::Text(Text::new("", "")),
        _ => Message::new(Text::new(", rank {rank}", "，rank {rank}"), [("rank", Value::Count(rank.rank.into()))])
            .within(),
    }
}

/// How much longer the mark of the only step is than its device work, where that is worth a word.
fn around(rank: &Rank, step: Ns) -> Value {
    const SAYS: Text = Text::new(
        " from its first device operation to its last (its mark lasts {mark}: for {lead} of it only the host works)",
        "（从首个设备操作到最后一个；其标记长 {mark}，其中 {lead} 仅主机工作）",
    );
    match rank.lead.as_ref().filter(|lead| lead.alone() as f64 >= ALONE * step as f64) {
        Some(lead) => Message::new(SAYS, [("mark", Value::Ns(lead.mark)), ("lead", Value::Ns(lead.alone()))]).within(),
        None => Value::Text(Text::new("", "")),
    }
}

/// Share of a layer that its findings explain.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Explained {
    /// The layer.
    pub layer: Layer,
    /// Claimed time over its time, in 0..=1.
    pub share: f64,
}
