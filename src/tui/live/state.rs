//! What is kept of the updates: the newest steps of each rank, the newest values of each counter, the newest events. Memory is
//! bounded, whatever arrives.

use std::collections::{BTreeMap, VecDeque};

use model::{Ns, Reading};

use super::{
    model::{Event, Gauge, Group, Phase, Step, Update, What},
    reasons::said,
};
use diagnosis::i18n::Lang;
use report::text::cut;

/// Steps that are kept of each rank: minutes of a real model, and more than any screen has columns.
pub const STEPS: usize = 4096;
/// Values that are kept of each counter: six minutes at ten a second.
const VALUES: usize = 3600;
/// Events that are kept.
const EVENTS: usize = 500;
/// Counters, and ranks, that are kept: more than a machine has.
const MOST: usize = 4096;
/// A step of this many times the median is told.
const SLOW: Ns = 2;
/// Steps from which a median says something.
const ENOUGH: usize = 16;
/// Said of a value that is not finite.
const NO_NUMBER: &str = "the value is no number";
/// Counter of the looks at a server's page, as captures have it.
pub const PAGE: &str = "scrape_time";
/// Characters that are kept of a name or a sentence: more than a line of the screen. A server may send a megabyte, and every
/// frame would go through all of it.
const TEXT: usize = 500;

/// The values of a counter, the newest last.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Its unit.
    pub unit: String,
    values: VecDeque<(Ns, Option<f64>)>,
    /// Why the newest look gave nothing, if it gave nothing.
    reason: String,
}

impl Series {
    /// The newest value at `at`, or why there is none.
    pub fn value(&self, at: Ns) -> Reading<f64> {
        match self.until(at).next_back() {
            Some((_, Some(value))) => Reading::Value(*value),
            _ => Reading::Unavailable(self.reason.clone()),
        }
    }

    /// The values until `at`.
    pub fn until(&self, at: Ns) -> impl DoubleEndedIterator<Item = &(Ns, Option<f64>)> {
        self.values.range(..self.values.partition_point(|(t, _)| *t <= at))
    }
}

/// A text as far as it is kept.
pub(super) fn bounded(text: String) -> String {
    if text.len() <= TEXT { text } else { cut(&text, TEXT) }
}

/// All that is kept.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// Names of the operators.
    pub names: Vec<String>,
    /// Steps of each rank with the time of their arrival, in the order of their numbers.
    pub ranks: Vec<VecDeque<(Ns, Step)>>,
    /// Counters.
    pub gauges: BTreeMap<(Group, String), Series>,
    /// What happened, the newest last.
    pub events: VecDeque<(Ns, Event)>,
    /// How far the run is.
    pub phase: Phase,
    /// Counters, ranks and events for which there was no room.
    pub unkept: u64,
}

impl State {
    /// Takes an update in.
    pub fn take(&mut self, Update { at, what }: Update) {
        match what {
            What::Names(names) => self.names = names.into_iter().map(bounded).collect(),
            What::Phase(phase) => self.phase = phase,
            What::Event(Event { en, zh, warns }) => self.tell(at, Event { en: bounded(en), zh: bounded(zh), warns }),
            What::Step(Step { layers: Reading::Unavailable(reason), rank, number, ns, ops }) => {
                let layers = Reading::Unavailable(bounded(reason));
                self.step(at, Step { rank, number, ns, layers, ops });
            }
            What::Step(step) => self.step(at, step),
            What::Gauges(gauges) => gauges.into_iter().for_each(|gauge| self.gauge(at, gauge)),
        }
    }

    fn gauge(&mut self, at: Ns, Gauge { group, name, unit, value }: Gauge) {
        let group = match group {
            Group::Server(name) => Group::Server(bounded(name)),
            Group::Device(name) => Group::Device(bounded(name)),
            group => group,
        };
        let is_page = matches!(group, Group::Server(_)) && name == PAGE;
        let key = (group, bounded(name));
        if self.gauges.len() >= MOST && !self.gauges.contains_key(&key) {
            self.unkept += 1;
            return;
        }
        let series = self.gauges.entry(key).or_default();
        series.unit = bounded(unit);
        let was_read = series.values.back().is_none_or(|(_, value)| value.is_some());
        if series.values.len() == VALUES {
            series.values.pop_front();
        }
        let value = match value {
            Reading::Value(value) if value.is_finite() => Some(value),
            Reading::Value(_) => {
                NO_NUMBER.clone_into(&mut series.reason);
                None
            }
            Reading::Unavailable(reason) => {
                series.reason = bounded(reason);
                None
            }
        };
        series.values.push_back((at, value));
        if is_page && was_read != value.is_some() {
            let told = page_event(value.is_none().then_some(&series.reason));
            self.tell(at, told);
        }
    }

    fn step(&mut self, at: Ns, step: Step) {
        if step.rank >= MOST {
            self.unkept += 1;
            return;
        }
        if self.ranks.len() <= step.rank {
            self.ranks.resize_with(step.rank + 1, VecDeque::new);
        }
        if let Some(told) = self.slow(&step) {
            self.tell(at, told);
        }
        let Some(steps) = self.ranks.get_mut(step.rank) else { return };
        if steps.back().is_some_and(|(_, last)| last.number >= step.number) {
            self.unkept += 1;
            return;
        }
        if steps.len() == STEPS {
            steps.pop_front();
        }
        steps.push_back((at, step));
    }

    /// An event for a step of the first rank that took far longer than the ones before it.
    fn slow(&self, step: &Step) -> Option<Event> {
        // Every so often is enough: the median of the steps before costs a sort.
        let before = self.ranks.first().filter(|_| step.rank == 0 && step.number > 0)?;
        let mut times: Vec<Ns> =
            before.iter().rev().take(ENOUGH).filter(|(_, s)| s.number > 0).map(|(_, s)| s.ns).collect();
        if times.len() < ENOUGH {
            return None;
        }
        times.sort_unstable();
        let median = times.get(times.len() / 2).copied()?.max(1);
        if step.ns < median.saturating_mul(SLOW) {
            return None;
        }
        let (number, tenths) = (step.number, step.ns.saturating_mul(10) / median);
        let ratio = format!("{}.{}×", tenths / 10, tenths % 10);
        Some(Event {
            en: format!("step {number} took {ratio} the median of the {ENOUGH} before it"),
            zh: format!("第 {number} 步耗时为之前 {ENOUGH} 步中位数的 {ratio}"),
            warns: true,
        })
    }

    fn tell(&mut self, at: Ns, event: Event) {
        if self.events.len() == EVENTS {
            self.events.pop_front();
        }
        self.events.push_back((at, event));
    }
}

/// What is told when a server's page stops being read, with the reason, and when it is read again.
fn page_event(reason: Option<&String>) -> Event {
    match reason {
        Some(reason) => Event {
            en: format!("the metrics page is not read: {reason}"),
            zh: format!("指标页读取失败：{}", said(reason, Lang::Zh)),
            warns: true,
        },
        None => {
            Event {
                en: "the metrics page is read again".to_owned(), zh: "指标页恢复读取".to_owned(), warns: false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn step(rank: usize, number: u32, ns: Ns) -> Update {
        let step = Step { rank, number, ns, layers: Reading::Unavailable("no records".into()), ops: Vec::new() };
        Update { at: Ns::from(number), what: What::Step(step) }
    }

    #[test]
    fn only_the_newest_are_kept() {
        let mut state = State::default();
        for number in 0..STEPS as u32 + 10 {
            state.take(step(1, number, 5));
        }
        assert_eq!((state.ranks[0].len(), state.ranks[1].len()), (0, STEPS));
        assert_eq!(state.ranks[1].front().unwrap().1.number, 10);
        state.take(step(1, 3, 5));
        state.take(step(usize::MAX, 3, 5));
        assert_eq!((state.ranks.len(), state.unkept), (2, 2), "out of order, and beyond all ranks");
        for at in 0..VALUES as Ns + 5 {
            let value = if at % 2 == 0 { Reading::Value(at as f64) } else { Reading::Unavailable("why".into()) };
            let gauge = Gauge { group: Group::Host, name: "x".into(), unit: String::new(), value };
            state.take(Update { at, what: What::Gauges(vec![gauge]) });
        }
        let series = state.gauges.values().next().unwrap();
        assert_eq!((series.until(Ns::MAX).count(), series.value(11)), (VALUES, Reading::Unavailable("why".into())));
        assert_eq!(series.value(12), Reading::Value(12.0));
        assert_eq!(series.value(-1), Reading::Unavailable("why".into()));
    }

    #[test]
    fn a_value_that_is_no_number_is_absent_with_its_reason() {
        let mut state = State::default();
        for (at, value) in [(0, 1.0), (1, f64::NAN), (2, f64::INFINITY)] {
            let value = Reading::Value(value);
            let gauge = Gauge { group: Group::Host, name: "x".into(), unit: String::new(), value };
            state.take(Update { at, what: What::Gauges(vec![gauge]) });
        }
        let series = state.gauges.values().next().unwrap();
        assert_eq!(series.value(0), Reading::Value(1.0));
        for at in [1, 2] {
            assert_eq!(series.value(at), Reading::Unavailable(NO_NUMBER.into()));
        }
    }

    #[test]
    fn a_page_that_is_no_longer_read_is_told_once_and_so_is_its_return() {
        let mut state = State::default();
        let lost = || Reading::Unavailable("the server closed the connection".to_owned());
        let looks = [Reading::Value(1.0), lost(), lost(), Reading::Value(1.0), Reading::Value(1.0)];
        for (at, value) in (0..).zip(looks) {
            let gauge = Gauge { group: Group::Server(String::new()), name: PAGE.into(), unit: "ns".into(), value };
            let other = Gauge { name: "running".into(), ..gauge.clone() };
            state.take(Update { at, what: What::Gauges(vec![gauge, other]) });
        }
        let told: Vec<(Ns, bool, &str)> = state.events.iter().map(|(at, e)| (*at, e.warns, e.en.as_str())).collect();
        let lost = "the metrics page is not read: the server closed the connection";
        assert_eq!(told, [(1, true, lost), (3, false, "the metrics page is read again")]);
    }

    #[test]
    fn a_slow_step_is_told_once_there_is_something_to_compare_it_with() {
        let mut state = State::default();
        state.take(step(0, 0, 9000));
        (1..10).for_each(|number| state.take(step(0, number, 100)));
        state.take(step(0, 10, 900));
        assert!(state.events.is_empty());
        (11..30).for_each(|number| state.take(step(0, number, 100)));
        state.take(step(0, 30, 250));
        let told: Vec<&str> = state.events.iter().map(|(_, event)| event.en.as_str()).collect();
        assert_eq!(told, ["step 30 took 2.5× the median of the 16 before it"]);
    }
}
