//! A capture of the host alone: where the time of its busiest thread goes.

use std::cmp::Reverse;

use model::Trace;

use super::clocks;
use crate::{
    i18n::{Message, Text, Value},
    largest::{self, Row},
};

/// What it says.
const SENTENCE: Text = Text::new(
    "No device operation was recorded: the capture is of the host alone, and does not say what a device did.{clocks}{largest}",
    "没有记录到任何设备算子：该采集只有主机侧，设备在此期间做了什么无从得知。{clocks}{largest}",
);
/// Where the host's time is.
const LARGEST: Text = Text::new(
    " Of the {all} of its busiest host thread, {name} itself takes the most: {own} ({share}){next}.",
    "其最忙的主机线程共 {all}，其中耗时最多的是 {name} 自身：{own}（{share}）{next}。",
);
/// The same of a thread that does not run for longer than that.
const SLEEPS: Text = Text::new(
    " Its busiest host thread does not run for {asleep} of {all} (off-cpu); while it runs, {name} itself takes the most: {own} ({share}){next}.",
    "其最忙的主机线程在 {all} 中有 {asleep} 没有运行（off-cpu）；运行期间耗时最多的是 {name} 自身：{own}（{share}）{next}。",
);
/// What comes after the first.
const NEXT: Text = Text::new("{before}, then {name} {own} ({share})", "{before}，其次 {name} {own}（{share}）");
/// Names beside the first.
const FURTHER: usize = 2;
/// What the operating system calls a thread that does not run: it says where another record's time went.
const ASLEEP: &str = "off-cpu";
/// Share of the thread's time from which a record is told before that the thread slept; heuristic.
const TOLD: f64 = 0.05;

/// The sentence, where the host has records that say what it did.
pub(super) fn headline(trace: &Trace) -> Option<Message> {
    let (clocks, largest) = (clocks::told(trace), largest(trace));
    if clocks.is_none() && largest.is_none() {
        return None;
    }
    let within = |said: Option<Message>| said.map_or(Value::Text(Text::new("", "")), Message::within);
    Some(Message::new(SENTENCE, [("clocks", within(clocks)), ("largest", within(largest))]))
}

/// Where the time of the busiest thread goes, largest first: the rows of the table beside it, with the same shares.
pub(super) fn largest(trace: &Trace) -> Option<Message> {
    let tables = largest::of_host(trace)?;
    let mut rows: Vec<&Row> = tables.rows.iter().filter(|row| row.total > 0).collect();
    let sleeps = |row: &Row| row.name == ASLEEP;
    let told = rows.iter().any(|row| !sleeps(row) && tables.share(row.total) >= TOLD);
    rows.sort_by_key(|row| (told && sleeps(row), Reverse(row.total), row.name.as_str()));
    let mut rows = rows.into_iter();
    let of = |row: &Row| {
        let name = Value::Raw(row.name.clone());
        [("name", name), ("own", Value::Ns(row.total)), ("share", Value::Share(tables.share(row.total)))]
    };
    let first = rows.next()?;
    let next = rows.filter(|row| !(told && sleeps(row))).take(FURTHER);
    let next = next.fold(Value::Text(Text::new("", "")), |before, row| {
        Message::new(NEXT, [("before", before)].into_iter().chain(of(row))).within()
    });
    let asleep = tables.rows.iter().filter(|row| sleeps(row)).map(|row| row.total).max().unwrap_or(0);
    let says = if asleep > first.total { SLEEPS } else { LARGEST };
    let args = [("next", next), ("all", Value::Ns(tables.time)), ("asleep", Value::Ns(asleep))];
    Some(Message::new(says, args.into_iter().chain(of(first))))
}

#[cfg(test)]
mod tests {
    use model::Category;

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
        let first = r#"("all", Ns(130)), ("asleep", Ns(0)), ("name", Raw("aten::addmm")), ("own", Ns(80))"#;
        assert!(said.contains(first) && said.contains(r#"Raw("aten::relu")), ("own", Ns(30))"#), "{said}");
        assert!(headline(&Script::default().trace()).is_none());
    }
}
