//! The operators behind launch calls, and the tensors that were recorded of them: read once, as many operators share a description.

use std::sync::Arc;

use model::{Category, Columns, Detail, OpDetail, SliceId, StringId, Trace, TrackId};
use rayon::prelude::*;

use super::{
    dtype,
    timeline::{Call, Timeline},
};

/// Slices that are looked at backwards from a launch call to the operator around it; Python frames lie between them.
const NEAR: usize = 256;

/// One input of an operator.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Sizes; never empty.
    pub dims: Vec<i64>,
    /// Bytes of an element, if its type is known.
    pub element: Option<i64>,
    /// Its number format, if it is one.
    pub dtype: Option<&'static str>,
}

impl Tensor {
    /// Number of elements.
    pub fn elements(&self) -> i64 {
        self.dims.iter().fold(1, |n: i64, d| n.saturating_mul((*d).max(0)))
    }

    /// Bytes, if the type is known.
    pub fn bytes(&self) -> Option<i64> {
        Some(self.elements().saturating_mul(self.element?))
    }
}

/// The operator that launched a device operation, with what went into it.
#[derive(Clone, Debug, PartialEq)]
pub struct Operator {
    /// Its record: device operations with the same one are one execution.
    pub slice: SliceId,
    /// Its name.
    pub name: StringId,
    /// Its description, as an index into [`Trace::details`]: equal ones are the same.
    pub described: u32,
    /// Its tensors, at least one.
    pub inputs: Arc<[Tensor]>,
}

/// The recorded tensors of a capture, by detail; none for details of other kinds and operators without any.
#[derive(Clone, Debug, Default)]
pub struct Recorded(Arc<Vec<Option<Arc<[Tensor]>>>>);

impl Recorded {
    /// Reads every description once: many operators share one.
    pub fn of(trace: &Trace) -> Self {
        let read = |detail: &Detail| match detail {
            Detail::Op(detail) => Some(tensors(trace, detail)).filter(|inputs| !inputs.is_empty()).map(Arc::from),
            _ => None,
        };
        Self(Arc::new(trace.details.par_iter().map(read).collect()))
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    fn operator(&self, lane: &Columns, row: usize) -> Option<Operator> {
        let described = *lane.detail.get(row)?;
        let inputs = self.0.get(described as usize)?.clone()?;
        Some(Operator { slice: lane.id(row), name: lane.name[row], described, inputs })
    }
}

/// The operators behind the launch calls of a rank.
#[derive(Clone, Debug, Default)]
pub struct Launching {
    recorded: Recorded,
    /// By call: lane and row of the innermost operator around it of which tensors were recorded.
    of_call: Vec<Option<(TrackId, u32)>>,
}

impl Launching {
    /// Finds the operators around every call that launched something.
    pub fn find(trace: &Trace, recorded: &Recorded, timeline: &Timeline) -> Self {
        let of_call = if recorded.is_empty() {
            Vec::new()
        } else {
            timeline.calls.par_iter().map(|call| around(trace, recorded, call)).collect()
        };
        Self { recorded: recorded.clone(), of_call }
    }

    /// The operator around a call, from its index in the timeline.
    pub fn of(&self, trace: &Trace, call: u32) -> Option<Operator> {
        let (track, row) = (*self.of_call.get(call as usize)?)?;
        self.at(trace.lanes.get(track.0 as usize)?, row as usize)
    }

    /// The operator of a row, if tensors were recorded of it.
    pub fn at(&self, lane: &Columns, row: usize) -> Option<Operator> {
        self.recorded.operator(lane, row)
    }
}

/// Lane and row of the innermost operator around `call` of which tensors were recorded.
fn around(trace: &Trace, recorded: &Recorded, call: &Call) -> Option<(TrackId, u32)> {
    if call.ops == 0 {
        return None;
    }
    let lane = trace.lanes.get(call.track.0 as usize)?;
    let before = lane.start.partition_point(|s| *s <= call.start);
    let mut around = (before.saturating_sub(NEAR)..before)
        .rev()
        .filter(|i| lane.category[*i] == Category::FrameworkOp && lane.end(*i) >= call.end);
    around.find(|row| recorded.operator(lane, *row).is_some()).map(|row| (call.track, row as u32))
}

/// The tensors among recorded inputs: scalars and lists have no sizes.
pub fn tensors(trace: &Trace, detail: &OpDetail) -> Vec<Tensor> {
    let list = |text: Option<model::StringId>| -> Vec<serde_json::Value> {
        text.and_then(|t| serde_json::from_str(trace.strings.get(t)).ok()).unwrap_or_default()
    };
    let types = list(detail.dtypes);
    let dims = |value: &serde_json::Value| -> Option<Vec<i64>> {
        value.as_array()?.iter().map(serde_json::Value::as_i64).collect::<Option<Vec<i64>>>().filter(|d| !d.is_empty())
    };
    list(detail.shapes)
        .iter()
        .enumerate()
        .filter_map(|(i, shape)| {
            let name = types.get(i).and_then(|t| t.as_str());
            let (element, dtype) = (name.and_then(dtype::bytes_of), name.and_then(dtype::format_of));
            Some(Tensor { dims: dims(shape)?, element, dtype })
        })
        .collect()
}
