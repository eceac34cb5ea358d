//! How the ranks of a collective leave it, by its name.

/// How the ranks of a collective leave it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Together, all with the same payload.
    Even,
    /// Together, each with its own payload.
    Uneven,
    /// A send and its receive: the receiving side leaves when the data is there, and so does the sending one where the payload
    /// is no small one. Where it leaves before, the shorter of the two is the transfer all the same.
    Pair,
    /// One rank with many: the receiving side leaves when the data is there, the sending one does not wait for it.
    OneSided,
}

impl Shape {
    /// In a model of experts without pipeline stages sends and receives that nothing describes are the exchange of tokens:
    /// the library runs it by the same kernel. Everywhere else the kernel's name stands for what it says, and only the
    /// receiving side leaves when the data is there (method §2.5).
    pub(super) fn of_experts(self, kernel: &str) -> Self {
        if self == Self::Pair && kernel.to_ascii_lowercase().contains("sendrecv") { Self::Uneven } else { self }
    }

    /// From the name of the operation or of its kernel.
    pub(super) fn of(name: &str) -> Self {
        let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
        let has = |part: &str| name.contains(part);
        if has("alltoall") {
            Self::Uneven
        } else if has("allreduce") || has("reducescatter") || has("allgather") || has("crossdevicereduce") {
            Self::Even
        } else if has("send") || has("recv") || has("receive") {
            Self::Pair
        } else if ["broadcast", "bcast", "scatter", "gather", "reduce"].iter().any(|part| has(part)) {
            Self::OneSided
        } else {
            Self::Even
        }
    }
}
