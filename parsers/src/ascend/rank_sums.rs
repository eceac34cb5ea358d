//! A rank of which only sums were kept: `communication.json` or `analysis.db` say when each collective began and how long it
//! took, `step_trace_time.csv` how long the rank computed. That places the rank among the others, who may have waited for it or
//! it for them; what it did between its collectives was not recorded.

use std::path::PathBuf;

use model::{
    Category, Clock, JobSums, Ns, ProcessId, Provenance, Severity, StepPart, StepSum, TraceSink, TrackKey, TrackKind,
};

use super::{
    cluster::PARTS,
    facts::Facts,
    import::{Collective, Import},
    layout::{self, Layout},
    times::Times,
};
use crate::csv_table::Table;

/// What the manifest says of such a capture's form.
const FORM: &str = "sums of collectives";

/// Reads the sums of a rank.
///
/// # Errors
/// What was wrong with the files, if anything was, where they hold no collective.
pub(super) fn read(layout: &Layout, sink: &mut dyn TraceSink) -> Result<(), Option<String>> {
    let times = Times::alone(layout, sink);
    if times.is_empty() {
        return Err(times.damage().map(str::to_owned));
    }
    let facts = Facts::read(layout, sink);
    let (process, device) = (sink.process(0), 0);
    sink.describe_process(process, facts.pid, None, facts.rank);
    let steps = steps(layout, facts.rank, sink);
    let mut import = Import::new(sink);
    place(&mut import, times, process, device, &steps);
    import.stat("rank_of_sums_only", Severity::Notice, 1, layout.root.to_str());
    import.sink.clock(Clock::FromFirstSlice { unix_offset: Some(0) });
    import.settle(&|_| None, facts.world);
    facts.tell(import.sink);
    import.sink.manifest("ascend.form", FORM, Provenance::Observed);
    Ok(())
}

/// Places the collectives of a rank, and the step that they lie in where there is but one.
pub(super) fn place(import: &mut Import<'_>, times: Times, process: ProcessId, device: i32, steps: &[String]) {
    let calls: Vec<(String, Ns, Ns)> = times
        .all()
        .into_iter()
        .filter_map(|(name, sums)| Some((name.to_owned(), sums.start, sums.start.checked_add(sums.elapse)?)))
        .collect();
    import.times = times;
    for (name, start, end) in &calls {
        import.collective(
            "collective",
            &Collective {
                process,
                device,
                group: None,
                start: *start,
                end: *end,
                name,
                connection: None,
                dtype: None,
                count: None,
                group_size: None,
            },
        );
    }
    let span = calls.iter().map(|(_, start, end)| (*start, *end)).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    if let ([step], Some(span)) = (steps, span) {
        let kind = TrackKind::DeviceAnnotation;
        let key = TrackKey { kind, process, device: Some(device), context: Some(2), id: 0 };
        let track = import.track(key, Some("steps"));
        let name = format!("step {step}");
        let name = import.sink.intern(&name);
        import.slice(track, span, name, Category::DeviceRange, None, None);
    }
}

/// A step's name and its parts.
type Parts = (String, Vec<(StepPart, Ns)>);

/// Tells the parts of the rank's steps; the names of the steps.
fn steps(layout: &Layout, rank: Option<u32>, sink: &mut dyn TraceSink) -> Vec<String> {
    let Some(rank) = rank else { return Vec::new() };
    let mut found = table(layout);
    if found.is_empty() {
        found = database(layout, sink);
    }
    let steps =
        found.iter().map(|(name, parts)| StepSum { step: sink.intern(name), rank, stage: None, parts: parts.clone() });
    let steps = steps.collect();
    sink.job_sums(JobSums { steps, links: Vec::new() });
    found.into_iter().map(|(name, _)| name).collect()
}

/// The steps of `step_trace_time.csv`.
fn table(layout: &Layout) -> Vec<Parts> {
    let of_steps = |path: &&PathBuf| layout::name(path).starts_with("step_trace_time");
    let Some(path) = layout.sums.iter().find(of_steps) else { return Vec::new() };
    let columns: Vec<&str> = std::iter::once("step").chain(PARTS.map(|(_, column, _)| column)).collect();
    let Ok(mut table) = Table::open_lines(path, |header| header.iter().any(|column| column == "computing")) else {
        return Vec::new();
    };
    table.select(&columns);
    let mut found = Vec::new();
    while let Ok(Some(row)) = table.next(&|_, _| {}) {
        let parts = (1..).zip(PARTS).filter_map(|(cell, (part, ..))| Some((part, row.decimal(cell, 3)?)));
        let parts: Vec<(StepPart, Ns)> = parts.filter(|(_, ns)| *ns >= 0).collect();
        if !parts.is_empty() {
            found.push((row.text(0).unwrap_or_default().into_owned(), parts));
        }
    }
    found
}

/// The same of `analysis.db`, which is all that the database form has of them.
#[cfg(feature = "sqlite")]
fn database(layout: &Layout, sink: &mut dyn TraceSink) -> Vec<Parts> {
    use super::cluster::database::{STEPS, parts};
    use crate::sqlite::{
        database::{Database, tell_loss},
        scan::Item,
    };
    const TABLE: &str = "StepTraceTime";
    let opened = layout.analysis().and_then(|path| Database::open(path, super::database::malformed).ok());
    let Some(database) = opened.filter(|database| database.tables.has(TABLE)) else { return Vec::new() };
    let mut found = Vec::new();
    let plan = database.plan([(&TABLE, TABLE.to_owned(), STEPS)], "ascend", sink);
    plan.read(&|_, _| {}, |table, item| match item {
        Item::Page(page) => {
            for row in 0..page.rows {
                let parts = parts(&page, row);
                if !parts.is_empty() {
                    found.push((page.inline(0, row).unwrap_or_default().to_owned(), parts));
                }
            }
            page.rows as u64
        }
        Item::Loss(loss) => tell_loss(&loss, "ascend", table, sink),
    });
    found
}

#[cfg(not(feature = "sqlite"))]
fn database(_: &Layout, _: &mut dyn TraceSink) -> Vec<Parts> {
    Vec::new()
}
