//! The end of an import: what is told once all tables have been read.

use std::collections::{BTreeMap, BTreeSet};

use model::{Clock, Device, Ns, Provenance, Severity, Span};

use super::{
    device::WorkQueue,
    facts::{Gpu, Stream},
    global_id::GlobalId,
    host,
    import::{Import, MACHINE},
    nvtx,
};

/// Event times beyond this (the year 2001 in Unix ns) were made absolute by `--ts-normalize`; no capture lasts 31 years.
const ABSOLUTE: Ns = 1_000_000_000_000_000_000;

/// Tells names, devices, the manifest and the clock.
pub(super) fn settle(import: &mut Import<'_>) {
    // The last slices, which the extent of the capture has to know.
    host::settle_switches(import);
    let absolute = import.extent.is_some_and(|(first, _)| first > ABSOLUTE);
    let last = import.extent.map(|(_, last)| last);
    let begin = if absolute { import.facts.unix_zero } else { Some(0) };
    let recorded = begin.zip(import.facts.duration).filter(|_| !import.facts.cut_in_time);
    let window = recorded.map(|(begin, duration)| Span::new(begin, begin.saturating_add(duration)));
    let open = nvtx::settle(import, window.map(|window| window.end).or(last));
    if open.rows > 0 {
        import.sink.ledger("NVTX_EVENTS", 0, open.rows, open.time, "ranges");
    }
    if let Some(window) = window {
        import.sink.window(window);
    }
    import.sink.clock(if absolute {
        Clock::FromFirstSlice { unix_offset: Some(0) }
    } else {
        Clock::AsIs { unix_zero: import.facts.unix_zero }
    });
    name_processes(import);
    name_threads(import);
    name_streams(import);
    devices(import);
    manifest(import);
    let (missing, without_process) = (import.names.missing, import.without_process);
    import.stat("missing_string", Severity::Notice, missing, None);
    import.stat("row_without_process", Severity::Notice, without_process, None);
    let redacted = import.facts.environment.redacted;
    import.stat("redacted_environment", Severity::Info, redacted, None);
}

fn name_processes(import: &mut Import<'_>) {
    let known: Vec<_> = import.processes().collect();
    for (key, process) in known {
        if key == MACHINE {
            import.sink.describe_process(process, None, Some("machine"), None);
            continue;
        }
        let name = import.facts.processes.get(&key).map(String::as_str);
        import.sink.describe_process(process, GlobalId::new(key.cast_signed()).pid(), name, None);
    }
}

fn name_threads(import: &mut Import<'_>) {
    let known: Vec<_> = import.threads().collect();
    for (id, track) in known {
        if let Some((_, name)) = import.facts.threads.get(&id) {
            import.sink.name_track(track, name);
        }
    }
}

fn name_streams(import: &mut Import<'_>) {
    let streams: BTreeMap<_, &Stream> =
        import.facts.streams.iter().map(|stream| ((stream.pid, stream.context, stream.id), stream)).collect();
    for WorkQueue { process, context, stream: id, track } in &import.queues.streams {
        let pid = GlobalId::new(process.cast_signed()).pid();
        let mut notes = Vec::new();
        if let Some(stream) = streams.get(&(pid, *context, *id)) {
            // Kinds as in `ENUM_CUPTI_STREAM_TYPE`; non-blocking, the usual kind, goes without saying.
            match stream.kind {
                Some(1) => notes.push("default".to_owned()),
                Some(3) => notes.push("null".to_owned()),
                _ => {}
            }
            if let Some(priority) = stream.priority.filter(|priority| *priority != 0) {
                notes.push(format!("priority {priority}"));
            }
        }
        let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
        import.sink.name_track(*track, &format!("stream {id}{notes}"));
    }
}

impl Import<'_> {
    /// The GPU that a process means by a device ordinal. Exports before schema 3.17 do not map ordinals for each
    /// process; there the machine's own numbering must do.
    fn gpu(&self, key: u64, ordinal: i32) -> Option<&Gpu> {
        let (ordinal, pid) = (i64::from(ordinal), GlobalId::new(key.cast_signed()).pid());
        let gpus = &self.facts.gpus;
        if let Some(id) = pid.and_then(|pid| self.facts.ordinals.get(&(pid, ordinal))) {
            return gpus.iter().find(|gpu| gpu.id == Some(*id));
        }
        let numbered = gpus.iter().find(|gpu| gpu.ordinal == Some(ordinal));
        numbered.or_else(|| gpus.iter().find(|gpu| gpu.ordinal.is_none() && gpu.id == Some(ordinal))).or(
            match gpus.as_slice() {
                [only] => Some(only),
                _ => None,
            },
        )
    }
}

fn devices(import: &mut Import<'_>) {
    let vendor = import.sink.intern("nvidia");
    let used = std::mem::take(&mut import.queues.used);
    let (mut names, mut physical, mut mapped) = (BTreeSet::new(), BTreeSet::new(), true);
    let mut memory = BTreeSet::new();
    for (key, process, ordinal) in &used {
        let gpu = import.gpu(*key, *ordinal);
        let name = gpu.and_then(|gpu| gpu.name.clone());
        let (cores, memory_bytes) = gpu.map_or((None, None), |gpu| (gpu.cores, gpu.memory_bytes));
        mapped &= gpu.is_some();
        physical.extend(gpu.and_then(|gpu| gpu.id));
        names.extend(name.clone());
        memory.extend(memory_bytes);
        let name = name.map(|name| import.sink.intern(&name));
        let (process, ordinal) = (*process, *ordinal);
        import.sink.device(Device { process, ordinal, name, vendor: Some(vendor), cores, memory_bytes });
    }
    if used.is_empty() {
        names.extend(import.facts.gpus.iter().filter_map(|gpu| gpu.name.clone()));
        memory.extend(import.facts.gpus.iter().filter_map(|gpu| gpu.memory_bytes));
    }
    let observed = Provenance::Observed;
    if !names.is_empty() {
        import.sink.manifest("hardware.device", &join(names), observed);
    }
    if !memory.is_empty() {
        import.sink.manifest("hardware.memory_bytes", &join(memory.iter().map(ToString::to_string)), observed);
    }
    // Ordinals of one process are distinct devices whatever they are called.
    let one_process = used.iter().map(|(key, ..)| key).collect::<BTreeSet<_>>().len() == 1;
    let count = if mapped {
        physical.len()
    } else if one_process {
        used.len()
    } else {
        0
    };
    if count > 0 {
        import.sink.manifest("hardware.count", &count.to_string(), observed);
    }
    if !import.facts.gpus.is_empty() {
        import.sink.manifest("hardware.visible", &import.facts.gpus.len().to_string(), observed);
    }
    import.sink.manifest("hardware.vendor", "nvidia", observed);
}

fn join(values: impl IntoIterator<Item = String>) -> String {
    values.into_iter().collect::<Vec<_>>().join(", ")
}

fn manifest(import: &mut Import<'_>) {
    let facts = &import.facts;
    let profiler = facts.product.as_ref().map(|version| format!("Nsight Systems {version}"));
    let entries = [
        ("measurement.traced", Some("nsys".to_owned())),
        ("software.profiler", Some(profiler.unwrap_or_else(|| "Nsight Systems".to_owned()))),
        ("software.driver", facts.driver.clone()),
        ("software.toolkit", facts.toolkit.clone()),
        ("software.env", facts.environment.text()),
        ("hardware.cpu", facts.cpu.clone()),
        ("hardware.host", facts.host.clone()),
        ("nsys.schema", facts.schema.clone()),
        ("nsys.graph_trace", facts.graph_trace.clone()),
        ("nsys.emit_nvtx", import.ranges.operators.then(|| "1".to_owned())),
    ];
    let simulated = facts.simulated;
    for (key, value) in entries {
        // Where the collector could not tell, it writes so.
        if let Some(value) = value.filter(|value| !value.is_empty() && value != "unknown") {
            import.sink.manifest(key, &value, Provenance::Observed);
        }
    }
    if simulated {
        crate::simulated::tell(import.sink);
    }
}
