//! The timeline as data in the page: arrays of integers, times from the start of what is held.

use serde_json::{Value, json};

use crate::timeline::{Lane, Timeline};
use diagnosis::i18n::{Lang, Text};

/// Numbers of a mark: start and length as drawn, kind, name (-1 for none), slices, busy ns, start and length of the whole slice.
pub const FIELDS: usize = 8;

/// The data, as the inside of a `script` element that is no script.
pub fn of(timeline: &Timeline, lang: Lang) -> String {
    let from_start = |t: i64| t.saturating_sub(timeline.window.start);
    let lane = |lane: &Lane| {
        let marks = lane.marks.iter().flat_map(|mark| {
            let name = mark.name.map_or(-1, |name| name as i64);
            let numbers: [i64; FIELDS] = [
                from_start(mark.span.start),
                mark.span.len(),
                mark.kind as i64,
                name,
                i64::from(mark.count),
                mark.busy,
                from_start(mark.whole.start),
                mark.whole.len(),
            ];
            numbers
        });
        let links = lane.marks.iter().enumerate().filter_map(|(i, mark)| {
            let (lane, launch) = mark.launch?;
            Some([i, lane, launch])
        });
        json!({
            "head": lane.head,
            "label": lane.label,
            "depth": lane.depth,
            "marks": marks.collect::<Vec<_>>(),
            "links": links.flatten().collect::<Vec<_>>(),
            "samples": lane.samples.as_ref().map(|samples| &samples.columns),
            "range": lane.samples.as_ref().and_then(|samples| samples.range()),
        })
    };
    let kinds = timeline.kinds.iter().map(|kind| json!({"name": kind.name, "dark": kind.dark, "light": kind.light}));
    let data = json!({
        "length": timeline.window.len(),
        "offset": from_start(timeline.zero).saturating_neg(),
        "focus": [from_start(timeline.focus.start), from_start(timeline.focus.end)],
        "evidence": timeline.evidence.as_ref().map(|own| [from_start(own.span.start), from_start(own.span.end)]),
        "kinds": kinds.collect::<Vec<_>>(),
        "names": timeline.names.iter().map(|name| &name.whole).collect::<Vec<_>>(),
        "labels": timeline.names.iter().map(|name| &name.short).collect::<Vec<_>>(),
        "lanes": timeline.lanes.iter().map(lane).collect::<Vec<_>>(),
        "words": words(lang),
    });
    inert(&data)
}

fn words(lang: Lang) -> Value {
    let word = |en, zh| Text::new(en, zh).get(lang);
    json!({
        "from": word("from", "开始"),
        "for": word("for", "时长"),
        "slices": word("slices", "个切片"),
        "busy": word("busy", "忙碌"),
        "launch": word("launched by", "下发者"),
        "after": word("after its launch began", "距下发开始"),
        "nothing": word("Choose a slice to read it.", "选择一个切片以查看。"),
        "most": word("most", "最大"),
        "least": word("least", "最小"),
    })
}

/// JSON in which nothing ends the element around it or reorders what is read.
fn inert(data: &Value) -> String {
    let mut out = String::new();
    for c in data.to_string().chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out
}
