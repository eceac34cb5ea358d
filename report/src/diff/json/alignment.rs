//! Which operations of the two correspond, as JSON.

use schemars::JsonSchema;
use serde::Serialize;

use super::Pair;
use diagnosis::compare::{
    Difference,
    align::{Move, Op, Slot, Way},
};

/// Which operations of the two correspond.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Alignment")]
pub(super) struct Aligned {
    /// Along what the two were laid beside each other.
    #[schemars(schema_with = "ways")]
    way: &'static str,
    /// Whether the framework operators that launched them tell equal kernels apart.
    callers: bool,
    coverage: Pair<Coverage>,
    /// Layers as they were found.
    period: Pair<Option<Period>>,
    /// Layers of the model.
    layers: usize,
    slots: Vec<AlignedSlot>,
}

fn ways(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let all = [Way::Layers, Way::Whole, Way::Operators].map(Way::key);
    schemars::json_schema!({ "type": "string", "enum": all })
}

/// Device time of a side that the comparison covers.
#[derive(Serialize, JsonSchema)]
struct Coverage {
    /// Share in known operators.
    share: Option<f64>,
    busy_ns: i64,
    mapped_ns: i64,
    /// In slots that both have.
    shared_ns: i64,
}

/// Layers that are alike.
#[derive(Serialize, JsonSchema)]
struct Period {
    /// Device operations of a layer.
    length: usize,
    repeats: usize,
}

/// One place in a step.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Slot")]
struct AlignedSlot {
    /// Such as `layer.gemm#2`.
    slot: String,
    a_ops: Vec<String>,
    b_ops: Vec<String>,
    /// How the operations correspond.
    #[serde(rename = "move")]
    #[schemars(schema_with = "moves")]
    moved: &'static str,
}

fn moves(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let [a, b, c, d] = [Move::Match, Move::Substitute, Move::Group, Move::Gap].map(Move::key);
    schemars::json_schema!({ "type": "string", "enum": [a, b, c, d, OPERATOR] })
}

/// Of operations that are brought together by their operator alone.
const OPERATOR: &str = "operator";

pub(super) fn aligned(difference: &Difference) -> Aligned {
    let Difference { alignment, waterfall, .. } = difference;
    let slot = |(index, slot): (usize, &Slot)| {
        let used = waterfall.rows.iter().any(|row| row.slot as usize == index);
        let ops = |ops: &[Op]| ops.iter().map(|op| op.name().to_owned()).collect();
        (slot.by.is_some() || used).then(|| AlignedSlot {
            slot: slot.key(),
            a_ops: ops(&slot.a),
            b_ops: ops(&slot.b),
            moved: slot.by.map_or(OPERATOR, Move::key),
        })
    };
    let coverage = |n: usize| {
        let c = &waterfall.coverage[n];
        Coverage { share: c.share(), busy_ns: c.busy, mapped_ns: c.mapped, shared_ns: c.shared }
    };
    let period = |n: usize| alignment.found[n].map(|layers| Period { length: layers.len, repeats: layers.repeats });
    Aligned {
        way: alignment.way.key(),
        callers: alignment.callers,
        coverage: Pair::of(coverage),
        period: Pair::of(period),
        layers: alignment.layers,
        slots: alignment.slots.iter().enumerate().filter_map(slot).collect(),
    }
}
