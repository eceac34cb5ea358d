//! What stands in objects inside a result: what a server says of itself, the settings of the load, and times as GenAI-Perf and
//! AIPerf write them (`{"unit": "ms", "avg": …, "p50": …}`).

use serde_json::Value;

/// Bytes of an object that is read; a server says some ten thousand of itself.
const LARGEST: usize = 1 << 20;
/// How deep settings are nested at most.
const DEPTH: usize = 4;
/// Settings kept of one object.
const KEPT: usize = 512;

/// Keys and values of an object inside a result, as if they stood in the result itself; `None` for what cannot be read.
pub(super) fn members(key: &str, raw: &[u8]) -> Option<Vec<(String, String)>> {
    let value: Value = serde_json::from_slice(raw.get(..LARGEST.min(raw.len()))?).ok()?;
    let object = value.as_object()?;
    let mut found = Vec::new();
    if let Some(unit) = object.get("unit").and_then(Value::as_str) {
        let is_time = matches!(unit, "ns" | "us" | "ms" | "s" | "sec");
        for (statistic, value) in object.iter().filter(|(_, value)| value.is_number()) {
            match (is_time, statistic.as_str()) {
                (true, _) => found.push((format!("{statistic}_{key}_{unit}"), value.to_string())),
                (false, "avg") => found.push((key.to_owned(), value.to_string())),
                _ => {}
            }
        }
        return Some(found);
    }
    flatten(object, DEPTH, &mut found);
    Some(found)
}

fn flatten(object: &serde_json::Map<String, Value>, depth: usize, found: &mut Vec<(String, String)>) {
    for (key, value) in object {
        if found.len() >= KEPT {
            return;
        }
        match value {
            Value::Object(inner) if depth > 0 => flatten(inner, depth - 1, found),
            Value::String(text) if !text.is_empty() => found.push((key.clone(), text.clone())),
            Value::Number(number) => found.push((key.clone(), number.to_string())),
            // The first of several models is what the load was put on.
            Value::Array(list) if matches!(key.as_str(), "model_names" | "model") => {
                let first = list.first().and_then(Value::as_str);
                found.extend(first.map(|name| ("model".to_owned(), name.to_owned())));
            }
            _ => {}
        }
    }
}
