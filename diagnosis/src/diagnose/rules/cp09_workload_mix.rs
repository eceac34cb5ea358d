//! CP-09: the steps are of several kinds, so that no statistic over all of them means anything.

use std::collections::BTreeMap;

use model::{EvidenceClass::Device, Ns};

use super::{measurement::about, reading};
use crate::{
    analysis::{Class, Layer, Rank},
    diagnose::{
        Evidence, Finding, Trigger,
        relations::{Advice, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
    platform::Stage,
};

/// Share of the time in steps of another stage than the judged one; own value.
const SHARE: f64 = 0.05;

/// The rule.
pub struct WorkloadMix;

static DOC: Doc = Doc {
    id: "CP-09",
    title: Text::new("Mixed workload", "混合负载"),
    layer: Layer::Measurement,
    needs: &[Device],
    advice: Advice::Host,
    relations: Relations::NONE,
    sees: Text::new(
        "The capture holds steps of several stages: pure decode, prefill, or both in one step.",
        "采集中包含多种阶段的步：纯解码、预填充或两者混合。",
    ),
    matters: Text::new(
        "A mean over all steps measures the mix of requests, not the stack. Two runs can only be compared class by class.",
        "对全部步取平均得到的是请求构成而非软件栈的性能。两次运行只能按类比较。",
    ),
    trigger: Text::new(
        "Steps of another stage than that of the judged class take at least 5 % of the time of all steps whose stage is known.",
        "在阶段已知的步中，与被判定类别阶段不同的步至少占总时间的 5%。",
    ),
    source: Text::new("5 %: own value.", "5%：自定值。"),
    guards: Text::new(
        "Statistics, findings and estimates are always those of one class; this finding only says that they do not speak for the whole run. A run that says of itself that its batch is fixed (workload.arrival) is not mixed: its prompt comes once.",
        "统计、发现与估计始终只针对单个类别；本条只说明它们不代表整个运行。自述为固定批（workload.arrival）的运行不算混合：其提示只在开头出现一次。",
    ),
    verify: Text::new(
        "Compare per class, or repeat the run with a fixed batch that has left its prefill behind.",
        "按类比较，或用已完成预填充的固定批重复运行。",
    ),
};

impl Rule for WorkloadMix {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn needs_steps(&self) -> bool {
        true
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        // A batch that stays together has its prompt once, before everything else.
        if cx.trace.manifest.value("workload.arrival") == Some("fixed batch") {
            return Outcome::Quiet;
        }
        // Ranks of a job run the same steps: the first speaks for them.
        reading::marked(cx).find_map(|(rank, class)| mixed(cx, rank, class)).into_iter().collect()
    }
}

fn mixed(cx: &Context<'_>, rank: &Rank, class: &Class) -> Option<Finding> {
    let mut stages: BTreeMap<Stage, (Ns, usize)> = BTreeMap::new();
    for step in &rank.steps {
        let stage = rank.classes.get(step.class)?.stage;
        if !matches!(stage, Stage::Unknown) {
            let (time, steps) = stages.entry(stage).or_default();
            *time += step.window.len();
            *steps += 1;
        }
    }
    let all: Ns = stages.values().map(|(time, _)| time).sum();
    let (own, _) = stages.get(&class.stage).copied()?;
    let share = 1.0 - own as f64 / all.max(1) as f64;
    if share < SHARE {
        return None;
    }
    let claim = Message::new(
        Text::new(
            "{share} of the time of the steps is spent in other stages than that of {class}: compare class by class, never over all steps.",
            "各步总时间中有 {share} 不属于 {class} 所在的阶段：只能按类比较，不能对全部步取统计。",
        ),
        [("share", Value::Share(share)), ("class", Value::Raw(class.key.clone()))],
    );
    let formula = Text::new(
        "time of steps of other stages / time of all steps of known stage",
        "其他阶段步的时间 / 阶段已知的步总时间",
    );
    let mut finding = about(cx, &DOC, rank, class, claim, Trigger { formula, value: share, threshold: SHARE });
    for (stage, (time, steps)) in stages {
        let what = Message::new(
            Text::new("time of {steps} steps of stage {stage}", "阶段 {stage} 的 {steps} 个步的时间"),
            [("steps", Value::Count(steps as u64)), ("stage", Value::Raw(stage.name().to_owned()))],
        );
        finding = finding.with(Evidence { what, value: Value::Ns(time), rows: Vec::new() });
    }
    Some(finding)
}
