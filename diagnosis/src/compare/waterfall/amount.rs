//! How much work a slot does, by the shapes of what went into its operations: what the times of unequal work are held against.

use std::collections::BTreeMap;

use crate::{
    analysis::{DeviceOp, OpKind, Step, op_shapes},
    compare::{
        align::{Place, Slot},
        chosen::Chosen,
        work,
    },
    platform::{CanonicalOp, OpClass},
};

/// What work is counted by. Only amounts of one kind can be set against each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Elements of what an operation is given, or bytes of a copy.
    Elements,
    /// Blocks of the cache that the sequences of an attention have.
    Blocks,
    /// Products of queries and keys.
    Scores,
    /// Elements that a matrix product reads, or what it multiplies where that is more.
    Product,
}

/// Rows from which arithmetic and not memory bounds a product of 16 bits: by the data sheets of H100, MI300X and Ascend 910B
/// between 200 and 300; own value.
const RIDGE: f64 = 250.0;

/// The work of a slot in one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Done {
    /// What it is counted by.
    pub kind: Kind,
    /// All of it.
    pub amount: f64,
}

impl Done {
    /// Work of both sides where it is of one kind. Several kernels that do together what one does pass over the same elements.
    pub fn both(a: Self, b: Self, slot: Option<&Slot>) -> Option<[f64; 2]> {
        let passes = |kernels: usize| if a.kind == Kind::Elements { kernels.max(1) as f64 } else { 1.0 };
        let [of_a, of_b] = slot.filter(|own| own.by.is_some()).map_or([1, 1], |own| [own.a.len(), own.b.len()]);
        (a.kind == b.kind).then(|| [a.amount / passes(of_a), b.amount / passes(of_b)])
    }
}

/// The work of the slots of a step; those are not there of which an operation does not say how much it does.
pub fn of(side: &Chosen<'_>, step: &Step, places: &[Place]) -> BTreeMap<u32, Done> {
    let mut found: BTreeMap<u32, Option<Done>> = BTreeMap::new();
    for (op, place) in side.rank.ops_of(step).iter().zip(places) {
        let own = one(side, op);
        found
            .entry(place.slot)
            .and_modify(|sum| *sum = sum.zip(own).and_then(|(sum, own)| add(sum, own)))
            .or_insert(own);
    }
    found.into_iter().filter_map(|(slot, done)| Some((slot, done?))).filter(|(_, done)| done.amount > 0.0).collect()
}

/// Of a product and what is done to its elements beside it, the product.
fn add(sum: Done, own: Done) -> Option<Done> {
    match (sum.kind, own.kind) {
        (one, other) if one == other => Some(Done { amount: sum.amount + own.amount, ..sum }),
        (Kind::Elements, _) => Some(own),
        (_, Kind::Elements) => Some(sum),
        _ => None,
    }
}

fn one(side: &Chosen<'_>, op: &DeviceOp) -> Option<Done> {
    let inputs = || op_shapes::inputs(side.trace, side.rank, op);
    let done = |kind, amount| Some(Done { kind, amount });
    match (op.kind, op.op.class()) {
        (OpKind::Copy(_), _) => done(Kind::Elements, work::copied(side, op)? as f64),
        (OpKind::Comm | OpKind::Opaque, _) => None,
        // How many rows each expert has its shapes do not say.
        (OpKind::Compute, OpClass::Matrix) if op.op == CanonicalOp::GroupedGemm => None,
        (OpKind::Compute, OpClass::Matrix) => {
            let gemm = op_shapes::gemm(&inputs())?;
            let [rows, inner, outputs] = [gemm.rows, gemm.inputs, gemm.outputs].map(|n| n as f64);
            let read = gemm.bytes.zip(gemm.element.filter(|n| *n > 0)).map(|(bytes, each)| bytes as f64 / each as f64);
            let read = read.unwrap_or(rows * inner + inner * outputs);
            done(Kind::Product, read.max(rows * inner * outputs / RIDGE))
        }
        (OpKind::Compute, OpClass::Attention) => {
            let inputs = inputs();
            if let Some((sequences, blocks)) = work::table(&inputs) {
                return done(Kind::Blocks, sequences as f64 * blocks as f64);
            }
            let [queries, keys, ..] = &*inputs else { return None };
            let batch = queries.dims.first().filter(|n| **n > 0 && keys.dims.first() == Some(n))?;
            let dense = queries.dims.len() == 4 && keys.dims.len() == 4;
            dense.then_some(())?;
            done(Kind::Scores, queries.elements() as f64 * keys.elements() as f64 / *batch as f64)
        }
        // The first of what looks rows up is the table and not the rows.
        (OpKind::Compute, OpClass::Index | OpClass::MoeRoute | OpClass::Other) => None,
        (OpKind::Compute, _) => done(Kind::Elements, inputs().first()?.elements() as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_and_its_bias_are_the_product_and_two_kinds_are_none() {
        let done = |kind, amount| Done { kind, amount };
        let product = done(Kind::Product, 8.0);
        assert_eq!(add(product, done(Kind::Elements, 3.0)), Some(product));
        assert_eq!(add(done(Kind::Elements, 3.0), product), Some(product));
        assert_eq!(add(product, product), Some(done(Kind::Product, 16.0)));
        assert_eq!(add(product, done(Kind::Blocks, 1.0)), None);
        assert_eq!(Done::both(product, done(Kind::Product, 4.0), None), Some([8.0, 4.0]));
        assert_eq!(Done::both(product, done(Kind::Scores, 4.0), None), None);
    }
}
