//! The samples of a server's log: which of them show a whole interval of decoding, and what they add up to.

use std::collections::BTreeMap;

use model::{Ns, ProcessId, Trace};

/// Share of the requests at both ends of an interval that must be the same number for the requests to have run through all of it;
/// heuristic.
const STEADY: f64 = 0.8;
/// Intervals up to this multiple of the median one follow on each other; heuristic.
const NEXT: f64 = 1.5;
/// How long after its sample a line with the accepted length may stand, ns: engines print both in one go, with stamps of a second.
const SAME_LINE: Ns = 2_000_000_000;

/// What ran in the interval before a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Requests ran through all of it, and no more prompt tokens than generated ones were read: the time is that of decode steps.
    Decode,
    /// Requests ran through all of it, and prompts were read as well, or may have been.
    Mixed,
    /// Tokens were generated, and requests started or ended, or the log does not say how many ran.
    Partial,
    /// Requests ran, and none of them got a token.
    Stalled,
    /// Nothing was generated.
    Idle,
}

/// One sample of the throughput.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// When, ns.
    pub t: Ns,
    /// Rank that it is of.
    pub rank: ProcessId,
    /// Tokens generated per second.
    pub rate: f64,
    /// Prompt tokens read per second.
    pub prompt: f64,
    /// Requests that ran on average.
    pub running: f64,
    /// Tokens that a step gave each request, where the engine drafts tokens and says how many are accepted.
    pub accepted: Option<f64>,
    /// What ran.
    pub kind: Kind,
}

/// All samples of a log.
#[derive(Debug, Default)]
pub(super) struct Served {
    /// In the order of their times.
    pub samples: Vec<Sample>,
    /// Prompt tokens that were read; 0 where the log does not say.
    pub prompt: f64,
    /// Tokens that were generated.
    pub generated: f64,
    /// Share of the prompt tokens that stood in the prefix cache.
    pub cached: Option<f64>,
    /// Prompt tokens per second while prompts were read, and how many, by batch, where the log says that.
    pub prefill: Vec<(f64, f64)>,
    /// Whether the samples have times.
    pub timed: bool,
    /// Whether a sample is of a fixed interval, and not of the time since the one before it, which may have been idle.
    pub fixed: bool,
}

/// Time and value.
type Point = (Ns, f64);

/// The samples of a counter by rank, in order of their time.
pub(super) fn points(trace: &Trace, name: &str) -> BTreeMap<ProcessId, Vec<Point>> {
    let mut found: BTreeMap<ProcessId, Vec<Point>> = BTreeMap::new();
    for counter in trace.counters.iter().filter(|counter| trace.strings.get(counter.name) == name) {
        let points = counter.t.iter().copied().zip(counter.value.iter().copied());
        found.entry(counter.process).or_default().extend(points.filter(|(_, value)| value.is_finite()));
    }
    found.values_mut().for_each(|points| points.sort_by_key(|(t, _)| *t));
    found
}

/// The middle of some values, of an even number the mean of the two middle ones: a rate and its inverse must not name two samples.
pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = *values.get(values.len().saturating_sub(1) / 2)?;
    Some(f64::midpoint(lower, upper))
}

/// The rate at which half of the tokens were read, of batches with their tokens: a health check of one token says nothing.
pub(super) fn by_token(mut batches: Vec<(f64, f64)>) -> Option<f64> {
    batches.sort_by(|a, b| a.0.total_cmp(&b.0));
    let all: f64 = batches.iter().map(|(_, tokens)| tokens).sum();
    let mut sum = 0.0;
    let half = batches.iter().find(|(_, tokens)| {
        sum += tokens;
        2.0 * sum >= all
    });
    half.map(|(rate, _)| *rate)
}

/// Part of the samples that a number of requests holds at least to be told by itself, and in how many samples; heuristic.
const LEVEL: (f64, usize) = (0.1, 3);
/// Ratio of the most to the fewest requests from which the samples are of several loads; heuristic.
const LOADS: f64 = 4.0;

/// Samples by how many requests ran, in doubling steps, where an engine was measured under several loads: those of the most tokens
/// first. All in one where it was not.
pub(super) fn by_load(samples: &[Sample]) -> Vec<Vec<Sample>> {
    let mut loads: BTreeMap<u32, Vec<Sample>> = BTreeMap::new();
    samples.iter().for_each(|sample| loads.entry(level(sample)).or_default().push(*sample));
    loads.retain(|_, own| own.len() >= LEVEL.1 && own.len() as f64 >= LEVEL.0 * samples.len() as f64);
    let running = |own: &Vec<Sample>| median(own.iter().map(|sample| sample.running).collect());
    let ends = loads.values().next().and_then(running).zip(loads.values().next_back().and_then(running));
    let told: usize = loads.values().map(Vec::len).sum();
    // Loads that wander are not several.
    let several = ends.is_some_and(|(low, high)| high >= LOADS * low) && 2 * told > samples.len();
    if !several {
        return vec![samples.to_vec()];
    }
    let mut loads: Vec<Vec<Sample>> = loads.into_values().collect();
    let tokens = |own: &[Sample]| own.iter().map(|sample| sample.rate).sum::<f64>();
    loads.sort_by(|a, b| tokens(b).total_cmp(&tokens(a)));
    loads
}

/// The load of a sample: 1, 2 to 3, 4 to 7, 8 to 15 requests and so on.
fn level(sample: &Sample) -> u32 {
    (sample.running.round().max(1.0) as u64).ilog2()
}

fn seconds(ns: Ns) -> f64 {
    ns as f64 / 1e9
}

/// The value of the last point at or before `t`.
fn at(points: &[Point], t: Ns) -> Option<f64> {
    let place = points.partition_point(|(known, _)| *known <= t).checked_sub(1)?;
    points.get(place).map(|(_, value)| *value)
}

/// The points with exactly this time.
fn stamped(points: &[Point], t: Ns) -> &[Point] {
    let from = points.partition_point(|(known, _)| *known < t);
    let to = points.partition_point(|(known, _)| *known <= t);
    points.get(from..to).unwrap_or_default()
}

impl Served {
    /// What the counters of a log say.
    pub fn of(trace: &Trace) -> Self {
        let of = |name: &str| points(trace, name);
        let (rates, running, accepted) =
            (of("generation_throughput"), of("num_requests_running"), of("spec_accept_length"));
        let (prompts, throughput) = (of("prompt_tokens"), of("prompt_throughput"));
        let all = |points: &BTreeMap<ProcessId, Vec<Point>>| points.values().flatten().map(|(_, n)| n).sum::<f64>();
        let mut served = Self { timed: trace.stat("log.sample_without_time") == 0, ..Self::default() };
        for (rank, rates) in &rates {
            let get = |points: &'_ BTreeMap<ProcessId, Vec<Point>>| points.get(rank).cloned().unwrap_or_default();
            let lane = Lane {
                running: get(&running),
                accepted: get(&accepted),
                throughput: get(&throughput),
                prompts: get(&prompts),
            };
            served.take(*rank, rates, &lane);
        }
        served.samples.sort_by_key(|sample| sample.t);
        // Batches of prompts are counted one by one; where only rates are sampled, they were summed with the intervals.
        if !prompts.is_empty() {
            served.prompt = all(&prompts);
            let cached = all(&of("cached_prompt_tokens"));
            served.cached = (served.prompt > 0.0).then(|| cached / (cached + served.prompt));
            let batches = throughput.iter().flat_map(|(rank, rates)| rates.iter().map(move |rate| (rank, rate)));
            let tokens = |rank: &ProcessId, t: Ns| {
                let own = prompts.get(rank).map_or(&[][..], |own| stamped(own, t));
                own.iter().map(|(_, tokens)| *tokens).sum::<f64>()
            };
            served.prefill = batches.map(|(rank, (t, rate))| (*rate, tokens(rank, *t))).collect();
        } else {
            let hits = of("prefix_cache_hit_rate");
            served.cached = hits.values().filter_map(|points| points.last()).map(|(_, share)| *share).reduce(f64::max);
            let rates = throughput.values().flatten().map(|(_, rate)| *rate).filter(|rate| *rate > 0.0);
            served.prefill = rates.map(|rate| (rate, 1.0)).collect();
        }
        served
    }

    /// The samples of a kind.
    pub fn kind(&self, wanted: impl Fn(Kind) -> bool) -> Vec<Sample> {
        self.samples.iter().filter(|sample| wanted(sample.kind)).copied().collect()
    }

    fn take(&mut self, rank: ProcessId, rates: &[Point], lane: &Lane) {
        let gaps: Vec<f64> =
            rates.iter().zip(rates.iter().skip(1)).map(|(a, b)| seconds(b.0.saturating_sub(a.0))).collect();
        // Where prompts are sampled as a rate, the engine reports at a fixed interval and is silent while it idles; where their
        // batches are counted, a rate is that since the line before.
        let usual = median(gaps.iter().copied().filter(|gap| *gap > 0.0).collect()).unwrap_or(0.0);
        let fixed = !lane.throughput.is_empty() && lane.prompts.is_empty();
        self.fixed |= fixed;
        let mut before: Option<(Ns, f64)> = None;
        let first = self.samples.len();
        for (t, rate) in rates {
            let gap = before.map(|(before, _)| seconds(t.saturating_sub(before)));
            let follows = gap.is_some_and(|gap| !fixed || gap <= NEXT * usual);
            let lasts = gap.filter(|_| follows).unwrap_or(if fixed { usual } else { 0.0 });
            let now = at(&lane.running, *t);
            let prompt = match before {
                _ if fixed => stamped(&lane.throughput, *t).first().map_or(0.0, |(_, rate)| *rate),
                Some((from, _)) => lane.read(from, *t) / lasts.max(1.0),
                None => 0.0,
            };
            let was = before.filter(|_| follows).map(|(_, running)| running);
            let kind = kind(*rate, prompt, was, now);
            let running = was.zip(now).map_or(now.unwrap_or(0.0), |(was, now)| f64::midpoint(was, now));
            let accepted = lane.accepted(*t);
            self.samples.push(Sample { t: *t, rank, rate: *rate, prompt, running, accepted, kind });
            self.generated += rate * lasts;
            self.prompt += if fixed { prompt * lasts } else { 0.0 };
            before = Some((*t, now.unwrap_or(0.0)));
        }
        // A prompt is counted when it has been read whole: what the next interval reports may have begun in this one.
        for place in first..self.samples.len() {
            let next = self.samples.get(place + 1).map(|next| (next.kind, next.prompt));
            if let Some(sample) = self.samples.get_mut(place).filter(|sample| fixed && sample.kind == Kind::Decode)
                && next.is_some_and(|(kind, prompt)| kind == Kind::Stalled || prompt > sample.rate)
            {
                sample.kind = Kind::Mixed;
            }
        }
    }
}

/// What ran between two samples with so many running requests.
fn kind(rate: f64, prompt: f64, was: Option<f64>, now: Option<f64>) -> Kind {
    if rate <= 0.0 {
        return if now.is_some_and(|now| now > 0.0) { Kind::Stalled } else { Kind::Idle };
    }
    let through = was.zip(now).is_some_and(|(was, now)| was.min(now) > 0.0 && was.min(now) >= STEADY * was.max(now));
    match (through, prompt <= rate) {
        (false, _) => Kind::Partial,
        (true, true) => Kind::Decode,
        (true, false) => Kind::Mixed,
    }
}

/// The counters of a rank.
struct Lane {
    running: Vec<Point>,
    accepted: Vec<Point>,
    throughput: Vec<Point>,
    prompts: Vec<Point>,
}

impl Lane {
    /// Prompt tokens of the batches after `from` and until `to`.
    fn read(&self, from: Ns, to: Ns) -> f64 {
        let begin = self.prompts.partition_point(|(t, _)| *t <= from);
        let batches = self.prompts.get(begin..).unwrap_or_default();
        batches.iter().take_while(|(t, _)| *t <= to).map(|(_, tokens)| tokens).sum()
    }

    /// The accepted length that stands with a sample.
    fn accepted(&self, t: Ns) -> Option<f64> {
        let place = self.accepted.partition_point(|(known, _)| *known < t);
        let (known, length) = self.accepted.get(place)?;
        (known.saturating_sub(t) <= SAME_LINE && *length >= 1.0).then_some(*length)
    }
}
