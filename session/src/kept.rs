//! Sources of which nothing was kept, and those that hold facts and no run: both end an import as what could not be read does.

use std::path::Path;

use model::{ImportStat, Severity, Trace};

/// What the fields begin with that say how a run went: what clients measured of a server under load.
const RESULTS: [&str; 2] = ["load.", "serving."];

/// Whether nothing of a source was kept: no event, no sum, no measurement, no sample, and no row that became a fact.
pub(crate) fn holds_nothing(trace: &Trace) -> bool {
    holds_no_run(trace) && trace.ledger.iter().all(|row| row.kept == 0)
}

/// Whether a source tells nothing of how a run went, but at most of its machine and its programs.
pub(crate) fn holds_no_run(trace: &Trace) -> bool {
    let result = |key: &str| RESULTS.iter().any(|begin| key.starts_with(begin));
    trace.slice_count() == 0
        && trace.summaries.is_empty()
        && trace.job_sums.is_empty()
        && trace.probes.rows.is_empty()
        && trace.counters.iter().all(|counter| counter.t.is_empty())
        && !trace.manifest.iter().any(|(key, _)| result(key))
}

/// Notes in a capture that nothing of its source was kept; the sentence that says so.
pub(crate) fn nothing(path: &Path, trace: &mut Trace) -> String {
    let sentence = format!(
        "'{}' was read as {} and nothing in it could be kept; see what the import says of its rows, and record or export it again",
        path.display(),
        trace.format
    );
    tell(trace, sentence)
}

/// Notes in a capture that it holds facts and no run; the sentence that says so, unless one did already.
pub(crate) fn no_run(trace: &mut Trace) -> Option<String> {
    if trace.stats.iter().any(|stat| stat.name == ImportStat::NOTHING_KEPT) {
        return None;
    }
    // How an engine started or why it ended is an answer.
    if ["log.failure", "log.ready_ns", "log.layers_on_device"].iter().any(|key| trace.manifest.value(key).is_some()) {
        return None;
    }
    let rows: u64 = trace.ledger.iter().map(|row| row.kept).fold(0, u64::saturating_add);
    let sentence = format!(
        "'{}' was read as {} and holds no operation, sum, measurement or sample of a run, only facts from {rows} rows; give the \
         trace or the table of what ran with it, or record it again",
        trace.source, trace.format
    );
    Some(tell(trace, sentence))
}

fn tell(trace: &mut Trace, sentence: String) -> String {
    trace.stats.push(ImportStat {
        name: ImportStat::NOTHING_KEPT.to_owned(),
        severity: Severity::Error,
        count: 1,
        example: Some(sentence.clone()),
    });
    sentence
}
