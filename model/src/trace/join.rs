//! Several captures of one job, one or more ranks each, as one capture. Processes stay apart, so correlation ids never meet.

use std::collections::BTreeMap;

use super::{Columns, NONE, Trace, attach};
use crate::{
    manifest::{Manifest, Provenance},
    slice::{CollectiveCall, Detail},
    stat::{ImportStat, Severity},
    stated::StatedSum,
    strings::StringId,
    time::{MOST_TIME, Ns, Span},
    track::{ProcessId, TrackId},
};

/// Different values of one fact that are listed; ranks that agree on nothing must not fill a report.
const VALUES: usize = 8;
/// The manifest field that adds up over ranks.
const COUNT: &str = "hardware.count";

/// Joins captures into one, in the given order. Their times get a common zero if every one of them has a wall clock;
/// otherwise each keeps its own zero, and `job.unaligned_clocks` says so.
///
/// # Errors
/// The captures as they were, when together they hold more slices or more time than one capture can.
pub fn join(parts: Vec<Trace>) -> Result<Trace, Vec<Trace>> {
    let slices: usize = parts.iter().map(Trace::slice_count).sum();
    let time =
        parts.iter().flat_map(|p| &p.lanes).flat_map(|lane| &lane.dur).fold(0, |sum: Ns, d| sum.saturating_add(*d));
    let details: usize = parts.iter().map(|p| p.details.len()).sum();
    if slices >= NONE as usize || details >= NONE as usize || time > MOST_TIME {
        return Err(parts);
    }
    let starts: Option<Vec<Ns>> = parts.iter().map(|p| p.start_unix_ns).collect();
    let origin = starts.and_then(|starts| starts.into_iter().min());
    let manifest = agreed(&parts);
    let mut parts = parts.into_iter();
    let Some(mut whole) = parts.next() else { return Ok(Trace::default()) };
    let further = parts.len();
    let shift_of =
        |part: &Trace| origin.zip(part.start_unix_ns).map_or(0, |(origin, start)| start.saturating_sub(origin));
    let shift = shift_of(&whole);
    shift_times(&mut whole, shift);
    whole.stated = stated(&whole);
    for part in parts {
        let shift = shift_of(&part);
        take_in(&mut whole, part, shift);
    }
    whole.number_slices();
    whole.start_unix_ns = origin.or(whole.start_unix_ns);
    whole.manifest = manifest;
    if further > 0 {
        whole.source = format!("{} +{further}", whole.source);
        if origin.is_none() {
            let stat = ImportStat {
                name: "job.unaligned_clocks".to_owned(),
                severity: Severity::Notice,
                count: further as u64,
                example: Some("a rank without wall clock: the ranks' times have no common zero".to_owned()),
            };
            add_stat(&mut whole.stats, stat);
        }
    }
    whole.ledger.sort_by(|a, b| a.category.cmp(&b.category));
    Ok(whole)
}

/// The sums of a part, each with its process: that of the part's devices where it holds one rank.
fn stated(part: &Trace) -> Vec<StatedSum> {
    let only = part.devices.first().map(|device| device.process);
    part.stated.iter().map(|sum| StatedSum { process: sum.process.or(only), ..*sum }).collect()
}

fn take_in(whole: &mut Trace, mut part: Trace, shift: Ns) {
    shift_times(&mut part, shift);
    // Ranks of one job that bring ceilings bring those of like devices; the first that has any speaks for all.
    if whole.probes.rows.is_empty() {
        whole.probes = std::mem::take(&mut part.probes);
    }
    whole.summaries.extend(attach::of(&part, |text| whole.strings.intern(text)));
    let mut sums = std::mem::take(&mut part.job_sums);
    sums.steps.iter_mut().for_each(|sum| sum.step = whole.strings.intern(part.strings.get(sum.step)));
    sums.links.iter_mut().for_each(|sum| sum.transport = whole.strings.intern(part.strings.get(sum.transport)));
    whole.job_sums.steps.append(&mut sums.steps);
    whole.job_sums.links.append(&mut sums.links);
    let sums = stated(&part);
    let strings: Vec<StringId> = part.strings.iter().map(|(_, text)| whole.strings.intern(text)).collect();
    let text = |id: StringId| strings.get(id.0 as usize).copied().unwrap_or(StringId(0));
    let name = |id: Option<StringId>| id.map(text);
    let (processes, tracks) = (whole.processes.len() as u32, whole.tracks.len() as u32);
    let (slices, details) = (whole.slice_count() as u32, whole.details.len() as u32);
    let process = |id: ProcessId| ProcessId(id.0.saturating_add(processes));
    whole.stated.extend(sums.into_iter().map(|mut sum| {
        (sum.process, sum.source, sum.name) = (sum.process.map(process), text(sum.source), name(sum.name));
        sum
    }));
    whole.processes.extend(part.processes.into_iter().map(|mut p| {
        p.name = name(p.name);
        p
    }));
    whole.devices.extend(part.devices.into_iter().map(|mut d| {
        (d.process, d.name, d.vendor) = (process(d.process), name(d.name), name(d.vendor));
        d
    }));
    whole.tracks.extend(part.tracks.into_iter().map(|mut track| {
        (track.key.process, track.name) = (process(track.key.process), name(track.name));
        track
    }));
    whole.lanes.extend(part.lanes.into_iter().map(|mut lane: Columns| {
        lane.name.iter_mut().for_each(|id| *id = text(*id));
        lane.link.iter_mut().filter(|l| **l != NONE).for_each(|l| *l += slices);
        lane.detail.iter_mut().filter(|d| **d != NONE).for_each(|d| *d += details);
        lane
    }));
    whole.details.extend(part.details.into_iter().map(|detail| renamed(detail, &name)));
    whole.counters.extend(part.counters.into_iter().map(|mut counter| {
        (counter.process, counter.name) = (process(counter.process), text(counter.name));
        counter
    }));
    whole.flows.extend(part.flows.into_iter().map(|mut flow| {
        (flow.process, flow.kind) = (process(flow.process), text(flow.kind));
        for end in [&mut flow.from, &mut flow.to] {
            end.0 = TrackId(end.0.0.saturating_add(tracks));
        }
        flow
    }));
    whole.window = match (whole.window, part.window) {
        (Some(a), Some(b)) => Some(Span::new(a.start.min(b.start), a.end.max(b.end))),
        (a, b) => a.or(b),
    };
    whole.simulated |= part.simulated;
    part.stats.into_iter().for_each(|stat| add_stat(&mut whole.stats, stat));
    for row in part.ledger {
        match whole.ledger.iter_mut().find(|known| known.category == row.category) {
            Some(known) => {
                known.read = known.read.saturating_add(row.read);
                known.kept = known.kept.saturating_add(row.kept);
                known.time_ns = known.time_ns.saturating_add(row.time_ns);
            }
            None => whole.ledger.push(row),
        }
    }
}

fn shift_times(trace: &mut Trace, shift: Ns) {
    if shift == 0 {
        return;
    }
    let lanes = trace.lanes.iter_mut().flat_map(|lane| &mut lane.start);
    let counters = trace.counters.iter_mut().flat_map(|counter| &mut counter.t);
    let flows = trace.flows.iter_mut().flat_map(|flow| [&mut flow.from.1, &mut flow.to.1]);
    lanes.chain(counters).chain(flows).for_each(|t| *t = t.saturating_add(shift));
    trace.window = trace.window.map(|w| Span::new(w.start.saturating_add(shift), w.end.saturating_add(shift)));
}

fn renamed(mut detail: Detail, name: &impl Fn(Option<StringId>) -> Option<StringId>) -> Detail {
    let new = |ids: &mut [&mut Option<StringId>]| ids.iter_mut().for_each(|id| **id = name(**id));
    let call = |call: &mut CollectiveCall| new(&mut [&mut call.op, &mut call.group, &mut call.dtype]);
    match &mut detail {
        Detail::Kernel(kernel) => kernel.collective.iter_mut().for_each(|c| call(c)),
        Detail::Copy(copy) => new(&mut [&mut copy.direction, &mut copy.src, &mut copy.dst]),
        Detail::Op(op) => new(&mut [&mut op.shapes, &mut op.dtypes]),
        Detail::Collective(collective) => call(collective),
        Detail::Launch(kernel) => *kernel = name(Some(*kernel)).unwrap_or_default(),
        Detail::Sync(_) | Detail::Peer(_) | Detail::Failed(_) => {}
    }
    detail
}

fn add_stat(stats: &mut Vec<ImportStat>, stat: ImportStat) {
    match stats.iter_mut().find(|known| known.name == stat.name) {
        Some(known) => {
            known.count = known.count.saturating_add(stat.count);
            known.severity = known.severity.max(stat.severity);
        }
        None => stats.push(stat),
    }
}

/// What the captures say of themselves: one value where they agree, the list of values where they do not.
fn agreed(parts: &[Trace]) -> Manifest {
    let mut values: BTreeMap<&str, (Vec<&str>, Provenance)> = BTreeMap::new();
    for (key, entry) in parts.iter().flat_map(|p| p.manifest.iter()) {
        let (known, _) = values.entry(key).or_insert_with(|| (Vec::new(), entry.provenance));
        if !known.contains(&entry.value.as_str()) {
            known.push(&entry.value);
        }
    }
    let mut manifest = Manifest::default();
    for (key, (known, provenance)) in values {
        let more = known.len().saturating_sub(VALUES);
        let mut value = known.iter().take(VALUES).copied().collect::<Vec<_>>().join(", ");
        if key == COUNT {
            let counts = parts.iter().filter_map(|p| p.manifest.value(COUNT)?.parse::<u64>().ok());
            value = counts.fold(0, u64::saturating_add).to_string();
        } else if key == Manifest::RANKS_AT_LEAST {
            let most = parts.iter().filter_map(|p| p.manifest.count(key)).max();
            value = most.map_or(value, |most| most.to_string());
        } else if more > 0 {
            value.push_str(&format!(", … (+{more})"));
        }
        manifest.set(key, value, provenance);
    }
    manifest
}
