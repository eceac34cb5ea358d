//! A capture as a page or a picture draws it: which part of it, and which lanes. [`lanes`] makes the values that are drawn.

mod lanes;

use model::{Category, Span, Trace};

use crate::tui::{
    lane::{Lane, LaneIndex, Of, Shape},
    opened::Look,
    view::timeline::{
        focus::{self, Focus},
        rows::Row,
        window::Window,
    },
};
use diagnosis::{
    analysis::{Layer, Rank},
    i18n::Lang,
};
pub use lanes::of_lanes;
use lanes::{MOST, of_lanes_within, slots};
use report::timeline::{Evidence, Held, Timeline};

/// Lanes that a page holds: all ranks of a machine with their queues and busiest threads.
const LANES: usize = 240;
/// Steps before and after the one in the middle that are tried, the most first.
const AROUND: [usize; 4] = [16, 4, 1, 0];

/// The lanes of a capture around the middle step of its main class, with as many steps beside it as there is room for; all of
/// the capture where that fits. `None` for a capture without slices.
pub fn of_capture(look: &Look<'_>, lang: Lang) -> Option<Timeline> {
    let extent = look.lanes.extent?;
    let slices = |span: Span| busy(look, span).take(LANES).map(|lane| slots(look, lane, span).len()).sum::<usize>();
    let middle = middle(look);
    let focus = middle.and_then(|(at, rank, step)| Some(look.lanes.aligned(at, rank.steps.get(step)?.window)));
    let (window, held) = match middle {
        Some((at, rank, step)) if slices(extent) > MOST => {
            let around = |by: usize| (step.saturating_sub(by), (step + by).min(rank.steps.len().saturating_sub(1)));
            let tried =
                AROUND.map(around).map(|(first, last)| (look.lanes.aligned(at, steps(rank, first, last)), first, last));
            let fits = tried.iter().find(|(span, ..)| slices(*span) <= MOST).or(tried.last());
            fits.map_or((extent, Held::Whole), |(span, first, last)| (*span, held(rank, *first, *last)))
        }
        _ => (extent, Held::Whole),
    };
    let lanes: Vec<usize> = busy(look, window).take(LANES).collect();
    let left_out = left_out(look, window, lanes.len());
    let drawn = of_lanes(look, &lanes, window, lang);
    // A little of what is before and after belongs to a step's picture.
    let focus = focus.map_or(window, |step| {
        let margin = step.len() / 50;
        Span::new(step.start.saturating_sub(margin), step.end.saturating_add(margin)).clip(window)
    });
    Some(Timeline { focus, held, left_out, ..drawn })
}

/// The middle step of the main class alone. `None` for a capture without slices.
pub fn of_step(look: &Look<'_>, lang: Lang) -> Option<Timeline> {
    let Some((of, rank, at)) = middle(look) else { return of_capture(look, lang) };
    let window = look.lanes.aligned(of, steps(rank, at, at));
    let lanes: Vec<usize> = busy(look, window).take(LANES).collect();
    let left_out = left_out(look, window, lanes.len());
    Some(Timeline { held: held(rank, at, at), left_out, ..of_lanes(look, &lanes, window, lang) })
}

/// Slices that a page holds of the evidence of one finding.
const OF_EVIDENCE: usize = 3000;
/// Frames around it that are named, the innermost ones.
const FRAMES: usize = 4;
/// Rows that the evidence of a finding has.
const ROWS: usize = 24;

/// The costliest stretch of a finding with a quarter of its length on each side: why the device was idle, its queues, what the claim
/// names. `None` where the finding is about no stretch.
pub fn of_evidence(look: &Look<'_>, at: usize, lang: Lang) -> Option<Timeline> {
    let finding = look.capture()?.findings.get(at)?;
    let own = finding.stretches.first().filter(|own| !own.span.is_empty())?.span;
    let (rank, names) = focus::about(look, finding);
    let rank = rank?;
    let span = look.lanes.aligned(rank, own);
    let mut seen = Window::all(look.lanes.extent?);
    seen.around(span);
    let window = seen.span;
    let several = finding.layer == Layer::Communication;
    let focus = Focus::on(look, (rank, several), (own, span, window), &names, ROWS);
    let steps = look.lanes.position(Of::Steps(rank));
    let lanes: Vec<usize> = steps.into_iter().chain(focus.rows.iter().filter_map(Row::lane)).collect();
    let name = |id: &model::StringId| report::text::plain(look.trace.strings.get(*id), report::text::NAME);
    let before = focus.outer.len().saturating_sub(FRAMES);
    let more = (before > 0).then(|| "…".to_owned());
    let frames = more.into_iter().chain(focus.outer.iter().skip(before).map(name)).collect();
    let evidence = Some(Evidence { span, rule: finding.rule, of: finding.stretches.len(), frames });
    Some(Timeline { evidence, ..of_lanes_within(look, &lanes, window, OF_EVIDENCE, lang) })
}

/// Lanes on which there is something in a window that is not mostly frames of the interpreter.
fn busy<'a>(look: &'a Look<'_>, window: Span) -> impl Iterator<Item = usize> + 'a {
    let there = move |(at, lane): &(usize, &Lane)| match &lane.shape {
        Shape::Samples(counter) => counter.range().is_some(),
        Shape::Slices(index) => {
            let slots = slots(look, *at, window);
            let frames = slots.clone().filter(|slot| is_frame(look.trace, lane, index, *slot)).count();
            !slots.is_empty() && frames * 2 <= slots.len()
        }
    };
    look.lanes.lanes.iter().enumerate().filter(there).map(|(at, _)| at)
}

/// Lanes with something in a window that are not among the `drawn` ones.
fn left_out(look: &Look<'_>, window: Span, drawn: usize) -> usize {
    let there = look.lanes.lanes.iter().enumerate().filter(|(at, lane)| match &lane.shape {
        Shape::Samples(counter) => counter.range().is_some(),
        Shape::Slices(_) => !slots(look, *at, window).is_empty(),
    });
    there.count().saturating_sub(drawn)
}

/// Whether a slice is a nested function of the interpreter. Stacks are dozens of frames deep; their lanes would push the others
/// out of sight.
fn is_frame(trace: &Trace, lane: &Lane, index: &LaneIndex, slot: usize) -> bool {
    let Of::Track(track, 1..) = lane.of else { return false };
    let category = |row: u32| trace.lanes.get(track.0 as usize)?.category.get(row as usize).copied();
    index.row(slot).and_then(category) == Some(Category::PythonFrame)
}

/// The rank that the report shows, with its position, and the position of the step that is as long as the median of those of its main class
/// that count.
fn middle<'a>(look: &Look<'a>) -> Option<(usize, &'a Rank, usize)> {
    let found = look.found?;
    let shown = found.capture.leading_rank()?.rank;
    let (at, rank) = found.analysis.ranks.iter().enumerate().find(|(_, rank)| rank.rank == shown)?;
    let class = rank.main_class()?;
    let own = rank.steady_steps(class).min_by_key(|step| step.window.len().abs_diff(class.p50))?;
    Some((at, rank, rank.steps.iter().position(|step| step.index == own.index)?))
}

fn held(rank: &Rank, first: usize, last: usize) -> Held {
    let number = |at: usize| rank.steps.get(at).map_or(0, |step| step.index);
    Held::Steps { first: number(first), last: number(last), of: rank.steps.len(), rank: rank.rank }
}

/// From the first of some steps to the end of the last.
fn steps(rank: &Rank, first: usize, last: usize) -> Span {
    let start = rank.steps.get(first).map_or(0, |step| step.window.start);
    Span::new(start, rank.steps.get(last).map_or(start, |step| step.window.end))
}
