//! What a log says of the run itself: that the engine ended by an error, what its start took, and layers that no device has.

use model::{Ns, Trace};

use super::{largest, none};
use crate::i18n::{Message, Text, Value};

const FAILED: Text = Text::new("The engine failed: {failure}{cause}.", "引擎失败：{failure}{cause}。");
const CAUSE: Text = Text::new("; the first error is {error}", "；首个错误为 {error}");
const START: Text = Text::new("The engine's start takes {parts}.", "引擎启动耗时：{parts}。");
const UNTIL: Text = Text::new(
    "The engine's start takes {time} from the first line of the log: {parts}.",
    "从日志第一行起，引擎启动耗时 {time}：{parts}。",
);
const WEIGHTS: Text = Text::new("{time} for the weights", "加载权重 {time}");
const INIT: Text = Text::new("{time} to set the engine up{of}", "引擎初始化 {time}{of}");
const COMPILE: Text = Text::new("{time} of compilation", "编译 {time}");
const CAPTURE: Text = Text::new("{time} of graph capture", "图捕获 {time}");
const OF: Text = Text::new(" (of that {parts})", "（其中{parts}）");
const AND: Text = Text::new("{a}, {b}", "{a}、{b}");
const ON_HOST: Text = Text::new(
    "Of the model's layers {layers} are on the device; the host computes the others.",
    "模型的层中 {layers} 在设备上，其余由主机计算。",
);

/// Shorter starts are told by nobody, s; heuristic.
const SHORT: f64 = 5.0;
/// Characters of an error that are shown: two lines of a terminal.
const SHOWN: usize = 220;

/// What stands before all else: that the engine failed, or that layers are not on the device.
pub(super) fn first(trace: &Trace) -> Option<Message> {
    let text = |key: &str| trace.manifest.value(key).map(|text| sentence(text.trim()));
    let raw = |text: String| Value::Phrase(text.trim_end_matches('.').to_owned());
    if let Some(failure) = text("log.failure") {
        let cause = text("log.error").map(|error| Message::new(CAUSE, [("error", raw(error))]).within());
        return Some(Message::new(FAILED, [("failure", raw(failure)), ("cause", cause.unwrap_or_else(none))]));
    }
    let layers = text("log.layers_on_device")?;
    let (on_device, all) = layers.split_once('/')?;
    (on_device != all).then(|| Message::new(ON_HOST, [("layers", Value::Raw(layers.clone()))]))
}

/// An error up to the length that is shown, cut at the end of a word: its figures stand in the middle.
fn sentence(text: &str) -> String {
    let Some((end, _)) = text.char_indices().nth(SHOWN) else { return text.to_owned() };
    let shown = text.get(..end).unwrap_or(text);
    format!("{}…", shown.rsplit_once(' ').map_or(shown, |(whole, _)| whole))
}

/// What the start of the engine takes.
pub(super) fn start(trace: &Trace) -> Option<Message> {
    let seconds = |name: &str| largest(trace, name).filter(|s| *s >= SHORT);
    let said = |text: Text, s: f64| Message::new(text, [("time", Value::Ns((s * 1e9) as Ns))]);
    let capture = captures(trace).filter(|s| *s >= SHORT);
    let inner = [(COMPILE, seconds("startup_compile")), (CAPTURE, capture)];
    let inner = joined(inner.into_iter().filter_map(|(text, s)| Some(said(text, s?))));
    let weights = seconds("startup_load").map(|s| said(WEIGHTS, s));
    let rest = match (seconds("startup_init"), inner) {
        (Some(init), inner) => {
            let of = inner.map(|parts| Message::new(OF, [("parts", parts.within())]).within()).unwrap_or_else(none);
            Some(Message::new(INIT, [("time", Value::Ns((init * 1e9) as Ns)), ("of", of)]))
        }
        (None, inner) => inner,
    };
    let parts = joined(weights.into_iter().chain(rest));
    // From the first line to the one that says that requests may come; the parts are what the engine times itself.
    let whole = trace.manifest.value("log.ready_ns").and_then(|ns| ns.parse::<Ns>().ok());
    match (whole.filter(|ns| *ns as f64 >= SHORT * 1e9), parts) {
        (Some(whole), Some(parts)) => {
            Some(Message::new(UNTIL, [("time", Value::Ns(whole)), ("parts", parts.within())]))
        }
        (Some(whole), None) => Some(Message::new(START, [("parts", Value::Ns(whole))])),
        (None, parts) => Some(Message::new(START, [("parts", parts?.within())])),
    }
}

fn joined(parts: impl Iterator<Item = Message>) -> Option<Message> {
    parts.reduce(|a, b| Message::new(AND, [("a", a.within()), ("b", b.within())]))
}

/// The longest time that graphs were captured for, s: ranks do so side by side, and one log may have the lines of all.
fn captures(trace: &Trace) -> Option<f64> {
    let of_lane = |lane: &model::Columns| -> Option<Ns> {
        let own = (0..lane.len()).filter(|i| trace.strings.get(lane.name[*i]) == "log graph capture");
        own.map(|i| lane.dur[i]).max()
    };
    trace.lanes.iter().filter_map(of_lane).max().filter(|ns| *ns > 0).map(|ns| ns as f64 / 1e9)
}
