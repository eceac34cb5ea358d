//! Lanes as values that a page or a picture draws: each slice where there is room for it, else the columns that a lane shows
//! at some zoom.

use std::ops::Range;

use model::{Category, SliceId, Span, Trace, TrackKind};
use ratatui::style::Color;
use rustc_hash::FxHashMap;

use crate::{
    analysis::Rank,
    i18n::{Lang, Text},
    report::{
        kernel_name, text,
        timeline::{Held, Kind as KindOf, Lane as Drawn, Mark, Name, Samples, Timeline},
    },
    tui::{
        lane::{Kind, Lane, LaneIndex, Of, Shape},
        opened::Look,
        theme::{Depth, Role, Theme},
    },
};

/// Slices that a page holds; about a megabyte.
const MOST: usize = 24_000;
/// Lanes that a page holds: all ranks of a machine with their queues and busiest threads.
const LANES: usize = 240;
/// Columns at most of a lane that is not held slice by slice.
const COLUMNS: usize = 2000;
/// Columns and slices that every lane may have.
const LEAST: usize = 40;
/// Columns of a counter.
const SAMPLES: u16 = 400;
/// Steps before and after the one in the middle that are tried, the most first.
const AROUND: [usize; 4] = [16, 4, 1, 0];
/// Characters of a name.
const LONGEST: usize = 200;

/// The lanes of a capture around the middle step of its main class, with as many steps beside it as there is room for; all of
/// the capture where that fits. `None` for a capture without slices.
pub fn of_capture(look: &Look<'_>, lang: Lang) -> Option<Timeline> {
    let extent = look.lanes.extent?;
    let slices = |span: Span| busy(look, span).take(LANES).map(|lane| slots(look, lane, span).len()).sum::<usize>();
    let middle = middle(look);
    let focus = middle.and_then(|(rank, step)| Some(rank.steps.get(step)?.window));
    let (window, held) = match middle {
        Some((rank, step)) if slices(extent) > MOST => {
            let around = |by: usize| (step.saturating_sub(by), (step + by).min(rank.steps.len().saturating_sub(1)));
            let tried = AROUND.map(around).map(|(first, last)| (steps(rank, first, last), first, last));
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
    let Some((rank, at)) = middle(look) else { return of_capture(look, lang) };
    let window = steps(rank, at, at);
    let lanes: Vec<usize> = busy(look, window).take(LANES).collect();
    let left_out = left_out(look, window, lanes.len());
    Some(Timeline { held: held(rank, at, at), left_out, ..of_lanes(look, &lanes, window, lang) })
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

/// The rank that the report shows, and the position of the step that is as long as the median of those of its main class
/// that count.
fn middle<'a>(look: &Look<'a>) -> Option<(&'a Rank, usize)> {
    let shown = look.capture.leading_rank()?.rank;
    let rank = look.analysis.ranks.iter().find(|rank| rank.rank == shown)?;
    let class = rank.main_class()?;
    let own = rank.steady_steps(class).min_by_key(|step| step.window.len().abs_diff(class.p50))?;
    Some((rank, rank.steps.iter().position(|step| step.index == own.index)?))
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

/// Some lanes over a window.
pub fn of_lanes(look: &Look<'_>, lanes: &[usize], window: Span, lang: Lang) -> Timeline {
    let slots: Vec<Range<usize>> = lanes.iter().map(|lane| slots(look, *lane, window)).collect();
    let share = share(slots.iter().map(Range::len).collect());
    let columns = COLUMNS.min(share.max(LEAST)) as u16;
    let whole: Vec<Option<Range<usize>>> =
        slots.into_iter().map(|slots| Some(slots).filter(|slots| slots.len() <= share.max(LEAST))).collect();
    let condensed = whole.iter().any(Option::is_none);
    let mut names = Names::default();
    let mut drawn = Vec::with_capacity(lanes.len());
    for (at, whole) in lanes.iter().zip(&whole) {
        let Some(lane) = look.lanes.lanes.get(*at) else { continue };
        let mut one = Drawn { head: head(look, *at, lanes, lang), label: label(lane, lang), ..Drawn::default() };
        one.depth = lane.depth();
        match (&lane.shape, whole) {
            (Shape::Samples(counter), _) => {
                let mut found = Vec::new();
                counter.columns(window, SAMPLES, &mut found);
                let columns = found.into_iter().map(|range| range.map(|range| [range.least, range.most]));
                one.samples = Some(Samples { columns: columns.collect() });
            }
            (Shape::Slices(index), Some(slots)) => {
                one.marks =
                    slots.clone().filter_map(|slot| mark(look, lane, index, slot, window, &mut names)).collect();
            }
            (Shape::Slices(index), None) => {
                one.marks = condense(look, lane, index, (window, columns), &mut names);
            }
        }
        drawn.push(one);
    }
    link(look, lanes, &whole, &mut drawn);
    let kinds = kinds(lang);
    Timeline {
        simulated: look.trace.simulated,
        window,
        focus: window,
        zero: look.lanes.extent.map_or(0, |extent| extent.start),
        held: Held::Window,
        column: condensed.then(|| window.len() / i64::from(columns)),
        lanes: drawn,
        left_out: 0,
        kinds,
        names: names.all,
    }
}

/// Slices that a lane may have so that all lanes together have no more than [`MOST`]: what short lanes leave is for the others.
fn share(mut counts: Vec<usize>) -> usize {
    counts.sort_unstable();
    let mut left = MOST;
    for (count, lanes) in counts.iter().zip((1..=counts.len()).rev()) {
        if *count > left / lanes {
            return left / lanes;
        }
        left -= count;
    }
    usize::MAX
}

/// The slots of a lane that touch a window.
fn slots(look: &Look<'_>, lane: usize, window: Span) -> Range<usize> {
    let Some(index) = look.lanes.lanes.get(lane).and_then(Lane::slices) else { return 0..0 };
    let (mut first, last) = (index.first_from(window.start), index.first_from(window.end));
    while let Some(before) = first.checked_sub(1).filter(|at| index.span(*at).is_some_and(|s| s.end > window.start)) {
        first = before;
    }
    first..last.max(first)
}

/// Names by their position; each is there once.
#[derive(Default)]
struct Names {
    all: Vec<Name>,
    known: FxHashMap<(String, bool), usize>,
}

impl Names {
    /// The position of a name; of kernels the telling part is known too.
    fn of(&mut self, name: &str, of_kernel: bool) -> usize {
        let whole = text::plain(name, LONGEST);
        *self.known.entry((whole, of_kernel)).or_insert_with_key(|(whole, of_kernel)| {
            let short = of_kernel.then(|| text::plain(&kernel_name::short(name), text::NAME));
            self.all.push(Name { whole: whole.clone(), short: short.filter(|short| short != whole) });
            self.all.len() - 1
        })
    }
}

fn mark(look: &Look<'_>, lane: &Lane, index: &LaneIndex, slot: usize, window: Span, names: &mut Names) -> Option<Mark> {
    let seen = index.span(slot)?;
    let (span, whole) = (seen.clip(window), lane.whole(slot, look.trace, look.analysis).unwrap_or(seen));
    let of_kernel = match lane.of {
        Of::Track(track, _) => {
            look.trace.tracks.get(track.0 as usize).is_some_and(|t| t.key.kind == TrackKind::DeviceQueue)
        }
        of => matches!(of, Of::Collectives(_)),
    };
    let name = names.of(&lane.name_of(slot, look.trace, look.analysis), of_kernel);
    let kind = index.kind(slot)? as usize;
    Some(Mark { span, whole, kind, name: Some(name), count: 1, busy: span.len(), launch: None })
}

/// The columns of a lane; a slice that has a column for itself is one mark, however far it reaches. Their busy time adds up to
/// what the lane covers of the window.
fn condense(
    look: &Look<'_>,
    lane: &Lane,
    index: &LaneIndex,
    (window, width): (Span, u16),
    names: &mut Names,
) -> Vec<Mark> {
    let mut columns = Vec::new();
    index.columns(window, width, &mut columns);
    let mut marks: Vec<Mark> = Vec::new();
    let (mut start, mut alone) = (window.start, None);
    for column in columns {
        let mut span = Span::new(start, start.saturating_add(column.len));
        start = span.end;
        let (mut slot, mut count, mut busy) = (column.slot as usize, column.count, column.busy);
        if alone == Some(slot) && count > 0 {
            // The slice that has its mark reaches into this column.
            let reached = index.span(slot).map_or(span.start, |whole| whole.end.clamp(span.start, span.end));
            (slot, count, busy) = (slot + 1, count - 1, busy - (reached - span.start));
            span.start = reached;
        }
        match count {
            0 => {}
            1 => {
                let own = mark(look, lane, index, slot, window, names);
                if let Some((own, before)) =
                    own.zip(marks.last_mut()).filter(|(own, last)| own.span.start < last.span.end)
                {
                    // It began in the column before, which it leaves to the others there.
                    before.busy -= before.span.end - own.span.start;
                    before.count -= 1;
                    before.span.end = own.span.start;
                }
                marks.extend(own);
                alone = Some(slot);
            }
            _ => {
                marks.push(Mark {
                    span,
                    whole: span,
                    kind: column.kind as usize,
                    name: None,
                    count,
                    busy,
                    launch: None,
                });
                alone = None;
            }
        }
    }
    marks
}

/// Ties what was launched to its call, where both are held.
fn link(look: &Look<'_>, lanes: &[usize], whole: &[Option<Range<usize>>], drawn: &mut [Drawn]) {
    for (at, (lane, slots)) in lanes.iter().zip(whole).enumerate() {
        let (Some(slots), Some(lane)) = (slots, look.lanes.lanes.get(*lane)) else { continue };
        let Some(index) = lane.slices() else { continue };
        for (position, slot) in slots.clone().enumerate() {
            let Some(launch) = index.row(slot).and_then(|row| launch_of(look.trace, lane, row)) else { continue };
            let Some((lane, slot)) = look.lanes.find(look.trace, launch) else { continue };
            let Some(to) = lanes.iter().position(|drawn| *drawn == lane) else { continue };
            let held = whole.get(to).and_then(Option::as_ref).filter(|held| held.contains(&slot));
            let mark = drawn.get_mut(at).and_then(|drawn| drawn.marks.get_mut(position));
            if let (Some(held), Some(mark)) = (held, mark) {
                mark.launch = Some((to, slot - held.start));
            }
        }
    }
}

fn launch_of(trace: &Trace, lane: &Lane, row: u32) -> Option<SliceId> {
    let Of::Track(track, _) = lane.of else { return None };
    let columns = trace.lanes.get(track.0 as usize)?;
    ((row as usize) < columns.len()).then(|| columns.link(row as usize)).flatten()
}

/// Title of the group that begins with a lane, among those that are drawn.
fn head(look: &Look<'_>, lane: usize, lanes: &[usize], lang: Lang) -> Option<String> {
    let group = look.lanes.groups.iter().find(|group| group.lanes.contains(&lane))?;
    let first = lanes.iter().copied().find(|lane| group.lanes.contains(lane));
    if first != Some(lane) {
        return None;
    }
    let Some(rank) = group.rank.and_then(|rank| look.analysis.ranks.get(rank)) else {
        return Some(Text::new("of no rank", "不属于任何 rank").get(lang).to_owned());
    };
    let mut devices = look.trace.devices.iter();
    let device = devices.find(|d| d.process == rank.process && d.ordinal == rank.device).and_then(|d| d.name);
    let chip = device.map_or(String::new(), |name| format!(" · {}", look.trace.strings.get(name)));
    let word = Text::new("device", "设备").get(lang);
    Some(text::plain(&format!("rank {} · {word} {}{chip}", rank.rank, rank.device), LONGEST))
}

/// Name of a lane; a nested one has none of its own.
fn label(lane: &Lane, lang: Lang) -> String {
    match (lane.what, lane.depth()) {
        (_, depth @ 1..) => format!("· {depth}"),
        (what, _) => {
            let what = what.map_or("", |what| what.get(lang));
            text::plain(format!("{what} {}", lane.name).trim(), text::NAME)
        }
    }
}

fn kinds(lang: Lang) -> Vec<KindOf> {
    let [dark, light] = ["dark", "light"].map(|name| Theme::new(name, Depth::True));
    let colour = |theme: &Theme, kind| match theme.style(Role::Kind(kind)).fg {
        Some(Color::Rgb(r, g, b)) => format!("#{r:02x}{g:02x}{b:02x}"),
        _ => "#808080".to_owned(),
    };
    let one =
        |kind: Kind| KindOf { name: kind.text().get(lang), dark: colour(&dark, kind), light: colour(&light, kind) };
    Kind::ALL.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{analysis::script::Script, diagnose, platform::Packs, report::svg, tui::Opened};

    fn opened(script: Script) -> Opened {
        let packs = Packs::embedded().unwrap();
        let trace = script.builder.finish();
        let analysis = crate::analysis::analyze(&trace, &packs, &Default::default());
        let diagnosis = diagnose::diagnose(&trace, &analysis, &packs);
        Opened::new(vec![(trace, analysis, diagnosis)])
    }

    /// Launches of one kernel each, every 100 ns.
    fn launches(count: i64) -> Opened {
        let mut script = Script::default();
        for i in 0..count {
            script.launch((i * 100, i * 100 + 20), "gemm<a>", (i * 100 + 40, i * 100 + 90));
        }
        opened(script)
    }

    fn lane<'a>(drawn: &'a Timeline, label: &str) -> &'a Drawn {
        drawn.lanes.iter().find(|lane| lane.label == label).unwrap()
    }

    #[test]
    fn where_there_is_room_every_slice_is_a_mark_with_its_launch() {
        let opened = launches(50);
        let drawn = of_capture(&opened.look(0).unwrap(), Lang::En).unwrap();
        assert_eq!((&drawn.held, drawn.column, drawn.left_out), (&Held::Whole, None, 0));
        let stream = lane(&drawn, "stream 7");
        assert_eq!(stream.marks.len(), 50);
        for mark in &stream.marks {
            let (lane, launch) = mark.launch.unwrap();
            assert_eq!(drawn.lanes[lane].marks[launch].span.start, mark.span.start - 40);
            assert_eq!((mark.count, mark.span.len()), (1, 50));
        }
        assert!(drawn.window.start <= drawn.focus.start && drawn.focus.end <= drawn.window.end);
    }

    #[test]
    fn where_there_is_none_columns_stand_for_all_slices_and_their_time() {
        let count = 3 * MOST as i64;
        let opened = launches(count);
        let look = opened.look(0).unwrap();
        let all: Vec<usize> = (0..look.lanes.lanes.len()).collect();
        let drawn = of_lanes(&look, &all, look.lanes.extent.unwrap(), Lang::En);
        assert!(drawn.column.is_some() && drawn.marks() <= MOST, "{}", drawn.marks());
        assert!(drawn.about(Lang::En).contains("too many slices") && drawn.about(Lang::Zh).contains("切片过多"));
        let stream = lane(&drawn, "stream 7");
        assert_eq!(stream.marks.iter().map(|mark| mark.busy).sum::<i64>(), count * 50);
        assert!(stream.marks.iter().map(|mark| i64::from(mark.count)).sum::<i64>() >= count);
        assert!(stream.marks.windows(2).all(|pair| pair[0].span.end <= pair[1].span.start));
    }

    proptest::proptest! {
        /// Whatever the columns cut, no nanosecond is told twice and none is lost.
        #[test]
        fn columns_tell_the_time_of_the_lane(raw in proptest::collection::vec((0i64..400, 0i64..900), 1..80), width in 1u16..40) {
            let mut script = Script::default();
            let mut at = 0;
            for (gap, len) in &raw {
                let start = at + gap;
                at = start + len;
                script.launch((start, start + 1), "gemm", (start, at));
            }
            let opened = opened(script);
            let look = opened.look(0).unwrap();
            let stream = look.lanes.lanes.iter().find(|lane| label(lane, Lang::En) == "stream 7").unwrap();
            let marks = condense(&look, stream, stream.slices().unwrap(), (Span::new(0, at.max(1)), width), &mut Names::default());
            proptest::prop_assert_eq!(marks.iter().map(|mark| mark.busy).sum::<i64>(), raw.iter().map(|(_, len)| len).sum::<i64>());
            proptest::prop_assert!(marks.iter().map(|mark| mark.count as usize).sum::<usize>() >= raw.len());
            for pair in marks.windows(2) {
                proptest::prop_assert!(pair[0].span.end <= pair[1].span.start, "{:?}", pair);
            }
            proptest::prop_assert!(marks.iter().all(|mark| 0 <= mark.busy && mark.busy <= mark.span.len()));
        }
    }

    #[test]
    fn short_lanes_leave_their_room_to_the_others() {
        assert_eq!(share(vec![10, 20, 30]), usize::MAX);
        assert_eq!(share(vec![10, MOST, MOST]), (MOST - 10) / 2);
        assert_eq!(share(vec![]), usize::MAX);
    }

    #[test]
    fn a_picture_is_sound_xml_in_both_languages() {
        let opened = launches(12);
        let look = opened.look(0).unwrap();
        for (lang, word) in [(Lang::En, "stream 7"), (Lang::Zh, "流 7")] {
            let drawn = of_step(&look, lang).unwrap();
            let picture = svg::render(&drawn, lang);
            assert!(picture.contains(word) && picture.contains("gemm&lt;a&gt;"), "{picture}");
            for tag in ["svg", "text", "title", "style"] {
                assert_eq!(
                    picture.matches(&format!("<{tag}")).count(),
                    picture.matches(&format!("</{tag}>")).count(),
                    "{tag}"
                );
            }
        }
    }
}
