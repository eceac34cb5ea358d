//! What the host's calls are called: on the CPU by names of the engine's own, on other devices by those of their interface,
//! which the platform's pack knows.

use engine::Target;

/// Names of calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct Calls {
    pub launch: &'static str,
    /// Of what ranks do together.
    pub exchange: &'static str,
    pub graph_launch: &'static str,
    pub synchronize: &'static str,
    pub write: &'static str,
    pub read: &'static str,
    pub capture: &'static str,
    /// Before the name of what is compiled.
    pub compile: &'static str,
    /// Before the name of what is loaded.
    pub load: &'static str,
    /// The call that gives a replay what it cannot know.
    pub update: &'static str,
}

/// Those of a device.
pub(super) fn of(target: &Target) -> Calls {
    match target {
        Target::Cpu => Calls {
            launch: "strato_launch",
            exchange: "strato_launch",
            graph_launch: "strato_graph_launch",
            synchronize: "strato_synchronize",
            write: "strato_memcpy",
            read: "strato_memcpy",
            capture: "strato_prepare",
            compile: "strato_compile",
            load: "strato_load",
            update: "strato_update",
        },
        Target::OpenCl(_) => Calls {
            launch: "clEnqueueNDRangeKernel",
            // The host's own work, between two copies.
            exchange: "strato_exchange",
            graph_launch: "clEnqueueCommandBufferKHR",
            synchronize: "clFinish",
            write: "clEnqueueWriteBuffer",
            read: "clEnqueueReadBuffer",
            capture: "clFinalizeCommandBufferKHR",
            compile: "clBuildProgram",
            load: "clCreateKernel",
            update: "clUpdateMutableCommandsKHR",
        },
        Target::Cuda(_) => Calls {
            launch: "cuLaunchKernel",
            exchange: "strato_nccl",
            graph_launch: "cuGraphLaunch",
            synchronize: "cuStreamSynchronize",
            write: "cuMemcpyHtoDAsync",
            read: "cuMemcpyDtoHAsync",
            capture: "cuGraphInstantiate",
            compile: "nvrtcCompileProgram",
            load: "cuModuleLoadDataEx",
            update: "cuGraphExecUpdate",
        },
        // An operator is two phases of one or more calls of aclnn, which its own name tells.
        Target::Ascend(_) => Calls {
            launch: "strato_aclnn",
            exchange: "strato_hccl",
            graph_launch: "aclmdlRIExecuteAsync",
            synchronize: "aclrtSynchronizeStream",
            write: "aclrtMemcpyAsync",
            read: "aclrtMemcpyAsync",
            capture: "aclmdlRICaptureEnd",
            compile: "strato_compile",
            load: "strato_load",
            update: "aclmdlRICaptureTaskUpdateEnd",
        },
    }
}
