//! What of a run is recorded: watching takes time, so how much is watched is chosen, and said.

/// What of a run is recorded, from least to most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Observer {
    /// From when to when each step went.
    Off,
    /// What the host did: calls, waits, choices.
    Host,
    /// Also what the device did, by its own stamps.
    #[default]
    Device,
    /// What a CUDA device did, by its vendor's records, a replay as one.
    Graph,
    /// The same, a replay node by node.
    Node,
}

impl Observer {
    /// Its word in commands and manifests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Host => "host",
            Self::Device => "device",
            Self::Graph => "graph",
            Self::Node => "node",
        }
    }

    /// Whether calls of the host are recorded.
    pub fn sees_host(self) -> bool {
        self > Self::Off
    }

    /// Whether what the device did is, by whatever stamps.
    pub fn sees_device(self) -> bool {
        self > Self::Host
    }

    /// Whether the vendor's library is asked what the device did, in place of events between commands.
    pub fn asks_vendor(self) -> bool {
        self > Self::Device
    }
}
