//! Communicators that one rank names and another one numbers: the same one under one name.

use std::collections::BTreeMap;

use model::{CollectiveCall, Detail, Manifest, StringId, Trace};
use rustc_hash::FxHashMap;

/// Gives every communicator whose name any capture knows that name on all of them: files of sums only number it.
pub(super) fn name(traces: &mut [Trace]) {
    let told = traces.iter().flat_map(|trace| trace.manifest.iter());
    let names: BTreeMap<String, String> = told
        .filter_map(|(key, entry)| Some((key.strip_prefix(Manifest::COMMUNICATOR)?.to_owned(), entry.value.clone())))
        .collect();
    if names.is_empty() {
        return;
    }
    for trace in traces {
        let numbered = |id: StringId| names.get(trace.strings.get(id));
        let ids: Vec<(StringId, String)> = trace
            .details
            .iter()
            .filter_map(|detail| call(detail)?.group)
            .filter_map(|id| Some((id, numbered(id)?.clone())))
            .collect();
        let ids: FxHashMap<StringId, StringId> =
            ids.into_iter().map(|(id, name)| (id, trace.strings.intern(&name))).collect();
        if !ids.is_empty() {
            trace.details.iter_mut().for_each(|detail| match detail {
                Detail::Kernel(kernel) => kernel.collective.as_deref_mut().into_iter().for_each(|call| set(call, &ids)),
                Detail::Collective(call) => set(call, &ids),
                _ => {}
            });
        }
    }
}

fn set(call: &mut CollectiveCall, ids: &FxHashMap<StringId, StringId>) {
    call.group = call.group.map(|group| ids.get(&group).copied().unwrap_or(group));
}

/// What a slice says of the collective that it is.
pub(super) fn call(detail: &Detail) -> Option<&CollectiveCall> {
    match detail {
        Detail::Kernel(kernel) => kernel.collective.as_deref(),
        Detail::Collective(call) => Some(call),
        _ => None,
    }
}
