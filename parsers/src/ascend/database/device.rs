//! Tasks of the devices, collectives, and samples of clocks and memory.

use model::Severity;

use super::{
    super::{
        import::{Collective, DeviceTask, Part, Place},
        task::Task,
    },
    state::{Kept, State},
};
use crate::sqlite::page::{
    Column::{self, Decimal, Int},
    Page,
};

/// Columns of [`tasks`]. In 2023 times were text, rounded by a spreadsheet, and `correlationId` was the global id.
pub(super) const TASK: &[Column] = &[
    Decimal("startNs", &["start"]),
    Decimal("endNs", &["end"]),
    Int("deviceId", &[]),
    Int("connectionId", &[]),
    Int("globalTaskId", &["correlationId"]),
    Int("globalPid", &[]),
    Int("taskType", &[]),
    Int("streamId", &[]),
    Int("modelId", &[]),
];

/// Directions of copies in `ENUM_MEMCPY_OPERATION`; further values are of kinds that have no direction.
const COPIES: [&str; 4] = ["H2H", "H2D", "D2H", "D2D"];

/// `TASK`: everything that a device did. What it was stands in other tables; a task that none of them knows is a mark of
/// the scheduler, or the frame of operators and collectives that have rows of their own.
pub(super) fn tasks(state: &mut State<'_>, page: &Page) -> Kept {
    let mut kept = Kept::default();
    for row in 0..page.rows {
        let [Some(start), Some(end), Some(device), connection, id, pid, task_type, stream, model] = page.ints(row)
        else {
            kept.incomplete += 1;
            continue;
        };
        let Ok(device) = i32::try_from(device) else {
            kept.incomplete += 1;
            continue;
        };
        state.note_worker(pid.unwrap_or(0));
        let process = state.process(pid.unwrap_or(0));
        let place = Place { process, device, stream: stream.unwrap_or(0) };
        let task_type = state.text(task_type);
        let compute = id.and_then(|id| state.infos.compute.get(&id)).copied();
        let part = id.and_then(|id| state.infos.communication.get(&id)).copied();
        let (name, task) = match compute {
            Some(compute) => (state.text(compute.name), Task::Kernel),
            None => match Task::of(&task_type, &task_type) {
                Task::Kernel => (format!("frame of {task_type}"), Task::Pseudo),
                other => (task_type.clone(), other),
            },
        };
        let told = compute.and_then(|compute| state.told(compute.told));
        let copy = id.and_then(|id| state.infos.copies.get(&id)).copied();
        let direction = copy.and_then(|(_, operation)| COPIES.get(usize::try_from(operation?).ok()?).copied());
        let task = DeviceTask {
            place,
            start,
            end,
            name: &name,
            task_type: &task_type,
            task,
            connection,
            model,
            blocks: compute.and_then(|compute| compute.blocks),
            told,
            bytes: copy.and_then(|(bytes, _)| bytes),
            direction,
        };
        state.import.task("TASK", &task);
        if let Some(counters) = compute.and(id).and_then(|id| state.infos.counters.get(&id)) {
            let blocks = task.blocks.map(i64::from);
            state.counted.add(task.name, blocks, end.saturating_sub(start), counters);
        }
        if let Some(part) = part {
            // At level 0 the table of parts does not type them; the task itself has a type at every level.
            let said = state.text(part.task_type);
            let name = if Task::is_untyped(&said) { task_type.clone() } else { said };
            let around = state.framed.entry((device, part.of)).or_insert((start, end));
            *around = (around.0.min(start), around.1.max(end));
            let (peer, own, plane) = (part.peer, part.own, part.plane);
            let part = Part { process, device, plane, start, end, name: &name, peer, own };
            state.import.part("COMMUNICATION_TASK_INFO", &part);
        }
        kept.add(start, end);
    }
    kept
}

/// Columns of [`collectives`].
pub(super) const COLLECTIVE: &[Column] = &[
    Int("opName", &[]),
    Decimal("startNs", &[]),
    Decimal("endNs", &[]),
    Int("connectionId", &[]),
    Int("groupName", &[]),
    Int("dataType", &[]),
    Int("count", &[]),
    Int("deviceId", &[]),
    Int("rankSize", &[]),
    Int("retry", &[]),
    Int("relay", &[]),
];

/// `COMMUNICATION_OP`: one row for each collective, its waits included.
pub(super) fn collectives(state: &mut State<'_>, page: &Page) -> Kept {
    let mut kept = Kept::default();
    for row in 0..page.rows {
        let [name, Some(start), Some(end), connection, group, dtype, count, device, size, retry, relay] =
            page.ints(row)
        else {
            kept.incomplete += 1;
            continue;
        };
        // Before schema 1.2 the row does not say its device; a database of one rank has one.
        let device = device.and_then(|device| i32::try_from(device).ok()).unwrap_or(state.import.only_device());
        let process = state.process(0);
        let (name, group) = (state.text(name), group.map(|group| state.text(Some(group))));
        let dtype = dtype.and_then(|dtype| state.data_types.get(&dtype)).cloned();
        let group_size = size.and_then(|size| u32::try_from(size).ok()).filter(|size| *size > 0);
        let call = Collective {
            process,
            device,
            group: group.as_deref(),
            start,
            end,
            name: &name,
            connection,
            dtype: dtype.as_deref(),
            count,
            group_size,
        };
        state.import.collective("COMMUNICATION_OP", &call);
        let retried = u64::from(retry.is_some_and(|retry| retry > 0));
        state.import.stat("retried_collective", Severity::Notice, retried, Some(&name));
        let relayed = u64::from(relay.is_some_and(|relay| relay > 0));
        state.import.stat("relayed_collective", Severity::Notice, relayed, Some(&name));
        kept.add(start, end);
    }
    state.collectives += kept.rows;
    kept
}

/// Collectives of a database that has no row of its own for any, as those of 2023: each lasts from the first to the last of its tasks.
pub(super) fn framed(state: &mut State<'_>) {
    let mut framed: Vec<_> = std::mem::take(&mut state.framed).into_iter().collect();
    if state.collectives > 0 {
        return;
    }
    framed.sort_unstable();
    let process = state.process(0);
    for ((device, (name, _)), (start, end)) in framed.into_iter().filter(|((_, (name, _)), _)| name.is_some()) {
        let name = state.text(name);
        let call = Collective {
            process,
            device,
            group: None,
            start,
            end,
            name: &name,
            connection: None,
            dtype: None,
            count: None,
            group_size: None,
        };
        state.import.collective("COMMUNICATION_TASK_INFO", &call);
    }
}

/// Columns of [`frequencies`].
pub(super) const FREQUENCY: &[Column] = &[Int("deviceId", &[]), Int("timestampNs", &[]), Int("freq", &[])];

/// `AICORE_FREQ`: MHz.
pub(super) fn frequencies(state: &mut State<'_>, page: &Page) -> Kept {
    let name = state.import.sink.intern("AI Core Freq");
    let process = state.process(0);
    let mut kept = Kept::default();
    for row in 0..page.rows {
        let [Some(device), Some(t), Some(mhz)] = page.ints(row) else {
            kept.incomplete += 1;
            continue;
        };
        let device = i32::try_from(device).ok();
        state.import.sink.counter(process, device, name, "MHz", t, mhz as f64);
        kept.rows += 1;
    }
    kept
}

/// Columns of [`bandwidths`].
pub(super) const BANDWIDTH: &[Column] =
    &[Int("deviceId", &[]), Int("timestampNs", &[]), Column::Real("bandwidth"), Int("hbmId", &[]), Int("type", &[])];

/// `HBM`: bytes per second, which are counted in MB/s as the text form does.
pub(super) fn bandwidths(state: &mut State<'_>, page: &Page) -> Kept {
    let process = state.process(0);
    let mut kept = Kept::default();
    for row in 0..page.rows {
        let (device, t, bytes) = (page.int(0, row), page.int(1, row), page.real(2, row));
        let (Some(device), Some(t), Some(bytes)) = (device, t, bytes) else {
            kept.incomplete += 1;
            continue;
        };
        let way = state.text(page.int(4, row));
        let name = format!("HBM {}/{way}", page.int(3, row).unwrap_or(0));
        let name = state.import.sink.intern(&name);
        state.import.sink.counter(process, i32::try_from(device).ok(), name, "MB/s", t, bytes / 1e6);
        kept.rows += 1;
    }
    kept
}
