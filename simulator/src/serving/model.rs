//! Dimensions of models that are served, and what devices can do: the published figures.

use serde::{Deserialize, Serialize};

use crate::kernel::Vendor;

/// Dimensions of a decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Model {
    /// Decoder layers of a rank.
    pub layers: i64,
    /// Width.
    pub hidden: i64,
    /// Width between the products of the feed-forward part; of one expert where there are experts.
    pub inner: i64,
    /// Query heads.
    pub heads: i64,
    /// Key and value heads.
    pub kv_heads: i64,
    /// Width of a head.
    pub head: i64,
    /// Tokens that can be sampled.
    pub vocab: i64,
    /// Experts of a layer; 0 for a dense model.
    pub experts: i64,
}

/// Experts that a token goes to.
pub(crate) const CHOSEN: i64 = 8;

const fn dense(layers: i64, hidden: i64, inner: i64, heads: i64, head: i64, vocab: i64) -> Model {
    Model { layers, hidden, inner, heads, kv_heads: 8, head, vocab, experts: 0 }
}

impl Model {
    /// Models from small to large; the large ones with a part of their layers, so that a run stays small.
    pub(crate) const DENSE: [Self; 4] = [
        dense(16, 2048, 8192, 32, 64, 128_256),
        dense(18, 4096, 14_336, 32, 128, 128_256),
        dense(16, 5120, 17_408, 40, 128, 151_936),
        dense(14, 5120, 25_600, 64, 128, 151_936),
    ];
    /// A mixture of experts.
    pub(crate) const SPARSE: Self =
        Self { layers: 16, hidden: 2048, inner: 768, heads: 32, kv_heads: 4, head: 128, vocab: 151_936, experts: 128 };
}

/// A device that models are served on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // the names are the devices
pub enum Accelerator {
    H100,
    H20,
    A100,
    Mi300x,
}

/// What a device can do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ability {
    /// Name as the driver gives it.
    pub(crate) name: &'static str,
    pub(crate) cores: i64,
    /// Bytes of memory per nanosecond.
    pub(crate) memory: i64,
    /// Floating-point operations of 16-bit products per nanosecond.
    pub(crate) products: i64,
    /// Bytes to the other devices of the host per nanosecond, one way.
    pub(crate) link: i64,
    /// Compute capability, of NVIDIA's.
    pub(crate) capability: (i64, i64),
}

impl Accelerator {
    pub(crate) fn ability(self) -> Ability {
        let ability = |name, cores, memory, products, link, capability| Ability {
            name,
            cores,
            memory,
            products,
            link,
            capability,
        };
        match self {
            Self::H100 => ability("NVIDIA H100 80GB HBM3", 132, 3350, 989_000, 450, (9, 0)),
            Self::H20 => ability("NVIDIA H20", 78, 4000, 148_000, 450, (9, 0)),
            Self::A100 => ability("NVIDIA A100-SXM4-80GB", 108, 2039, 312_000, 300, (8, 0)),
            Self::Mi300x => ability("AMD Instinct MI300X", 304, 5300, 1_307_000, 448, (9, 4)),
        }
    }

    /// Whose names its captures carry.
    pub(crate) fn vendor(self) -> Vendor {
        if self == Self::Mi300x { Vendor::Rocm } else { Vendor::Cuda }
    }

    /// Whether it has the instructions that Hopper's kernels are written for.
    pub(crate) fn is_hopper(self) -> bool {
        matches!(self, Self::H100 | Self::H20)
    }
}
