//! The largest of some names by their total time, as part of a sentence.

use std::{cmp::Reverse, collections::BTreeMap};

use model::{Conditions, Ns, Trace};

use crate::i18n::{Message, Text, Value};

/// Names that a sentence lists.
const LISTED: usize = 3;

/// What is summed under a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Total {
    /// Executions; 0 where the source does not count them.
    pub count: u64,
    /// Their time, ns.
    pub time: Ns,
    /// The longest, ns.
    pub longest: Option<Ns>,
}

impl Total {
    /// Adds another sum of the same name.
    pub fn add(&mut self, other: Self) {
        self.longest =
            if self.count == 0 { other.longest } else { self.longest.zip(other.longest).map(|(a, b)| a.max(b)) };
        self.count = self.count.saturating_add(other.count);
        self.time = self.time.saturating_add(other.time);
    }
}

/// The summaries of one kind by name.
pub(super) fn by_name(trace: &Trace, of: Conditions) -> BTreeMap<&str, Total> {
    let mut found: BTreeMap<&str, Total> = BTreeMap::new();
    for summary in trace.summaries.iter().filter(|s| s.conditions == of) {
        let Some(time) = summary.total else { continue };
        let longest = summary.range.map(|(_, longest)| longest);
        found.entry(trace.strings.get(summary.kernel)).or_default().add(Total { count: summary.count, time, longest });
    }
    found
}

/// The largest of `totals`, each with its share of `all` where that is known: `A 3 ms (60.0 %, 5 times), B …`. The
/// table says the rest. `None` of nothing.
pub(super) fn listed(totals: &BTreeMap<&str, Total>, all: Option<Ns>) -> Option<Message> {
    const ONE: Text = Text::new("{name} {time} ({share}{times})", "{name} {time}（{share}{times}）");
    const SHARE: Text = Text::new("{share}, ", "{share}，");
    const ONCE: Text = Text::new("once", "1 次");
    const TIMES: Text = Text::new("{count} times", "{count} 次");
    const NEXT: Text = Text::new("{before}, {next}", "{before}、{next}");
    let none = || Value::Text(Text::new("", ""));
    let mut order: Vec<(&&str, &Total)> = totals.iter().filter(|(_, total)| total.time > 0).collect();
    order.sort_by_key(|(name, total)| (Reverse(total.time), **name));
    let one = |(name, total): &(&&str, &Total)| {
        let times = match total.count {
            1 => Value::Text(ONCE),
            n => Message::new(TIMES, [("count", Value::Count(n))]).within(),
        };
        let share = all.map_or_else(none, |all| {
            Message::new(SHARE, [("share", Value::Share(total.time as f64 / all.max(1) as f64))]).within()
        });
        let name = Value::Kernel((**name).to_owned());
        Message::new(ONE, [("name", name), ("time", Value::Ns(total.time)), ("share", share), ("times", times)])
    };
    order
        .iter()
        .take(LISTED)
        .map(one)
        .reduce(|before, next| Message::new(NEXT, [("before", before.within()), ("next", next.within())]))
}
