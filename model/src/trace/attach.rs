//! What another source measured of a capture's kernels, added to the capture.

use super::Trace;
use crate::{
    manifest::Provenance,
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

fn device(trace: &Trace) -> Option<&str> {
    let named = trace.devices.iter().find_map(|device| device.name).map(|name| trace.strings.get(name));
    named.or_else(|| trace.manifest.value(DEVICE))
}

/// The summaries of a capture with their texts interned elsewhere.
pub(super) fn of(part: &Trace, mut intern: impl FnMut(&str) -> StringId) -> Vec<KernelSummary> {
    let mut renamed = part.summaries.clone();
    for summary in &mut renamed {
        summary.kernel = intern(part.strings.get(summary.kernel));
        summary.stalls.iter_mut().for_each(|(reason, _)| *reason = intern(part.strings.get(*reason)));
    }
    renamed
}
