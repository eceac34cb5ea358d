//! Findings at the slices that they were read from: what a claim rests on is seen where it happened.

use std::{cmp::Reverse, io};

use model::{Ns, SliceId, Span};

use super::{
    File, Source,
    event::{Args, Slice, quoted},
    places::{Layout, Thread, order},
};
use crate::phrase;
use diagnosis::{
    diagnose::{Evidence, Finding},
    i18n::Text,
};

/// A fact of a finding at one of its slices.
struct Seen<'a> {
    span: Span,
    /// What its clock is moved by, ns.
    by: Ns,
    slice: SliceId,
    finding: &'a Finding,
    evidence: &'a Evidence,
}

/// Writes the evidence of every finding into the process of the slice that it was read from.
pub fn write(source: &Source<'_>, layout: &Layout, file: &mut File<'_, '_>) -> io::Result<()> {
    let mut seen: Vec<(u32, Seen<'_>)> = Vec::new();
    for finding in &source.diagnosis.findings {
        for evidence in &finding.evidence {
            for slice in &evidence.rows {
                let Some((track, row)) = source.trace.locate(*slice) else { continue };
                let Some(lane) = source.trace.lanes.get(track.0 as usize) else { continue };
                let Some((start, (pid, _))) = lane.start.get(row).zip(layout.tracks.get(track.0 as usize)) else {
                    continue;
                };
                let span = Span::new(*start, lane.end(row));
                let by = source.clocks.track(track);
                seen.push((*pid, Seen { span, by, slice: *slice, finding, evidence }));
            }
        }
    }
    seen.sort_by_key(|(pid, seen)| (*pid, seen.span.start, Reverse(seen.span.end)));
    let mut rest = seen.as_slice();
    while let Some((pid, _)) = rest.first() {
        let (own, others) = rest.split_at(rest.partition_point(|(other, _)| other == pid));
        rest = others;
        let name = source.get(Text::new("findings", "发现")).to_owned();
        let mut thread = Thread::new(*pid, name, order::FINDINGS);
        for (_, seen) in own {
            put(source, seen, &mut thread, file)?;
        }
    }
    Ok(())
}

fn put(source: &Source<'_>, seen: &Seen<'_>, thread: &mut Thread, file: &mut File<'_, '_>) -> io::Result<()> {
    let (finding, lang) = (seen.finding, source.lang);
    let claim = phrase::plain(&finding.claim, lang);
    let name = quoted(&format!("{} {claim}", finding.rule));
    let mut args = Args::default();
    args.text("rule", finding.rule).text("claim", claim.as_str()).text("severity", finding.severity.key());
    args.text("layer", finding.layer.key()).text("evidence", phrase::plain_fact(seen.evidence, lang).as_str());
    args.number("of_slice", i64::from(seen.slice.0)).text("estimate", finding.estimate.method.key());
    args.number("step_ns", finding.estimate.from).number("to_least_ns", finding.estimate.to_low);
    args.number("to_most_ns", finding.estimate.to_high);
    let span = source.span(seen.span, seen.by);
    thread.put(&Slice { span, name: &name, category: "strato.finding", link: None, args: &args }, file)?;
    file.written.derived += 1;
    Ok(())
}
