//! Kinds of runtime and driver calls. What a thread does while the device idles is read from them.

/// Kind of a runtime or driver call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostCall {
    /// Launch of one kernel or task.
    Launch,
    /// Launch of an instantiated graph.
    GraphLaunch,
    /// Host waits for a stream.
    SyncStream,
    /// Host waits for the device or context.
    SyncDevice,
    /// Host waits for an event.
    SyncEvent,
    /// Asks for the state of an event or stream without waiting.
    Query,
    /// Copy that returns when it is done.
    CopySync,
    /// Copy that is queued. From pageable memory it may still block.
    CopyAsync,
    /// Fill that is queued.
    MemsetAsync,
    /// Device allocation.
    Alloc,
    /// Device deallocation.
    Free,
    /// Allocation, registration or release of pinned host memory.
    HostAlloc,
    /// Load or unload of code.
    ModuleLoad,
    /// Compilation, autotuning or operator selection.
    Compile,
    /// Stream capture or construction of a graph.
    GraphCapture,
    /// Instantiation or upload of a graph.
    GraphInstantiate,
    /// Change of an instantiated graph.
    GraphUpdate,
    /// Event recorded on a stream.
    EventRecord,
    /// A stream is made to wait for an event; the host does not.
    StreamWaitEvent,
    /// Anything else.
    Other,
}

impl HostCall {
    /// The kind with this name in packs, in snake case.
    pub fn parse(name: &str) -> Option<Self> {
        let text = serde::de::value::StrDeserializer::<serde::de::value::Error>::new(name);
        serde::Deserialize::deserialize(text).ok()
    }

    /// Whether the host waits for the device by the meaning of the call.
    pub fn is_blocking(self) -> bool {
        self.is_sync() || self == Self::CopySync
    }

    /// Whether the call is a synchronisation.
    pub fn is_sync(self) -> bool {
        matches!(self, Self::SyncStream | Self::SyncDevice | Self::SyncEvent)
    }

    /// Whether the call issues device work.
    pub fn is_launch(self) -> bool {
        matches!(self, Self::Launch | Self::GraphLaunch | Self::CopyAsync | Self::CopySync | Self::MemsetAsync)
    }

    /// Whether the call prepares code or graphs, which a warm run does not do.
    pub fn is_compile(self) -> bool {
        matches!(self, Self::ModuleLoad | Self::Compile | Self::GraphCapture | Self::GraphInstantiate)
    }
}

/// Whether a name is that of a call of a vendor's runtime or driver: `cudaMalloc`, `cuModuleLoadData`, `hipMemcpy`.
pub fn is_runtime_call(name: &str) -> bool {
    ["cuda", "cu", "hip", "musa", "mu", "aclrt", "cnrt", "cn", "mc"]
        .iter()
        .any(|prefix| name.strip_prefix(prefix).and_then(|rest| rest.chars().next()).is_some_and(char::is_uppercase))
}
