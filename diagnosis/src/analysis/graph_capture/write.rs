//! The ranges beside the queues of the run: operators with their shapes, and modules.

use model::{
    Beside, Category, Columns, Detail, ImportStat, LedgerRow, Ns, OpDetail, Provenance, Severity, StringId, Trace,
    Track, trace::NO_CORRELATION,
};

use super::{
    Fit, Node,
    captured::{self, Graph},
    fit::{Found, is_name},
    list,
};

/// What stands for no slice and no detail in the columns.
const NONE: u32 = u32::MAX;

/// A range to be: name, detail, time, and what makes it one with the next kernel's.
struct Range {
    track: usize,
    same: (usize, usize),
    name: StringId,
    detail: Option<Detail>,
    start: Ns,
    end: Ns,
}

/// Writes what was found, and says so in manifest, ledger and statistics.
pub(super) fn write(
    run: &mut Trace,
    capture: &Trace,
    replays: &[Vec<Node>],
    graphs: &[Graph],
    found: &[Option<Found>],
) -> Fit {
    let mut fit = Fit { replays: 0, unknown: 0, kernels: 0, matched: 0, by_name: false, named: 0, graphs: Vec::new() };
    let mut time: Ns = 0;
    let (mut operators, mut modules): (Vec<Range>, Vec<Range>) = (Vec::new(), Vec::new());
    for (replay, found) in replays.iter().zip(found) {
        fit.kernels += replay.len() as u64;
        let Some((found, graph)) = found.as_ref().and_then(|f| Some((f, graphs.get(f.graph)?))) else {
            fit.unknown += 1;
            continue;
        };
        fit.replays += 1;
        if let Some(label) = graph.label.map(|label| capture.strings.get(label).to_owned())
            && !fit.graphs.contains(&label)
        {
            fit.graphs.push(label);
        }
        for (&(track, row), place) in replay.iter().zip(&found.launches) {
            let Some(launch) = place.and_then(|place| graph.launches.get(place)) else { continue };
            fit.matched += 1;
            fit.by_name |= launch.kernel.is_some();
            if let Some(kernel) = launch.kernel.filter(|_| !is_name(run.strings.get(run.lanes[track].name[row]))) {
                run.lanes[track].name[row] = run.strings.intern(capture.strings.get(kernel));
                fit.named += 1;
            }
            let (start, end) = (run.lanes[track].start[row], run.lanes[track].end(row));
            time = time.saturating_add(end - start);
            if let Some((lane, of)) = launch.operator {
                let at = Range { track, same: (lane, of), name: StringId(0), detail: None, start, end };
                grow(&mut operators, at, |range| {
                    range.name = run.strings.intern(capture.strings.get(capture.lanes[lane].name[of]));
                    range.detail = operator(run, capture, lane, of);
                });
            }
            let path = graph.modules.get(launch.modules).filter(|path| !path.is_empty());
            if let Some(path) = path {
                let at =
                    Range { track, same: (found.graph, launch.modules), name: StringId(0), detail: None, start, end };
                grow(&mut modules, at, |range| range.name = run.strings.intern(&captured::path(capture, path)));
            }
        }
    }
    lay(run, operators, Beside::Operators, "operators of replayed kernels, from the graph capture");
    lay(run, modules, Beside::Modules, "modules of replayed kernels, from the graph capture");
    tell(run, capture, &fit, time);
    fit
}

/// Adds a kernel to the range before it if they belong together, else begins a new one.
fn grow(ranges: &mut Vec<Range>, mut at: Range, fill: impl FnOnce(&mut Range)) {
    match ranges.last_mut() {
        Some(last) if (last.track, last.same) == (at.track, at.same) && last.end <= at.start => last.end = at.end,
        _ => {
            fill(&mut at);
            ranges.push(at);
        }
    }
}

/// The detail of an operator of the capture, with its texts in the run.
fn operator(run: &mut Trace, capture: &Trace, lane: usize, row: usize) -> Option<Detail> {
    let Some(Detail::Op(op)) = capture.detail(capture.lanes.get(lane)?, row) else { return None };
    let mut text = |id: Option<StringId>| id.map(|id| run.strings.intern(capture.strings.get(id)));
    Some(Detail::Op(OpDetail { shapes: text(op.shapes), dtypes: text(op.dtypes) }))
}

/// Puts ranges on tracks beside the queues they belong to.
fn lay(run: &mut Trace, mut ranges: Vec<Range>, beside: Beside, name: &str) {
    ranges.sort_by_key(|range| (range.track, range.start));
    let label = run.strings.intern(name);
    let mut queue = None;
    for range in ranges {
        let Some(key) = run.tracks.get(range.track).map(|track| beside.key(track.key)) else { continue };
        if queue.replace(range.track) != Some(range.track) {
            run.tracks.push(Track { key, name: Some(label) });
            run.lanes.push(Columns::default());
        }
        let detail = range.detail.map_or(NONE, |detail| {
            // Kernels of one operator come one after another, so equal details are mostly neighbours.
            if run.details.last() != Some(&detail) {
                run.details.push(detail);
            }
            run.details.len() as u32 - 1
        });
        let Some(lane) = run.lanes.last_mut() else { continue };
        // Kernels of a queue may overlap by the rounding of their times; ranges of one depth must not.
        let start = lane.len().checked_sub(1).map_or(range.start, |last| range.start.max(lane.end(last)));
        lane.start.push(start);
        lane.dur.push((range.end - start).max(0));
        lane.name.push(range.name);
        lane.category.push(Category::DeviceRange);
        lane.depth.push(0);
        lane.correlation.push(NO_CORRELATION);
        lane.link.push(NONE);
        lane.detail.push(detail);
    }
    run.number_slices();
}

/// Says in the run what was taken and how well it fits.
fn tell(run: &mut Trace, capture: &Trace, fit: &Fit, time: Ns) {
    let source = capture.source.rsplit(['/', '\\']).next().unwrap_or_default();
    let share = 100.0 * fit.matched as f64 / fit.kernels.max(1) as f64;
    let how = if fit.by_name { "by name and order" } else { "by order only: the launches do not name their kernels" };
    let said = format!("{} of {} replayed kernels ({share:.1} %), {how}", fit.matched, fit.kernels);
    let mut facts = vec![("graph_capture.source", source.to_owned()), (Beside::MATCH, said)];
    if !fit.graphs.is_empty() {
        facts.push(("graph_capture.graphs", list(&fit.graphs)));
    }
    for (key, value) in facts {
        run.manifest.set(key, value, Provenance::Observed);
    }
    run.ledger.push(LedgerRow {
        category: "graph capture: replayed kernels".to_owned(),
        read: fit.kernels,
        kept: fit.matched,
        time_ns: time,
        note: "operator, shapes and module from the capture of their graph".to_owned(),
    });
    if fit.unknown > 0 {
        run.stats.push(ImportStat {
            name: "graph_capture.unknown_replay".to_owned(),
            severity: Severity::Notice,
            count: fit.unknown,
            example: Some("a replay of a graph that the given capture does not hold".to_owned()),
        });
    }
}
