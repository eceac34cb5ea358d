//! The frame of rules that say: so much of each step of a class is lost, for the reason that the rule names.

use model::Ns;

use super::gate::{Cost, interrupting, recurring, stalling};
use crate::{
    analysis::{Class, Rank, Step, Workload},
    diagnose::{
        Finding, Intervention, Trigger,
        rule::{Context, Doc},
    },
    i18n::{Message, Text, Value},
};

/// A class of steps of one rank, as a rule of the frame looks at it.
#[derive(Clone, Copy)]
pub struct Exposed<'a> {
    pub cx: &'a Context<'a>,
    pub doc: &'static Doc,
    pub rank: &'a Rank,
    pub class: &'a Class,
}

/// What a rule says once its trigger holds.
pub struct Saying {
    /// The trigger in words.
    pub formula: Text,
    /// The claim; `{class}`, `{idle}` (per step), `{step}` (the mean one) and `{share}` are filled in.
    pub claim: Text,
    /// Further values of the claim.
    pub more: Vec<(&'static str, Value)>,
    /// What would be done about it.
    pub change: Intervention,
}

impl<'a> Exposed<'a> {
    /// The finding and what it costs, if the time `of` a step reaches `threshold` of the mean step in enough steps.
    pub fn recurring(
        self,
        threshold: f64,
        of: impl Fn(&Step) -> Ns,
        say: impl FnOnce(&Cost) -> Saying,
    ) -> Option<(Finding, Cost)> {
        let cost = recurring(self.rank, self.class, threshold, of)?;
        Some((self.finding(threshold, &cost, say(&cost)), cost))
    }

    /// The same for pauses that need not come in every step: those of the steps that count.
    pub fn stalling(self, threshold: f64, pauses: &[Ns], say: impl FnOnce(&Cost) -> Saying) -> Option<(Finding, Cost)> {
        let cost = stalling(self.class, pauses, threshold)?;
        Some((self.finding(threshold, &cost, say(&cost)), cost))
    }

    /// The same for those of a whole workload.
    pub fn interrupting(
        (cx, doc, workload): (&'a Context<'a>, &'static Doc, &Workload<'a>),
        threshold: f64,
        pauses: &[Ns],
        say: impl FnOnce(&Cost) -> Saying,
    ) -> Option<(Finding, Cost)> {
        let cost = interrupting(workload, pauses, threshold)?;
        let saying = say(&cost);
        let claim =
            Message::new(saying.claim, values(workload.class, workload.mean(), &cost).into_iter().chain(saying.more));
        let trigger = Trigger { formula: saying.formula, value: cost.share, threshold };
        Some((cx.event(doc, workload, claim, trigger, saying.change), cost))
    }

    /// The same for a cost that the rule has judged itself.
    pub fn finding(self, threshold: f64, cost: &Cost, saying: Saying) -> Finding {
        let values = values(self.class, self.class.mean(), cost);
        let claim = Message::new(saying.claim, values.into_iter().chain(saying.more));
        let trigger = Trigger { formula: saying.formula, value: cost.share, threshold };
        self.cx.finding(self.doc, self.rank, self.class, claim, trigger, saying.change)
    }
}

fn values(class: &Class, step: Ns, cost: &Cost) -> [(&'static str, Value); 4] {
    [
        ("class", Value::Raw(class.key.clone())),
        ("idle", Value::Ns(cost.per_step)),
        ("step", Value::Ns(step)),
        ("share", Value::Share(cost.share)),
    ]
}
