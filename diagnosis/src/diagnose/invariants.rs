//! What must always hold of a report (decided form of the verdict): a finding that breaks it loses its gain, and the report says
//! so, rather than print what cannot be.

use model::Ns;

use super::{
    claims,
    estimate::{Estimate, LEAST_GAIN, Method},
    finding::{Finding, Severity},
    gain::Counterfactual,
};
use crate::{
    analysis::{Analysis, Class, Layer, Rank},
    i18n::{Message, Text, Value},
};

/// Something that cannot be.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Breach {
    /// Which of the things that must hold it breaks.
    pub law: Law,
    /// Rule that said it, if one did.
    pub rule: Option<&'static str>,
    /// What it is, in a sentence.
    pub sentence: Message,
}

/// What must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Law {
    /// A change gains no more than the time that it concerns.
    GainWithinClaim,
    /// A bound is no larger than the time of the layer in which the change is made.
    GainWithinLayer,
    /// A gain refers to the mean step that everything refers to.
    OneBase,
    /// A step without a cost is no longer than the step.
    ShorterWithout,
    /// A layer without time has none on the critical path.
    PathWithinTable,
    /// What a rank waits in a collective and what that transfers are no longer than the collective.
    LastWaitsNot,
}

/// Two means of the same steps differ by rounding only, ns.
const ROUNDING: Ns = 2;
/// Part of the time that a change concerns by which its gain may be larger: what the replay is wrong by, and the least that two
/// runs differ by (`Estimate::gaining`), own value.
const SLACK: f64 = 0.10;

/// Takes the gain from every finding that breaks a law, and says which.
pub fn enforce(findings: &mut [Finding], analysis: &Analysis) -> Vec<Breach> {
    let mut out = Vec::new();
    for finding in findings.iter_mut().filter(|f| f.layer != Layer::Measurement) {
        let Some(law) = broken(finding, analysis) else { continue };
        let args = [
            ("rule", Value::Raw(finding.rule.to_owned())),
            ("from", Value::Ns(finding.estimate.from)),
            ("low", Value::Ns(finding.estimate.to_low)),
            ("why", Value::Text(law.words())),
        ];
        let sentence = Message::new(
            Text::new(
                "the gain of {rule} ({from} → {low}) was withheld: {why}",
                "{rule} 的收益（{from} → {low}）未予采用：{why}",
            ),
            args,
        );
        out.push(Breach { law, rule: Some(finding.rule), sentence });
        finding.estimate = Estimate::none(finding.estimate.from);
        finding.severity = Severity::Info;
    }
    out
}

/// What is wrong beyond single findings.
pub fn examine(analysis: &Analysis, counterfactual: &Counterfactual) -> Vec<Breach> {
    let mut out = Vec::new();
    for path in &counterfactual.paths {
        let classes = analysis.ranks.iter().filter(|rank| rank.rank == path.rank).flat_map(|rank| &rank.classes);
        let Some(class) = classes.into_iter().find(|class| class.key == path.class) else { continue };
        // The path may lead over other ranks, whose layers have time of their own.
        let lone = path.hops == 0;
        let absent = |layer: Layer| layer != Layer::Measurement && class.sum(|bucket| bucket.layer() == layer) == 0;
        if let Some((layer, _)) = path.layers.iter().find(|(layer, ns)| lone && *ns > 0 && absent(*layer)) {
            let sentence = Message::new(
                Text::new(
                    "the critical path has time in the {layer} layer, which has none",
                    "关键路径含有{layer}层的时间，而该层没有时间",
                ),
                [("layer", Value::Raw(layer.key().to_owned()))],
            );
            out.push(Breach { law: Law::PathWithinTable, rule: None, sentence });
        }
    }
    let elapsed = |rank: usize, op: u32| {
        let op = analysis.ranks.get(rank)?.timeline.ops.get(op as usize)?;
        Some(op.dur())
    };
    for wait in &analysis.job.waits {
        let transfer = analysis.job.instances.get(wait.instance).map_or(0, |instance| instance.transfer);
        let Some(elapsed) = elapsed(wait.rank, wait.op) else { continue };
        if wait.ns + transfer > elapsed + ROUNDING {
            let sentence = Message::new(
                Text::new(
                    "a rank waits {wait} in a collective of {elapsed} that transfers for {transfer}",
                    "某 rank 在时长 {elapsed} 的集合通信中等待 {wait}、传输 {transfer}",
                ),
                [("wait", Value::Ns(wait.ns)), ("elapsed", Value::Ns(elapsed)), ("transfer", Value::Ns(transfer))],
            );
            out.push(Breach { law: Law::LastWaitsNot, rule: None, sentence });
            break;
        }
    }
    out
}

fn broken(finding: &Finding, analysis: &Analysis) -> Option<Law> {
    let Estimate { from, to_low, to_high, .. } = finding.estimate;
    if to_low > to_high || to_high > from || to_low < 0 {
        return Some(Law::ShorterWithout);
    }
    let ranks = || analysis.ranks.iter().filter(|rank| finding.ranks.contains(&rank.rank));
    let classes = || ranks().flat_map(|rank| rank.classes.iter().map(move |class| (rank, class)));
    let own: Vec<(&Rank, &Class)> =
        classes().filter(|(_, class)| class.key == finding.class && class.steady > 0).collect();
    if !own.is_empty() && from > 0 && finding.estimate.method != Method::None {
        let is_base = |(rank, class): &(&Rank, &Class)| (finding.over.mean(rank, class).0 - from).abs() <= ROUNDING;
        if !own.iter().any(is_base) {
            return Some(Law::OneBase);
        }
    }
    // What one rank changes may end another one's waiting, and a device that is the host becomes faster by what is not done
    // beside it: neither has such bounds.
    let [(rank, class)] = own[..] else { return None };
    let at = analysis.ranks.iter().position(|other| std::ptr::eq(other, rank));
    let meets = analysis.job.instances.iter().flat_map(|instance| &instance.members).any(|m| Some(m.rank) == at);
    if meets || rank.timeline.on_host {
        return None;
    }
    let (_, steps) = finding.over.mean(rank, class);
    let Some(most) = claims::most(rank, steps, finding) else {
        return (from - to_low > layer_time(finding, rank, class) + ROUNDING).then_some(Law::GainWithinLayer);
    };
    let bound = most as f64 * (1.0 + SLACK) + from as f64 * 2.0 * LEAST_GAIN;
    ((from - to_low) as f64 > bound).then_some(Law::GainWithinClaim)
}

/// Time of the finding's layer, ns per step of those that it is the mean of. A device that waits for an operation of the host's
/// is idle in the runtime's layer, and a rank that computes for too long is waited for in that of communication: only what the
/// runtime costs has its layer to itself.
fn layer_time(finding: &Finding, rank: &Rank, class: &Class) -> Ns {
    let workload = finding.over.workload(rank, class);
    match finding.layer {
        Layer::Runtime => workload.per_step(|bucket| matches!(bucket.layer(), Layer::Runtime | Layer::Measurement)),
        _ => workload.mean(),
    }
}

impl Law {
    fn words(self) -> Text {
        match self {
            Self::GainWithinClaim => {
                Text::new("it is more than the time that the change concerns", "它超过了该改动所涉及的时间")
            }
            Self::GainWithinLayer => Text::new("its layer has less time than that", "该层的时间没有那么多"),
            Self::OneBase => Text::new("it refers to another step than the report", "其基准步与报告不一致"),
            Self::ShorterWithout => {
                Text::new("a step without a cost cannot be longer than the step", "去除开销后的步不可能更长")
            }
            Self::PathWithinTable | Self::LastWaitsNot => Text::new("it contradicts the table", "与表中数据矛盾"),
        }
    }
}
