//! Bus bandwidth, as nccl-tests counts it.

/// Bytes on the links over bytes of the payload (the larger of input and output), as nccl-tests has it.
pub fn bus_factor(op: &str, ranks: u32) -> Option<f64> {
    let n = f64::from(ranks);
    let op = op.to_ascii_lowercase().replace('_', "");
    if ranks < 2 {
        return None;
    }
    [
        ("allreduce", 2.0 * (n - 1.0) / n),
        ("reducescatter", (n - 1.0) / n),
        ("allgather", (n - 1.0) / n),
        ("alltoall", (n - 1.0) / n),
        ("broadcast", 1.0),
        ("reduce", 1.0),
        ("sendrecv", 1.0),
        ("send", 1.0),
    ]
    .into_iter()
    .find(|(name, _)| op.contains(name))
    .map(|(_, factor)| factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_on_the_links_are_those_of_nccl_tests() {
        for (op, ranks, bus) in [
            ("allreduce", 8, Some(1.75)),
            ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 2, Some(1.0)),
            ("_allgather_base", 4, Some(0.75)),
            ("reduce_scatter", 4, Some(0.75)),
            ("broadcast", 4, Some(1.0)),
            ("allreduce", 1, None),
            ("barrier", 8, None),
        ] {
            assert_eq!(bus_factor(op, ranks), bus, "{op}");
        }
    }
}
