//! What the host's calls are called: on the CPU by names of the engine's own, on other devices by those of their interface,
//! which the platform's pack knows.

use engine::Target;

/// Names of calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct Calls {
    pub launch: &'static str,
    pub graph_launch: &'static str,
    pub synchronize: &'static str,
    pub write: &'static str,
    pub read: &'static str,
    pub capture: &'static str,
    /// Before the name of what is compiled.
    pub compile: &'static str,
    /// The call that gives a replay what it cannot know.
    pub update: &'static str,
    /// What memory of the host copies are from and to.
    pub host_memory: &'static str,
}

/// Those of a device.
pub(super) fn of(target: &Target) -> Calls {
    match target {
        Target::Cpu => Calls {
            launch: "strato_launch",
            graph_launch: "strato_graph_launch",
            synchronize: "strato_synchronize",
            write: "strato_memcpy",
            read: "strato_memcpy",
            capture: "strato_prepare",
            compile: "strato_compile",
            update: "strato_update",
            host_memory: "pageable",
        },
        Target::OpenCl(_) => Calls {
            launch: "clEnqueueNDRangeKernel",
            graph_launch: "clEnqueueCommandBufferKHR",
            synchronize: "clFinish",
            write: "clEnqueueWriteBuffer",
            read: "clEnqueueReadBuffer",
            capture: "clFinalizeCommandBufferKHR",
            compile: "clBuildProgram",
            update: "clUpdateMutableCommandsKHR",
            host_memory: "pageable",
        },
        // An operator is two phases of one or more calls of aclnn, which its own name tells.
        Target::Ascend(_) => Calls {
            launch: "strato_aclnn",
            graph_launch: "aclmdlRIExecuteAsync",
            synchronize: "aclrtSynchronizeStream",
            write: "aclrtMemcpyAsync",
            read: "aclrtMemcpyAsync",
            capture: "aclmdlRICaptureEnd",
            compile: "strato_compile",
            update: "aclmdlRICaptureTaskUpdateEnd",
            host_memory: "pinned",
        },
    }
}
