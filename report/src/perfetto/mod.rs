//! The capture as a file of trace events, which the Perfetto UI and its `trace_processor` load whole.
//!
//! Every slice of the capture is in it once, with its id as the argument `slice`; what the analysis derived (steps, idle
//! time, collectives, copies, graph replays, findings) lies on threads of its own, whose categories begin with `strato.`.
//! A process is a rank, a thread is a track. Form: Trace Event Format, "JSON Object Format"; times are µs with three
//! decimals, so that no nanosecond is rounded.
//!
//! | module | owns |
//! | --- | --- |
//! | `clocks` | one clock for all ranks |
//! | `event` | how one event is written |
//! | `nest` | slices that overlap without nesting, given places of their own |
//! | `places` | which process and thread each track is |
//! | `slices` | the capture's own slices and links |
//! | `counters` | its counters |
//! | `derived` | what the analysis says, as slices |
//! | `finding` | findings at the slices that they were read from |

mod clocks;
mod counters;
mod derived;
mod event;
mod finding;
mod nest;
mod places;
mod slices;

use std::io::{self, Write};

use model::{Ns, Trace};

use self::{
    clocks::Clocks,
    event::Events,
    places::{Layout, Places},
};
use super::text;
use diagnosis::{analysis::Analysis, diagnose::Diagnosis, i18n::Lang};

/// First id of a link. `trace_processor` numbers links of the older form (`s`, `f`) from 0 on in the same space.
const FIRST_LINK: u64 = 1 << 40;

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Slices of the captures.
    pub slices: u64,
    /// Of those, slices that overlap others of their track without nesting; they lie on threads or tracks beside it.
    pub beside: u64,
    /// Slices that the analysis derived.
    pub derived: u64,
    /// Links, from launch to kernel and those that the source recorded.
    pub flows: u64,
    /// Links that a viewer would refuse: those that end before they begin, and those whose end lies in no slice.
    pub broken_flows: u64,
    /// Samples of counters.
    pub samples: u64,
    /// Samples that are no numbers, which the format has no form for.
    pub no_numbers: u64,
}

/// A capture on its way into the file.
struct Source<'a> {
    trace: &'a Trace,
    analysis: &'a Analysis,
    diagnosis: &'a Diagnosis,
    lang: Lang,
    /// One clock for all ranks.
    clocks: Clocks,
    /// Added to every time, so that none is negative.
    shift: Ns,
    /// Added to every slice id, so that links of two captures never meet.
    first_link: u64,
}

/// What is written to, and what was written so far.
struct File<'a, 'b> {
    places: &'a mut Places,
    events: &'a mut Events<'b>,
    written: &'a mut Written,
}

/// Writes captures event by event; what is kept beside the captures are names, links, and collectives.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, inputs: &[(Trace, Analysis, Diagnosis)], lang: Lang) -> io::Result<Written> {
    let mut written = Written::default();
    let mut sources = Vec::with_capacity(inputs.len());
    let mut first_link = FIRST_LINK;
    for (trace, analysis, diagnosis) in inputs {
        let clocks = Clocks::of(trace, analysis);
        let shift = clocks.before_zero(trace);
        sources.push(Source { trace, analysis, diagnosis, lang, clocks, shift, first_link });
        first_link += trace.slice_count() as u64;
    }
    let simulated = inputs.iter().any(|(trace, ..)| trace.simulated);
    let mut places = Places::default();
    let mut events = Events::begin(out, &about(&sources), simulated)?;
    for source in &sources {
        let several = sources.len() > 1;
        let layout = Layout::of(source, several, &mut places, &mut events)?;
        let mut file = File { places: &mut places, events: &mut events, written: &mut written };
        slices::write(source, &layout, &mut file)?;
        counters::write(source, &layout, &mut file)?;
        derived::write(source, &layout, &mut file)?;
        finding::write(source, &layout, &mut file)?;
    }
    events.end()?;
    Ok(written)
}

/// What the file says of its captures, for readers of the JSON.
fn about(sources: &[Source<'_>]) -> serde_json::Value {
    let capture = |source: &Source<'_>| {
        serde_json::json!({
            "source": text::plain(&source.trace.source, text::PHRASE),
            "format": source.trace.format,
            "simulated": source.trace.simulated,
            "start_unix_ns": source.trace.start_unix_ns.map(|ns| ns.to_string()),
            "shift_ns": source.shift.to_string(),
        })
    };
    serde_json::json!({
        "schema": "strato.perfetto/1",
        "captures": sources.iter().map(capture).collect::<Vec<_>>(),
    })
}
