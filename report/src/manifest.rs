//! What captures say of themselves, field by field: the manifest with every field of the contract, also those that nobody
//! filled.

use model::{
    Trace,
    manifest::{Control, Entry, FIELDS, Field, Provenance, field},
};
use serde_json::{Value, json};

use super::{
    cells,
    document::{Align, Document, Inlines, Table},
    inlines, phrase, text,
};
use diagnosis::{
    analysis::manifest_inference::{By, Inferred, Why},
    i18n::{Lang, Message, Text, Value::Count},
};

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

/// The page for people.
pub fn document(captures: &[(Trace, Inferred)], lang: Lang) -> Document {
    let get = |text: Text| phrase::text(text, lang);
    let mut out = Document::new();
    for (trace, shown) in captures {
        let source = Inlines::quoted(&trace.source, text::PHRASE);
        out.heading(1, inlines![get(Text::new("Manifest of", "清单：")), " ", source]);
        if trace.simulated {
            let mark = Text::new("**simulated**: written by a simulator", "**simulated（模拟数据）**：由模拟器生成");
            out.notice(get(mark));
        }
        let known = rows(trace).filter(|(_, field, entry)| field.is_some() && entry.is_some()).count();
        let count = Text::new(
            "{known} of {all} fields are known. What is unknown can be declared: `strato manifest edit CAPTURE --declare FILE.toml`.",
            "{all} 个字段中已知 {known} 个。未知的可以声明：`strato manifest edit CAPTURE --declare FILE.toml`。",
        );
        let counts = [("known", known), ("all", FIELDS.len())].map(|(name, n)| (name, Count(n as u64)));
        out.paragraph(phrase::inlines(&Message::new(count, counts), lang));
        let mut table = Table::new([
            (get(Text::new("field", "字段")), Align::Left),
            (get(Text::new("value", "值")), Align::Left),
            (get(Text::new("from", "来源")), Align::Left),
            (get(Text::new("control", "控制")), Align::Left),
        ]);
        for (key, field, entry) in rows(trace) {
            let value = entry.map_or_else(|| "–".into(), |entry| Inlines::quoted(&entry.value, VALUE.0));
            let control = match field.map(|field| field.control) {
                Some(Control::Hard) => Text::new("hard", "硬"),
                Some(Control::Soft) => Text::new("soft", "软"),
                None => Text::new("none: a further fact", "无：附加信息"),
            };
            table.row(cells![Inlines::name(key), value, from(key, entry, shown, lang), get(control)]);
        }
        out.table(table);
    }
    out
}

/// Where a value comes from, and of what the capture shows without saying it, by what; why nothing is known, if it was
/// looked for.
fn from(key: &str, entry: Option<&Entry>, shown: &Inferred, lang: Lang) -> String {
    let Some(entry) = entry else {
        let unknown = Text::new("unknown", "未知").get(lang);
        let reason = shown.why(key).map(|why| why_not(why, lang));
        return reason.map_or_else(|| unknown.to_owned(), |reason| joined(unknown, &reason, lang));
    };
    let provenance = match entry.provenance {
        Provenance::Observed => Text::new("observed", "观测"),
        Provenance::Declared => Text::new("declared", "声明"),
        Provenance::Simulated => Text::new("simulated", "模拟"),
    };
    let by = shown.by(key).filter(|_| entry.provenance != Provenance::Declared);
    by.map_or_else(|| provenance.get(lang).to_owned(), |by| joined(provenance.get(lang), seen_by(by).get(lang), lang))
}

fn joined(word: &str, reason: &str, lang: Lang) -> String {
    Text::new("{word}: {reason}", "{word}：{reason}").get(lang).replace("{word}", word).replace("{reason}", reason)
}

/// What shows a value.
fn seen_by(by: By) -> Text {
    match by {
        By::Steps => Text::new("the steps", "步"),
        By::Marks => Text::new("marks of the steps", "步标记"),
        By::Calls => Text::new("calls of the host", "主机调用"),
        By::Repeats => Text::new("repeats of the kernels", "内核的重复结构"),
        By::Modules => Text::new("named modules", "模块名"),
        By::Shapes => Text::new("recorded shapes and types", "记录的形状与类型"),
        By::Names => Text::new("names of kernels", "内核名"),
        By::Collectives => Text::new("collectives of the steps", "步内的集合通信"),
    }
}

/// Why nothing is known.
fn why_not(why: &Why, lang: Lang) -> String {
    let text = match why {
        Why::NoSteps => Text::new("no steps were found", "未找到步"),
        Why::FewSteps(_) => {
            Text::new("only {n} steps; a change point is sought in eight", "仅 {n} 步；变点检测需要八步")
        }
        Why::NoShapes => Text::new("no recorded shapes show it", "没有记录的形状可以说明"),
        Why::Silent => Text::new("neither shapes nor names of kernels say it", "形状与内核名均未说明"),
        Why::Several(_) => Text::new("the steps show several: {values}", "步中出现多个取值：{values}"),
        Why::NoCalls => Text::new("calls of the host were not recorded", "未记录主机调用"),
        Why::NoLayers => Text::new(
            "no repeats with one attention and one activation each were found",
            "未找到各含一次注意力与一次激活的重复结构",
        ),
        Why::Hidden => Text::new("part of the kernels is hidden or has unknown names", "部分内核被隐藏或名称未知"),
        Why::Unsized => Text::new("what ranks exchange does not say it", "各 rank 之间的交换未说明"),
    };
    let text = text.get(lang);
    match why {
        Why::FewSteps(n) => text.replace("{n}", &n.to_string()),
        Why::Several(values) => text.replace("{values}", &text::cut(&values.join(", "), VALUE.0)),
        _ => text.to_owned(),
    }
}

/// Writes one JSON object; what nobody filled has the provenance `unknown` and no value.
///
/// # Errors
/// Only if serialisation fails, which would be a defect.
pub fn json(captures: &[(Trace, Inferred)]) -> Result<String, serde_json::Error> {
    let fields = |(trace, shown): &(Trace, Inferred)| {
        let entry = |(key, field, entry): (&str, Option<&Field>, Option<&Entry>)| {
            json!({
                "field": text::plain(key, VALUE.1),
                "value": entry.map(|entry| text::plain(&entry.value, VALUE.1)),
                "provenance": entry.map_or(Value::from("unknown"), |entry| json!(entry.provenance)),
                "seen_by": entry.filter(|entry| entry.provenance != Provenance::Declared).and(shown.by(key)),
                "why_unknown": shown.why(key).filter(|_| entry.is_none()).map(|why| why_not(why, Lang::En)),
                "class": field.map(|field| field.control),
                "what": field.map(|field| field.what),
            })
        };
        rows(trace).map(entry).collect::<Vec<_>>()
    };
    let captures = captures.iter().map(|capture| {
        let trace = &capture.0;
        json!({
            "source": text::plain(&trace.source, VALUE.1), "format": trace.format, "simulated": trace.simulated,
            "fields": fields(capture),
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
    use diagnosis::analysis;

    #[test]
    fn what_is_seen_says_by_what_and_what_is_not_says_why() {
        let mut trace = TraceBuilder::new("run", "kineto").finish();
        let found =
            analysis::manifest_inference::Found { key: "model.layers", value: "24".to_owned(), by: By::Repeats };
        let open = vec![("caps.batch", Why::Several(vec!["8|".to_owned(), "16".to_owned()]))];
        let mut shown = Inferred { found: vec![found], open };
        shown.complete(&mut trace);
        let captures = [(trace, shown)];
        let document: Value = serde_json::from_str(&json(&captures).unwrap()).unwrap();
        let fields = document["captures"][0]["fields"].as_array().unwrap();
        let of = |key: &str| fields.iter().find(|field| field["field"] == key).unwrap();
        assert_eq!(
            (&of("model.layers")["seen_by"], &of("model.layers")["provenance"]),
            (&json!("repeats"), &json!("observed"))
        );
        assert_eq!(of("caps.batch")["why_unknown"], "the steps show several: 8|, 16");
        assert!(super::document(&captures, Lang::En).markdown().contains("observed: repeats of the kernels"));
        assert!(super::document(&captures, Lang::Zh).markdown().contains("观测：内核的重复结构"));
    }

    #[test]
    fn every_field_stands_there_with_its_value_or_as_unknown() {
        let mut builder = TraceBuilder::new("run", "kineto");
        builder.manifest("model.name", "a|b\u{1b}[2J", Provenance::Observed);
        builder.manifest("caps.batch", "8", Provenance::Declared);
        builder.manifest("kineto.further", "x", Provenance::Observed);
        let traces = [(builder.finish(), Inferred::default())];
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
            let page = super::document(&traces, lang).markdown();
            assert!(!page.contains('\u{1b}') && page.contains("a\\|b"), "{page}");
            assert!(FIELDS.iter().all(|field| page.contains(&format!("`{}`", field.key))));
            assert!(page.contains(&format!("{}", FIELDS.len())));
        }
    }
}
