//! Whether a capture is of training: then it has no decode step, and its steps are no forward passes.

use model::{Category, ProcessId, Trace, TrackKind};
use rustc_hash::FxHashMap;

/// Parts of kernel names of backward passes in PyTorch, MIOpen, cuDNN and FlashAttention (`_bwd`: gradients of inputs,
/// `_wrw` and `wgrad`: gradients of weights), in lower case; those of CANN end in `Grad`, and its optimisers begin with `Apply`.
const BACKWARD: [&str; 7] = ["backward", "backprop", "_bwd", "_wrw", "wgrad", "dgrad", "applyadam"];

/// Whether the program annotates an optimiser's step or runs kernels of a backward pass.
pub(super) fn is_training(trace: &Trace, process: ProcessId) -> bool {
    let mut seen = FxHashMap::default();
    trace.tracks.iter().zip(&trace.lanes).filter(|(t, _)| t.key.process == process).any(|(track, lane)| {
        (0..lane.len()).any(|i| {
            let kernel = track.key.kind == TrackKind::DeviceQueue && lane.category[i] == Category::Kernel;
            let range = lane.category[i] == Category::UserRange;
            (kernel || range)
                && *seen.entry((lane.name[i], kernel)).or_insert_with(|| {
                    let name = trace.strings.get(lane.name[i]);
                    if kernel { is_backward(name) } else { name.starts_with("Optimizer.") }
                })
        })
    })
}

fn is_backward(kernel: &str) -> bool {
    // Operators of CANN are words in mixed case: `FlashAttentionScoreGrad`, `RmsNormGrad`, `SoftmaxGradExt`.
    let gradient =
        kernel.match_indices("Grad").any(|(at, _)| kernel.get(..at).is_some_and(|before| !before.is_empty()));
    let kernel = kernel.to_ascii_lowercase();
    gradient || BACKWARD.iter().any(|part| kernel.contains(part))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::{analysis::script::Script, platform::Stage};

    #[test]
    fn kernels_of_a_backward_pass_are_training_and_forward_ones_are_not() {
        let stage = |kernel: &str| {
            let mut s = Script::default();
            s.launch((0, 10), kernel, (20, 100)).launch((10, 20), "gemm_nt", (100, 200));
            s.analyze().1.ranks[0].classes[0].stage
        };
        for kernel in
            ["void at::native::batch_norm_backward_kernel<float>", "igemm_wrw_gtcx2_nhwc_fp32", "flash_bwd_dq"]
        {
            assert_eq!(stage(kernel), Stage::Train, "{kernel}");
        }
        assert_eq!(stage("igemm_fwd_gtcx2_nhwc_fp32"), Stage::Unknown);
    }
}
