//! What the steps themselves show: what is measured, how graphs are used, whether anything was still compiled.

use model::{EvidenceClass, Ns};

use super::{By, Inferred, View, Why, one};
use crate::{
    analysis::{AnchorKind, GraphMode, OpKind, Selection},
    platform::{HostCall, Stage},
};

pub(super) fn infer(view: &View<'_>, inferred: &mut Inferred) {
    inferred.put("measurement.metric", By::Steps, metric(view));
    inferred.put("software.graph_mode", By::Calls, graph_mode(view));
    inferred.put("warmup.compile_done", By::Calls, compiled(view));
    if view.class.batches.is_some() && view.class.stage == Stage::Decode {
        let decode =
            view.rank.steps.iter().filter(|s| s.selection == Selection::Steady && s.facts.stage == Stage::Decode);
        inferred.put("caps.batch", By::Marks, one(decode.filter_map(|step| step.facts.batch), Why::NoSteps));
    }
}

/// The definition of the time that is compared: ours, so that it is the same wherever steps are found.
fn metric(view: &View<'_>) -> Result<String, Why> {
    let what = match view.class.stage {
        Stage::Unknown => "step",
        stage => stage.name(),
    };
    match view.rank.anchor.kind {
        AnchorKind::WholeCapture => Err(Why::NoSteps),
        AnchorKind::Log => Ok(format!("{what} time as a log says it")),
        _ => Ok(format!("{what} time on the device, from a step's first operation to the next step's")),
    }
}

fn graph_mode(view: &View<'_>) -> Result<&'static str, Why> {
    let in_graphs = || view.ops().any(|op| op.in_graph || op.kind == OpKind::Opaque);
    if !view.analysis.evidence.has(EvidenceClass::Correlation) && !in_graphs() {
        return Err(Why::NoCalls);
    }
    if view.class.graph == GraphMode::Eager && in_graphs() {
        return Err(Why::Several(vec!["eager".to_owned(), "graphs".to_owned()]));
    }
    view.class.graph.stated().ok_or(Why::NoCalls)
}

/// Share of a step up to which calls that would compile only looked up what was compiled before: `opCompile` of CANN is called for
/// every operator of its kind in every step, and so is `aclopCompileAndExecute`; own value.
const LOOK_UP: f64 = 0.05;
/// See [`LOOK_UP`]: compilation takes longer than this, ns; own value.
const COMPILES: Ns = 20_000_000;

/// Whether nothing was compiled or captured any more when the steps that count began.
fn compiled(view: &View<'_>) -> Result<&'static str, Why> {
    let timeline = &view.rank.timeline;
    if view.rank.anchor.kind == AnchorKind::WholeCapture {
        return Err(Why::NoSteps);
    }
    // A queue of tasks, or the rows of launches that CANN keeps at its lowest level, without the calls of the runtime show no
    // compilation, and no absence of one.
    let is_function = |name| view.trace.strings.get(name) != "launch";
    let runtime = timeline.calls.iter().any(|call| call.kind != HostCall::Other && is_function(call.name));
    if !runtime || !view.analysis.evidence.has(EvidenceClass::HostApi) {
        return Err(Why::NoCalls);
    }
    let compiles = |step: &super::Step| {
        let calls = timeline.calls_between(step.window.start, step.window.end).iter();
        // Calls inside each other count once.
        let compiling = calls.filter(|call| call.kind.is_compile()).fold((0, Ns::MIN), |(sum, until), call| {
            let end = call.end.min(step.window.end);
            (sum + (end - call.start.max(until)).max(0), end.max(until))
        });
        let (compiling, _) = compiling;
        compiling > COMPILES || compiling as f64 > LOOK_UP * step.window.len() as f64
    };
    // What is compiled once the run is under way is a finding and no warm-up.
    let first = view.rank.steady_steps(view.class).next();
    Ok(if first.is_some_and(compiles) { "no" } else { "yes" })
}
