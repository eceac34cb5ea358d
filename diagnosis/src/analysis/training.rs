//! Whether a capture is of training: then it has no decode step, and its steps are no forward passes.

use model::{Category, ProcessId, Trace, TrackKind};
use rustc_hash::FxHashMap;

/// Parts of kernel names of backward passes in PyTorch, MIOpen, cuDNN and FlashAttention (`_bwd`: gradients of inputs,
/// `_wrw` and `wgrad`: gradients of weights), in lower case; those of CANN end in `Grad`, and its optimisers begin with `Apply`.
const BACKWARD: [&str; 6] = ["backward", "backprop", "_bwd", "_wrw", "wgrad", "applyadam"];
/// Parts of names of the gradient of a convolution's input, which is also how the libraries compute a transposed convolution:
/// decoders of images and of sound run it in inference. Training has gradients of weights beside it.
const TRANSPOSED: [&str; 3] = ["igemm_bwd", "conv_bwd", "backpropinput"];
/// How PyTorch's autograd names what it runs for a backward pass.
const AUTOGRAD: &str = "autograd::engine::evaluate_function";

/// Whether the program annotates an optimiser's step, or runs a backward pass by its framework's or its kernels' names.
pub(super) fn is_training(trace: &Trace, process: ProcessId) -> bool {
    let mut seen = FxHashMap::default();
    trace.tracks.iter().zip(&trace.lanes).filter(|(t, _)| t.key.process == process).any(|(track, lane)| {
        let on_device = track.key.kind == TrackKind::DeviceQueue;
        (0..lane.len()).any(|i| {
            let category = lane.category[i];
            // Most records are of other kinds, frames of Python above all: their names are not looked up.
            let telling = match category {
                Category::Kernel => on_device,
                Category::UserRange | Category::FrameworkOp => true,
                _ => false,
            };
            telling
                && *seen.entry((lane.name[i], category)).or_insert_with(|| {
                    let name = trace.strings.get(lane.name[i]);
                    match category {
                        Category::Kernel => is_backward(name),
                        Category::UserRange => name.starts_with("Optimizer."),
                        _ => name.starts_with(AUTOGRAD),
                    }
                })
        })
    })
}

fn is_backward(kernel: &str) -> bool {
    // Operators of CANN are words in mixed case: `FlashAttentionScoreGrad`, `RmsNormGrad`, `SoftmaxGradExt`.
    let gradient =
        kernel.match_indices("Grad").any(|(at, _)| kernel.get(..at).is_some_and(|before| !before.is_empty()));
    let kernel = kernel.to_ascii_lowercase();
    let any = |parts: &[&str]| parts.iter().any(|part| kernel.contains(part));
    gradient || any(&BACKWARD) && !any(&TRANSPOSED)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use model::Category;

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
        // Transposed convolutions of inference were training.
        for kernel in ["sm80_xmma_dgrad_implicit_gemm_f16f16_f16f32_nhwckrsc_cudnn_infer", "igemm_bwd_gtcx2_nhwc_fp16"]
        {
            assert_eq!(stage(kernel), Stage::Unknown, "{kernel}");
        }
    }

    /// Products of a backward pass have no names of their own, but the framework that runs them says what they are for.
    #[test]
    fn what_autograd_runs_backward_is_training() {
        let mut s = Script::default();
        s.host(Category::FrameworkOp, "autograd::engine::evaluate_function: MmBackward0", (0, 10));
        s.launch((1, 9), "gemm_nt", (20, 100)).launch((10, 20), "gemm_nt", (100, 200));
        assert_eq!(s.analyze().1.ranks[0].classes[0].stage, Stage::Train);
    }
}
