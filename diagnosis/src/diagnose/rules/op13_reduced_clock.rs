//! OP-13: the device itself runs slower, and every kernel with it.

use model::{EvidenceClass::Device, Ns};

use super::{ceilings::Ceilings, op02_library_choice, reading, uneven};
use crate::{
    analysis::{Confidence, Edit, Layer},
    diagnose::{
        Competing, Evidence, Finding, Intervention, Trigger,
        relations::{Advice, Relations, Role},
        rule::{Context, Doc, Outcome, Rule},
        signals::slow_steps::{self, Run, SPEED, Slow},
    },
    i18n::{Message, Text, Value},
    platform::OpClass,
};

/// Shapes that must agree where the reference is what probes measured: of fewer each may have a kernel that is badly chosen.
const LEAST_SHAPES: usize = 3;

/// The rule.
pub struct ReducedClock;

static DOC: Doc = Doc {
    id: "OP-13",
    title: Text::new("Device runs slower", "设备运行变慢"),
    layer: Layer::Operator,
    needs: &[Device],
    advice: Advice::Device,
    relations: Relations { role: Some(Role::SlowDevice), ..Relations::NONE },
    sees: Text::new(
        "The same kernels take longer by one common factor, in part of the run or on one rank of the job.",
        "相同的内核在运行的一段时间内或在作业的某个 rank 上按同一倍数变慢。",
    ),
    matters: Text::new(
        "Kernels that all slow down alike have nothing wrong with them: the device's clock or power is limited, or it is shared. The cause lies in the environment, and no kernel work helps.",
        "所有内核同步变慢说明内核本身没有问题：设备频率或功耗受限，或设备被共享。原因在环境，优化内核无济于事。",
    ),
    trigger: Text::new(
        "Steps of equal kernels: at least 80 % of their compute kernels of 5 µs or more are slower than the reference, the median factor is at least 1/0.95, and the quartiles of the kernels' factors, each its median over these steps, lie within 3 % and what their scatter leaves in these medians. The reference of a kernel is its median over the steps that are not slow, which its lowest decile tells, three slow steps in a row being needed; or the median of the other ranks; or, of matrix products of three or more shapes, what probes of the device measured for each shape. Where not all kernels agree, the matrix products alone, and with them the other kernels that are slower in the same steps by at least half as much. Where the probes ran the very kernels of the run, these need not agree: their times over those of the probes are at least 1/0.85 in half of the steps.",
        "在内核序列相同的各步中：5 µs 以上的计算内核至少 80% 慢于参考，倍数中位数至少为 1/0.95，且各内核倍数（取其在这些步中的中位数）的四分位差在 3% 与中位数自身的抽样误差以内。参考值取该内核在不慢各步的中位数，哪些步慢由最低十分位判定（须连续三步变慢），或其他 rank 的中位数；对三种以上形状的矩阵乘，也可取该设备探针对各形状的实测值。若并非全部内核一致，则只看矩阵乘，并计入在这些步中至少慢其一半幅度的其他内核。若探针所用内核与运行相同，则不要求一致：半数以上的步中其总耗时至少为探针的 1/0.85。",
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
        let runs: Vec<Run<'_>> =
            cx.main_classes().filter_map(|(rank, class)| Run::of(rank, class, uneven::batch(cx, rank))).collect();
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
    let (slow, claim) = against_probes(cx, run, &ceilings)?;
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
    // Attention waits for the memory of the cache, and need not follow the clock as far as the rest does, unless these steps show
    // that it does.
    let (mut resized, mut attention) = (Vec::new(), Vec::new());
    let mut removes: Ns = 0;
    let own = slow.steps.iter().filter_map(|(at, factor)| Some((*run.steps.get(*at)?, *factor)));
    // Steps of other work between two slow ones are slow too: they have no like to be compared with.
    for (step, factor) in own.chain(run.between(slow)) {
        for (i, op, x) in reading::accounted(rank, step) {
            let Some(factor) = slow.factor(op, factor) else { continue };
            let to = (op.dur() as f64 / factor) as Ns;
            removes += (op.dur() - to).clamp(0, x.busy);
            let follows = op.op.class() != OpClass::Attention || slow.follows(op);
            if follows { resized.push((i as u32, to)) } else { attention.push((i as u32, to)) }
        }
    }
    let removes = removes / class.steady.max(1) as Ns;
    let speed = 1.0 / slow.middle()?;
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

/// Slow steps against what probes measured for the shapes of the products.
fn against_probes(cx: &Context<'_>, run: &Run<'_>, ceilings: &Ceilings<'_>) -> Option<(Slow, Text)> {
    let first = *run.steps.first()?;
    let (mut shapes, mut same) = (Vec::new(), true);
    let reference: Vec<Ns> = slow_steps::compute(run.rank, first)
        .into_iter()
        .map(|op| {
            // What was not probed has no reference, and 0 is too short to be compared.
            let Some(probed) = op02_library_choice::probed(cx, run.rank, op, ceilings) else { return 0 };
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
    let most = |slow: &Slow| 2 * slow.steps.len() >= run.class.steady;
    let by_one = run.slow(&reference).filter(most).map(|slow| (slow, OF_PROBES));
    let found = by_one.or_else(|| Some((run.slowed(&reference).filter(|slow| same && most(slow))?, OF_SAME)))?;
    Some((Slow { matrix_only: true, ..found.0 }, found.1))
}
