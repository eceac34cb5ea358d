//! `rocm-smi` of AMD as a table and as `--json`, and `hy-smi` (once `dcu-smi`) of Hygon, which follows it.

use std::collections::BTreeMap;

use model::Reading;

use super::{
    DeviceReadings, Metric, Readout, Tool,
    cell::{number, unavailable},
    columns::Columns,
};

/// The tool of AMD.
pub const TOOL: Tool = Tool { id: "rocm-smi", vendor: "amd", arguments: ASKED, matches, read };
/// The tool of Hygon.
pub const HYGON: Tool = Tool { id: "hy-smi", vendor: "hygon", arguments: &[], matches: matches_hygon, read };

/// All that [`KEYS`] knows: without options the table lacks the memory in bytes.
const ASKED: &[&str] = &[
    "--showuse",
    "--showmemuse",
    "--showmeminfo",
    "vram",
    "--showpower",
    "--showmaxpower",
    "--showtemp",
    "--showclocks",
    "--showproductname",
    "--json",
];

fn matches(text: &str) -> bool {
    text.contains("ROCm System Management Interface") || header(text, "GPU%").is_some() || text.contains("\"card0\"")
}

fn matches_hygon(text: &str) -> bool {
    header(text, "DCU%").is_some() || text.contains("HCU%")
}

/// The line of titles.
fn header<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    text.lines().find(|line| line.contains(mark) && line.contains("Temp"))
}

fn read(text: &str) -> Readout {
    if let Some(json) = text.find('{').and_then(|at| text.get(at..)).filter(|json| json.contains("\"card")) {
        return cards(json);
    }
    let mut out = Readout::default();
    let Some(titles) = ["GPU%", "DCU%", "HCU%"].iter().find_map(|mark| header(text, mark)) else { return out };
    let columns = Columns::new(titles);
    let rows = text.lines().skip_while(|line| *line != titles).skip(1);
    for row in rows.filter(|row| row.trim_start().starts_with(|c: char| c.is_ascii_digit())) {
        match device(&columns, row) {
            Some(device) => out.devices.push(device),
            None => out.unread += 1,
        }
    }
    out
}

fn device(columns: &Columns<'_>, row: &str) -> Option<DeviceReadings> {
    let cells = columns.cells(row);
    let mut device = DeviceReadings::new(cells.first()?.1.parse().ok()?);
    for (title, cell) in &cells {
        let metric = match *title {
            "Temp" | "Temp (DieEdge)" => Metric::Temperature,
            "AvgPwr" | "Power" => Metric::Power,
            "PwrCap" => Metric::PowerCap,
            "SCLK" => Metric::Clock,
            "MCLK" => Metric::MemoryClock,
            "VRAM%" => Metric::MemoryUtilisation,
            "GPU%" | "DCU%" | "HCU%" => Metric::Utilisation,
            _ => continue,
        };
        device.put(metric, number(cell));
    }
    Some(device)
}

/// Keys of `--json`, whose values are all text. Where a sensor has several keys the first one that is there holds.
const KEYS: [(&str, Metric); 12] = [
    ("GPU use (%)", Metric::Utilisation),
    ("GPU memory use (%)", Metric::MemoryUtilisation),
    ("GPU Memory Allocated (VRAM%)", Metric::MemoryUtilisation),
    ("VRAM Total Memory (B)", Metric::MemoryTotal),
    ("VRAM Total Used Memory (B)", Metric::MemoryUsed),
    ("Average Graphics Package Power (W)", Metric::Power),
    ("Current Socket Graphics Package Power (W)", Metric::Power),
    ("Max Graphics Package Power (W)", Metric::PowerCap),
    ("Temperature (Sensor junction) (C)", Metric::Temperature),
    ("Temperature (Sensor edge) (C)", Metric::Temperature),
    ("sclk clock speed:", Metric::Clock),
    ("mclk clock speed:", Metric::MemoryClock),
];

fn cards(json: &str) -> Readout {
    let mut out = Readout::default();
    // Warnings may stand before the object, and text behind it.
    let mut values = serde_json::Deserializer::from_str(json).into_iter::<BTreeMap<String, serde_json::Value>>();
    let Some(Ok(object)) = values.next() else {
        out.unread = 1;
        return out;
    };
    for (name, card) in &object {
        let Some(number_of) = name.strip_prefix("card").and_then(|n| n.parse().ok()) else { continue };
        let mut device = DeviceReadings::new(number_of);
        device.name = card.get("Card Series").or(card.get("Card series")).and_then(|v| v.as_str()).map(str::to_owned);
        for (key, metric) in KEYS {
            let Some(value) = card.get(key) else { continue };
            let reading: Reading<f64> = match value {
                serde_json::Value::String(text) => number(text),
                other => other.as_f64().map_or_else(|| unavailable(&other.to_string()), Reading::Value),
            };
            device.put(metric, reading);
        }
        out.devices.push(device);
    }
    out.devices.sort_by_key(|device| device.card);
    out
}
