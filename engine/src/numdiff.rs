//! Two runs of one model, operator by operator: how far their numbers are from each other, and the first operator that makes
//! a difference which neither its input nor its precision explains.
//!
//! Both sides get the same tokens, those of A. Beside the two runs as they are, every operator of B also runs on the input
//! that A's operator had (the protocol is that of layer-wise comparison tools, such as msprobe of Ascend: replay an operator
//! alone with the dumped input), so that an operator is judged by what it does and not by what it was given. Where the
//! weights differ, be it in their type, A's operators run on B's weights as well. Values are compared as they come into being and are not
//! kept: memory does not grow with the length of the run.

use std::{collections::BTreeMap, sync::Arc};

use serde::Serialize;

use crate::{
    Config, Dtype, Error, Weights,
    program::{BufId, Program},
    run::{RunOptions, next_batch},
};

mod align;
mod devices;
mod judge;
mod measure;

pub use judge::{Cause, SUMS, rounding};
pub use measure::{Measure, Summary, ULPS};

use align::{Group, align};
use devices::Device;
use judge::Judge;

/// An operator whose error grows by so many times what the same operator does in other layers stands out.
const AMPLIFIED: f64 = 5.0;
/// A choice of another token is benign where the two were nearer than this share of the spread of the logits.
const BENIGN: f64 = 1e-2;

/// Operators that compute the same on both sides, over all steps of a phase.
#[derive(Clone, Debug)]
pub struct Row {
    /// Whether they are of the pass of the prompt, rather than of the decode steps.
    pub prefill: bool,
    /// Layer, `None` outside the layers.
    pub layer: Option<u16>,
    /// Names of the operators of A and of B.
    pub ops: [Vec<&'static str>; 2],
    /// The two runs as they are: what the operators made of the errors before them.
    pub own: Measure,
    /// Largest relative L2 of the buffers that they read, of the two runs as they are; 0 where they read only tokens.
    pub input: f64,
    /// A's operators on A's and on B's weights, both with A's input; absent where the weights are the same.
    pub weights: Option<Measure>,
    /// The operators of A and of B on A's input and B's weights.
    pub local: Measure,
    /// First step in which the difference is not explained, and why.
    pub fault: Option<(u32, Cause)>,
}

impl Row {
    /// Their names, those of B where the two differ.
    pub fn name(&self) -> String {
        self.ops.iter().rev().find(|ops| !ops.is_empty()).map(|ops| ops.join(" + ")).unwrap_or_default()
    }

    /// How many times their error is that of their input; `None` where the input has none.
    pub fn amplification(&self) -> Option<f64> {
        (self.input > 0.0).then(|| self.own.relative_l2() / self.input)
    }
}

/// Where the tokens of the two sides part.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Split {
    /// Step.
    pub step: u32,
    /// Sequence.
    pub sequence: usize,
    /// Token of A and of B.
    pub tokens: [u32; 2],
    /// By how much A preferred its token, in standard deviations of its logits.
    pub margin: f64,
}

impl Split {
    /// Whether the two tokens were so near to each other that rounding decides.
    pub fn is_benign(&self) -> bool {
        self.margin < BENIGN
    }
}

/// What a comparison comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All values are equal bit for bit.
    Equal,
    /// Every operator does what precision allows, and so does the run as a whole.
    WithinPrecision,
    /// Every operator does what precision allows, and the errors have grown beyond it.
    Grown,
    /// An operator makes a difference that is not explained.
    Faulty,
    /// A side gives NaN or infinity, be it like the other or not: what follows is no number to be compared.
    NotFinite,
}

/// Where a side first gives NaN or infinity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Step; the prompt is step 0.
    pub step: u32,
    /// Its row.
    pub row: usize,
}

/// What two runs have come to.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Operators in the order of the step, those of the prompt first.
    pub rows: Vec<Row>,
    /// The first row whose difference is not explained, by step and then by place.
    pub first: Option<usize>,
    /// Where A and B first give NaN or infinity, by step and then by place.
    pub not_finite: [Option<Lost>; 2],
    /// Decode steps.
    pub steps: u32,
    /// The type whose precision explains what is not a fault.
    pub precision: Dtype,
    /// Logits of the two runs as they are.
    pub logits: Measure,
    /// Relative L2 that [`Comparison::precision`] explains at the model's depth.
    pub tolerance: f64,
    /// Tokens chosen, and those that are the same on both sides.
    pub tokens: [u64; 2],
    /// Where the tokens part first.
    pub split: Option<Split>,
    /// First step of A and of B that gives other logits when it is started as the side starts steps than one operator at a
    /// time.
    pub unrepeated: [Option<u32>; 2],
}

impl Comparison {
    /// What it comes to.
    pub fn verdict(&self) -> Verdict {
        if self.not_finite.iter().any(Option::is_some) {
            Verdict::NotFinite
        } else if self.first.is_some() || self.unrepeated.iter().any(Option::is_some) {
            Verdict::Faulty
        } else if self.rows.iter().all(|row| row.own.is_equal()) {
            Verdict::Equal
        } else if self.logits.relative_l2() <= self.tolerance {
            Verdict::WithinPrecision
        } else {
            Verdict::Grown
        }
    }

    /// The first row whose error grows much more than that of the same operators in other layers.
    pub fn amplified(&self) -> Option<usize> {
        let mut known: BTreeMap<(bool, String), Vec<f64>> = BTreeMap::new();
        for row in &self.rows {
            known.entry((row.prefill, row.name())).or_default().extend(row.amplification());
        }
        known.values_mut().for_each(|all| all.sort_unstable_by(f64::total_cmp));
        self.rows.iter().position(|row| {
            let usual = known.get(&(row.prefill, row.name())).and_then(|all| all.get(all.len() / 2).copied());
            row.amplification().zip(usual).is_some_and(|(own, usual)| own > AMPLIFIED * usual)
        })
    }
}

/// One side of a comparison. Sides that share their weights are known to have the same.
#[derive(Clone, Copy, Debug)]
pub struct Side<'s> {
    /// How it runs.
    pub options: &'s RunOptions,
    /// Its weights.
    pub weights: &'s Arc<Weights>,
}

/// Compares two runs of a model on the prompts of A; `each` is told of every step that has been compared.
///
/// # Errors
/// [`Error::Request`] when a side does not fit the model or the memory, or the two compute other tokens.
pub fn compare(config: &Config, sides: [Side<'_>; 2], mut each: impl FnMut(u32)) -> Result<Comparison, Error> {
    let [a, b] = sides;
    a.options.check_prompt()?;
    if (a.options.prompt, a.options.steps, a.options.batch) != (b.options.prompt, b.options.steps, b.options.batch) {
        return Err(Error::Request("the two sides have other prompts; compare runs of the same prompts".to_owned()));
    }
    let judge = Judge {
        dtype: narrower(a.options.dtype, b.options.dtype),
        same_weights: Arc::ptr_eq(a.weights, b.weights),
        same_isa: a.options.isa == b.options.isa,
    };
    let device = |side: Side<'_>, weights| Device::new(config, weights, side.options);
    let mut run = Run {
        a: device(a, a.weights)?,
        b: device(b, b.weights)?,
        b_on_a: device(b, b.weights)?,
        a_with_b: if judge.same_weights { None } else { Some(device(a, b.weights)?) },
        judge,
        phases: Vec::new(),
    };
    for phase in 0..2 {
        let programs = [run.a.program(phase), run.b.program(phase)];
        let groups = align(programs, config)?;
        let rows = groups.iter().map(|group| row(programs, group, phase)).collect();
        run.phases.push(Phase { groups, rows, first: None, lost: [None, None] });
    }
    let mut batch = a.options.first_batch(config.vocab);
    let (mut tokens, mut split, mut unrepeated) = ([0, 0], None, [None, None]);
    for step in 0..=a.options.steps {
        let (phase, number) = (usize::from(step > 0), u32::try_from(step).unwrap_or(u32::MAX));
        run.step(number, &batch)?;
        let chosen = [run.a.most_likely(phase), run.b.most_likely(phase)];
        tokens[0] += chosen[0].len() as u64;
        tokens[1] += chosen[0].iter().zip(&chosen[1]).filter(|(a, b)| a == b).count() as u64;
        split = split.or_else(|| parted(number, &chosen, run.a.logits(phase), config.vocab));
        for (device, unrepeated) in [&mut run.a, &mut run.b].into_iter().zip(&mut unrepeated) {
            if unrepeated.is_none() && !device.is_repeated(phase, &batch)? {
                *unrepeated = Some(number);
            }
        }
        each(number);
        let [followed, _] = chosen;
        batch = next_batch(followed, a.options.prompt + step);
    }
    Ok(run.finish(config, a.options.steps, tokens, split, unrepeated))
}

/// The type with fewer bits of precision.
fn narrower(a: Dtype, b: Dtype) -> Dtype {
    if rounding(a) > rounding(b) { a } else { b }
}

fn row(programs: [&Program; 2], group: &Group, phase: usize) -> Row {
    let calls = |side: usize| programs[side].ops.get(group.ops[side].clone()).unwrap_or_default();
    let names = |side: usize| calls(side).iter().map(|op| op.name.text()).collect();
    let last = calls(1).last().or(calls(0).last());
    Row {
        prefill: phase == 0,
        layer: last.and_then(|op| op.id.layer),
        ops: [names(0), names(1)],
        own: Measure::default(),
        input: 0.0,
        weights: None,
        local: Measure::default(),
        fault: None,
    }
}

/// Where the first tokens part that are not the same.
fn parted(step: u32, chosen: &[Vec<u32>; 2], logits: &[f32], vocab: usize) -> Option<Split> {
    let [a, b] = chosen;
    let sequence = a.iter().zip(b).position(|(a, b)| a != b)?;
    let row = logits.chunks_exact(vocab.max(1)).nth(sequence)?;
    let tokens = [*a.get(sequence)?, *b.get(sequence)?];
    let logit = |token: u32| row.get(token as usize).map(|logit| f64::from(*logit));
    let spread = Measure::of(row, row).a.variance()?.sqrt();
    let margin = (logit(tokens[0])? - logit(tokens[1])?) / spread.max(f64::MIN_POSITIVE);
    Some(Split { step, sequence, tokens, margin })
}

struct Phase {
    groups: Vec<Group>,
    rows: Vec<Row>,
    /// The first row with a fault, by step.
    first: Option<(u32, usize)>,
    /// The first rows in which A and B are not finite, by step.
    lost: [Option<(u32, usize)>; 2],
}

struct Run {
    a: Device,
    b: Device,
    /// B's operators on A's input.
    b_on_a: Device,
    /// A's operators on A's input and B's weights.
    a_with_b: Option<Device>,
    judge: Judge,
    phases: Vec<Phase>,
}

impl Run {
    /// Runs a step on all devices, group by group, and compares what each group gives.
    fn step(&mut self, step: u32, batch: &crate::Batch) -> Result<(), Error> {
        let Self { a, b, b_on_a, a_with_b, judge, phases } = self;
        let number = usize::from(step > 0);
        let Some(phase) = phases.get_mut(number) else { return Ok(()) };
        // Relative L2 of what the two runs have in each buffer of B.
        let mut errors: BTreeMap<BufId, f64> = BTreeMap::new();
        for (at, (group, row)) in phase.groups.iter().zip(&mut phase.rows).enumerate() {
            let [ops_a, ops_b] = &group.ops;
            let calls = b.program(number).ops.get(ops_b.clone()).unwrap_or_default();
            let read = calls.iter().flat_map(|op| op.kind.reads()).filter_map(|id| errors.get(&id));
            row.input = read.copied().fold(row.input, f64::max);
            a.run(number, batch, ops_a.clone())?;
            b.run(number, batch, ops_b.clone())?;
            b_on_a.run(number, batch, ops_b.clone())?;
            if let Some(device) = a_with_b {
                device.run(number, batch, ops_a.clone())?;
            }
            let (mut local, mut weights) = (Measure::default(), None::<Measure>);
            for value in &group.values {
                let given = a.read(number, batch, value, 0);
                let own = Measure::of(&given, &b.read(number, batch, value, 1));
                if let align::Value::Columns([_, id], _) = value {
                    errors.insert(*id, own.relative_l2());
                }
                for (lost, side) in phase.lost.iter_mut().zip([&own.a, &own.b]) {
                    if side.nan + side.inf > 0 {
                        lost.get_or_insert((step, at));
                    }
                }
                row.own.merge(&own);
                let replayed = b_on_a.read(number, batch, value, 1);
                b_on_a.write(number, batch, value, 1, &given);
                match a_with_b {
                    None => local.merge(&Measure::of(&given, &replayed)),
                    Some(device) => {
                        let narrow = device.read(number, batch, value, 0);
                        weights.get_or_insert_default().merge(&Measure::of(&given, &narrow));
                        local.merge(&Measure::of(&narrow, &replayed));
                        device.write(number, batch, value, 0, &given);
                    }
                }
            }
            let kinds: Vec<_> =
                b.program(number).ops.get(ops_b.clone()).unwrap_or_default().iter().map(|op| &op.kind).collect();
            let cause = judge.cause(&kinds, weights.as_ref(), &local);
            row.fault = row.fault.or(cause.map(|cause| (step, cause)));
            if cause.is_some() && phase.first.is_none() {
                phase.first = Some((step, at));
            }
            row.local.merge(&local);
            if let Some(weights) = weights {
                row.weights.get_or_insert_default().merge(&weights);
            }
        }
        Ok(())
    }

    fn finish(
        self,
        config: &Config,
        steps: usize,
        tokens: [u64; 2],
        split: Option<Split>,
        unrepeated: [Option<u32>; 2],
    ) -> Comparison {
        let mut logits = Measure::default();
        let (mut rows, mut first, mut not_finite) = (Vec::new(), None, [None, None]);
        for phase in self.phases {
            // The prompt comes before every decode step.
            first = first.or(phase.first.map(|(_, at)| rows.len() + at));
            for (all, own) in not_finite.iter_mut().zip(phase.lost) {
                *all = all.or(own.map(|(step, at)| Lost { step, row: rows.len() + at }));
            }
            let head = |row: &&Row| row.ops[1].last().is_some_and(|name| *name == "lm_head");
            if let Some(row) = phase.rows.iter().find(head) {
                logits.merge(&row.own);
            }
            rows.extend(phase.rows);
        }
        Comparison {
            rows,
            first,
            not_finite,
            steps: u32::try_from(steps).unwrap_or(u32::MAX),
            precision: self.judge.precision(),
            logits,
            tolerance: judge::of_logits(self.judge.precision(), config.layers),
            tokens,
            split,
            unrepeated,
        }
    }
}

#[cfg(test)]
mod tests;
