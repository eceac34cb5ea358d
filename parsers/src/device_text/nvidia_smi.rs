//! `nvidia-smi`: its table of two or three lines per card, and `--query-gpu … --format=csv`, whose fields
//! `nvidia-smi --help-query-gpu` describes and whose titles name their units.

use super::{
    DeviceReadings, Metric, Readout, Tool, boxes,
    cell::{bytes, number, unavailable},
    word_after,
};

/// The tool.
pub const TOOL: Tool = Tool { id: "nvidia-smi", vendor: "nvidia", arguments: ASKED, matches, read };

/// The fields that are read; the table has no clocks.
const ASKED: &[&str] = &[
    "--query-gpu=index,name,pci.bus_id,utilization.gpu,memory.used,memory.total,power.draw,power.limit,temperature.gpu,clocks.sm,clocks.mem",
    "--format=csv",
];

/// Titles of the fields, which come with their unit: `clocks.sm` is printed as `clocks.current.sm [MHz]`.
const TITLES: [(&str, Metric); 8] = [
    ("utilization.gpu", Metric::Utilisation),
    ("memory.used", Metric::MemoryUsed),
    ("memory.total", Metric::MemoryTotal),
    ("power.draw", Metric::Power),
    ("power.limit", Metric::PowerCap),
    ("temperature.gpu", Metric::Temperature),
    ("clocks.current.sm", Metric::Clock),
    ("clocks.current.memory", Metric::MemoryClock),
];

fn matches(text: &str) -> bool {
    text.contains("| NVIDIA-SMI ") || header(text).is_some()
}

fn header(text: &str) -> Option<&str> {
    text.lines().find(|line| line.starts_with("index, ") && line.contains("utilization.gpu"))
}

fn read(text: &str) -> Readout {
    let Some(header) = header(text) else {
        return Readout { version: word_after(text, "| NVIDIA-SMI ").map(str::to_owned), ..boxes::read(text) };
    };
    let titles: Vec<&str> = header.split(", ").collect();
    let mut out = Readout::default();
    for line in text.lines().skip_while(|line| *line != header).skip(1).filter(|line| !line.trim().is_empty()) {
        match device(&titles, line) {
            Some(device) => out.devices.push(device),
            None => out.unread += 1,
        }
    }
    out
}

/// A row. `[N/A]`, `[Not Supported]` and `[Unknown Error]` stand where the card gives no value.
fn device(titles: &[&str], line: &str) -> Option<DeviceReadings> {
    let cells: Vec<&str> = line.split(", ").map(str::trim).collect();
    let mut rows = titles.iter().zip(&cells).map(|(title, cell)| (title.split(' ').next().unwrap_or(""), *cell));
    if cells.len() != titles.len() {
        return None;
    }
    let mut device = DeviceReadings::new(rows.next()?.1.parse().ok()?);
    for (title, cell) in rows {
        match (title, TITLES.iter().find(|(known, _)| *known == title)) {
            ("name", _) => device.name = Some(cell.to_owned()),
            ("pci.bus_id", _) => device.bus = Some(cell.to_owned()),
            (_, Some((_, metric))) => {
                let said = if cell.starts_with('[') { unavailable(cell) } else { number(cell) };
                let in_bytes = matches!(metric, Metric::MemoryUsed | Metric::MemoryTotal);
                device.put(*metric, if in_bytes { bytes(said) } else { said });
            }
            _ => {}
        }
    }
    Some(device)
}
