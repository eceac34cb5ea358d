//! CP-08: too much of the step cannot be attributed.

use model::EvidenceClass::Device;

use super::measurement::about;
use crate::{
    analysis::{Bucket, Layer},
    diagnose::{
        Evidence, Trigger,
        relations::{Advice, Relations, Role},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
};

/// Share of the class's time; own value.
pub const SHARE: f64 = 0.20;

/// The rule.
pub struct Unexplained;

static DOC: Doc = Doc {
    id: "CP-08",
    title: Text::new("Unexplained time", "无法解释的时间"),
    layer: Layer::Measurement,
    needs: &[Device],
    advice: Advice::Device,
    relations: Relations { role: Some(Role::Unexplained), ..Relations::NONE },
    sees: Text::new(
        "A large part of the step lies in the measurement layer: opaque graph replays, idle time without a launch to explain it, profiler overhead.",
        "步时的很大部分落在测量层：不透明的图重放、没有下发可解释的空闲、剖析开销。",
    ),
    matters: Text::new(
        "What is said about the rest may be true and still miss the point: findings of this class are a narrative, not a proof.",
        "对其余部分的判断即使正确也可能不得要领：该类的结论只是叙述，不是证明。",
    ),
    trigger: Text::new(
        "More than 20 % of the class's time in the measurement layer.",
        "该类超过 20% 的时间位于测量层。",
    ),
    source: Text::new("20 %: own value.", "20%：自定值。"),
    guards: Text::new("None: the share is a plain fact about the capture.", "无：该占比只是关于采集的事实。"),
    verify: Text::new(
        "Record host calls, correlation ids and graph nodes; the share falls below 20 %.",
        "采集主机调用、关联 id 与图节点；该占比降到 20% 以下。",
    ),
};

impl Rule for Unexplained {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let mut found = Vec::new();
        for (rank, class) in cx.main_classes() {
            let share = class.share(|b| b.layer() == Layer::Measurement);
            if share <= SHARE {
                continue;
            }
            let trigger = Trigger {
                formula: Text::new("measurement layer / class time", "测量层时间 / 该类总时间"),
                value: share,
                threshold: SHARE,
            };
            let claim = Message::new(
                Text::new(
                    "{share} of {class} cannot be attributed to a layer: what is said about it is a narrative, not a proof.",
                    "{class} 有 {share} 的时间无法归到任何一层：对它的判断只是叙述，不是证明。",
                ),
                [("share", Value::Share(share)), ("class", Value::Raw(class.key.clone()))],
            );
            let mut finding = about(cx, &DOC, rank, class, claim, trigger);
            for (bucket, what) in PARTS {
                let ns = class.per_step(|b| b == bucket);
                if ns > 0 {
                    finding = finding.with(Evidence::new(what, Value::Ns(ns), Vec::new()));
                }
            }
            found.push(finding);
        }
        found.into_iter().collect()
    }
}

const PARTS: [(Bucket, Text); 4] = [
    (Bucket::GraphOpaque, Text::new("graph replays recorded as one row, per step", "仅记录为一行的图重放（每步）")),
    (
        Bucket::IdleUndecided,
        Text::new("idle without any host call in the capture, per step", "采集中无主机调用的空闲（每步）"),
    ),
    (
        Bucket::Unattributed,
        Text::new("idle before operations without a launch, per step", "无下发记录的算子之前的空闲（每步）"),
    ),
    (Bucket::Prof, Text::new("idle in profiler overhead, per step", "剖析开销造成的空闲（每步）")),
];
