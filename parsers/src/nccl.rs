//! The collectives of NCCL's interface, which RCCL and others keep.

/// Operations that are collectives or point-to-point transfers, as their calls and ranges are named, and as frameworks
/// name them. Group calls and the set-up of communicators are none.
const COLLECTIVES: &[(&str, &str)] = &[
    ("ncclAllReduce", "allreduce"),
    ("ncclAllGather", "allgather"),
    ("ncclReduceScatter", "reduce_scatter"),
    ("ncclBroadcast", "broadcast"),
    ("ncclBcast", "broadcast"),
    ("ncclReduce", "reduce"),
    ("ncclAlltoAll", "alltoall"),
    ("ncclAllToAll", "alltoall"),
    ("ncclGather", "gather"),
    ("ncclScatter", "scatter"),
    ("ncclSend", "send"),
    ("ncclRecv", "recv"),
];

/// The operation that a call or range of this name is.
pub(crate) fn collective(name: &str) -> Option<&'static str> {
    COLLECTIVES.iter().find(|(known, _)| *known == name).map(|(_, op)| *op)
}
