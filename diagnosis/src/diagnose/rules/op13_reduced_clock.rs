//! OP-13: the device itself runs slower, and every kernel with it.

use model::{EvidenceClass::Device, Ns, StringId};
use rustc_hash::FxHashMap;

use super::{ceilings::Ceilings, op02_library_choice, reading, uneven};
use crate::{
    analysis::{Class, Confidence, DeviceOp, Edit, Layer, OpKind, Rank, Selection, Step},
    diagnose::{
        Competing, Evidence, Finding, Intervention, Trigger,
        relations::{Advice, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
    platform::OpClass,
};

/// Speed relative to the reference from which a device counts as reduced (frequency rule of the Ascend advisor).
const SPEED: f64 = 0.95;
/// Spread between the quartiles of the slots' factors, relative to their median (noise of repeated runs).
const SPREAD: f64 = 0.03;
/// Speed of kernels in a run relative to their probes from which the device counts as slower; own value, twice what the steps
/// of one run differ by on a shared machine (their 95th percentile lay 8 % above the median in a first run).
const ALONE: f64 = 0.85;
/// Share of the slots that must be slower.
const SLOTS: f64 = 0.80;
/// Least number of slots that a common factor can be told from.
const LEAST_SLOTS: usize = 10;
/// Shortest kernel whose duration scales visibly, ns: below it the floor and the clock's ticks do not.
const SHORTEST: Ns = 5_000;
/// Quantile of a kernel's durations over the steps that stands for the full clock: the lowest holds flaws of the clock's
/// ticks, a higher one would need more of the run at full speed.
const FASTEST: f64 = 0.10;
/// Shapes that must agree where the reference is what probes measured: of fewer each may have a kernel that is badly chosen.
const LEAST_SHAPES: usize = 3;
/// Slow steps in a row that are no accident.
const IN_A_ROW: usize = 3;
/// How often the full speed is taken anew from the steps that are not slow: which these are depends on it.
const PASSES: usize = 2;

/// The rule.
pub struct ReducedClock;

static DOC: Doc = Doc {
    id: "OP-13",
    title: Text::new("Device runs slower", "设备运行变慢"),
    layer: Layer::Operator,
    needs: &[Device],
    advice: Advice::Device,
    relations: Relations::NONE,
    sees: Text::new(
        "The same kernels take longer by one common factor, in part of the run or on one rank of the job.",
        "相同的内核在运行的一段时间内或在作业的某个 rank 上按同一倍数变慢。",
    ),
    matters: Text::new(
        "Kernels that all slow down alike have nothing wrong with them: the device's clock or power is limited, or it is shared. The cause lies in the environment, and no kernel work helps.",
        "所有内核同步变慢说明内核本身没有问题：设备频率或功耗受限，或设备被共享。原因在环境，优化内核无济于事。",
    ),
    trigger: Text::new(
        "Steps of equal kernels: at least 80 % of their compute kernels of 5 µs or more are slower than the reference, the median factor is at least 1/0.95, and the quartiles of the kernels' factors, each its median over these steps, lie within 3 % and what their scatter leaves in these medians. The reference of a kernel is its median over the steps that are not slow, which its lowest decile tells, three slow steps in a row being needed; or the median of the other ranks; or, of matrix products of three or more shapes, what probes of the device measured for each shape. Where not all kernels agree, the matrix products alone. Where the probes ran the very kernels of the run, these need not agree: their times over those of the probes are at least 1/0.85 in half of the steps.",
        "在内核序列相同的各步中：5 µs 以上的计算内核至少 80% 慢于参考，倍数中位数至少为 1/0.95，且各内核倍数（取其在这些步中的中位数）的四分位差在 3% 与中位数自身的抽样误差以内。参考值取该内核在不慢各步的中位数，哪些步慢由最低十分位判定（须连续三步变慢），或其他 rank 的中位数；对三种以上形状的矩阵乘，也可取该设备探针对各形状的实测值。若并非全部内核一致，则只看矩阵乘。若探针所用内核与运行相同，则不要求一致：半数以上的步中其总耗时至少为探针的 1/0.85。",
    ),
    source: Text::new(
        "5 %: frequency rule of the Ascend advisor. 3 %: noise of repeated runs. club-3090 #585 saw a uniform 0.90. 0.85: own value.",
        "5%：昇腾 advisor 的频率规则。3%：重复运行噪声。club-3090 #585 观察到统一的 0.90 倍。0.85：自定值。",
    ),
    guards: Text::new(
        "Kernels bound by memory do not follow the core clock, so a reduced clock may show in part of them only, or not at all. A rank is compared only with ranks that decode at least as many sequences. Without frequency samples a device shared with another process looks the same.",
        "受显存限制的内核不随核心频率变化，因此降频可能只体现在一部分内核上，甚至完全不体现。只与解码序列数不少于本 rank 的其他 rank 比较。没有频率采样时，与其他进程共享设备的表现相同。",
    ),
    verify: Text::new(
        "Lock the clocks, raise the power cap or cool the device, and run both again: the factor goes, kernel by kernel.",
        "锁定频率、提高功耗上限或改善散热后重跑：各内核的倍数随之消失。",
    ),
};

impl Rule for ReducedClock {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let runs: Vec<Run<'_>> = cx.main_classes().filter_map(|(rank, class)| Run::of(cx, rank, class)).collect();
        let mut found = Vec::new();
        for (i, run) in runs.iter().enumerate() {
            let finding = run.within().and_then(|slow| finding(cx, run, &slow, DURING));
            let finding = finding.or_else(|| finding_against_others(cx, &runs, i));
            found.extend(finding.or_else(|| finding_against_probes(cx, run)));
        }
        found.into_iter().collect()
    }
}

fn finding_against_others(cx: &Context<'_>, runs: &[Run<'_>], i: usize) -> Option<Finding> {
    let run = runs.get(i)?;
    // A rank that decodes more sequences than another has more to do: that it takes longer says nothing of its clock.
    let more = |other: &Run<'_>| run.batch.zip(other.batch).is_some_and(|(own, theirs)| own > theirs);
    let alike = |other: &Run<'_>| other.kernels == run.kernels && !more(other);
    let others = runs.iter().enumerate().filter(|(j, other)| *j != i && alike(other)).map(|(_, other)| other);
    finding(cx, run, &run.against(&others.collect::<Vec<_>>())?, OF_OTHERS)
}

/// Probes tell what the device does alone: products of many shapes that are all slower by one factor are well chosen, and
/// the device is what was slower.
fn finding_against_probes(cx: &Context<'_>, run: &Run<'_>) -> Option<Finding> {
    let ceilings = Ceilings::of(cx, run.rank);
    let (slow, claim) = run.against_probes(cx, &ceilings)?;
    let found = finding(cx, run, &slow, claim)?;
    Some(ceilings.disturbed().into_iter().fold(found, Finding::with))
}

const DURING: Text = Text::new(
    "In {steps} of {all} steps of {class} every kernel runs at {speed} of the speed it has in the fastest steps ({slots} kernels compared): an environment limit of the device (clock, power, sharing), {time} of {step}.",
    "{class} 的 {all} 步中有 {steps} 步，所有内核的速度仅为最快各步的 {speed}（比较了 {slots} 个内核）：属设备环境限制（频率、功耗、共享），合 {time}，步时 {step}。",
);
const OF_OTHERS: Text = Text::new(
    "In {steps} of {all} steps of {class} every kernel of this rank runs at {speed} of the speed it has on the other ranks ({slots} kernels compared): an environment limit of its device (clock, power, sharing), {time} of {step}.",
    "{class} 的 {all} 步中有 {steps} 步，该 rank 所有内核的速度仅为其他 rank 的 {speed}（比较了 {slots} 个内核）：属该设备环境限制（频率、功耗、共享），合 {time}，步时 {step}。",
);

const OF_PROBES: Text = Text::new(
    "In {steps} of {all} steps of {class} every matrix product runs at {speed} of the speed that probes of this device measured for its shape ({slots} kernels compared): an environment limit of the device (clock, power, sharing), {time} of {step}.",
    "{class} 的 {all} 步中有 {steps} 步，所有矩阵乘的速度仅为该设备探针对相同形状实测速度的 {speed}（比较了 {slots} 个内核）：属设备环境限制（频率、功耗、共享），合 {time}，步时 {step}。",
);

const OF_SAME: Text = Text::new(
    "In {steps} of {all} steps of {class} the matrix products run at {speed} of the speed that the very same kernels had when they were probed ({slots} kernels compared): an environment limit of the device (memory or cores shared, clock, power), {time} of {step}.",
    "{class} 的 {all} 步中有 {steps} 步，矩阵乘的速度仅为相同内核在探测时的 {speed}（比较了 {slots} 个内核）：属设备环境限制（内存或核心被共享、频率、功耗），合 {time}，步时 {step}。",
);

fn finding(cx: &Context<'_>, run: &Run<'_>, slow: &Slow, claim: Text) -> Option<Finding> {
    let (rank, class) = (run.rank, run.class);
    // Attention waits for the memory of the cache, and need not follow the clock as far as the rest does.
    let (mut resized, mut attention) = (Vec::new(), Vec::new());
    let mut removes: Ns = 0;
    let own = slow.steps.iter().filter_map(|(at, factor)| Some((*run.steps.get(*at)?, *factor)));
    // Steps of other work between two slow ones are slow too: they have no like to be compared with.
    for (step, factor) in own.chain(run.between(slow)) {
        for (i, op, x) in reading::accounted(rank, step).filter(|(_, op, _)| slow.covers(op)) {
            let to = (op.dur() as f64 / factor) as Ns;
            removes += (op.dur() - to).clamp(0, x.busy);
            let follows = op.op.class() != OpClass::Attention;
            if follows { resized.push((i as u32, to)) } else { attention.push((i as u32, to)) }
        }
    }
    let removes = removes / class.steady.max(1) as Ns;
    let mut factors: Vec<f64> = slow.steps.iter().map(|(_, f)| *f).collect();
    factors.sort_by(f64::total_cmp);
    let speed = 1.0 / quantile(&factors, 0.5)?;
    let claim = Message::new(
        claim,
        [
            ("class", Value::Raw(class.key.clone())),
            ("steps", Value::Count(slow.steps.len() as u64)),
            ("all", Value::Count(class.steady as u64)),
            ("speed", Value::Share(speed)),
            ("slots", Value::Count(slow.slots as u64)),
            ("time", Value::Ns(removes)),
            ("step", Value::Ns(class.mean())),
        ],
    );
    let trigger = Trigger {
        formula: Text::new("speed of the kernels relative to the reference", "内核相对参照的速度"),
        value: speed,
        threshold: SPEED,
    };
    let change = Intervention {
        removes,
        layer: Layer::Operator,
        edits: vec![Edit::Resize(resized), Edit::Hoped(Box::new(Edit::Resize(attention)))],
    };
    let first = run.steps.get(slow.steps.first()?.0)?;
    let rows = rank.ops_of(first).iter().filter(|op| slow.covers(op)).map(|op| op.slice);
    let most = if slow.matrix_only { Confidence::Low } else { Confidence::Medium };
    cx.finding(&DOC, rank, class, claim, trigger, change)
        .with(Evidence::new(
            Text::new("common factor of the kernels' durations", "各内核时长的共同倍数"),
            Value::Ratio(1.0 / speed),
            reading::sample(rows),
        ))
        .against(Competing::open(
            Text::new("another process shares the device", "另有进程共享该设备"),
            Text::new(
                "samples of the clock and of other processes on the device decide",
                "频率采样与设备上其他进程的记录可以判定",
            ),
        ))
        .gated(most)
}

/// The steps of a class that run the same kernels, with their durations.
struct Run<'a> {
    rank: &'a Rank,
    class: &'a Class,
    steps: Vec<&'a Step>,
    /// Sequences that a step decodes, the median one, where the capture says it.
    batch: Option<f64>,
    /// Names of the compute kernels of each of the steps, and the rows that their launches show: where there are more rows,
    /// that a kernel takes longer says nothing of the clock.
    kernels: (Option<u64>, Vec<StringId>),
    /// Whether each is a matrix product.
    matrix: Vec<bool>,
    /// Durations by step, then by kernel, ns.
    durations: Vec<Vec<Ns>>,
}

/// Steps that are slow by a common factor.
struct Slow {
    /// Index into the run's steps, and the factor.
    steps: Vec<(usize, f64)>,
    /// Kernels compared.
    slots: usize,
    /// Whether only the matrix products agree.
    matrix_only: bool,
}

impl Slow {
    fn covers(&self, op: &DeviceOp) -> bool {
        op.kind == OpKind::Compute && (!self.matrix_only || op.op.class() == OpClass::Matrix)
    }
}

impl<'a> Run<'a> {
    /// The largest group of steps with equal kernels. Steps that count as warm-up are among them: where they are faster than
    /// the rest, they show what the device can do.
    fn of(cx: &Context<'_>, rank: &'a Rank, class: &'a Class) -> Option<Self> {
        let mut groups: FxHashMap<(Option<u64>, Vec<StringId>), Vec<&'a Step>> = FxHashMap::default();
        let counts = |s: &&Step| matches!(s.selection, Selection::Steady | Selection::WarmUp);
        for step in rank.steps.iter().filter(|s| s.class == class.index).filter(counts) {
            let names = compute(rank, step).iter().map(|op| op.name).collect();
            groups.entry((step.rows, names)).or_default().push(step);
        }
        let most = |(_, steps): &(_, Vec<&Step>)| (steps.len(), std::cmp::Reverse(steps.first().map(|s| s.index)));
        let (kernels, steps) = groups.into_iter().max_by_key(most)?;
        let matrix = compute(rank, steps.first()?).iter().map(|op| op.op.class() == OpClass::Matrix).collect();
        let durations = steps.iter().map(|s| compute(rank, s).iter().map(|op| op.dur()).collect()).collect();
        let mut batches: Vec<f64> = rank.steady_steps(class).filter_map(uneven::batch(cx, rank)).collect();
        batches.sort_by(f64::total_cmp);
        Some(Self { rank, class, steps, batch: quantile(&batches, 0.5), kernels, matrix, durations })
    }

    /// The steps of the class that count, are none of the run's, and lie between two slow ones of it, with the mean of the
    /// factors of these, or beyond the last one of the run, or before the first, if that is slow.
    fn between(&self, slow: &Slow) -> Vec<(&'a Step, f64)> {
        let at = |(i, factor): &(usize, f64)| Some((self.steps.get(*i)?.index, *factor));
        let slow: Vec<(u32, f64)> = slow.steps.iter().filter_map(at).collect();
        let own = |step: &Step| self.steps.iter().any(|s| s.index == step.index);
        let counted = self.rank.steady_steps(self.class).filter(|step| !own(step));
        counted
            .filter_map(|step| {
                let next = slow.partition_point(|(index, _)| *index < step.index);
                let (before, after) = (next.checked_sub(1).and_then(|i| slow.get(i)), slow.get(next));
                // Of the run itself no step between them may be at full speed.
                let (from, to) = (before.map_or(0, |b| b.0 + 1), after.map_or(u32::MAX, |a| a.0));
                let fast = |s: &&&Step| (from..to).contains(&s.index);
                let factor = (before.or(after)?.1 + after.or(before)?.1) / 2.0;
                self.steps.iter().find(fast).is_none().then_some((step, factor))
            })
            .collect()
    }

    /// A quantile of each kernel's durations over the steps.
    fn each(&self, q: f64) -> Vec<Ns> {
        let slot = |k: usize| {
            let mut values: Vec<Ns> = self.durations.iter().filter_map(|d| d.get(k).copied()).collect();
            values.sort_unstable();
            quantile(&values, q).unwrap_or(0)
        };
        (0..self.matrix.len()).map(slot).collect()
    }

    /// Slow steps against the fastest ones of the same run. The fastest tell which steps are slow; how slow these are the
    /// medians of the others tell, as the fastest of kernels that scatter are faster than the device is.
    fn within(&self) -> Option<Slow> {
        let row = |w: &[(usize, f64)]| w.first().zip(w.last()).is_some_and(|(a, b)| b.0 - a.0 + 1 == IN_A_ROW);
        let slow = [false, true].into_iter().find_map(|matrix_only| {
            let mut reference = self.each(FASTEST);
            let mut slow = self.slower(&reference, matrix_only);
            for _ in 0..PASSES {
                let Some(full) = self.median_beside(&slow) else { break };
                reference = full;
                slow = self.slower(&reference, matrix_only);
            }
            self.is_uniform(&slow, &reference).then_some(slow)
        })?;
        slow.steps.windows(IN_A_ROW).any(row).then_some(slow)
    }

    /// The median of each kernel's durations over the steps that are not among these; `None` where these are too few.
    fn median_beside(&self, slow: &Slow) -> Option<Vec<Ns>> {
        let is_slow = |i: usize| slow.steps.iter().any(|(at, _)| *at == i);
        let others: Vec<&Vec<Ns>> =
            self.durations.iter().enumerate().filter(|(i, _)| !is_slow(*i)).map(|(_, d)| d).collect();
        let slot = |k: usize| {
            let mut values: Vec<Ns> = others.iter().filter_map(|d| d.get(k).copied()).collect();
            values.sort_unstable();
            quantile(&values, 0.5).unwrap_or(0)
        };
        (others.len() >= IN_A_ROW && !slow.steps.is_empty()).then(|| (0..self.matrix.len()).map(slot).collect())
    }

    /// Slow steps against other ranks that run the same kernels.
    fn against(&self, others: &[&Run<'_>]) -> Option<Slow> {
        let medians: Vec<Vec<Ns>> = others.iter().map(|o| o.each(0.5)).collect();
        let slot = |k: usize| {
            let mut values: Vec<Ns> = medians.iter().filter_map(|m| m.get(k).copied()).collect();
            values.sort_unstable();
            quantile(&values, 0.5)
        };
        let reference: Option<Vec<Ns>> = (0..self.matrix.len()).map(slot).collect();
        // A rank is reduced if most of its steps are.
        self.slow(&reference?).filter(|s| 2 * s.steps.len() >= self.class.steady && s.steps.len() >= IN_A_ROW)
    }

    /// Slow steps against what probes measured for the shapes of the products.
    fn against_probes(&self, cx: &Context<'_>, ceilings: &Ceilings<'_>) -> Option<(Slow, Text)> {
        let first = *self.steps.first()?;
        let (mut shapes, mut same) = (Vec::new(), true);
        let reference: Vec<Ns> = compute(self.rank, first)
            .into_iter()
            .map(|op| {
                // What was not probed has no reference, and 0 is too short to be compared.
                let Some(probed) = op02_library_choice::probed(cx, self.rank, op, ceilings) else { return 0 };
                if !shapes.contains(&probed.gemm) {
                    shapes.push(probed.gemm);
                }
                same &= probed.same;
                probed.ns.round() as Ns
            })
            .collect();
        if shapes.len() < LEAST_SHAPES {
            return None;
        }
        let most = |slow: &Slow| 2 * slow.steps.len() >= self.class.steady;
        let by_one = self.slow(&reference).filter(most).map(|slow| (slow, OF_PROBES));
        let found = by_one.or_else(|| Some((self.slowed(&reference).filter(|slow| same && most(slow))?, OF_SAME)))?;
        Some((Slow { matrix_only: true, ..found.0 }, found.1))
    }

    /// Steps whose kernels all in all take longer than these times of the very same kernels. No other kernel can be to blame,
    /// so that they need not all be slower by one factor: a memory that is shared slows them down as much as they read.
    fn slowed(&self, reference: &[Ns]) -> Option<Slow> {
        let slots: Vec<usize> = (0..reference.len()).filter(|k| reference.get(*k).is_some_and(|ns| *ns > 0)).collect();
        let sum = |durations: &[Ns]| slots.iter().filter_map(|k| durations.get(*k)).sum::<Ns>() as f64;
        let alone = sum(reference).max(1.0);
        let steady = |i: usize| self.steps.get(i).is_some_and(|s| s.selection == Selection::Steady);
        let all = self.durations.iter().enumerate().filter(|(i, _)| steady(*i)).map(|(i, d)| (i, sum(d) / alone));
        let steps: Vec<(usize, f64)> = all.filter(|(_, factor)| factor * ALONE >= 1.0).collect();
        (steps.len() >= IN_A_ROW).then_some(Slow { steps, slots: slots.len(), matrix_only: true })
    }

    /// Steps that are slower than a reference by one factor.
    fn slow(&self, reference: &[Ns]) -> Option<Slow> {
        let both = [false, true].into_iter().map(|matrix_only| self.slower(reference, matrix_only));
        both.into_iter().find(|slow| self.is_uniform(slow, reference))
    }

    /// The kernels that are compared with a reference.
    fn compared(&self, reference: &[Ns], matrix_only: bool) -> Vec<usize> {
        let counts = |k: &usize| {
            reference.get(*k).is_some_and(|ns| *ns >= SHORTEST)
                && (!matrix_only || self.matrix.get(*k).is_some_and(|m| *m))
        };
        (0..reference.len()).filter(counts).collect()
    }

    /// Steps nearly all of whose kernels are slower than a reference.
    fn slower(&self, reference: &[Ns], matrix_only: bool) -> Slow {
        let slots = self.compared(reference, matrix_only);
        let steady = |i: usize| self.steps.get(i).is_some_and(|s| s.selection == Selection::Steady);
        let all = self.durations.iter().enumerate().filter(|(i, _)| steady(*i));
        let steps = all.filter_map(|(i, d)| Some((i, common_factor(d, reference, &slots)?))).collect();
        Slow { steps, slots: slots.len(), matrix_only }
    }

    /// Whether the kernels are slower by one factor in these steps: each by its median over them, as a single duration varies
    /// by more than the factors may. What the scatter of a kernel's durations leaves in its median counts with them: the
    /// standard error of a median is 1.25 times that of a mean.
    fn is_uniform(&self, slow: &Slow, reference: &[Ns]) -> bool {
        if slow.steps.len() < IN_A_ROW {
            return false;
        }
        let ratio = |k: usize| {
            let mut values: Vec<Ns> =
                slow.steps.iter().filter_map(|(i, _)| self.durations.get(*i)?.get(k).copied()).collect();
            values.sort_unstable();
            let middle = quantile(&values, 0.5)? as f64;
            let scatter = (quantile(&values, 0.75)? - quantile(&values, 0.25)?) as f64 / middle;
            Some((middle / *reference.get(k)? as f64, scatter))
        };
        let (mut ratios, mut scatters): (Vec<f64>, Vec<f64>) =
            self.compared(reference, slow.matrix_only).into_iter().filter_map(ratio).unzip();
        ratios.sort_by(f64::total_cmp);
        scatters.sort_by(f64::total_cmp);
        let noise =
            quantile(&scatters, 0.5).map(|s| 1.25 * std::f64::consts::SQRT_2 * s / (slow.steps.len() as f64).sqrt());
        let quartiles = quantile(&ratios, 0.25).zip(quantile(&ratios, 0.5)).zip(quantile(&ratios, 0.75));
        quartiles.zip(noise).is_some_and(|(((low, factor), high), noise)| high - low <= SPREAD.hypot(noise) * factor)
    }
}

/// The compute kernels of a step. Which of two queues is first changes with the timing, and with the clock; the order within
/// each does not.
fn compute<'r>(rank: &'r Rank, step: &Step) -> Vec<&'r DeviceOp> {
    let mut ops: Vec<&DeviceOp> = rank.ops_of(step).iter().filter(|op| op.kind == OpKind::Compute).collect();
    ops.sort_by_key(|op| op.queue);
    ops
}

/// The factor by which the kernels of a step are slower, if nearly all of them are.
fn common_factor(durations: &[Ns], reference: &[Ns], slots: &[usize]) -> Option<f64> {
    if slots.len() < LEAST_SLOTS {
        return None;
    }
    let ratio = |k: &usize| Some(*durations.get(*k)? as f64 / *reference.get(*k)? as f64);
    let mut ratios: Vec<f64> = slots.iter().filter_map(ratio).collect();
    ratios.sort_by(f64::total_cmp);
    let factor = quantile(&ratios, 0.5)?;
    let slower = ratios.iter().filter(|r| **r * SPEED >= 1.0).count();
    (factor * SPEED >= 1.0 && slower as f64 >= SLOTS * ratios.len() as f64).then_some(factor)
}

/// A quantile of ascending values (nearest rank).
fn quantile<T: Copy>(values: &[T], q: f64) -> Option<T> {
    let rank = (q * values.len() as f64).ceil() as usize;
    values.get(rank.clamp(1, values.len().max(1)) - 1).copied()
}
