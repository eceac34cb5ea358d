//! Numbers of CUPTI's interface. Source: the CUPTI reference; a test holds each against the headers
//! of the versions that are there.

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident = $value:literal, $c:literal;)*) => {
        $($(#[$doc])* pub const $name: u32 = $value;)*
        /// Every number with its name in the headers.
        pub const NUMBERS: &[(&str, u32)] = &[$(($c, $name)),*];
    };
}

numbers! {
    /// A call did what it was asked for.
    SUCCESS = 0, "CUPTI_SUCCESS";
    /// There are no further records in a buffer.
    MAX_LIMIT_REACHED = 12, "CUPTI_ERROR_MAX_LIMIT_REACHED";
    /// This version knows no such kind of record.
    INVALID_KIND = 21, "CUPTI_ERROR_INVALID_KIND";
    /// The driver lets only administrators profile.
    INSUFFICIENT_PRIVILEGES = 35, "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES";
    /// Another profiler holds the process.
    MULTIPLE_SUBSCRIBERS = 39, "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED";

    /// A copy.
    KIND_MEMCPY = 1, "CUPTI_ACTIVITY_KIND_MEMCPY";
    /// A fill.
    KIND_MEMSET = 2, "CUPTI_ACTIVITY_KIND_MEMSET";
    /// A call of the driver interface.
    KIND_DRIVER = 4, "CUPTI_ACTIVITY_KIND_DRIVER";
    /// A call of the runtime interface.
    KIND_RUNTIME = 5, "CUPTI_ACTIVITY_KIND_RUNTIME";
    /// A kernel; the kind that lets kernels run beside each other.
    KIND_KERNEL = 10, "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL";
    /// Time that CUPTI or the driver took on its own account.
    KIND_OVERHEAD = 17, "CUPTI_ACTIVITY_KIND_OVERHEAD";
    /// A copy between two devices.
    KIND_PEER_COPY = 22, "CUPTI_ACTIVITY_KIND_MEMCPY2";
    /// A wait.
    KIND_SYNCHRONIZATION = 38, "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION";
    /// The id that was pushed around a call.
    KIND_EXTERNAL = 39, "CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION";
    /// A replay of a graph as one record.
    KIND_GRAPH = 51, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";

    /// Whose ids are pushed: the first of two that are for anybody.
    EXTERNAL_CUSTOM0 = 3, "CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0";
    /// Callbacks of the driver interface; here for the names of calls.
    DOMAIN_DRIVER = 1, "CUPTI_CB_DOMAIN_DRIVER_API";
    /// Callbacks of the runtime interface; here for the names of calls.
    DOMAIN_RUNTIME = 2, "CUPTI_CB_DOMAIN_RUNTIME_API";
    /// Callbacks for what is created and destroyed.
    DOMAIN_RESOURCE = 3, "CUPTI_CB_DOMAIN_RESOURCE";
    /// A graph has got a node.
    NODE_CREATED = 13, "CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED";
    /// A node was made from another, as when a graph is made executable.
    NODE_CLONED = 20, "CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED";
    /// Threads are numbered as the system does.
    THREADS_OF_SYSTEM = 1, "CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM";
    /// Buffers are handed back whatever is in them.
    FLUSH_FORCED = 1, "CUPTI_ACTIVITY_FLAG_FLUSH_FORCED";

    /// Overhead: the driver compiles.
    OVERHEAD_COMPILER = 1, "CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER";
    /// Overhead: CUPTI hands back a buffer.
    OVERHEAD_FLUSH = 65536, "CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH";
    /// Overhead: CUPTI changes code to observe it.
    OVERHEAD_INSTRUMENTATION = 131072, "CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION";
    /// Overhead: CUPTI creates or destroys what it needs.
    OVERHEAD_RESOURCE = 196608, "CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE";
    /// Overhead object: a thread of a process.
    OBJECT_THREAD = 2, "CUPTI_ACTIVITY_OBJECT_THREAD";
}

/// Overhead of CUDA 12 and later.
pub mod later {
    numbers! {
        /// The runtime loads a module when it is first used.
        OVERHEAD_MODULE = 262144, "CUPTI_ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING";
        /// A function is loaded when it is first used.
        OVERHEAD_LAZY = 327680, "CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING";
        /// The queue to the device has no room.
        OVERHEAD_FULL = 393216, "CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL";
        /// CUPTI asks for a buffer.
        OVERHEAD_REQUEST = 458752, "CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST";
    }
}
