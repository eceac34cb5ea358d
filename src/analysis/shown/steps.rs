//! What the steps themselves show: what is measured, how graphs are used, whether anything was still compiled.

use model::EvidenceClass;

use super::{By, Shown, View, Why, one};
use crate::{
    analysis::{AnchorKind, GraphMode, OpKind},
    platform::Stage,
};

pub(super) fn show(view: &View<'_>, shown: &mut Shown) {
    shown.put("measurement.metric", By::Steps, metric(view));
    shown.put("software.graph_mode", By::Calls, graph_mode(view));
    shown.put("warmup.compile_done", By::Calls, compiled(view));
    if view.class.batch.is_some() && view.class.stage == Stage::Decode {
        let decode = view.rank.classes.iter().filter(|class| class.stage == Stage::Decode && class.steady > 0);
        shown.put("caps.batch", By::Marks, one(decode.filter_map(|class| class.batch), Why::NoSteps));
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

/// The words are those of the engine that comes with the program.
fn graph_mode(view: &View<'_>) -> Result<&'static str, Why> {
    let launches = view.analysis.evidence.has(EvidenceClass::Correlation)
        || view.ops().any(|op| op.in_graph || op.kind == OpKind::Opaque);
    match view.class.graph {
        _ if !launches => Err(Why::NoCalls),
        GraphMode::Eager if view.ops().any(|op| op.in_graph) => {
            Err(Why::Several(vec!["eager".to_owned(), "graphs".to_owned()]))
        }
        GraphMode::Eager => Ok("eager"),
        GraphMode::Piecewise => Ok("piecewise graphs"),
        GraphMode::Full => Ok("full graph"),
        GraphMode::Unknown => Err(Why::NoCalls),
    }
}

/// Whether nothing was compiled or captured any more in any step that counts.
fn compiled(view: &View<'_>) -> Result<&'static str, Why> {
    let timeline = &view.rank.timeline;
    if view.rank.anchor.kind == AnchorKind::WholeCapture {
        return Err(Why::NoSteps);
    }
    if timeline.calls.is_empty() || !view.analysis.evidence.has(EvidenceClass::HostApi) {
        return Err(Why::NoCalls);
    }
    let compiles = |step: &super::Step| {
        timeline.calls_between(step.window.start, step.window.end).iter().any(|call| call.kind.is_compile())
    };
    Ok(if view.rank.steady_steps(view.class).any(compiles) { "no" } else { "yes" })
}
