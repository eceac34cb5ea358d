//! Strings, labels and facts of the run.

use serde_json::Value;

use super::{
    super::facts,
    state::{Kept, State},
};
use crate::{
    simulated,
    sqlite::page::{
        Column::{self, Int, Text},
        Page,
    },
};

/// `STRING_IDS(id, value)`.
pub(super) fn strings(state: &mut State<'_>, page: &Page) -> Kept {
    let mut kept = Kept::default();
    for row in 0..page.rows {
        match (page.int(0, row), page.inline(1, row)) {
            (Some(id), Some(text)) if state.within_file(text.len()) => {
                state.strings.insert(id, text.into());
                kept.rows += 1;
            }
            _ => kept.incomplete += 1,
        }
    }
    kept
}

fn labels(page: &Page, mut take: impl FnMut(i64, &str)) -> Kept {
    let mut kept = Kept::default();
    for row in 0..page.rows {
        match (page.int(0, row), page.inline(1, row)) {
            (Some(id), Some(text)) => {
                take(id, text);
                kept.rows += 1;
            }
            _ => kept.incomplete += 1,
        }
    }
    kept
}

/// `ENUM_HCCL_DATA_TYPE(id, name)`.
pub(super) fn data_types(state: &mut State<'_>, page: &Page) -> Kept {
    labels(page, |id, name| {
        state.data_types.insert(id, name.to_owned());
    })
}

/// `ENUM_API_TYPE(id, name)`, in 2023 `ENUM_API_LEVEL`.
pub(super) fn levels(state: &mut State<'_>, page: &Page) -> Kept {
    labels(page, |id, name| {
        state.levels.insert(id, name.to_owned());
    })
}

/// `NPU_INFO(id, name)`, in 2023 `TARGET_INFO_NPU`.
pub(super) fn devices(state: &mut State<'_>, page: &Page) -> Kept {
    labels(page, |id, name| {
        state.products.insert(id, name.to_owned());
    })
}

/// Columns of [`meta`].
pub(super) const META: &[Column] = &[Text("name", None), Text("value", None)];

/// `META_DATA(name, value)`: the schema's version, and JSON that the framework's profiler added.
pub(super) fn meta(state: &mut State<'_>, page: &Page) -> Kept {
    let mut kept = Kept::default();
    for row in 0..page.rows {
        let (Some(name), Some(value)) = (page.inline(0, row), page.inline(1, row)) else {
            kept.incomplete += 1;
            continue;
        };
        kept.rows += 1;
        match name {
            simulated::LABEL => state.facts.simulated |= value == "true",
            "SCHEMA_VERSION" => state.schema = Some(value.to_owned()),
            "ENV_VARIABLES" => {
                let variables: Value = serde_json::from_str(value).unwrap_or_default();
                for (name, value) in variables.as_object().into_iter().flatten() {
                    if let Some(value) = value.as_str().filter(|value| !value.is_empty()) {
                        state.facts.environment.take(&format!("{name}={value}"));
                    }
                }
            }
            "distributed_args" => {
                let arguments: Value = serde_json::from_str(value).unwrap_or_default();
                state.facts.world = state.facts.world.or(arguments.get("world_size").and_then(Value::as_i64));
            }
            "parallel_group_info" => {
                let groups: Value = serde_json::from_str(value).unwrap_or_default();
                state.facts.world = state.facts.world.or_else(|| facts::ranks_of_all(&groups));
            }
            _ => {}
        }
    }
    kept
}

/// Columns of [`host`].
pub(super) const HOST: &[Column] = &[Text("hostName", None)];

/// `HOST_INFO(hostUid, hostName)`.
pub(super) fn host(state: &mut State<'_>, page: &Page) -> Kept {
    let name = (0..page.rows).find_map(|row| page.inline(0, row));
    state.facts.host = name.map(str::to_owned).or(state.facts.host.take());
    Kept { rows: page.rows as u64, ..Kept::default() }
}

/// Columns of [`session`].
pub(super) const SESSION: &[Column] = &[Int("startTimeNs", &[]), Int("endTimeNs", &[]), Int("baseTimeNs", &[])];

/// `SESSION_TIME_INFO`: Unix times of the session, and in 2023 that of the clock's zero.
pub(super) fn session(state: &mut State<'_>, page: &Page) -> Kept {
    for row in 0..page.rows {
        let [start, end, base] = page.ints(row);
        state.session = start.zip(end);
        state.base = base;
    }
    Kept { rows: page.rows as u64, ..Kept::default() }
}

/// Columns of [`ranks`].
pub(super) const RANK: &[Column] = &[Int("rankId", &[]), Int("deviceId", &[])];

/// `RANK_DEVICE_MAP(rankId, deviceId)`; bare `msprof` writes rank −1.
pub(super) fn ranks(state: &mut State<'_>, page: &Page) -> Kept {
    for row in 0..page.rows {
        if let [Some(rank), Some(device)] = page.ints(row)
            && let Ok(rank) = u32::try_from(rank)
        {
            state.ranks.insert(device, rank);
        }
    }
    Kept { rows: page.rows as u64, ..Kept::default() }
}
