//! Composites: sequences of elementary operations for which one fused kernel exists everywhere.

use super::fine_op::FineOp::{
    self, Add, Cat, Copy, Div, Dropout, Gather, Mask, Matmul, Mean, Mul, Neg, Pow, Rsqrt, Sigmoid, Silu, Softmax,
    SoftmaxGrad,
};

/// Longest composite, in kernels (fusion estimator of TraceLens).
pub const LONGEST: usize = 15;

/// One element of a pattern: any of `ops`, at least and at most so often.
struct Element {
    ops: &'static [FineOp],
    least: usize,
    most: usize,
}

const fn one(ops: &'static [FineOp]) -> Element {
    Element { ops, least: 1, most: 1 }
}

const fn up_to(most: usize, ops: &'static [FineOp]) -> Element {
    Element { ops, least: 0, most }
}

/// A composite and the elements that make it.
struct Pattern {
    name: &'static str,
    elements: &'static [Element],
}

/// Products of queries and keys, softmax, product with the values.
pub const ATTENTION: &str = "attention";
/// Backward pass of an attention: products of the values' and the scores' gradients, then of the queries' and the keys'.
pub const ATTENTION_BACKWARD: &str = "attention backward";

/// `x * cos + cat(-x2, x1) * sin` of one tensor.
const ROPE: [Element; 7] =
    [up_to(1, &[Mul]), one(&[Neg]), up_to(1, &[Copy]), one(&[Cat]), one(&[Mul]), up_to(1, &[Copy]), one(&[Add])];

const PATTERNS: &[Pattern] = &[
    Pattern {
        name: "add + norm",
        elements: &[
            one(&[Add]),
            up_to(1, &[Copy]),
            one(&[Pow]),
            one(&[Mean]),
            up_to(1, &[Add]),
            one(&[Rsqrt]),
            one(&[Mul]),
            up_to(2, &[Copy, Mul]),
        ],
    },
    Pattern {
        name: "norm",
        elements: &[
            up_to(1, &[Copy]),
            one(&[Pow]),
            one(&[Mean]),
            up_to(1, &[Add]),
            one(&[Rsqrt]),
            one(&[Mul]),
            up_to(2, &[Copy, Mul]),
        ],
    },
    Pattern { name: "swiglu", elements: &[up_to(1, &[Copy]), one(&[Silu]), up_to(2, &[Copy]), one(&[Mul])] },
    Pattern { name: "swiglu", elements: &[one(&[Sigmoid]), one(&[Mul]), up_to(2, &[Copy]), one(&[Mul])] },
    Pattern { name: "rope", elements: &ROPE },
    Pattern {
        name: ATTENTION,
        elements: &[
            // A fused kernel reads the cache where it lies, and the heads of a group once.
            up_to(2, &[Gather]),
            up_to(2, &[Copy]),
            one(&[Matmul]),
            up_to(1, &[Mul, Div]),
            up_to(2, &[Add, Mask]),
            up_to(1, &[Copy]),
            one(&[Softmax]),
            up_to(3, &[Copy, Dropout, Gather]),
            one(&[Matmul]),
        ],
    },
    Pattern {
        name: ATTENTION_BACKWARD,
        elements: &[
            one(&[Matmul]),
            up_to(1, &[Copy]),
            one(&[Matmul]),
            up_to(3, &[Copy, Dropout, Mask, Mul]),
            one(&[SoftmaxGrad]),
            up_to(3, &[Copy, Div, Mask, Mul]),
            one(&[Matmul]),
            up_to(1, &[Copy]),
            one(&[Matmul]),
        ],
    },
];

/// A composite found in a sequence: its name, and where it begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// Which composite.
    pub name: &'static str,
    /// First kernel.
    pub start: usize,
    /// One past the last kernel.
    pub end: usize,
}

/// The composites of a sequence: at each place the longest that begins there, none overlapping another.
pub fn find(sequence: &[FineOp]) -> Vec<Match> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < sequence.len() {
        let rest = sequence.get(at..).unwrap_or(&[]);
        let longest = PATTERNS.iter().filter_map(|p| Some((length(p, rest)?, p.name))).max_by_key(|(n, _)| *n);
        match longest {
            Some((n, name)) => {
                out.push(Match { name, start: at, end: at + n });
                at += n;
            }
            None => at += 1,
        }
    }
    out
}

/// Kernels at the beginning of `sequence` that a pattern takes. Elements are greedy: no element takes what the one after
/// it needs.
fn length(pattern: &Pattern, sequence: &[FineOp]) -> Option<usize> {
    let mut n = 0;
    for element in pattern.elements {
        let fits = sequence
            .get(n..)
            .unwrap_or(&[])
            .iter()
            .take(element.most)
            .take_while(|op| element.ops.contains(op))
            .count();
        if fits < element.least {
            return None;
        }
        n += fits;
    }
    (n <= LONGEST).then_some(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(sequence: &[FineOp]) -> Vec<(&'static str, usize, usize)> {
        find(sequence).into_iter().map(|m| (m.name, m.start, m.end)).collect()
    }

    #[test]
    fn a_layer_of_eager_kernels_falls_into_its_composites() {
        let layer = [
            Add, Copy, Pow, Mean, Add, Rsqrt, Mul, Copy, Mul,    // residual and norm
            Matmul, // projection
            Mul, Neg, Cat, Mul, Add, // rope of q
            Mul, Neg, Cat, Mul, Add, // rope of k
            Matmul, Mul, Add, Softmax, Copy, Matmul, // attention
            Matmul, Silu, Mul, Matmul,
        ];
        let expected =
            [("add + norm", 0, 9), ("rope", 10, 15), ("rope", 15, 20), ("attention", 20, 26), ("swiglu", 27, 29)];
        assert_eq!(names(&layer), expected);
    }

    /// Attention of training ran through a dropout, and its backward pass was no composite.
    #[test]
    fn attention_of_training_is_found_in_both_directions() {
        let forward = [Matmul, Mul, Mask, Softmax, Dropout, Matmul];
        let backward = [Matmul, Matmul, Mul, SoftmaxGrad, Mask, Mul, Matmul, Matmul];
        let both: Vec<FineOp> = forward.into_iter().chain(backward).collect();
        assert_eq!(names(&both), [("attention", 0, 6), (ATTENTION_BACKWARD, 6, 14)]);
        assert_eq!(names(&[Matmul, SoftmaxGrad, Matmul]), [], "a classifier's");
    }

    /// Of a third of a step in attention from a gathered cache, the gathers were left out and the repeated heads were layout conversions.
    #[test]
    fn what_a_fused_attention_reads_in_place_belongs_to_it() {
        let layer = [Gather, Gather, Copy, Copy, Matmul, Mul, Add, Softmax, Matmul, Matmul];
        assert_eq!(names(&layer), [(ATTENTION, 0, 9)]);
        assert_eq!(names(&[Gather, Copy, Matmul, Matmul]), []);
        assert_eq!(names(&[Copy, Silu, Copy, Mul]), [("swiglu", 0, 4)]);
    }

    #[test]
    fn near_misses_are_no_composites() {
        assert_eq!(names(&[Pow, Mean, Mul, Rsqrt]), []);
        assert_eq!(names(&[Silu, Add, Mul]), []);
        assert_eq!(names(&[Matmul, Matmul, Softmax, Add, Matmul]), []);
        assert_eq!(names(&[Neg, Mul, Add]), []);
        assert_eq!(names(&[FineOp::Other, Mul, FineOp::Other]), []);
    }

    proptest::proptest! {
        #[test]
        fn matches_are_in_order_disjoint_and_bounded(
            codes in proptest::collection::vec(0usize..19, 0..200),
        ) {
            const OPS: [FineOp; 19] = [Matmul, Add, FineOp::Sub, Mul, Div, Pow, Mean, Rsqrt, Neg, Cat, Copy, Silu, Sigmoid,
                Softmax, SoftmaxGrad, Dropout, Mask, Gather, FineOp::Other];
            let sequence: Vec<FineOp> = codes.into_iter().map(|i| OPS[i]).collect();
            let mut end = 0;
            for m in find(&sequence) {
                proptest::prop_assert!(m.start >= end && m.end > m.start && m.end <= sequence.len());
                proptest::prop_assert!(m.end - m.start <= LONGEST);
                end = m.end;
            }
        }
    }
}
