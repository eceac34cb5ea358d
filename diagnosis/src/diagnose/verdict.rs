//! The answer in one sentence.

mod case;
mod doubts;
mod first;
mod gates;
mod headline;
mod place;
mod statement;

use super::{Assessment, Level, catalogue::Catalogue, finding::Finding, level, limits::Limits, lost, rule::Context};
use crate::{
    analysis::{AnchorKind, Confidence},
    i18n::{Message, Text},
};

use case::Case;
pub use doubts::Unjudged;
pub use first::First;
use gates::alone::ran_alone;
pub use place::Place;
pub use statement::Explained;

/// What the verdict blames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictLayer {
    /// Kernels and what they are made of.
    Operator,
    /// Host, launches, graphs, copies.
    Runtime,
    /// Transfers and late ranks.
    Communication,
    /// Too few requests: no bottleneck of the stack.
    Load,
    /// The capture does not allow a verdict.
    Undecided,
    /// No layer stands out.
    None,
}

/// The verdict on a capture.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Verdict {
    /// What it blames.
    pub layer: VerdictLayer,
    /// One sentence.
    pub headline: Message,
    /// How sure it is.
    pub confidence: Confidence,
    /// Rules it rests on.
    pub because: Vec<&'static str>,
    /// Where the time of a step is; `None` where no device work has the times of a run.
    pub place: Option<Place>,
    /// What to change first; `None` where nothing was found, or nothing may be said of the stack.
    pub first: Option<First>,
    /// What was not judged and would matter, the weightiest first.
    pub unjudged: Vec<Unjudged>,
    /// How much of each layer the findings explain.
    pub explained: Vec<Explained>,
    /// Level reached; `None` when not even a device operation was seen.
    pub level: Option<Level>,
    /// What is missing for the next level, one sentence each.
    pub missing: Vec<Message>,
    /// Every level with what it rests on.
    pub levels: Vec<Assessment>,
}

/// Judges a capture from the ranked findings of `rules`, which explain so much of each layer, and from the rates of its
/// operators.
pub fn judge(cx: &Context<'_>, found: (&[Finding], Catalogue), limits: &Limits, explained: Vec<Explained>) -> Verdict {
    let levels = level::assess(cx);
    let (level, missing) = level::reached(&levels);
    let case = Case::new(cx, found, limits, level, &explained);
    let shares = level.is_some() && !ran_alone(cx) && !cx.analysis.loss.forbids_shares();
    let place = case.longest.filter(|_| shares).and_then(|(rank, class)| Place::of(cx, rank, class));
    let whole = doubts::whole(&case);
    let place = place.map(|place| Place { outside: whole.clone().or_else(|| doubts::outside(&case)), ..place });
    let forbidden = gates::REGISTRY.iter().find_map(|gate| gate(&case));
    let leading = case.leading();
    // What may be nothing is no change to begin with, unless it is all there is: then it is a doubt.
    let first = leading.sure.or(leading.first.filter(|_| leading.unsure.is_none()));
    let first = first.filter(|_| forbidden.is_none()).map(|finding| First::of(&case, finding));
    let mut unjudged = match place {
        Some(_) => doubts::of(&case, forbidden.is_none()),
        None => doubts::of_sums(&case),
    };
    if case.longest.is_some_and(|(rank, _)| rank.anchor.kind == AnchorKind::WholeCapture) {
        for doubt in &mut unjudged {
            doubt.sentence.speak_of_window();
        }
    }
    let ruling = forbidden
        .or_else(|| statement::of(&case, place.as_ref(), first.as_ref(), &unjudged))
        .unwrap_or_else(gates::no_steps::ruling);
    let case::Ruling { layer, headline, confidence, because } = ruling;
    const BOTH: Text = Text::new("{whole} {headline}", "{whole}{headline}");
    let headline = match whole {
        Some(whole) => Message::new(BOTH, [("whole", whole.within()), ("headline", headline.within())]),
        None => headline,
    };
    let headline = lost::head(cx.analysis, headline);
    Verdict { layer, headline, confidence, because, place, first, unjudged, explained, level, missing, levels }
}
