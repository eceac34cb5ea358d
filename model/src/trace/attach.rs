//! What another source measured of a capture's kernels or of its machine, added to the capture.

use super::Trace;
use crate::{
    manifest::Provenance,
    probe::ProbeRun,
    stat::{ImportStat, LedgerRow, Severity},
    strings::StringId,
    summary::KernelSummary,
};

/// What a source says the device is.
const DEVICE: &str = "hardware.device";
/// Where the measurements of a capture come from.
const MEASURED: &str = "measurement.kernels";

/// Adds the kernel summaries of `part` to `whole`, with what became of their rows. Measurements of another device model say
/// nothing of this one: they are left out, and `kernel_metrics.other_device` says so.
pub fn attach(whole: &mut Trace, part: &Trace) {
    let source = part.source.rsplit(['/', '\\']).next().unwrap_or_default();
    let theirs = part.manifest.value(DEVICE);
    let count = part.summaries.len() as u64;
    if let (Some(own), Some(theirs)) = (device(whole), theirs)
        && !own.trim().eq_ignore_ascii_case(theirs.trim())
    {
        let example = format!("{source}: measured on {theirs}, the capture is of {own}");
        whole.stats.push(ImportStat {
            name: "kernel_metrics.other_device".to_owned(),
            severity: Severity::Notice,
            count,
            example: Some(example),
        });
        whole.ledger.push(LedgerRow {
            category: format!("kernel metrics: {source}"),
            read: count,
            note: "not kept: measured on another device model".to_owned(),
            ..LedgerRow::default()
        });
        return;
    }
    whole.summaries.extend(of(part, |text| whole.strings.intern(text)));
    whole.ledger.push(LedgerRow {
        category: format!("kernel metrics: {source}"),
        read: count,
        kept: count,
        note: "measurements of kernels".to_owned(),
        ..LedgerRow::default()
    });
    whole.stats.extend(part.stats.iter().cloned());
    let known = whole.manifest.value(MEASURED).map(|known| format!("{known}, ")).unwrap_or_default();
    whole.manifest.set(MEASURED, format!("{known}{} ({source})", part.format), Provenance::Observed);
}

/// Adds the ceilings of `part` to `whole` in place of those it has. Those of another device model say nothing of this one:
/// they are left out, and `probes.other_device` says so. Whether they were taken in.
pub fn attach_probes(whole: &mut Trace, part: &Trace) -> bool {
    let source = part.source.rsplit(['/', '\\']).next().unwrap_or_default();
    let (own, theirs) = (device(whole), device(part).or_else(|| part.probes.fact(ProbeRun::DEVICE)));
    let count = part.probes.rows.len() as u64;
    let other = own.zip(theirs).filter(|(own, theirs)| !own.trim().eq_ignore_ascii_case(theirs.trim()));
    if let Some((own, theirs)) = other {
        let example = format!("{source}: probed on {theirs}, the capture is of {own}");
        whole.stats.push(ImportStat {
            name: "probes.other_device".to_owned(),
            severity: Severity::Notice,
            count,
            example: Some(example),
        });
        return false;
    }
    whole.probes = part.probes.clone();
    let note = match part.probes.fact(ProbeRun::NOISE) {
        Some(noise) => {
            whole.stats.push(ImportStat {
                name: "probes.disturbed".to_owned(),
                severity: Severity::Notice,
                count: 1,
                example: Some(noise.to_owned()),
            });
            "measured ceilings of what was left of a busy machine"
        }
        None => "measured ceilings",
    };
    whole.ledger.push(LedgerRow {
        category: format!("probes: {source}"),
        read: count,
        kept: count,
        note: note.to_owned(),
        ..LedgerRow::default()
    });
    true
}

fn device(trace: &Trace) -> Option<&str> {
    let named = trace.devices.iter().find_map(|device| device.name).map(|name| trace.strings.get(name));
    named.or_else(|| trace.manifest.value(DEVICE))
}

/// The summaries of a capture with their texts interned elsewhere.
pub(super) fn of(part: &Trace, mut intern: impl FnMut(&str) -> StringId) -> Vec<KernelSummary> {
    let mut renamed = part.summaries.clone();
    for summary in &mut renamed {
        summary.kernel = intern(part.strings.get(summary.kernel));
        let named = summary.stalls.iter_mut().chain(&mut summary.counters);
        named.for_each(|(name, _)| *name = intern(part.strings.get(*name)));
    }
    renamed
}
