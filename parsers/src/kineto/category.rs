//! The categories of Kineto and of its forks, and what each of them is in our vocabulary.

use model::{Category, TrackKind};

/// A category of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Class {
    /// What the events become.
    pub category: Category,
    /// Whether the category is one that we know by name.
    pub known: bool,
    /// Vendor whose fork alone writes categories that begin so: a fact of the format, whatever devices the vendor sells.
    pub vendor: Option<&'static str>,
}

/// Classifies by the text of `cat` alone: process ids mislead, since Python frames may carry the id of device 0. The
/// 2021 files spell the same words with a capital.
pub(super) fn classify(cat: &str) -> Class {
    let cat = cat.to_ascii_lowercase();
    let vendor = match cat.split('_').next() {
        Some("mtia") => Some("meta"),
        Some("mlu") => Some("cambricon"),
        Some("musa") => Some("mthreads"),
        Some("xpu") => Some("intel"),
        Some("hpu") => Some("habana"),
        _ => None,
    };
    let known = match cat.as_str() {
        // `gpu_op` is Intel's unitrace, whose files are declined where their beginning shows it.
        "kernel" | "hpu_op" | "mtia_ccp_events" | "gpu_op" => Some(Category::Kernel),
        "gpu_memcpy" | "mlu_memcpy" | "memcpy" => Some(Category::Memcpy),
        "gpu_memset" | "mlu_memset" | "memset" => Some(Category::Memset),
        "gpu_user_annotation" | "mlu_user_annotation" => Some(Category::DeviceRange),
        "cuda_sync" | "xpu_sync" => Some(Category::DeviceSync),
        "cuda_event" => Some(Category::DeviceEvent),
        "cuda_profiler_range" | "musa_profiler_range" | "hardware_counters" | "mtia_insight" => {
            Some(Category::DeviceOther)
        }
        "cpu_op" | "operator" => Some(Category::FrameworkOp),
        "user_annotation" => Some(Category::UserRange),
        "python_function" => Some(Category::PythonFrame),
        "runtime"
        | "cuda_runtime"
        | "cuda_driver"
        | "xpu_runtime"
        | "xpu_driver"
        | "mtia_runtime"
        | "mlu_runtime"
        | "glow_runtime"
        | "privateuse1_runtime"
        | "privateuse1_driver" => Some(Category::HostApi),
        "overhead" => Some(Category::Overhead),
        "collective_comm" => Some(Category::CollectiveCall),
        "trace" => Some(Category::CaptureSpan),
        "external_correlation" | "cpu_instant_event" | "mtia_counters" | "xpu_scope_profiler" => {
            Some(Category::HostOther)
        }
        _ => None,
    };
    let category = known.unwrap_or_else(|| guess(&cat));
    Class { category, known: known.is_some(), vendor }
}

/// Processes of the writer that PyTorch had before Kineto, and that its autograd profiler still has: operators, and their kernels
/// by device. Source: `EventList.export_chrome_trace` of `torch/autograd/profiler.py`, 1.0 to 1.8.
pub(super) const OPERATORS: &[u8] = b"CPU functions";
pub(super) const KERNELS: &[u8] = b"CUDA functions";

/// What a row is that has no category, by its process, its name, and whether it carries the id that calls and device rows share.
/// Tracers that write rows of the device alone leave the category out, as one of 2026 that calls its copies `[MEMCPY] HtoD`.
pub(super) fn uncategorised(process: Option<&[u8]>, name: &[u8], correlated: bool) -> Option<Category> {
    let signature = || name.starts_with(b"void ") || (name.contains(&b'(') && name.ends_with(b")"));
    let driver = || name.strip_prefix(b"cu").is_some_and(|rest| rest.first().is_some_and(u8::is_ascii_uppercase));
    let call = || name.starts_with(b"cuda") || name.starts_with(b"hip") || driver();
    match () {
        () if process == Some(OPERATORS) => Some(Category::FrameworkOp),
        () if process == Some(KERNELS) && name.starts_with(b"Memcpy") => Some(Category::Memcpy),
        () if process == Some(KERNELS) && name.starts_with(b"Memset") => Some(Category::Memset),
        () if process == Some(KERNELS) => Some(Category::Kernel),
        () if name.starts_with(b"[MEMCPY]") => Some(Category::Memcpy),
        () if name.starts_with(b"[MEMSET]") => Some(Category::Memset),
        () if correlated && call() => Some(Category::HostApi),
        () if correlated && signature() => Some(Category::Kernel),
        () => None,
    }
}

/// Forks name new categories after the old ones.
fn guess(cat: &str) -> Category {
    let ends = |suffix: &str| cat.ends_with(suffix);
    if cat.contains("kernel") {
        Category::Kernel
    } else if ends("_memcpy") {
        Category::Memcpy
    } else if ends("_memset") {
        Category::Memset
    } else if ends("_runtime") || ends("_driver") {
        Category::HostApi
    } else if ends("_sync") {
        Category::DeviceSync
    } else if cat != "user_annotation" && ends("_user_annotation") {
        Category::DeviceRange
    } else if ends("_profiler_range") {
        Category::DeviceOther
    } else {
        Category::HostOther
    }
}

/// The kind of track on which slices of a category lie.
pub(super) fn track_kind(category: Category) -> TrackKind {
    match category {
        Category::Kernel | Category::Memcpy | Category::Memset | Category::GraphExec => TrackKind::DeviceQueue,
        Category::DeviceRange | Category::DeviceOther => TrackKind::DeviceAnnotation,
        Category::DeviceSync | Category::DeviceEvent => TrackKind::DeviceSync,
        Category::CaptureSpan => TrackKind::Global,
        _ => TrackKind::HostThread,
    }
}

/// What the ledger says about a category.
pub(super) fn note(category: Category) -> &'static str {
    match track_kind(category) {
        TrackKind::DeviceQueue => "device work",
        TrackKind::DeviceAnnotation => "kept beside the queue; not device work",
        TrackKind::DeviceSync => "waits and event records; not device work",
        TrackKind::Global => "capture window",
        TrackKind::HostThread => "host slices",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_era_and_fork_lands_in_its_category() {
        for (cat, expected, known) in [
            ("Kernel", Category::Kernel, true),
            ("Operator", Category::FrameworkOp, true),
            ("Runtime", Category::HostApi, true),
            ("Memcpy", Category::Memcpy, true),
            ("Memset", Category::Memset, true),
            ("Trace", Category::CaptureSpan, true),
            ("gpu_user_annotation", Category::DeviceRange, true),
            ("user_annotation", Category::UserRange, true),
            ("cuda_profiler_range", Category::DeviceOther, true),
            ("mtia_ccp_events", Category::Kernel, true),
            ("privateuse1_driver", Category::HostApi, true),
            ("gpu_op", Category::Kernel, true),
            ("npu_kernel", Category::Kernel, false),
            ("xyz_memcpy", Category::Memcpy, false),
            ("xyz_runtime", Category::HostApi, false),
            ("xyz_user_annotation", Category::DeviceRange, false),
            ("something", Category::HostOther, false),
        ] {
            let class = classify(cat);
            assert_eq!((class.category, class.known), (expected, known), "{cat}");
        }
        assert_eq!(classify("mlu_memcpy").vendor, Some("cambricon"));
        assert_eq!(classify("cuda_runtime").vendor, None, "ROCm writes it too");
    }
}
