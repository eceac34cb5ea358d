//! Which kind a slice of a track is: by its name, where that tells more than its category.

use model::{Category, Columns, Detail, StringId, Trace, TrackKind};
use rayon::prelude::*;

use super::kind::Kind;
use diagnosis::{
    analysis::{Analysis, OpKind},
    platform::{HostCall, Packs},
};

/// Kinds of kernels and calls by the number of their name.
pub struct Kinds {
    by_name: Vec<Option<Kind>>,
}

impl Kinds {
    /// As the analysis found them.
    pub fn of(trace: &Trace, analysis: &Analysis) -> Self {
        let mut by_name = vec![None; trace.strings.len()];
        for call in analysis.ranks.iter().flat_map(|rank| &rank.timeline.calls) {
            if let Some(kind @ None) = by_name.get_mut(call.name.0 as usize) {
                *kind = Some(of_call(call.kind));
            }
        }
        for op in analysis.ranks.iter().flat_map(|rank| &rank.timeline.ops) {
            if let (OpKind::Compute | OpKind::Comm, Some(kind)) = (op.kind, by_name.get_mut(op.name.0 as usize)) {
                *kind = Some(Kind::of_op(op));
            }
        }
        Self { by_name }
    }

    /// As their names say before there is an analysis. Each name is looked up once, however many slices have it.
    pub fn of_names(trace: &Trace, packs: &Packs) -> Self {
        let mut used = vec![None; trace.strings.len()];
        for (track, lane) in trace.tracks.iter().zip(&trace.lanes) {
            let named = match track.key.kind {
                TrackKind::DeviceQueue => Category::Kernel,
                TrackKind::HostThread => Category::HostApi,
                _ => continue,
            };
            for (name, _) in lane.name.iter().zip(&lane.category).filter(|(_, category)| **category == named) {
                if let Some(used) = used.get_mut(name.0 as usize) {
                    *used = Some(named);
                }
            }
        }
        let kind = |(id, used): (u32, Option<Category>)| {
            let name = trace.strings.get(StringId(id));
            Some(match used? {
                Category::Kernel => Kind::of_class(packs.op(name).op.class()),
                _ => of_call(packs.host_call(name)),
            })
        };
        Self { by_name: (0u32..).zip(used).collect::<Vec<_>>().into_par_iter().map(kind).collect() }
    }

    /// The kind of a row of a track.
    pub fn of_slice(&self, trace: &Trace, lane: &Columns, row: usize) -> Kind {
        let Some(category) = lane.category.get(row) else { return Kind::Unknown };
        match category {
            Category::Kernel if matches!(trace.detail(lane, row), Some(Detail::Kernel(k)) if k.collective.is_some()) => {
                Kind::Comm
            }
            Category::Kernel | Category::HostApi => {
                let known = lane.name.get(row).and_then(|name| self.by_name.get(name.0 as usize)).copied().flatten();
                known.unwrap_or(Kind::of_category(*category))
            }
            other => Kind::of_category(*other),
        }
    }
}

fn of_call(call: HostCall) -> Kind {
    match call {
        call if call.is_sync() => Kind::Sync,
        call if call.is_launch() => Kind::Launch,
        _ => Kind::Host,
    }
}
