//! Whose time a record of overhead is: that of the profiler, or that of the runtime which the profiler observed.
//!
//! CUPTI counts both as overhead (`CUpti_ActivityOverheadKind`): the profiler's buffers and instrumentation, and what the
//! driver does on its own account: compiling, loading code, waiting for room in a full command buffer.

use model::Category;

/// Words in the names of kinds that are not the profiler's own, in lower case, or that do not say whose they are.
const NOT_THE_PROFILER: [&str; 7] = [
    "driver compiler",
    "driver jit compiler",
    "module loading",
    "function loading",
    "command buffer full",
    "unknown",
    "undefined",
];

/// The category of an overhead record whose kind has this name.
pub(crate) fn category(kind: &str) -> Category {
    let kind = kind.to_ascii_lowercase();
    if NOT_THE_PROFILER.iter().any(|words| kind.contains(words)) { Category::HostOther } else { Category::Overhead }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_profiler_does_is_its_overhead() {
        for (kind, expected) in [
            ("Buffer flush (Profiler)", Category::Overhead),
            ("Activity Buffer Request", Category::Overhead),
            ("Instrumentation", Category::Overhead),
            ("Resource", Category::Overhead),
            ("Command buffer full (CUDA)", Category::HostOther),
            ("Command Buffer Full", Category::HostOther),
            ("Lazy function loading (CUDA)", Category::HostOther),
            ("Runtime Triggered Module Loading", Category::HostOther),
            ("Driver JIT compiler (CUDA)", Category::HostOther),
            ("Driver Compiler", Category::HostOther),
            ("Unknown", Category::HostOther),
        ] {
            assert_eq!(category(kind), expected, "{kind}");
        }
    }
}
