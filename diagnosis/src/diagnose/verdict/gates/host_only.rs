//! A capture of the host alone: where its time goes by the framework's operators, or by the program's ranges.

use super::clocks;
use model::{Category, Columns, Ns, StringId, Trace, TrackKind};
use rustc_hash::FxHashMap;

use crate::i18n::{Message, Text, Value};

/// What it says.
const SENTENCE: Text = Text::new(
    "No device operation was recorded: the capture is of the host alone, and does not say what a device did.{clocks}{largest}",
    "没有记录到任何设备算子：该采集只有主机侧，设备在此期间做了什么无从得知。{clocks}{largest}",
);
/// Where the host's time is.
const LARGEST: Text = Text::new(
    " Of the {all} that its {kind} cover, {name} itself takes the most: {own} ({share}){next}.",
    "其{kind}共覆盖 {all}，其中耗时最多的是 {name} 自身：{own}（{share}）{next}。",
);
/// What comes after the first.
const NEXT: Text = Text::new("{before}, then {name} {own} ({share})", "{before}，其次 {name} {own}（{share}）");
/// Names beside the first.
const FURTHER: usize = 2;

/// One part in so many of what another kind covers that a kind covers at least to be told: own value.
const MOST: Ns = 5;

/// What is counted, the first that is there and covers enough: records of one kind hold each other, so that each has a time of its own.
const KINDS: [(Category, Text); 3] = [
    (Category::FrameworkOp, Text::new("framework operators", "框架算子")),
    (Category::UserRange, Text::new("ranges", "区间")),
    (Category::HostApi, Text::new("calls of the runtime", "运行时调用")),
];

/// The sentence, where the host has records that say what it did.
pub(super) fn headline(trace: &Trace) -> Option<Message> {
    let (clocks, largest) = (clocks::told(trace), largest(trace));
    if clocks.is_none() && largest.is_none() {
        return None;
    }
    let within = |said: Option<Message>| said.map_or(Value::Text(Text::new("", "")), Message::within);
    Some(Message::new(SENTENCE, [("clocks", within(clocks)), ("largest", within(largest))]))
}

/// Where the time of the host goes, largest first.
pub(super) fn largest(trace: &Trace) -> Option<Message> {
    let kinds = KINDS.map(|(category, kind)| (kind, Sums::of(trace, category)));
    let most = kinds.iter().map(|(_, sums)| sums.all).max().unwrap_or(0);
    let tells = |(_, sums): &(Text, Sums)| !sums.own.is_empty() && sums.all.saturating_mul(MOST) >= most;
    let (kind, sums) = kinds.into_iter().find(tells)?;
    let text = |name: StringId| trace.strings.get(name);
    let mut order: Vec<(StringId, Ns)> = sums.own.into_iter().filter(|(_, ns)| *ns > 0).collect();
    order.sort_by_key(|(name, ns)| (std::cmp::Reverse(*ns), text(*name)));
    let mut order = order.into_iter();
    let (name, own) = order.next()?;
    let share = |own: Ns| Value::Share(own as f64 / sums.all.max(1) as f64);
    let next = order.take(FURTHER).fold(Value::Text(Text::new("", "")), |before, (name, own)| {
        let name = Value::Raw(text(name).to_owned());
        Message::new(NEXT, [("before", before), ("name", name), ("own", Value::Ns(own)), ("share", share(own))])
            .within()
    });
    let args = [
        ("next", next),
        ("all", Value::Ns(sums.all)),
        ("kind", Value::Text(kind)),
        ("name", Value::Raw(text(name).to_owned())),
        ("own", Value::Ns(own)),
        ("share", share(own)),
    ];
    Some(Message::new(LARGEST, args))
}

/// Time by record, what lies inside other records of the kind left out.
#[derive(Default)]
struct Sums {
    own: FxHashMap<StringId, Ns>,
    /// Time of the outermost ones.
    all: Ns,
}

impl Sums {
    fn of(trace: &Trace, category: Category) -> Self {
        let mut sums = Self::default();
        for (track, lane) in trace.tracks.iter().zip(&trace.lanes) {
            if track.key.kind == TrackKind::HostThread {
                sums.add(lane, category);
            }
        }
        sums
    }

    /// Rows of a lane come in order of their start.
    fn add(&mut self, lane: &Columns, category: Category) {
        let mut open: Vec<(Ns, StringId)> = Vec::new();
        let rows = lane.category.iter().zip(&lane.name).zip(&lane.start).enumerate();
        for (row, ((_, name), start)) in rows.filter(|(_, ((of, _), _))| **of == category) {
            let end = lane.end(row);
            while open.last().is_some_and(|(outer, _)| *outer <= *start) {
                open.pop();
            }
            let took = end.saturating_sub(*start).max(0);
            match open.last() {
                Some((outer, around)) => {
                    let inside = end.min(*outer).saturating_sub(*start).max(0);
                    let own = self.own.entry(*around).or_default();
                    *own = own.saturating_sub(inside);
                }
                None => self.all = self.all.saturating_add(took),
            }
            let own = self.own.entry(*name).or_default();
            *own = own.saturating_add(took);
            open.push((end, *name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{analysis::script::Script, i18n::Lang};

    /// Nine of ten captures of a CPU were told that nothing can be said of them, although one operator had most of the time.
    #[test]
    fn a_capture_of_the_host_alone_names_the_operator_with_the_most_time_of_its_own() {
        let mut s = Script::default();
        s.host(Category::FrameworkOp, "aten::linear", (0, 100));
        s.host(Category::FrameworkOp, "aten::addmm", (10, 90));
        s.host(Category::FrameworkOp, "aten::relu", (100, 130));
        let said = headline(&s.trace()).map(|said| said.render(Lang::En, |value| format!("{value:?}")));
        let said = said.unwrap_or_default();
        let first = r#"("all", Ns(130)), ("kind", Text(Text { en: "framework operators", zh: "框架算子" })), ("name", Raw("aten::addmm")), ("own", Ns(80))"#;
        assert!(said.contains(first) && said.contains(r#"Raw("aten::relu")), ("own", Ns(30))"#), "{said}");
        assert!(headline(&Script::default().trace()).is_none());
    }
}
