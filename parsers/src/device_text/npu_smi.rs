//! `npu-smi info` of Ascend: the box table (versions 1.9 to 25), `-t usages|common|board|power|temp` lines, and `watch`.

use model::Reading;

use super::{
    DeviceReadings, Metric, Readout, Tool,
    boxes::{self, Block},
    cell::{self, number, unavailable},
    columns::key_value,
    word_after,
};

/// The tool.
pub const TOOL: Tool = Tool { id: "npu-smi", vendor: "ascend", arguments: &["info"], matches, read };

fn matches(text: &str) -> bool {
    let watch = text.contains("NpuID(Idx)");
    watch
        || text.contains("npu-smi")
        || text.contains("AICore(%)")
        || text.lines().any(|l| l.trim_start().starts_with("NPU ID "))
}

fn read(text: &str) -> Readout {
    let mut out = if text.contains("NpuID(Idx)") {
        watch(text)
    } else if text.contains('|') {
        table(text)
    } else {
        lines(text)
    };
    out.version = word_after(text, "| npu-smi").map(str::to_owned);
    out
}

/// What the titles of the table and of `watch` mean.
fn metric(title: &str) -> Option<Metric> {
    Some(match title.replace(' ', "").to_ascii_lowercase().as_str() {
        "power(w)" | "pwr(w)" | "npureal-timepower(w)" | "powerdissipation(w)" => Metric::Power,
        "temp(c)" | "temperature(c)" => Metric::Temperature,
        "aicore(%)" | "aicoreusagerate(%)" => Metric::Utilisation,
        "hbmusagerate(%)" => Metric::MemoryUtilisation,
        "hbmbandwidthusagerate(%)" | "memorybw(%)" => Metric::MemoryBandwidth,
        "aicorecurfreq(mhz)" => Metric::Clock,
        _ => return None,
    })
}

fn table(text: &str) -> Readout {
    let table = boxes::table(text);
    // An excerpt may begin below the header; these are the columns of every version since 23.
    let header = match table.header.as_slice() {
        [_, _] => table.header.clone(),
        _ => vec![
            vec!["NPU  Name", "Health", "Power(W) Temp(C) Hugepages-Usage(page)"],
            vec!["Chip", "Bus-Id", "AICore(%) Memory-Usage(MB) HBM-Usage(MB)"],
        ],
    };
    let mut out = Readout { unread: table.unread, ..Readout::default() };
    for block in &table.devices {
        match device(&header, block) {
            Some(device) => out.devices.push(device),
            None => out.unread += 1,
        }
    }
    out
}

fn device(header: &Block<'_>, block: &Block<'_>) -> Option<DeviceReadings> {
    let mut device = boxes::device(header, block)?;
    let second = block.get(1).and_then(|line| line.first());
    device.chip = second.and_then(|cell| cell.split_whitespace().next()?.parse().ok());
    let mut own: Option<String> = None;
    for (i, titles) in header.iter().enumerate() {
        let titles: Vec<&str> = titles.last().map(|cell| cell.split_whitespace().collect()).unwrap_or_default();
        let cell = block.get(i).filter(|line| line.len() > 2).and_then(|line| line.get(2)).copied().unwrap_or("");
        // `22283/ 32768` and `0    / 0` are one value each.
        let joined = cell.split('/').map(str::trim).collect::<Vec<_>>().join("/");
        let values: Vec<&str> = joined.split_whitespace().collect();
        for (j, title) in titles.iter().enumerate() {
            // With fewer values than titles nobody knows which is missing.
            let value = values.get(j).copied().filter(|_| values.len() == titles.len());
            match (metric(title), *title) {
                (Some(metric), _) => device.put(metric, value.map_or_else(|| unavailable(cell), number)),
                (None, "HBM-Usage(MB)") => put_memory(&mut device, value.unwrap_or("")),
                (None, "Memory-Usage(MB)") => own = value.map(str::to_owned),
                _ => {}
            }
        }
    }
    // Chips without HBM show their memory under the other title.
    if device.get(Metric::MemoryTotal).is_none_or(|total| total.value().is_none()) {
        put_memory(&mut device, own.as_deref().unwrap_or(""));
    }
    Some(device)
}

fn put_memory(device: &mut DeviceReadings, value: &str) {
    let [used, total] = cell::memory(value);
    device.put(Metric::MemoryUsed, used);
    device.put(Metric::MemoryTotal, total);
}

/// `key : value` lines; `NPU ID` begins a card, and `Chip ID` names or ends a chip of it.
fn lines(text: &str) -> Readout {
    let mut out = Readout::default();
    for (key, value) in text.lines().filter_map(key_value) {
        if key == "NPU ID" {
            match value.parse() {
                Ok(card) if out.devices.last().is_none_or(|d: &DeviceReadings| d.card != card) => {
                    out.devices.push(DeviceReadings::new(card));
                }
                Ok(_) => {}
                Err(_) => out.unread += 1,
            }
            continue;
        }
        let Some(device) = out.devices.last_mut() else { continue };
        match (key, metric(key)) {
            ("Chip ID", _) => device.chip = value.parse().ok(),
            ("Chip Name", _) => device.name = Some(value.to_owned()),
            ("PCIe Bus Info", _) => device.bus = Some(value.to_owned()),
            ("HBM Capacity(MB)", _) => device.put(Metric::MemoryTotal, cell::bytes(positive(value))),
            (_, Some(metric)) => device.put(metric, number(value)),
            _ => {}
        }
    }
    out
}

/// A capacity; 0 says that there is no such memory.
fn positive(value: &str) -> Reading<f64> {
    match number(value) {
        Reading::Value(0.0) => unavailable("0: no such memory"),
        other => other,
    }
}

/// `npu-smi info watch`: a header, repeated, and a row per chip and second. Titles hold spaces and end with their unit in
/// brackets, rows hold one word per title.
fn watch(text: &str) -> Readout {
    let mut out = Readout::default();
    let mut titles: Vec<&str> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if line.contains("NpuID(Idx)") {
            titles = line.split_inclusive(')').map(str::trim).filter(|title| !title.is_empty()).collect();
            continue;
        }
        let cells: Vec<&str> = line.split_whitespace().collect();
        let number_of = |title: &str| titles.iter().zip(&cells).find(|(t, _)| **t == title)?.1.parse::<u32>().ok();
        let (Some(card), true) = (number_of("NpuID(Idx)"), cells.len() == titles.len()) else {
            out.unread += u64::from(!titles.is_empty());
            continue;
        };
        let mut device = DeviceReadings { chip: number_of("ChipId(Idx)"), ..DeviceReadings::new(card) };
        for (title, cell) in titles.iter().zip(&cells) {
            let metric = metric(title).or((*title == "Memory(%)").then_some(Metric::MemoryUtilisation));
            if let Some(metric) = metric {
                device.put(metric, number(cell));
            }
        }
        out.devices.push(device);
    }
    out
}
