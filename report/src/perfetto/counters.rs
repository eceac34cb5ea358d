//! Counters. A viewer calls each by its name and its unit.

use std::io;

use model::CounterTrack;

use super::{File, Source, event::quoted, places::Layout};
use diagnosis::i18n::Text;

/// Writes the samples of every counter in order of time.
pub fn write(source: &Source<'_>, layout: &Layout, file: &mut File<'_, '_>) -> io::Result<()> {
    for counter in &source.trace.counters {
        let name = quoted(&name(source, counter));
        let unit = quoted(if counter.unit.is_empty() { "value" } else { &counter.unit });
        let of_device = source.analysis.ranks.iter().zip(&layout.ranks).find(|(rank, _)| {
            rank.process == counter.process && counter.device.is_none_or(|device| device == rank.device)
        });
        let of_process = layout.processes.get(counter.process.0 as usize);
        let Some(pid) = of_device.map(|(_, pid)| pid).or(of_process) else { continue };
        let by = source.clocks.process(counter.process);
        let mut samples: Vec<(i64, f64)> = counter.t.iter().copied().zip(counter.value.iter().copied()).collect();
        samples.sort_by_key(|(t, _)| *t);
        for (t, value) in samples {
            if value.is_finite() {
                file.events.sample(*pid, &name, &unit, source.time(t, by), value)?;
                file.written.samples += 1;
            } else {
                file.written.no_numbers += 1;
            }
        }
    }
    Ok(())
}

fn name(source: &Source<'_>, counter: &CounterTrack) -> String {
    let name = source.trace.strings.get(counter.name);
    match counter.device {
        Some(device) => format!("{name} ({} {device})", source.get(Text::new("device", "设备"))),
        None => name.to_owned(),
    }
}
