//! Lanes as values: each slice where there is room for it, else the columns that a lane shows at some zoom.

use std::ops::Range;

use model::{SliceId, Span, Trace, TrackKind};
use ratatui::style::Color;
use rustc_hash::FxHashMap;

use crate::tui::{
    lane::{Kind, Lane, LaneIndex, Of, Shape},
    opened::Look,
    theme::{Depth, Role, Theme},
};
use diagnosis::i18n::{Lang, Text};
use report::{
    kernel_name, text,
    timeline::{Held, Kind as KindOf, Lane as Drawn, Mark, Name, Samples, Timeline, aligned},
};

/// Slices that a page holds; about a megabyte.
pub(super) const MOST: usize = 24_000;
/// Columns at most of a lane that is not held slice by slice.
const COLUMNS: usize = 2000;
/// Columns and slices that every lane may have.
const LEAST: usize = 40;
/// Columns of a counter.
const SAMPLES: u16 = 400;
/// Characters of a name.
const LONGEST: usize = 200;

/// Some lanes over a window.
pub fn of_lanes(look: &Look<'_>, lanes: &[usize], window: Span, lang: Lang) -> Timeline {
    of_lanes_within(look, lanes, window, MOST, lang)
}

/// The same with at most so many slices.
pub(super) fn of_lanes_within(look: &Look<'_>, lanes: &[usize], window: Span, most: usize, lang: Lang) -> Timeline {
    let slots: Vec<Range<usize>> = lanes.iter().map(|lane| slots(look, *lane, window)).collect();
    let share = share(slots.iter().map(Range::len).collect(), most);
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
        evidence: None,
        held: Held::Window,
        column: condensed.then(|| window.len() / i64::from(columns)),
        lanes: drawn,
        left_out: 0,
        kinds,
        names: names.all,
    }
}

/// Slices that a lane may have so that all lanes together have no more than `left`: what short lanes leave is for the others.
fn share(mut counts: Vec<usize>, mut left: usize) -> usize {
    counts.sort_unstable();
    for (count, lanes) in counts.iter().zip((1..=counts.len()).rev()) {
        if *count > left / lanes {
            return left / lanes;
        }
        left -= count;
    }
    usize::MAX
}

/// The slots of a lane that touch a window.
pub(super) fn slots(look: &Look<'_>, lane: usize, window: Span) -> Range<usize> {
    look.lanes.lanes.get(lane).and_then(Lane::slices).map_or(0..0, |index| index.touching(window))
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
    let (span, whole) = (seen.clip(window), lane.whole(slot, look.trace, look.analysis()).unwrap_or(seen));
    let of_kernel = match lane.of {
        Of::Track(track, _) => {
            look.trace.tracks.get(track.0 as usize).is_some_and(|t| t.key.kind == TrackKind::DeviceQueue)
        }
        of => matches!(of, Of::Collectives(_)),
    };
    let name = names.of(&lane.name_of(slot, look.trace, look.analysis()), of_kernel);
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
    let clock = group.clock.map_or(String::new(), |clock| aligned(&clock, lang));
    let Some((_, rank)) = group.rank else {
        return Some(Text::new("of no rank", "不属于任何 rank").get(lang).to_owned());
    };
    let mut devices = look.trace.devices.iter();
    let device = devices.find(|d| d.process == rank.process && d.ordinal == rank.device).and_then(|d| d.name);
    let chip = device.map_or(String::new(), |name| format!(" · {}", look.trace.strings.get(name)));
    let word = Text::new("device", "设备").get(lang);
    Some(text::plain(&format!("rank {} · {word} {}{chip}{clock}", rank.rank, rank.device), LONGEST))
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
mod tests;
