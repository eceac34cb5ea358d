//! Calls of a whole model, where the source records the modules of torch: what happens several times within one is no step.

use model::{Category, Ns, ProcessId, Span, Trace, TrackKind};

use super::timeline::Timeline;

/// How torch's recorder names the call of a module.
const MODULE: &str = "nn.Module: ";

/// Whether most of these operations were launched in the same call of a model as the one before them: they begin layers, not
/// steps.
pub(super) fn hold_several(trace: &Trace, process: ProcessId, timeline: &Timeline, firsts: &[usize]) -> bool {
    let calls = outermost(trace, process);
    let at = |first: &usize| timeline.ops.get(*first).and_then(|op| timeline.call(op)).map(|call| call.start);
    let call_of = |first: &usize| {
        let at = at(first)?;
        let call = calls.partition_point(|call| call.start <= at).checked_sub(1)?;
        calls.get(call).is_some_and(|span| at < span.end).then_some(call)
    };
    let held: Vec<Option<usize>> = firsts.iter().map(call_of).collect();
    let shared =
        held.windows(2).filter(|pair| pair.first() == pair.last() && pair.first().is_some_and(Option::is_some));
    2 * shared.count() > firsts.len()
}

/// Calls of modules that no other call of a module holds, in order of time.
fn outermost(trace: &Trace, process: ProcessId) -> Vec<Span> {
    let mut out: Vec<Span> = Vec::new();
    let lanes = trace.tracks.iter().zip(&trace.lanes);
    let own = lanes.filter(|(track, _)| track.key.process == process && track.key.kind == TrackKind::HostThread);
    for (_, lane) in own {
        let mut until = Ns::MIN;
        for ((category, name), row) in lane.category.iter().zip(&lane.name).zip(0..) {
            let Some(start) = lane.start.get(row).copied().filter(|_| *category == Category::PythonFrame) else {
                continue;
            };
            if start >= until && trace.strings.get(*name).starts_with(MODULE) {
                until = lane.end(row);
                out.push(Span::new(start, until));
            }
        }
    }
    out.sort_unstable_by_key(|span| (span.start, span.end));
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;
    use crate::analysis::{AnchorKind, script::Script};

    /// Ten times a product and a top-k whose result the host reads, within so many calls of the model each.
    fn run(per_call: i64) -> AnchorKind {
        let mut s = Script::default();
        for i in 0..10 {
            let at = 1_000 * i;
            if i % per_call == 0 {
                s.host(Category::PythonFrame, "nn.Module: Switch_0", (at, at + 1_000 * per_call - 150));
            }
            s.host(Category::PythonFrame, "nn.Module: Gate_0", (at + 1, at + 20));
            s.launch((at + 2, at + 4), "gemm", (at + 10, at + 90));
            s.launch((at + 5, at + 7), "void at::native::sbtopk::gatherTopK<float>", (at + 100, at + 190));
            s.copy("cudaMemcpyAsync", (at + 200, at + 300), "DtoH", "pageable", 8, (at + 210, at + 220));
        }
        s.analyze().1.ranks[0].anchor.kind
    }

    #[test]
    fn a_choice_of_experts_within_one_call_of_the_model_is_no_sampled_token() {
        assert_eq!(run(1), AnchorKind::TokenReadback);
        assert_eq!(run(10), AnchorKind::WholeCapture);
    }
}
