//! What the engine's scheduler said of itself while it ran: requests, KV cache, preemptions and speculation, as counters
//! of the capture.

use model::{Ns, ProcessId, Span, Trace};

use super::timeline::{DeviceOp, Timeline};

/// Names under which engines publish each counter, without prefixes such as `vllm:` and without `_total`.
/// Sources: the metrics of vLLM and SGLang.
const RUNNING: &[&str] = &["num_requests_running", "num_running_reqs"];
const WAITING: &[&str] = &["num_requests_waiting", "num_queue_reqs"];
const KV_USAGE: &[&str] = &["kv_cache_usage", "kv_cache_usage_perc", "gpu_cache_usage_perc", "token_usage"];
const PREEMPTIONS: &[&str] = &["num_preemptions", "num_retracted_reqs"];
const DRAFTED: &[&str] = &["spec_draft_tokens", "spec_decode_num_draft_tokens"];
const ACCEPTED: &[&str] = &["spec_accepted_tokens", "spec_decode_num_accepted_tokens"];

/// What one rank counts of its own steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RankCounter {
    /// Tokens of the step, without padding.
    Tokens,
    /// Rows that the step's kernels work on, with padding.
    PaddedTokens,
    /// Tokens that the rank's experts got.
    ExpertTokens,
    /// Requests in the batch.
    Running,
}

impl RankCounter {
    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Tokens => &["num_scheduled_tokens"],
            Self::PaddedTokens => &["num_padded_tokens", "padded_tokens"],
            Self::ExpertTokens => &["moe_tokens"],
            Self::Running => RUNNING,
        }
    }

    /// Its samples by one process; `None` where that process does not count it.
    pub fn of(self, trace: &Trace, process: ProcessId) -> Option<Series> {
        let mine = |c: &&model::CounterTrack| c.process == process;
        let named = |c: &&model::CounterTrack| self.names().contains(&short(trace.strings.get(c.name)));
        trace.counters.iter().filter(mine).find(named).map(Series::of).filter(|s| !s.0.is_empty())
    }
}

/// Whether any rank counts something of its own steps.
pub fn counts_steps(trace: &Trace) -> bool {
    use RankCounter::{ExpertTokens, PaddedTokens, Running, Tokens};
    let known = |name: &str| [Tokens, PaddedTokens, ExpertTokens, Running].iter().any(|c| c.names().contains(&name));
    trace.counters.iter().any(|c| known(short(trace.strings.get(c.name))))
}

/// Whether a process never scheduled more tokens in a step than it had requests: then all of its steps decode. Not known
/// unless it counts both.
pub fn only_decodes(trace: &Trace, process: ProcessId) -> bool {
    let (tokens, running) = (RankCounter::Tokens.of(trace, process), RankCounter::Running.of(trace, process));
    let within = |tokens: &Series, running: &Series| {
        tokens.0.iter().all(|(t, n)| running.at(*t).is_some_and(|requests| *n <= requests))
    };
    tokens.zip(running).is_some_and(|(tokens, running)| within(&tokens, &running))
}

/// Samples of one counter in order of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series(Vec<(Ns, f64)>);

impl Series {
    /// The samples of a counter that are numbers.
    fn of(counter: &model::CounterTrack) -> Self {
        let samples = counter.t.iter().copied().zip(counter.value.iter().copied());
        let mut samples: Vec<(Ns, f64)> = samples.filter(|(_, v)| v.is_finite()).collect();
        // Of several values at one time the last one written holds.
        samples.sort_by_key(|(t, _)| *t);
        Self(samples)
    }

    /// The last value set in a span: what a step said of itself.
    pub fn set_in(&self, span: Span) -> Option<f64> {
        self.within(span).last().map(|(_, v)| *v)
    }

    /// The value in force when a step's first operation was launched. Engines count a step when they schedule it, before
    /// the range that marks it begins.
    pub fn of_step(&self, timeline: &Timeline, ops: &[DeviceOp]) -> Option<f64> {
        let launched = ops.iter().find_map(|op| timeline.call(op)).map(|call| call.start);
        self.at(launched.or_else(|| ops.first().map(|op| op.start))?)
    }

    /// Value at `t`: that of the last sample at or before it.
    pub fn at(&self, t: Ns) -> Option<f64> {
        let next = self.0.partition_point(|(time, _)| *time <= t);
        Some(self.0.get(next.checked_sub(1)?)?.1)
    }

    /// Samples in `[span.start, span.end)`.
    pub fn within(&self, span: Span) -> &[(Ns, f64)] {
        let from = self.0.partition_point(|(t, _)| *t < span.start);
        let to = self.0.partition_point(|(t, _)| *t < span.end);
        self.0.get(from..to).unwrap_or(&[])
    }

    /// How much a counter that only grows grew in a span, from its first known value on.
    pub fn growth(&self, span: Span) -> f64 {
        let first = self.at(span.start).or_else(|| Some(self.within(span).first()?.1));
        let last = self.at(span.end.saturating_sub(1));
        first.zip(last).map_or(0.0, |(first, last)| (last - first).max(0.0))
    }

    /// Sum of the samples in a span.
    pub fn sum(&self, span: Span) -> f64 {
        self.within(span).iter().map(|(_, v)| v).sum()
    }

    fn grows(&self) -> bool {
        self.0.windows(2).all(|w| w[0].1 <= w[1].1)
    }

    fn is_constant(&self) -> bool {
        self.0.windows(2).all(|w| w[0].1 == w[1].1)
    }
}

/// The scheduler's counters. Where several processes publish one, each is a series.
#[derive(Clone, Debug, Default)]
pub struct Scheduler {
    running: Vec<Series>,
    waiting: Vec<Series>,
    kv_usage: Vec<Series>,
    preemptions: Vec<Series>,
    drafted: Vec<Series>,
    accepted: Vec<Series>,
    /// When no request was in the engine, neither running nor waiting; disjoint, in order of time.
    empty: Vec<Span>,
}

impl Scheduler {
    /// The scheduler's counters of a capture.
    pub fn of(trace: &Trace) -> Self {
        Self::published(trace, |_| true)
    }

    /// What the process of a rank counts, if it counts requests, else what all processes do: of several clocks only its own
    /// is sure to be that of the rank's gaps, and in data parallelism its requests are its own.
    pub fn of_rank(trace: &Trace, process: ProcessId) -> Self {
        let own = Self::published(trace, |p| p == process);
        if own.knows_demand() { own } else { Self::of(trace) }
    }

    fn published(trace: &Trace, by: impl Fn(ProcessId) -> bool) -> Self {
        let mut scheduler = Self::default();
        for counter in trace.counters.iter().filter(|c| by(c.process)) {
            let name = short(trace.strings.get(counter.name));
            let mut fields = [
                (RUNNING, &mut scheduler.running),
                (WAITING, &mut scheduler.waiting),
                (KV_USAGE, &mut scheduler.kv_usage),
                (PREEMPTIONS, &mut scheduler.preemptions),
                (DRAFTED, &mut scheduler.drafted),
                (ACCEPTED, &mut scheduler.accepted),
            ];
            if let Some((_, field)) = fields.iter_mut().find(|(names, _)| names.contains(&name)) {
                let series = Series::of(counter);
                if !series.0.is_empty() {
                    field.push(series);
                }
            }
        }
        scheduler.empty = scheduler.empty_spans();
        scheduler
    }

    /// Whether the capture holds any of the counters.
    pub fn is_known(&self) -> bool {
        let all = [&self.running, &self.waiting, &self.kv_usage, &self.preemptions, &self.drafted, &self.accepted];
        all.iter().any(|series| !series.is_empty())
    }

    /// Whether it is known when there were requests to work on.
    pub fn knows_demand(&self) -> bool {
        !self.running.is_empty() && !self.waiting.is_empty()
    }

    /// Time of a span in which the engine held no request, ns.
    pub fn empty_in(&self, span: Span) -> Ns {
        let first = self.empty.partition_point(|e| e.end <= span.start);
        let here = self.empty.iter().skip(first).take_while(|e| e.start < span.end);
        here.map(|e| e.clip(span).len()).sum()
    }

    /// Whether the engine held no request for most of a span.
    pub fn was_empty(&self, span: Span) -> bool {
        2 * self.empty_in(span) > span.len()
    }

    /// Most requests that waited at once in a span.
    pub fn most_waiting(&self, span: Span) -> Option<f64> {
        most(&self.waiting, span)
    }

    /// Highest use of the KV cache in a span, as a share of one. Engines publish a share or a percentage.
    pub fn kv_usage(&self, span: Span) -> Option<f64> {
        let percent = self.kv_usage.iter().flat_map(|s| &s.0).any(|(_, v)| *v > 1.0);
        most(&self.kv_usage, span).map(|v| if percent { v / 100.0 } else { v })
    }

    /// Requests preempted in a span; `None` if that is not published.
    pub fn preemptions(&self, span: Span) -> Option<f64> {
        let of = |s: &Series| if s.grows() { s.growth(span) } else { s.sum(span) };
        (!self.preemptions.is_empty()).then(|| self.preemptions.iter().map(of).sum())
    }

    /// Time of the first preemption in a span.
    pub fn first_preemption(&self, span: Span) -> Option<Ns> {
        let first = |s: &Series| {
            let before = if s.grows() { s.at(span.start).or(Some(s.within(span).first()?.1)) } else { Some(0.0) };
            Some(s.within(span).iter().find(|(_, v)| before.is_some_and(|b| *v > b))?.0)
        };
        self.preemptions.iter().filter_map(first).min()
    }

    /// Tokens drafted and tokens accepted in a span; `None` unless both are published.
    pub fn speculation(&self, span: Span) -> Option<(f64, f64)> {
        let all = || self.drafted.iter().chain(&self.accepted);
        // Engines publish running totals or the counts of each step; of the latter not all grow for ever.
        let totals = all().all(Series::grows) && !all().all(Series::is_constant);
        let of = |series: &[Series]| -> f64 {
            series.iter().map(|s| if totals { s.growth(span) } else { s.sum(span) }).sum()
        };
        (!self.drafted.is_empty() && !self.accepted.is_empty()).then(|| (of(&self.drafted), of(&self.accepted)))
    }

    fn empty_spans(&self) -> Vec<Span> {
        if !self.knows_demand() {
            return Vec::new();
        }
        let series: Vec<&Series> = self.running.iter().chain(&self.waiting).collect();
        let mut changes: Vec<(Ns, usize, f64)> = Vec::new();
        for (i, s) in series.iter().enumerate() {
            changes.extend(s.0.iter().map(|(t, v)| (*t, i, *v)));
        }
        changes.sort_by_key(|(t, ..)| *t);
        // A series that has not spoken yet may hold requests.
        let mut busy = vec![true; series.len()];
        let mut count = busy.len();
        let (mut since, mut out) = (None, Vec::new());
        for (t, i, value) in changes {
            let now = value > 0.0;
            let Some(was) = busy.get_mut(i) else { continue };
            match (*was, now) {
                (true, false) => count -= 1,
                (false, true) => count += 1,
                _ => {}
            }
            *was = now;
            match (since, count) {
                (None, 0) => since = Some(t),
                (Some(start), 1..) => {
                    since = None;
                    if t > start {
                        out.push(Span::new(start, t));
                    }
                }
                _ => {}
            }
        }
        out.extend(since.map(|start| Span::new(start, Ns::MAX)));
        out
    }
}

/// The largest value that held at some time of a span.
fn most(series: &[Series], span: Span) -> Option<f64> {
    let of =
        |s: &Series| s.at(span.start).into_iter().chain(s.within(span).iter().map(|(_, v)| *v)).max_by(f64::total_cmp);
    series.iter().filter_map(of).max_by(f64::total_cmp)
}

/// A counter's name without the prefix of its engine and the suffix of its kind.
fn short(name: &str) -> &str {
    let name = name.rsplit([':', '.', '/']).next().unwrap_or(name);
    name.strip_suffix("_total").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use crate::analysis::script::Script;

    fn scheduler(samples: &[(&str, Ns, f64)]) -> Scheduler {
        let mut s = Script::default();
        s.launch((0, 10), "k", (20, 30));
        for (name, t, value) in samples {
            s.counter(name, *t, *value);
        }
        Scheduler::of(&s.trace())
    }

    #[test]
    fn the_engine_is_empty_only_while_nothing_runs_and_nothing_waits() {
        let s = scheduler(&[
            ("vllm:num_requests_running", 0, 2.0),
            ("vllm:num_requests_waiting", 0, 0.0),
            ("vllm:num_requests_running", 100, 0.0),
            ("vllm:num_requests_waiting", 150, 1.0),
            ("vllm:num_requests_waiting", 200, 0.0),
        ]);
        assert_eq!(s.empty_in(Span::new(0, 300)), 50 + 100);
        assert!(s.was_empty(Span::new(90, 160)) && !s.was_empty(Span::new(0, 160)));
        let half = scheduler(&[("num_requests_waiting", 0, 0.0)]);
        assert_eq!((half.knows_demand(), half.empty_in(Span::new(0, 300))), (false, 0));
    }

    #[test]
    fn ranks_whose_clocks_differ_each_know_when_they_have_no_request() {
        let mut s = Script::default();
        for (rank, offset) in [(0, 0), (1, 1_000)] {
            s.rank(rank).launch((offset, offset + 10), "k", (offset + 20, offset + 30));
            s.counter("num_requests_waiting", offset, 0.0);
            s.counter("num_requests_running", offset, 2.0).counter("num_requests_running", offset + 100, 0.0);
            s.counter("num_requests_running", offset + 200, 2.0);
        }
        let trace = s.trace();
        let empty = |rank: u32, from: Ns| {
            let process = trace.processes.iter().position(|p| p.rank == Some(rank)).unwrap();
            Scheduler::of_rank(&trace, ProcessId(process as u32)).empty_in(Span::new(from, from + 300))
        };
        assert_eq!((empty(0, 0), empty(1, 1_000)), (100, 100));
        assert_eq!(Scheduler::of(&trace).empty_in(Span::new(0, 300)), 0, "no time is without requests by all clocks");
    }

    #[test]
    fn totals_and_counts_per_step_give_the_same_tokens() {
        let totals = scheduler(&[
            ("spec_draft_tokens_total", 0, 8.0),
            ("spec_accepted_tokens_total", 0, 2.0),
            ("spec_draft_tokens_total", 10, 16.0),
            ("spec_accepted_tokens_total", 10, 3.0),
        ]);
        assert_eq!(totals.speculation(Span::new(1, 20)), Some((8.0, 1.0)));
        let steps = scheduler(&[
            ("spec_draft_tokens", 0, 8.0),
            ("spec_accepted_tokens", 0, 2.0),
            ("spec_draft_tokens", 10, 8.0),
            ("spec_accepted_tokens", 10, 1.0),
        ]);
        assert_eq!(steps.speculation(Span::new(0, 20)), Some((16.0, 3.0)));
        assert_eq!(scheduler(&[("spec_draft_tokens", 0, 8.0)]).speculation(Span::new(0, 9)), None);
    }

    #[test]
    fn a_total_of_preemptions_that_does_not_grow_is_none() {
        let s = scheduler(&[("num_preemptions", 0, 3.0), ("num_preemptions", 10, 3.0), ("num_preemptions", 20, 5.0)]);
        assert_eq!((s.preemptions(Span::new(0, 15)), s.first_preemption(Span::new(0, 15))), (Some(0.0), None));
        assert_eq!((s.preemptions(Span::new(5, 30)), s.first_preemption(Span::new(5, 30))), (Some(2.0), Some(20)));
        assert_eq!(scheduler(&[]).preemptions(Span::new(0, 30)), None);
    }

    #[test]
    fn a_percentage_of_the_cache_is_read_as_a_share() {
        let share = scheduler(&[("kv_cache_usage", 0, 0.5)]);
        let percent = scheduler(&[("gpu_cache_usage_perc", 0, 50.0)]);
        let span = Span::new(0, 10);
        assert_eq!((share.kv_usage(span), percent.kv_usage(span)), (Some(0.5), Some(0.5)));
    }

    proptest::proptest! {
        #[test]
        fn the_empty_time_agrees_with_looking_at_each_nanosecond(
            running in proptest::collection::vec((0i64..50, 0u8..2), 1..8),
            waiting in proptest::collection::vec((0i64..50, 0u8..2), 1..8),
        ) {
            let mut samples: Vec<(&str, Ns, f64)> = Vec::new();
            samples.extend(running.iter().map(|(t, v)| ("num_requests_running", *t, f64::from(*v))));
            samples.extend(waiting.iter().map(|(t, v)| ("num_requests_waiting", *t, f64::from(*v))));
            let s = scheduler(&samples);
            let none = |series: &[Series], t: Ns| series.iter().all(|s| s.at(t) == Some(0.0));
            let counted = (0..60).filter(|t| none(&s.running, *t) && none(&s.waiting, *t)).count() as Ns;
            proptest::prop_assert_eq!(s.empty_in(Span::new(0, 60)), counted);
        }
    }
}
