//! What captures say of themselves, field by field: the manifest with every field of the contract, also those that nobody
//! filled.

use model::{
    Trace,
    manifest::{Control, Entry, FIELDS, Field, Provenance, field},
};
use serde_json::{Value, json};

use super::{
    table::{Align, Table},
    text,
};
use crate::i18n::{Lang, Text};

/// Name of the JSON schema.
pub const SCHEMA: &str = "strato.manifest/1";
/// Characters of a value on a page, and in JSON.
const VALUE: (usize, usize) = (60, 1000);

/// Every field of the contract with what the capture says of it, then its further facts.
fn rows(trace: &Trace) -> impl Iterator<Item = (&str, Option<&'static Field>, Option<&Entry>)> {
    let fields = FIELDS.iter().map(|field| (field.key, Some(field), trace.manifest.get(field.key)));
    let further = trace.manifest.iter().filter(|(key, _)| field(key).is_none());
    fields.chain(further.map(|(key, entry)| (key, None, Some(entry))))
}

/// Writes a page for people.
pub fn markdown(traces: &[Trace], lang: Lang) -> String {
    let mut out = String::new();
    for trace in traces {
        let title = Text::new("Manifest of", "清单：").get(lang);
        out.push_str(&format!("# {title} {}\n\n", text::code(&trace.source, text::PHRASE)));
        if trace.simulated {
            let mark = Text::new("**simulated**: written by a simulator", "**simulated（模拟数据）**：由模拟器生成");
            out.push_str(&format!("> {}\n\n", mark.get(lang)));
        }
        let known = rows(trace).filter(|(_, field, entry)| field.is_some() && entry.is_some()).count();
        let count = Text::new(
            "{known} of {all} fields are known. What is unknown can be declared: `strato manifest edit CAPTURE --declare FILE.toml`.",
            "{all} 个字段中已知 {known} 个。未知的可以声明：`strato manifest edit CAPTURE --declare FILE.toml`。",
        );
        let count = count.get(lang).replace("{known}", &known.to_string()).replace("{all}", &FIELDS.len().to_string());
        out.push_str(&format!("{count}\n\n"));
        let mut table = Table::new([
            (Text::new("field", "字段").get(lang), Align::Left),
            (Text::new("value", "值").get(lang), Align::Left),
            (Text::new("from", "来源").get(lang), Align::Left),
            (Text::new("control", "控制").get(lang), Align::Left),
        ]);
        for (key, field, entry) in rows(trace) {
            let value = entry.map_or_else(|| "–".to_owned(), |entry| text::code(&entry.value, VALUE.0));
            let from = match entry.map(|entry| entry.provenance) {
                Some(Provenance::Observed) => Text::new("observed", "观测"),
                Some(Provenance::Declared) => Text::new("declared", "声明"),
                Some(Provenance::Simulated) => Text::new("simulated", "模拟"),
                None => Text::new("unknown", "未知"),
            };
            let control = match field.map(|field| field.control) {
                Some(Control::Hard) => Text::new("hard", "硬"),
                Some(Control::Soft) => Text::new("soft", "软"),
                None => Text::new("none: a further fact", "无：附加信息"),
            };
            table.row([text::code(key, text::NAME), value, from.get(lang).to_owned(), control.get(lang).to_owned()]);
        }
        out.push_str(&table.markdown());
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// Writes one JSON object; what nobody filled has the provenance `unknown` and no value.
///
/// # Errors
/// Only if serialisation fails, which would be a defect.
pub fn json(traces: &[Trace]) -> Result<String, serde_json::Error> {
    let fields = |trace| {
        let entry = |(key, field, entry): (&str, Option<&Field>, Option<&Entry>)| {
            json!({
                "field": text::plain(key, VALUE.1),
                "value": entry.map(|entry| text::plain(&entry.value, VALUE.1)),
                "provenance": entry.map_or(Value::from("unknown"), |entry| json!(entry.provenance)),
                "class": field.map(|field| field.control),
                "what": field.map(|field| field.what),
            })
        };
        rows(trace).map(entry).collect::<Vec<_>>()
    };
    let captures = traces.iter().map(|trace| {
        json!({
            "source": text::plain(&trace.source, VALUE.1), "format": trace.format, "simulated": trace.simulated,
            "fields": fields(trace),
        })
    });
    let document = json!({ "schema": SCHEMA, "captures": captures.collect::<Vec<_>>() });
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use model::{TraceBuilder, TraceSink};

    use super::*;

    #[test]
    fn every_field_stands_there_with_its_value_or_as_unknown() {
        let mut builder = TraceBuilder::new("run", "kineto");
        builder.manifest("model.name", "a|b\u{1b}[2J", Provenance::Observed);
        builder.manifest("caps.batch", "8", Provenance::Declared);
        builder.manifest("kineto.further", "x", Provenance::Observed);
        let traces = [builder.finish()];
        let document: Value = serde_json::from_str(&json(&traces).unwrap()).unwrap();
        let fields = document["captures"][0]["fields"].as_array().unwrap();
        assert_eq!(fields.len(), FIELDS.len() + 1);
        let of = |key: &str| fields.iter().find(|field| field["field"] == key).unwrap();
        assert_eq!((&of("caps.batch")["value"], &of("caps.batch")["provenance"]), (&json!("8"), &json!("declared")));
        assert_eq!(
            (&of("model.layers")["value"], &of("model.layers")["provenance"]),
            (&Value::Null, &json!("unknown"))
        );
        assert_eq!((&of("kineto.further")["class"], &of("model.name")["class"]), (&Value::Null, &json!("hard")));
        for lang in [Lang::En, Lang::Zh] {
            let page = markdown(&traces, lang);
            assert!(!page.contains('\u{1b}') && page.contains("a\\|b"), "{page}");
            assert!(FIELDS.iter().all(|field| page.contains(&format!("`{}`", field.key))));
            assert!(page.contains(&format!("{}", FIELDS.len())));
        }
    }
}
