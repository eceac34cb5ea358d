//! Canonical operators of a decode step. Kernels of every platform map to these names, so that a layer of one platform
//! can be laid beside a layer of another.

/// Declares the operators with their names and classes in one table.
macro_rules! canonical_ops {
    ($($variant:ident $name:literal $class:ident $what:literal)*) => {
        /// A canonical operator.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
        pub enum CanonicalOp {
            $(#[doc = $what] #[serde(rename = $name)] $variant,)*
        }

        impl CanonicalOp {
            /// All operators in table order.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Name in packs, reports and queries.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The operator with this name.
            pub fn parse(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|op| op.name() == name)
            }

            /// The family it belongs to; operators of one family may stand in for each other in an alignment.
            pub fn class(self) -> OpClass {
                match self {
                    $(Self::$variant => OpClass::$class,)*
                }
            }
        }
    };
}

canonical_ops! {
    Gemm "gemm" Matrix "Dense matrix product, the lm_head included."
    Conv "conv" Matrix "Convolution, forward or backward."
    GroupedGemm "grouped_gemm" Matrix "Matrix products of the experts of a mixture."
    AttnDecode "attn_decode" Attention "Attention of one new token over the KV cache."
    AttnPrefill "attn_prefill" Attention "Attention of a whole prompt or chunk."
    Attn "attn" Attention "Attention whose kernel serves both stages."
    AttnCombine "attn_combine" Attention "Merge of the partial results of split-KV attention."
    Ssm "ssm" Attention "State-space or linear-attention layer: its scan, its state and its short convolution."
    Norm "norm" Norm "RMSNorm or LayerNorm."
    AddNorm "add_norm" Norm "Residual addition and norm in one kernel."
    Rope "rope" Rope "Rotary position embedding."
    Act "act" Act "Activation of the MLP, with or without its gate."
    KvWrite "kv_write" CacheWrite "Store of new keys and values into the cache."
    Quant "quant" Quant "Quantisation of activations or weights."
    MoeRoute "moe_route" MoeRoute "Routing of tokens to experts: top-k, sorting, permutation, weighted sum."
    CommAllReduce "comm_allreduce" Comm "All-reduce."
    CommOther "comm_other" Comm "Any other collective or peer transfer by a kernel."
    CommStaging "comm_staging" Comm "Copy into or out of the symmetric memory that a collective works on."
    Format "format" Format "Cast, copy, concatenation, transpose or layout conversion."
    Fill "fill" Fill "Fill with a constant."
    Index "index" Index "Gather, scatter, masks, comparisons, index arithmetic, ranges."
    Permute "permute" Index "Permutation of sparse features or jagged rows, as recommendation models have it."
    Sample "sample" Sample "Choice of the next token: penalties, top-k, sort, argmax."
    FusedAttnPre "fused_attn_pre" Matrix "Everything before attention in one kernel (MLA prolog, fused QK norm and rope)."
    Embedding "embedding" Index "Token or position embedding."
    Elementwise "elementwise" Elementwise "Elementwise arithmetic with no better name."
    Softmax "softmax" Elementwise "Softmax outside attention and sampling kernels."
    Reduce "reduce" Elementwise "Reduction with no better name."
    Optimizer "optimizer" Elementwise "Update of parameters by an optimizer."
    Loss "loss" Elementwise "Loss of a training step, forward or backward."
    Wait "wait" Wait "Wait for another queue, or the mark that one waits for: no work."
    Copy "copy" Copy "Copy done by a copy engine or runtime."
    Other "other" Other "Unknown to every pack."
}

/// Family of canonical operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)] // the names are the families
pub enum OpClass {
    Matrix,
    Attention,
    Norm,
    Rope,
    Act,
    CacheWrite,
    MoeRoute,
    Quant,
    Format,
    Sample,
    Elementwise,
    Fill,
    Index,
    Comm,
    Wait,
    Copy,
    Other,
}

impl OpClass {
    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Matrix => "matrix",
            Self::Attention => "attention",
            Self::Norm => "norm",
            Self::Rope => "rope",
            Self::Act => "act",
            Self::CacheWrite => "cache_write",
            Self::MoeRoute => "moe_route",
            Self::Quant => "quant",
            Self::Format => "format",
            Self::Sample => "sample",
            Self::Elementwise => "elementwise",
            Self::Fill => "fill",
            Self::Index => "index",
            Self::Comm => "comm",
            Self::Wait => "wait",
            Self::Copy => "copy",
            Self::Other => "other",
        }
    }
}

/// What a device kernel or op type is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpMatch {
    /// Its canonical operator, [`CanonicalOp::Other`] when no pack knows the name.
    pub op: CanonicalOp,
    /// The operators it stands for: one for a plain kernel, several for a fused one.
    pub slots: Vec<CanonicalOp>,
    /// Pack that knew the name, empty when none did.
    pub pack: String,
    /// Whether any pack knew the name; unknown names count against the coverage of a report.
    pub mapped: bool,
}

impl OpMatch {
    /// The match of a name that no pack knows.
    pub fn unknown() -> Self {
        Self { op: CanonicalOp::Other, slots: vec![CanonicalOp::Other], pack: String::new(), mapped: false }
    }
}

/// What the names of copies and fills of memory begin with in totals of device work. Sources: `nsys stats` and nvprof
/// (`[CUDA memcpy HtoD]`, `[CUDA memset]`), Kineto (`Memcpy DtoH (Device -> Pinned)`, `Memset (Device)`), rocprof
/// (`CopyHostToDevice`).
const MEMORY: [&str; 7] = [
    "[CUDA mem",
    "[CUDA Unified Memory",
    "Memcpy ",
    "Memset ",
    "CopyHostToDevice",
    "CopyDeviceToHost",
    "CopyDeviceToDevice",
];

/// Whether device work of this name copies or fills memory, and is no kernel.
pub fn moves_memory(name: &str) -> bool {
    MEMORY.iter().any(|begin| name.starts_with(begin))
}

/// Whether the name of a collective, as a framework or a library writes it, is an all-reduce's.
pub fn is_all_reduce(name: &str) -> bool {
    name.to_ascii_lowercase().replace(['_', '-'], "").contains("allreduce")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_are_unique() {
        for op in CanonicalOp::ALL {
            assert_eq!(CanonicalOp::parse(op.name()), Some(*op));
        }
        assert_eq!(CanonicalOp::ALL.len(), 33);
        assert_eq!(CanonicalOp::parse("Gemm"), None);
    }
}
