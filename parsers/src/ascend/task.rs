//! What the device's task types are to us. The same task is spelled `EVENT_WAIT`, `EVENT_WAIT_SQE` or `Notify Wait`,
//! depending on the generation of the scheduler and on which file says it.

use model::Category;

/// Types of tasks that compute: `AI_CORE`, `AI_VECTOR_CORE`, `AI_CPU`, `MIX_AIC`, `MIX_AIV`, `KERNEL_AICORE`,
/// `KERNEL_AIVEC`, `KERNEL_AICPU`, `DSA_SQE` (random numbers), `DVPP` (images) and their spellings.
const COMPUTE: [&str; 7] = ["AI_", "AICORE", "AICPU", "MIX_", "KERNEL_", "DSA", "DVPP"];

/// What stands for the type where it was not known: `Other` in CANN 7.0, `N/A` at level 0, our own word where there is none.
const UNTYPED: [&str; 3] = ["OTHER", "N/A", "NO_TYPE"];

/// What a task is, and what the ledger says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// Computes.
    Kernel,
    /// Copies, outside of collectives.
    Copy,
    /// Fills memory.
    Fill,
    /// Waits for an event of another queue.
    EventWait,
    /// Waits for another device.
    NotifyWait,
    /// Tells an event or another device.
    Record,
    /// A mark of the scheduler or the profiler, or part of something that is kept as a whole.
    Pseudo,
}

impl Task {
    /// From the task's type and its name, which is its type again where it is no operator.
    pub fn of(task_type: &str, name: &str) -> Self {
        // Operators are words in mixed case; what the scheduler names itself is in capitals, as types are.
        let is_operator = name.bytes().any(|b| b.is_ascii_lowercase());
        let plain = |text: &str| text.to_ascii_uppercase().replace(' ', "_");
        let (task_type, name) = (plain(task_type), plain(name));
        let either = |part: &str| name.starts_with(part) || task_type.starts_with(part);
        if either("MEMCPY") || task_type.starts_with("PCIE_DMA") {
            Self::Copy
        } else if either("MEMSET") && !COMPUTE.iter().any(|part| task_type.starts_with(part)) {
            Self::Fill
        } else if either("EVENT_WAIT") || either("STREAM_WAIT") {
            Self::EventWait
        } else if either("NOTIFY_WAIT") {
            Self::NotifyWait
        } else if either("EVENT_RECORD") || either("NOTIFY_RECORD") || either("WRITE_VALUE") || either("EVENT_RESET") {
            Self::Record
        } else if COMPUTE.iter().any(|part| task_type.starts_with(part)) || Self::is_untyped(&task_type) && is_operator
        {
            Self::Kernel
        } else {
            Self::Pseudo
        }
    }

    /// Whether a type says nothing.
    pub fn is_untyped(task_type: &str) -> bool {
        UNTYPED.contains(&task_type.to_ascii_uppercase().replace(' ', "_").as_str())
    }

    /// The category of its slice.
    pub fn category(self) -> Category {
        match self {
            Self::Kernel => Category::Kernel,
            Self::Copy => Category::Memcpy,
            Self::Fill => Category::Memset,
            Self::EventWait | Self::NotifyWait => Category::DeviceSync,
            Self::Record => Category::DeviceEvent,
            Self::Pseudo => Category::DeviceOther,
        }
    }

    /// What the ledger says of it.
    pub fn note(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Copy => "memcpy",
            Self::Fill => "memset",
            Self::EventWait => "wait for an event; not device work",
            Self::NotifyWait => "wait for another device; not device work",
            Self::Record => "event or notify record; not device work",
            Self::Pseudo => "pseudo task, or part of a collective that is kept as a whole; not device work",
        }
    }
}
