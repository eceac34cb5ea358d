//! One device operation as alignment sees it, and which operations may stand for which others.
//!
//! A fused kernel stands for a set of slots, and a canonical operator may be carried out by several plainer kernels: a norm
//! by a square, a mean and two products. Both are the same question: whether the operators of some kernels are parts of
//! another one, and whether what makes that one is among them. What operators are made of is arithmetic and the same on
//! every platform; which kernel is which operator is the packs' to say.

use crate::platform::CanonicalOp;

/// A set of canonical operators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slots(u64);

impl Slots {
    /// The set of these.
    pub fn of(ops: &[CanonicalOp]) -> Self {
        ops.iter().fold(Self::default(), |set, op| set.with(*op))
    }

    /// With one more.
    #[must_use]
    pub const fn with(self, op: CanonicalOp) -> Self {
        Self(self.0 | 1 << op as u64)
    }

    /// Both together.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `self` are in `other`.
    pub fn is_within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// Whether any is in both.
    pub fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// How many.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The operators in the order of [`CanonicalOp::ALL`].
    pub fn iter(self) -> impl Iterator<Item = CanonicalOp> {
        CanonicalOp::ALL.iter().copied().filter(move |op| self.meets(Self::default().with(*op)))
    }
}

/// A device operation of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Symbol {
    /// Its canonical operator.
    pub op: CanonicalOp,
    /// The operators it stands for; several for a fused kernel.
    pub slots: Slots,
    /// What called it: a number that is the same for the same name on both sides, `None` where it was not recorded.
    pub call: Option<u64>,
    /// A number of its kernel's name, the same for the same name on both sides: of kernels that no pack knows, and of those
    /// that both sides have.
    pub name: Option<u64>,
}

/// A number for a text that does not depend on what was numbered before.
pub fn number(text: &str) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    std::hash::Hash::hash(text, &mut hasher);
    std::hash::Hasher::finish(&hasher)
}

impl Symbol {
    /// A kernel of one operator whose caller is not known.
    pub fn plain(op: CanonicalOp) -> Self {
        Self { op, slots: Slots::default().with(op), call: None, name: None }
    }

    /// Forgets what only tells equal operators of the two sides apart.
    pub(super) fn forget(&mut self) {
        self.call = None;
        if self.op != CanonicalOp::Other {
            self.name = None;
        }
    }

    /// Whether one of them is a kernel that has its like elsewhere.
    pub fn names_differ(self, other: Self) -> bool {
        self.name != other.name
    }

    /// Whether both callers are known and differ.
    pub fn calls_differ(self, other: Self) -> bool {
        self.call.zip(other.call).is_some_and(|(a, b)| a != b)
    }

    /// Everything its kernels may be split into.
    pub(super) fn parts(self) -> Slots {
        self.slots.iter().fold(self.slots, |all, op| all.union(Slots::of(made_of(op).0)))
    }

    /// For each operator it stands for, those of which kernels that do it together must hold one.
    pub(super) fn makers(self) -> impl Iterator<Item = Slots> {
        self.slots.iter().map(|op| Slots::of(made_of(op).1).with(op))
    }
}

/// Which operators the kernels of a split operator may be, and which of those it cannot do without. An operator is always
/// a part of itself.
fn made_of(op: CanonicalOp) -> (&'static [CanonicalOp], &'static [CanonicalOp]) {
    use CanonicalOp::{
        Attn, AttnCombine, AttnDecode, AttnPrefill, CommAllReduce, CommOther, Copy, Elementwise, Embedding, Fill,
        Format, FusedAttnPre, Gemm, GroupedGemm, Index, KvWrite, MoeRoute, Norm, Quant, Reduce, Rope, Sample, Softmax,
    };
    match op {
        // Split products clear a workspace before and sum the parts after.
        Gemm => (&[Fill, Reduce], &[]),
        GroupedGemm => (&[Gemm, Fill, Reduce, Elementwise], &[Gemm]),
        CanonicalOp::AddNorm => (&[Norm, Elementwise, Reduce, Format], &[Norm, Reduce]),
        Norm => (&[Elementwise, Reduce, Format], &[Reduce]),
        Rope => (&[Elementwise, Format, Index], &[Elementwise]),
        CanonicalOp::Act => (&[Elementwise, Format], &[]),
        AttnDecode | AttnPrefill | Attn => (
            &[AttnDecode, AttnPrefill, Attn, AttnCombine, Gemm, Softmax, Elementwise, Reduce, Format, Fill],
            &[AttnDecode, AttnPrefill, Attn, Softmax],
        ),
        KvWrite => (&[Index, Format, Copy], &[Index, Format]),
        Quant => (&[Elementwise, Reduce, Format], &[Elementwise]),
        MoeRoute => (&[Sample, Softmax, Index, Elementwise, Reduce, Format, Fill], &[Sample, Index]),
        CommAllReduce => (&[CommOther, Elementwise, Reduce], &[CommOther]),
        CanonicalOp::Conv => (&[Gemm, Format, Index, Fill, Reduce], &[Gemm]),
        Sample => (&[Softmax, Elementwise, Reduce, Index, Format, Fill], &[Reduce]),
        FusedAttnPre => (&[Gemm, Norm, Rope, KvWrite, Elementwise, Format], &[Gemm, Rope]),
        Embedding => (&[Index, Elementwise], &[Index]),
        Softmax => (&[Elementwise, Reduce], &[Reduce]),
        Elementwise => (&[Format, Reduce, Fill], &[]),
        _ => (&[], &[]),
    }
}
