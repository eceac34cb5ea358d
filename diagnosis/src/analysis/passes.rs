//! Equal passes of a model that nothing marks: the device does the same sequence again and again, such as a benchmark's forward
//! pass.

use super::{
    period,
    timeline::{DeviceOp, Timeline},
};
use crate::platform::CanonicalOp;

/// Share of the operations that passes hold where they are the work; own value: what a program prepares is short.
const WHOLE: f64 = 0.7;
/// Fewest passes.
const FEWEST: usize = 3;
/// Least share of a pass's operations that are those of the body; own value, that of a layer's copy.
const ALIKE: f64 = 0.7;
/// Products or convolutions beside which a single one of the other kind is how a model begins or ends; own value.
const MANY: usize = 10;
/// Operations that are looked at; a capture of more has marks, or is one window.
const MOST: usize = 1_000_000;

/// The first operations of all passes from the operation `from` on; `None` where most of the work is no pass repeated, or what
/// repeats may be a layer.
pub(super) fn firsts(timeline: &Timeline, from: usize) -> Option<Vec<usize>> {
    let ops = timeline.ops.get(from..).filter(|ops| ops.len() <= MOST)?;
    let symbols: Vec<u32> = ops.iter().map(|op| op.name.0).collect();
    let period = period::mine(&symbols, &[])?;
    let first = ops.get(period.start..period.start + period.len)?;
    if !is_whole(first) {
        return None;
    }
    let mut firsts = Vec::new();
    let mut at = period.start;
    while let Some(copy) = symbols.get(at..at + period.len) {
        let same = || copy.iter().zip(&period.body).filter(|(a, b)| a == b).count();
        if copy.first() == period.body.first() && same() as f64 >= ALIKE * period.len as f64 {
            firsts.push(from + at);
            at += period.len;
        } else {
            at += 1;
        }
    }
    let covered = firsts.len() * period.len;
    (firsts.len() >= FEWEST && covered as f64 >= WHOLE * ops.len() as f64).then_some(firsts)
}

/// Whether a sequence holds how a model begins or ends, so that it is no layer: a kernel of it that runs once looks up an embedding,
/// chooses a token, reduces or is a loss, or it is the one product beside many convolutions, or the reverse.
fn is_whole(body: &[DeviceOp]) -> bool {
    let count = |kind: CanonicalOp| body.iter().filter(|op| op.op == kind).count();
    let ends = [CanonicalOp::Embedding, CanonicalOp::Sample, CanonicalOp::Loss, CanonicalOp::Reduce];
    let once = |op: &DeviceOp| body.iter().filter(|other| other.name == op.name).count() == 1;
    let (products, convolutions) = (count(CanonicalOp::Gemm), count(CanonicalOp::Conv));
    let alone = products.min(convolutions) == 1;
    products.max(convolutions) >= MANY && (alone || body.iter().any(|op| ends.contains(&op.op) && once(op)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use crate::analysis::{AnchorKind, script::Script};

    /// So many passes of twelve layers, each with a head where `head`, after a start of its own.
    fn run(passes: i64, head: bool) -> (AnchorKind, usize) {
        let mut s = Script::default();
        let mut at = 0;
        let mut kernel = |name: &str| {
            s.launch((at, at + 5), name, (at + 10, at + 40));
            at += 50;
        };
        kernel("warm_up");
        for _ in 0..passes {
            for _ in 0..12 {
                for name in ["void implicit_convolve_sgemm<float>", "bn_fw_inf_1C11_kernel_NCHW", "relu_kernel"] {
                    kernel(name);
                }
            }
            if head {
                kernel("ampere_sgemm_32x32_sliced1x4_tn");
            }
        }
        let (_, analysis) = s.analyze();
        (analysis.ranks[0].anchor.kind, analysis.ranks[0].steps.len())
    }

    /// Eight forward passes of 20.3 ms were one window of 525 ms, with all that came before them.
    #[test]
    fn passes_that_repeat_without_marks_are_steps_and_layers_are_not() {
        assert_eq!(run(5, true), (AnchorKind::Passes, 5));
        assert_eq!(run(1, true).0, AnchorKind::WholeCapture);
        assert_eq!(run(5, false).0, AnchorKind::WholeCapture, "layers alone may be one pass");
    }
}
