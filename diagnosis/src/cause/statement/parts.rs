//! Parts of the sentences about costs: where the host's time lies, how often and how long, names of kernels and units.

use model::{Category, StringId, Trace};

use crate::{
    analysis::{CopyDir, owners},
    cause::{Cost, Occurs, Site},
    i18n::{Message, Text, Value},
    ledger::names::general,
};

/// Names of one sentence, at most.
pub(super) const NAMES: usize = 5;

/// How often a cost occurs: once, or so often and at most so long.
pub(super) const ONE_GAP: Text = Text::new(" (one gap)", "（一个间隙）");
pub(super) const GAPS: Text = Text::new(" ({count} gaps, the longest {longest})", "（{count} 个间隙，最长 {longest}）");
pub(super) const ONE_CALL: Text = Text::new(" (one call)", "（一次调用）");
pub(super) const CALLS: Text =
    Text::new(" ({count} calls, the longest {longest})", "（{count} 次调用，最长 {longest}）");

/// One of these texts with the number and the longest instance.
pub(super) fn times(cost: &Cost, [once, often]: [Text; 2]) -> Value {
    match cost.count {
        1 => Value::Text(once),
        n => Message::new(often, [("count", Value::Count(n as u64)), ("longest", longest(cost))]).within(),
    }
}

/// What the cores of a device are called by its vendor.
pub(super) fn units(trace: &Trace, cost: &Cost) -> Text {
    let process = trace.processes.iter().position(|process| process.rank == Some(cost.rank));
    let own = trace.devices.iter().find(|device| Some(device.process.0 as usize) == process);
    let vendor = own.or(trace.devices.first()).and_then(|device| device.vendor);
    match vendor.map(|vendor| trace.strings.get(vendor)) {
        Some("nvidia") => Text::new("SMs", "SM"),
        Some("amd" | "hygon") => Text::new("CUs", "CU"),
        _ => Text::new("cores", "核"),
    }
}

/// The longest instance; where a cost occurs once or twice, each of them.
pub(super) fn longest(cost: &Cost) -> Value {
    const BOTH: Text = Text::new("{a} and {b}", "{a} 与 {b}");
    match (cost.occurs, cost.next.first()) {
        (Occurs::Once, Some(next)) => {
            Message::new(BOTH, [("a", Value::Ns(cost.longest)), ("b", Value::Ns(*next))]).within()
        }
        _ => Value::Ns(cost.longest),
    }
}

/// The rank that a cost was measured on: its number is put in by whoever knows the ranks.
pub(super) fn rank(cost: &Cost) -> Value {
    Value::Count(cost.rank.into())
}

/// The largest kernels of a cost.
pub(super) fn names(trace: &Trace, names: &[StringId]) -> Value {
    const ONE: Text = Text::new("{a}", "{a}");
    const MORE: Text = Text::new("{a}, {b}", "{a}、{b}");
    let mut shown = names.iter().take(NAMES).rev().map(|name| kernel(trace.strings.get(*name)));
    let last = shown.next().map(|a| Message::new(ONE, [("a", a)]));
    let all = shown.fold(last, |rest, a| rest.map(|rest| Message::new(MORE, [("a", a), ("b", rest.within())])));
    all.map_or(Value::Raw(String::new()), Message::within)
}

/// A kernel among others: of PyTorch's generic elementwise kernels the function that they apply.
pub(super) fn kernel(name: &str) -> Value {
    let inner = name.split_once("elementwise_kernel<").map(|(_, inner)| inner);
    let words = |text: &str| -> Vec<String> {
        text.split(|c: char| !(c.is_alphanumeric() || c == '_')).map(str::to_owned).collect()
    };
    let applied = |word: &&String| word.len() > 7 && (word.ends_with("Functor") || word.contains("_kernel"));
    let named = inner.and_then(|inner| words(inner).iter().rfind(applied).cloned());
    let named = named.map(|name| name.replace("_kernel_cuda", "").replace("_kernel_impl", ""));
    // A functor inside another one says more than the outer one.
    named.map_or_else(|| Value::Kernel(name.to_owned()), Value::Raw)
}

/// Where the host's time lies, as a sentence part.
pub(super) fn at(trace: &Trace, site: &Site) -> Value {
    const RECORD: Text = Text::new("`{record}`{path}", "`{record}`{path}");
    const BOTH: Text = Text::new(
        "`{record}`{path} for {share} of it and `{other}` for {of_other}",
        "`{record}`{path}（占其 {share}）与 `{other}`（{of_other}）",
    );
    const BETWEEN: Text = Text::new(
        "code without a record of its own between `{before}` and `{next}`{inside}",
        "`{before}` 与 `{next}` 之间无单独记录的代码{inside}",
    );
    const INSIDE: Text = Text::new(" in `{record}`{path}", "（位于 `{record}`{path}）");
    const FROM: Text = Text::new(" (called from {path})", "（调用自 {path}）");
    const PART: Text = Text::new("`{record}`{path} for {share} of it", "`{record}`{path}（占其 {share}）");
    const LARGEST: Text = Text::new(
        "many things{inside}, the largest `{record}` ({share} of it)",
        "多处代码{inside}，其中最大的是 `{record}`（占其 {share}）",
    );
    const SEVERAL: Text = Text::new(
        "many things{inside}, the largest `{a}` ({of_a} of it) and `{b}` ({of_b})",
        "多处代码{inside}，其中最大的是 `{a}`（占其 {of_a}）与 `{b}`（{of_b}）",
    );
    const WITHIN: Text = Text::new(" in `{record}`", "（位于 `{record}`）");
    const NOTHING: Text = Text::new("code that no record covers", "无记录覆盖的代码");
    let text = |name: StringId| owners::short(trace.strings.get(name));
    let raw = |name: StringId| Value::Raw(text(name));
    // Several records share the name without its number.
    let record_of = |name: StringId| match site.several {
        true => Value::Raw(owners::short(&general(trace.strings.get(name), Category::UserRange))),
        false => raw(name),
    };
    let within = || match site.path.first() {
        Some(name) => Message::new(WITHIN, [("record", record_of(*name))]).within(),
        None => Value::Text(Text::new("", "")),
    };
    let outer: Vec<String> = site
        .path
        .iter()
        .filter(|name| !owners::is_plumbing(trace.strings.get(**name)))
        .take(2)
        .map(|name| format!("`{}`", text(*name)))
        .collect();
    let path = match outer.is_empty() {
        true => Value::Text(Text::new("", "")),
        false => Message::new(FROM, [("path", Value::Raw(outer.join(" ← ")))]).within(),
    };
    let edge = |name: Option<StringId>| name.map_or(Value::Raw("…".to_owned()), raw);
    match (site.between, site.record) {
        (Some((before, next)), held) => {
            let inside = match held {
                Some(record) => Message::new(INSIDE, [("record", record_of(record)), ("path", path)]).within(),
                None => Value::Text(Text::new("", "")),
            };
            Message::new(BETWEEN, [("before", edge(before)), ("next", edge(next)), ("inside", inside)]).within()
        }
        (None, Some(record)) => match site.among.as_slice() {
            [(_, share), (other, of_other), ..] => {
                let shares = [("share", Value::Share(*share)), ("of_other", Value::Share(*of_other))];
                let names = [("record", record_of(record)), ("other", raw(*other)), ("path", path)];
                Message::new(BOTH, names.into_iter().chain(shares)).within()
            }
            [(_, share)] => {
                let args = [("record", record_of(record)), ("path", path), ("share", Value::Share(*share))];
                Message::new(PART, args).within()
            }
            [] => Message::new(RECORD, [("record", record_of(record)), ("path", path)]).within(),
        },
        (None, None) => match site.among.as_slice() {
            [] => Value::Text(NOTHING),
            [(name, share)] => {
                let args = [("record", raw(*name)), ("share", Value::Share(*share)), ("inside", within())];
                Message::new(LARGEST, args).within()
            }
            [(a, of_a), (b, of_b), ..] => {
                let names = [("a", raw(*a)), ("b", raw(*b)), ("inside", within())];
                let shares = [("of_a", Value::Share(*of_a)), ("of_b", Value::Share(*of_b))];
                Message::new(SEVERAL, names.into_iter().chain(shares)).within()
            }
        },
    }
}

/// What a direction is called.
pub(super) fn words(direction: CopyDir) -> Text {
    match direction {
        CopyDir::HtoD => Text::new("host to device", "主机到设备"),
        CopyDir::DtoH => Text::new("device to host", "设备到主机"),
        CopyDir::DtoD => Text::new("device to device", "设备内"),
        CopyDir::PtoP | CopyDir::Staging => Text::new("between devices", "设备间"),
        CopyDir::HtoH => Text::new("host to host", "主机内"),
        CopyDir::Memset => Text::new("fills", "填充"),
        CopyDir::Unknown => Text::new("of unrecorded direction", "方向未记录"),
    }
}
