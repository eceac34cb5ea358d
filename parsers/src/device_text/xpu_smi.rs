//! `xpu-smi` of Kunlunxin (table of three lines per card, and `-m`, a line per card) and of Intel (`dump`, CSV).

use model::Reading;

use super::{
    DeviceReadings, Metric, Readout, Tool, boxes,
    cell::{bytes, number, unavailable},
};

/// The tool.
pub const TOOL: Tool = Tool { id: "xpu-smi", vendor: "kunlunxin", arguments: &[], matches, read };

/// Fields of a line of `-m`, and the places of number, use, total and utilisation from 0; learnt from programs that read
/// them, no document of the vendor names them.
const FIELDS: usize = 32;
const CARD: usize = 1;
const USED: usize = 17;
const TOTAL: usize = 18;
const UTIL: usize = 19;

fn matches(text: &str) -> bool {
    text.contains("| XPU-SMI ")
        || dump_header(text).is_some()
        || text.lines().next().is_some_and(|line| machine(line).is_some())
}

fn read(text: &str) -> Readout {
    if let Some(header) = dump_header(text) {
        return dump(text, header);
    }
    if text.contains('|') {
        return boxes::read(text);
    }
    let mut out = Readout::default();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match machine(line) {
            Some(device) => out.devices.push(device),
            None => out.unread += 1,
        }
    }
    out
}

/// A line of `-m`: fields between spaces, in quotes where they hold some.
fn machine(line: &str) -> Option<DeviceReadings> {
    let mut fields: Vec<String> = vec![String::new()];
    let mut quote = None;
    for c in line.trim().chars() {
        match quote {
            Some(open) if c == open => quote = None,
            None if matches!(c, '"' | '\'') => quote = Some(c),
            None if c.is_whitespace() => fields.push(String::new()),
            _ => fields.last_mut()?.push(c),
        }
    }
    fields.retain(|field| !field.is_empty());
    if fields.len() != FIELDS {
        return None;
    }
    let field = |at: usize| fields.get(at).map_or_else(|| unavailable(""), |text| number(text));
    let mut device = DeviceReadings::new(fields.get(CARD)?.parse().ok()?);
    device.put(Metric::MemoryUsed, bytes(field(USED)));
    device.put(Metric::MemoryTotal, bytes(field(TOTAL)));
    device.put(Metric::Utilisation, field(UTIL));
    Some(device)
}

fn dump_header(text: &str) -> Option<&str> {
    text.lines().find(|line| line.trim_start().starts_with("Timestamp,") && line.contains("DeviceId"))
}

/// Rows of `dump`. A public report shows rows with more values than titles: such a row cannot be told apart.
fn dump(text: &str, header: &str) -> Readout {
    let titles: Vec<&str> = header.split(',').map(str::trim).collect();
    let mut out = Readout::default();
    for line in text.lines().skip_while(|line| *line != header).skip(1).filter(|line| !line.trim().is_empty()) {
        let mut cells: Vec<&str> = line.split(',').map(str::trim).collect();
        if cells.len() == titles.len() + 1 && cells.last() == Some(&"") {
            cells.pop();
        }
        let card = titles.iter().zip(&cells).find(|(title, _)| **title == "DeviceId").and_then(|(_, c)| c.parse().ok());
        let (Some(card), true) = (card, cells.len() == titles.len()) else {
            out.unread += 1;
            continue;
        };
        let mut device = DeviceReadings::new(card);
        for (title, cell) in titles.iter().zip(&cells) {
            let metric = match *title {
                "GPU Utilization (%)" => Metric::Utilisation,
                "GPU Power (W)" => Metric::Power,
                "GPU Frequency (MHz)" => Metric::Clock,
                "GPU Core Temperature (Celsius Degree)" => Metric::Temperature,
                "GPU Memory Utilization (%)" => Metric::MemoryUtilisation,
                "GPU Memory Used (MiB)" => {
                    let used: Reading<f64> = bytes(number(cell));
                    device.put(Metric::MemoryUsed, used);
                    continue;
                }
                _ => continue,
            };
            device.put(metric, number(cell));
        }
        out.devices.push(device);
    }
    out
}
