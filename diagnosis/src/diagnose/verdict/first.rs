//! The second statement: what to change first, whatever layer it lies in.

use model::Ns;

use super::{VerdictLayer, case::Case};
use crate::{
    analysis::{Class, Confidence, Rank},
    diagnose::{estimate::Estimate, finding::Finding},
    i18n::{Message, Text, Value},
};

/// The change that gains the most for sure.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct First {
    /// Rule that found it.
    pub rule: &'static str,
    /// Its title.
    pub title: Text,
    /// Layer in which the change is made.
    pub layer: VerdictLayer,
    /// The rank whose step it is, where the statement before speaks of another.
    pub rank: Option<u32>,
    /// Step now, and without the cost at best and at worst, ns.
    pub from: Ns,
    /// At best.
    pub to_low: Ns,
    /// At worst.
    pub to_high: Ns,
    /// How sure it is.
    pub confidence: Confidence,
}

impl First {
    pub(super) fn of(case: &Case<'_>, finding: &Finding) -> Self {
        let Estimate { from, to_low, to_high, .. } = finding.estimate;
        Self {
            rule: finding.rule,
            title: case.rules.doc(finding.rule).map_or(Text::new("", ""), |doc| doc.title),
            layer: VerdictLayer::of(finding.layer),
            rank: other_rank(case, finding),
            from,
            to_low,
            to_high,
            confidence: finding.confidence,
        }
    }

    /// Rule and gain, for a sentence.
    pub fn gain(&self) -> Message {
        let share = |to: Ns| Value::Share((self.from - to) as f64 / self.from.max(1) as f64);
        let of = match self.rank {
            Some(rank) => {
                let said = Text::new("on rank {rank} ", "rank {rank} 上 ");
                Message::new(said, [("rank", Value::Count(rank.into()))]).within()
            }
            None => Value::Text(Text::new("", "")),
        };
        let args = [
            ("of", of),
            ("rule", Value::Raw(self.rule.to_owned())),
            ("title", Value::Text(self.title)),
            ("from", Value::Ns(self.from)),
            ("low", Value::Ns(self.to_low)),
            ("high", Value::Ns(self.to_high)),
            ("least", share(self.to_high)),
            ("most", share(self.to_low)),
        ];
        let text = if self.to_high >= self.from {
            Text::new(
                "{rule} ({title}), {of}{from} → {low} at best (−{most} at most)",
                "{rule}（{title}），{of}{from} → 最好 {low}（最多 −{most}）",
            )
        } else {
            Text::new(
                "{rule} ({title}), {of}{from} → {low} to {high} (−{least} to −{most})",
                "{rule}（{title}），{of}{from} → {low} 至 {high}（−{least} 至 −{most}）",
            )
        };
        Message::new(text, args)
    }
}

/// The rank whose step a finding's estimate is of, where the first statement speaks of another: the one that its figures are of if that
/// step is as long, else the slowest that it names.
fn other_rank(case: &Case<'_>, finding: &Finding) -> Option<u32> {
    let (spoken, _) = case.longest?;
    let named = case.cx.analysis.ranks.iter().filter(|rank| finding.ranks.contains(&rank.rank));
    let of: Vec<(&Rank, &Class)> =
        named.filter_map(|rank| Some((rank, rank.classes.iter().find(|class| class.key == finding.class)?))).collect();
    let own = of
        .iter()
        .find(|(rank, class)| rank.rank == finding.selected_on && rank.workload(class).mean() == finding.estimate.from);
    let slowest = of.iter().max_by_key(|(rank, class)| (class.mean(), std::cmp::Reverse(rank.rank)));
    own.or(slowest).map(|(rank, _)| rank.rank).filter(|rank| *rank != spoken.rank)
}
