//! A simulated fleet. Requests come at random (a Poisson process of fixed seed) or so many at a time; workers do one batch after
//! another, as engines with continuous batching do (G.-I. Yu et al., "Orca", OSDI 2022): a step takes in prompts up to a chunk of
//! tokens and gives every sequence that runs its next token. Workers for prefill and for decode may be apart (P. Patel et al.,
//! "Splitwise", ISCA 2024); the time in which the cache moves between them is not modelled.

use std::collections::VecDeque;

use super::costs::Costs;
use crate::{
    compare::statistics::random::Random,
    serving::{Metric, Slo},
};

/// Requests of a simulation.
const REQUESTS: usize = 1000;
/// Of these, the first ones that are not counted: the fleet is still filling.
const WARMUP: usize = 200;
/// Steps after which a simulation is given up: a load that is not served.
const STEPS: u64 = 4_000_000;
/// Halvings of the range in which the highest rate lies.
const HALVINGS: u32 = 9;
/// Batches that are tried: the largest that hold the target of a token by themselves. A smaller one serves less.
const BATCHES: usize = 3;
/// Share of what comes that has to be answered while it comes: own value, for the ends of a simulation.
const KEPT: f64 = 0.95;
/// Seed of the arrivals.
const SEED: u64 = 20_261;
/// Chunks that are tried, tokens.
const CHUNKS: [f64; 6] = [256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0];
/// Workers of either kind at most in a ratio.
const WORKERS: u32 = 16;

/// What is asked of a fleet.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// Tokens of a prompt.
    pub input: f64,
    /// Tokens of an answer.
    pub output: f64,
    /// Targets.
    pub slo: Slo,
}

/// How requests come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrival {
    /// So many each second.
    Rate(f64),
    /// So many at a time: the next comes when one is answered.
    Closed(usize),
}

/// What a simulation says, ms and per second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Times to the first token, sorted.
    pub ttft: Vec<f64>,
    /// Mean times of a further token of each request, sorted.
    pub tpot: Vec<f64>,
    /// Requests answered each second.
    pub rate: f64,
    /// Requests that came each second, of those that are counted.
    pub asked: f64,
}

impl Outcome {
    /// Whether as many were answered as came. Where more come the queue grows, and only the end of the simulation ends it.
    pub fn keeps_up(&self) -> bool {
        self.rate >= KEPT * self.asked
    }

    /// Mean of a time.
    pub fn mean(&self, metric: Metric) -> f64 {
        let of = self.of(metric);
        of.iter().sum::<f64>() / of.len().max(1) as f64
    }

    fn of(&self, metric: Metric) -> &[f64] {
        if metric == Metric::Ttft { &self.ttft } else { &self.tpot }
    }

    /// Whether targets of the first token and of those after it hold.
    pub fn holds(&self, slo: &Slo) -> bool {
        !self.ttft.is_empty()
            && slo.targets.iter().filter(|(metric, _)| *metric != Metric::E2e).all(|(metric, most)| {
                let of = self.of(*metric);
                let good = of.iter().filter(|ms| *ms <= most).count() as f64;
                good >= of.len() as f64 * slo.percentile / 100.0
            })
    }
}

struct Running {
    arrived: f64,
    first: f64,
    left: u32,
    number: usize,
}

/// One worker that does both: each step takes in at most `chunk` tokens of prompts beside the sequences that run, of which there
/// are at most `batch`. The time of a step is that of the prompts and that of the sequences together. `None` where the load is not
/// served.
pub fn together(costs: &Costs, work: &Work, arrival: Arrival, chunk: f64, batch: usize) -> Option<Outcome> {
    let mut source = Source::new(arrival);
    let (mut now, mut running, mut done) = (0.0f64, Vec::<Running>::new(), Done::default());
    let mut waiting: VecDeque<(usize, f64, f64)> = VecDeque::new();
    let tokens = (work.output.round() as u32).max(1);
    for _ in 0..STEPS {
        source.until(now, &mut waiting, work.input);
        if waiting.is_empty() && running.is_empty() {
            let Some(next) = source.next() else { return Some(done.outcome(now)) };
            now = next;
            continue;
        }
        let (mut room, mut took, mut ready) = (chunk, 0.0, Vec::new());
        while let Some((number, arrived, left)) = waiting.front_mut() {
            if room <= 0.0 || running.len() + ready.len() >= batch {
                break;
            }
            let part = left.min(room);
            (*left, room, took) = (*left - part, room - part, took + part);
            if *left > 0.0 {
                break;
            }
            ready.push((*number, *arrived));
            waiting.pop_front();
        }
        let prefill = if took > 0.0 { costs.prefill(took) } else { 0.0 };
        let decode = if running.is_empty() { 0.0 } else { costs.step(running.len() as f64) };
        now += prefill + decode;
        running.iter_mut().for_each(|own| own.left = own.left.saturating_sub(1));
        for (number, arrived) in ready {
            running.push(Running { arrived, first: now, left: tokens - 1, number });
        }
        running.retain(|own| {
            let ends = own.left == 0;
            if ends {
                done.add(own, now, tokens);
                source.answered(now);
            }
            !ends
        });
        if done.count >= REQUESTS {
            return Some(done.outcome(now));
        }
    }
    None
}

/// Workers apart: `workers` of them for prefill and for decode. `None` where the load is not served.
pub fn apart(costs: [&Costs; 2], work: &Work, rate: f64, workers: [u32; 2], batch: usize) -> Option<Outcome> {
    let [prefill, decode] = costs;
    let mut source = Source::new(Arrival::Rate(rate));
    let tokens = (work.output.round() as u32).max(1);
    // Prompts go to the worker that is free first.
    let mut free = vec![0.0f64; workers[0] as usize];
    let mut handed: Vec<(usize, f64, f64)> = Vec::new();
    while let Some(arrived) = source.next() {
        let at = free.iter_mut().min_by(|a, b| a.total_cmp(b))?;
        *at = at.max(arrived) + prefill.prefill(work.input);
        handed.push((source.number, arrived, *at));
        source.taken();
    }
    handed.sort_by(|a, b| a.2.total_cmp(&b.2));
    let mut done = Done::default();
    let mut last = 0.0f64;
    let lanes = workers[1] as usize;
    for lane in 0..lanes {
        // One after the other, as a router in turn does.
        let mut queue: VecDeque<_> = handed.iter().skip(lane).step_by(lanes.max(1)).copied().collect();
        let (mut now, mut running) = (0.0f64, Vec::<Running>::new());
        let mut steps = 0;
        while !queue.is_empty() || !running.is_empty() {
            steps += 1;
            if steps > STEPS {
                return None;
            }
            if running.is_empty() {
                now = now.max(queue.front().map_or(now, |own| own.2));
            }
            while running.len() < batch && queue.front().is_some_and(|own| own.2 <= now) {
                let Some((number, arrived, first)) = queue.pop_front() else { break };
                running.push(Running { arrived, first, left: tokens - 1, number });
            }
            now += decode.step(running.len() as f64);
            running.iter_mut().for_each(|own| own.left = own.left.saturating_sub(1));
            running.retain(|own| {
                if own.left == 0 {
                    done.add(own, now, tokens);
                }
                own.left > 0
            });
        }
        last = last.max(now);
    }
    Some(done.outcome(last))
}

/// The highest rate for which `of` holds the targets; 0 where none does. `most` is above what can be served.
fn highest(most: f64, slo: &Slo, of: impl Fn(f64) -> Option<Outcome>) -> f64 {
    let (mut low, mut high) = (0.0, most);
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        match of(middle).is_some_and(|outcome| outcome.holds(slo) && outcome.keeps_up()) {
            true => low = middle,
            false => high = middle,
        }
    }
    low
}

/// How one worker that does both is run best.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Best {
    /// Tokens of prompts in a step.
    pub chunk: f64,
    /// Sequences of a step at most.
    pub batch: usize,
    /// Requests each second at which the targets hold.
    pub rate: f64,
}

/// The chunk and the batch with which a worker serves most within the targets; `None` where no rate holds them.
pub fn best_together(costs: &Costs, work: &Work) -> Option<Best> {
    let mut best: Option<Best> = None;
    let tpot = work.slo.most(Metric::Tpot);
    let fitting = batches(costs).into_iter().rev().filter(|batch| costs.step(*batch as f64) <= tpot);
    for batch in fitting.take(BATCHES) {
        let mut seen = false;
        for chunk in CHUNKS {
            // A chunk that holds all prompts that ever wait is as good as any larger one.
            if seen {
                break;
            }
            seen = chunk >= work.input * batch as f64;
            let most = capacity(costs, work, chunk, batch);
            let rate = highest(most, &work.slo, |rate| together(costs, work, Arrival::Rate(rate), chunk, batch));
            if rate > best.map_or(0.0, |own| own.rate * 1.01) {
                best = Some(Best { chunk, batch, rate });
            }
        }
    }
    best
}

/// Requests each second that a worker which does both can take at most: each takes the time of its prompt, however few share the
/// fixed part of it, and its part of full decode steps.
fn capacity(costs: &Costs, work: &Work, chunk: f64, batch: usize) -> f64 {
    let batch = batch.max(1) as f64;
    let fixed = costs.fixed * (work.input / chunk).max(1.0 / batch);
    let decode = (work.output - 1.0).max(0.0) * costs.step(batch) / batch;
    1e3 / (fixed + costs.per_token * work.input + decode)
}

/// A fleet whose prefill and decode are apart.
#[derive(Clone, Debug, PartialEq)]
pub struct Apart {
    /// Workers for prefill and for decode.
    pub workers: [u32; 2],
    /// Sequences of a decode step at most.
    pub batch: usize,
    /// Requests each second of all workers.
    pub rate: f64,
    /// Requests each second that one worker for prefill and one for decode can take.
    pub of_one: [f64; 2],
    /// The times at that rate.
    pub outcome: Outcome,
}

/// The ratio of workers with which both kinds are busy, and the rate that this fleet serves within the targets; `None` where no
/// rate holds them.
pub fn best_apart(costs: [&Costs; 2], work: &Work) -> Option<Apart> {
    let [prefill, decode] = costs;
    let tpot = work.slo.most(Metric::Tpot);
    let batch = batches(decode).into_iter().rev().find(|batch| decode.step(*batch as f64) <= tpot)?;
    let rate_of_decode = batch as f64 / (decode.step(batch as f64) * work.output.max(1.0)) * 1e3;
    // A worker for prefill alone: decode with room for everything.
    let first = Slo {
        targets: work.slo.targets.iter().copied().filter(|(m, _)| *m == Metric::Ttft).collect(),
        ..work.slo.clone()
    };
    let alone = |rate| prefill_alone(prefill, work, rate);
    let rate_of_prefill = highest(1e3 / prefill.prefill(work.input), &first, alone);
    if rate_of_prefill <= 0.0 {
        return None;
    }
    let workers = ratio(rate_of_decode / rate_of_prefill);
    let most = (f64::from(workers[0]) * 1e3 / prefill.prefill(work.input)).min(f64::from(workers[1]) * rate_of_decode);
    let rate = highest(most, &work.slo, |rate| apart(costs, work, rate, workers, batch));
    let outcome = apart(costs, work, rate, workers, batch).filter(|_| rate > 0.0)?;
    Some(Apart { workers, batch, rate, of_one: [rate_of_prefill, rate_of_decode], outcome })
}

fn prefill_alone(costs: &Costs, work: &Work, rate: f64) -> Option<Outcome> {
    let (mut source, mut free, mut outcome) = (Source::new(Arrival::Rate(rate)), 0.0f64, Outcome::default());
    let (mut from, mut to) = (None, (0.0, 0.0));
    while let Some(arrived) = source.next() {
        free = free.max(arrived) + costs.prefill(work.input);
        if source.number >= WARMUP {
            outcome.ttft.push(free - arrived);
            from.get_or_insert((arrived, free));
            to = (arrived, free);
        }
        source.taken();
    }
    let counted = outcome.ttft.len() as f64 * 1e3;
    let (came, answered) = from.unwrap_or_default();
    (outcome.asked, outcome.rate) = (counted / (to.0 - came).max(1e-9), counted / (to.1 - answered).max(1e-9));
    Some(outcome)
}

/// Whole workers whose ratio of prefill to decode is nearest to `wanted`.
fn ratio(wanted: f64) -> [u32; 2] {
    let all = (1..=WORKERS).flat_map(|p| (1..=WORKERS).map(move |d| [p, d]));
    let far = |[p, d]: &[u32; 2]| (f64::from(*p) / f64::from(*d) / wanted).ln().abs() + 1e-3 * f64::from(p + d);
    all.min_by(|x, y| far(x).total_cmp(&far(y))).unwrap_or([1, 1])
}

/// Batches that are tried: powers of two up to the largest that was measured, and that one.
fn batches(costs: &Costs) -> Vec<usize> {
    let largest = costs.largest().max(1.0) as usize;
    let mut all: Vec<usize> =
        std::iter::successors(Some(1usize), |n| n.checked_mul(2)).take_while(|n| *n < largest).collect();
    all.push(largest);
    all
}

#[derive(Default)]
struct Done {
    outcome: Outcome,
    count: usize,
    from: Option<f64>,
    counted: usize,
    /// When the first and the last of those that are counted came.
    came: Option<(f64, f64)>,
}

impl Done {
    fn add(&mut self, own: &Running, now: f64, tokens: u32) {
        self.count += 1;
        if own.number < WARMUP {
            return;
        }
        self.from.get_or_insert(now);
        let (first, last) = self.came.unwrap_or((own.arrived, own.arrived));
        self.came = Some((first.min(own.arrived), last.max(own.arrived)));
        self.counted += 1;
        self.outcome.ttft.push(own.first - own.arrived);
        if tokens > 1 {
            self.outcome.tpot.push((now - own.first) / f64::from(tokens - 1));
        }
    }

    fn outcome(mut self, now: f64) -> Outcome {
        let time = now - self.from.unwrap_or(0.0);
        self.outcome.rate = if time > 0.0 { self.counted as f64 / time * 1e3 } else { 0.0 };
        let came = self.came.map_or(0.0, |(first, last)| last - first);
        self.outcome.asked = if came > 0.0 { self.counted as f64 / came * 1e3 } else { 0.0 };
        self.outcome.ttft.sort_unstable_by(f64::total_cmp);
        self.outcome.tpot.sort_unstable_by(f64::total_cmp);
        self.outcome
    }
}

/// Requests as they come, ms.
struct Source {
    arrival: Arrival,
    random: Random,
    /// Times of requests that wait to come.
    coming: VecDeque<f64>,
    /// Number of the next one.
    number: usize,
}

impl Source {
    fn new(arrival: Arrival) -> Self {
        let mut own = Self { arrival, random: Random::new(SEED), coming: VecDeque::new(), number: 0 };
        match arrival {
            Arrival::Rate(_) => own.draw(0.0),
            Arrival::Closed(n) => own.coming.extend(std::iter::repeat_n(0.0, n)),
        }
        own
    }

    fn draw(&mut self, after: f64) {
        if let Arrival::Rate(rate) = self.arrival {
            // Uniform in (0, 1].
            let uniform = ((self.random.next() >> 11) + 1) as f64 / (1u64 << 53) as f64;
            self.coming.push_back(after - uniform.ln() / rate.max(1e-9) * 1e3);
        }
    }

    /// When the next one comes; `None` after the last.
    fn next(&self) -> Option<f64> {
        self.coming.front().copied().filter(|_| self.number < REQUESTS)
    }

    fn taken(&mut self) {
        if let Some(at) = self.coming.pop_front() {
            self.number += 1;
            self.draw(at);
        }
    }

    /// Those that have come by `now` wait.
    fn until(&mut self, now: f64, waiting: &mut VecDeque<(usize, f64, f64)>, tokens: f64) {
        while let Some(at) = self.next().filter(|at| *at <= now) {
            waiting.push_back((self.number, at, tokens));
            self.taken();
        }
    }

    fn answered(&mut self, now: f64) {
        if let Arrival::Closed(_) = self.arrival {
            self.coming.push_back(now);
        }
    }
}
