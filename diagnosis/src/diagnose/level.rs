//! The levels of a capture: how far it supports work on performance, by which evidence, and what is missing for the next one.

use model::{
    EvidenceClass,
    manifest::{self, REPEATS},
};

use super::rule::Context;
use crate::{
    i18n::{Message, Text, Value},
    platform::Stage,
};

/// Share of device time whose operators must be named before a hot path counts as known.
pub(super) const NAMED: f64 = 0.95;
/// Steps below which a 95th percentile is the slowest step, and says nothing of the noise.
pub(super) const NOISE_STEPS: usize = 20;
/// Unknown fields of the contract that are named.
const UNKNOWN: usize = 4;

/// How far the capture supports work on performance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Something ran on the device.
    Run,
    /// The hot path is observable and can be moved.
    Optimise,
    /// A fair, reproducible comparison explains the gain.
    Verify,
}

/// One thing that a level rests on.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Condition {
    /// Whether the capture shows it.
    pub met: bool,
    /// What shows it, or what is missing and how to get it.
    pub what: Message,
}

/// A level with what it rests on in this capture.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Assessment {
    /// The level.
    pub level: Level,
    /// What it rests on.
    pub checks: Vec<Condition>,
    /// What it does not claim, even where everything is met.
    pub unclaimed: Text,
}

impl Assessment {
    /// Whether everything is met.
    pub fn is_met(&self) -> bool {
        self.checks.iter().all(|check| check.met)
    }

    fn missing(&self) -> Vec<Message> {
        self.checks.iter().filter(|check| !check.met).map(|check| check.what.clone()).collect()
    }
}

fn check(met: Option<Message>, missing: impl FnOnce() -> Message) -> Condition {
    Condition { met: met.is_some(), what: met.unwrap_or_else(missing) }
}

/// Level reached, and what the next one needs. That something ran is the first level, even where nothing tells whether its
/// numbers are right.
pub(super) fn reached(levels: &[Assessment]) -> (Option<Level>, Vec<Message>) {
    let [run, optimise, verify] = levels else { return (None, Vec::new()) };
    match run.checks.first() {
        Some(device) if !device.met => (None, vec![device.what.clone()]),
        _ if !optimise.is_met() => (Some(Level::Run), optimise.missing()),
        _ if !(verify.is_met() && run.is_met()) => {
            (Some(Level::Optimise), run.missing().into_iter().chain(verify.missing()).collect())
        }
        _ => (Some(Level::Verify), Vec::new()),
    }
}

/// Every level with what it rests on in this capture.
pub(super) fn assess(cx: &Context<'_>) -> Vec<Assessment> {
    vec![
        Assessment {
            level: Level::Run,
            checks: vec![device(cx), numerics(cx)],
            unclaimed: Text::new("that it runs fast, or that any other input runs", "运行得快，或其他输入也能运行"),
        },
        Assessment {
            level: Level::Optimise,
            checks: optimise(cx),
            unclaimed: Text::new(
                "that a change brings what was estimated for it: only a run with the change shows that",
                "改动一定带来估计的收益：只有改动后的运行能证明",
            ),
        },
        Assessment {
            level: Level::Verify,
            checks: vec![contract(cx), repeats(cx), noise(cx), second_run(cx)],
            unclaimed: Text::new(
                "that the gain holds for other models, loads or machines",
                "收益适用于其他模型、负载或机器",
            ),
        },
    ]
}

fn has(cx: &Context<'_>, class: EvidenceClass) -> bool {
    cx.analysis.evidence.has(class)
}

fn device(cx: &Context<'_>) -> Condition {
    let seen = Message::new(
        Text::new(
            "{n} device operations were recorded, in {steps} steps that count",
            "记录了 {n} 个设备操作，被采用的步有 {steps} 个",
        ),
        [
            ("n", Value::Count(cx.analysis.integrity.device_ops)),
            ("steps", Value::Count(cx.main_classes().map(|(_, class)| class.steady as u64).sum())),
        ],
    );
    check(has(cx, EvidenceClass::Device).then_some(seen), || {
        Message::plain(Text::new(
            "device operations: record with the vendor's profiler",
            "设备算子：请用厂商剖析器采集",
        ))
    })
}

/// The field that says how the numbers of a run lie to those of a reference, and what it says.
pub(super) fn held_to_reference<'a>(cx: &Context<'a>) -> Option<(&'static str, &'a str)> {
    let keys = ["precision.deviation", "quality.token_agreement", "quality.accuracy"];
    keys.into_iter().find_map(|key| Some((key, cx.trace.manifest.value(key)?)))
}

/// What the capture says of its numbers beside those of a reference.
fn numerics(cx: &Context<'_>) -> Condition {
    let known = held_to_reference(cx);
    let args =
        |(key, value): (&str, &str)| [("key", Value::Raw(key.to_owned())), ("value", Value::Phrase(value.to_owned()))];
    match known {
        Some(known) if manifest::is_wrong(known.1) => check(None, || {
            Message::new(
                Text::new(
                    "numbers that are those of the reference: {key} is {value}",
                    "与参考一致的数值：{key} 为 {value}",
                ),
                args(known),
            )
        }),
        Some(known) => {
            let text = Text::new(
                "its numbers were held against a reference: {key} is {value}",
                "数值已与参考对照：{key} 为 {value}",
            );
            check(Some(Message::new(text, args(known))), || Message::plain(text))
        }
        None => check(None, || {
            Message::plain(Text::new(
                "its numbers beside those of a reference run: for the reference engine `strato run --numerics`; elsewhere compare the greedy tokens of a few prompts with those of a run that is known to be right",
                "与参考运行对照的数值：参考引擎请用 `strato run --numerics`；其他引擎请将若干提示的贪心 token 与已知正确的运行对比",
            ))
        }),
    }
}

fn optimise(cx: &Context<'_>) -> Vec<Condition> {
    let decodes = cx.main_classes().find(|(_, c)| matches!(c.stage, Stage::Decode | Stage::Mixed | Stage::Train));
    let named = |class: &str| {
        let text = Text::new("the capture names its steps: {class}", "采集标明了步的类型：{class}");
        Message::new(text, [("class", Value::Raw(class.to_owned()))])
    };
    let coverage = cx.analysis.op_coverage;
    let share = || [("coverage", Value::Share(coverage.unwrap_or(0.0)))];
    let probes = cx.trace.probes.rows.len() as u64;
    vec![
        check(decodes.map(|(_, class)| named(&class.key)), || {
            Message::plain(Text::new(
                "steps that the capture itself names as decode, if the model decodes",
                "若模型有解码：采集自身标明为解码的步",
            ))
        }),
        check(
            coverage.is_some_and(|c| c >= NAMED).then(|| {
                let text = Text::new(
                    "operators are named for {coverage} of the device time",
                    "{coverage} 设备时间的算子可识别",
                );
                Message::new(text, share())
            }),
            || {
                let text = Text::new(
                    "named operators for 95 % of the device time ({coverage} now)",
                    "95% 设备时间的算子可识别（当前 {coverage}）",
                );
                Message::new(text, share())
            },
        ),
        check(
            (has(cx, EvidenceClass::HostApi) && has(cx, EvidenceClass::Graph)).then(|| {
                Message::plain(Text::new(
                    "host calls show compilation and graph launches, or that there were none",
                    "主机调用能显示编译与图下发（或确认没有）",
                ))
            }),
            || {
                Message::plain(Text::new(
                    "host calls that show compilation and graph launches",
                    "能看到编译与图下发的主机调用",
                ))
            },
        ),
        check(
            has(cx, EvidenceClass::Probes).then(|| {
                let text = Text::new("ceilings of this platform were measured: {n} rows", "已有本平台实测上限：{n} 行");
                Message::new(text, [("n", Value::Count(probes))])
            }),
            || {
                Message::plain(Text::new(
                    "probes of this platform, to decide which resource bounds the step",
                    "本平台探针，用于判定受哪种资源限制",
                ))
            },
        ),
        second_run(cx),
    ]
}

fn second_run(cx: &Context<'_>) -> Condition {
    let seen = Message::plain(Text::new("there is a second run to compare with", "有可供对比的第二次运行"));
    check(has(cx, EvidenceClass::SecondRun).then_some(seen), || {
        Message::plain(Text::new(
            "a second run with one setting changed and its measured effect",
            "只改一个设置的第二次运行及其实测效果",
        ))
    })
}

/// Whether every field is known without which two runs cannot be compared.
fn contract(cx: &Context<'_>) -> Condition {
    let hard = || manifest::FIELDS.iter().filter(|field| field.control == manifest::Control::Hard);
    let unknown: Vec<&str> = hard().map(|field| field.key).filter(|key| cx.trace.manifest.get(key).is_none()).collect();
    let all = Value::Count(hard().count() as u64);
    let known = Value::Count((hard().count() - unknown.len()) as u64);
    let complete = || {
        let text = Text::new("all {all} hard fields of the contract are known", "可比契约的 {all} 个硬字段均已知");
        Message::new(text, [("all", all.clone())])
    };
    check(unknown.is_empty().then(complete), || {
        let text = Text::new(
            "a complete contract: {known} of {all} hard fields are known, and unknown are {fields} and so on",
            "完整的可比契约：{all} 个硬字段中已知 {known} 个，未知的有 {fields} 等",
        );
        let fields = unknown.iter().take(UNKNOWN).copied().collect::<Vec<_>>().join(", ");
        Message::new(text, [("known", known), ("all", all.clone()), ("fields", Value::Raw(fields))])
    })
}

fn repeats(cx: &Context<'_>) -> Condition {
    let said = cx.trace.manifest.value("measurement.repeats").and_then(|value| value.parse::<u64>().ok());
    let args = |n| [("n", Value::Count(n)), ("least", Value::Count(REPEATS))];
    let enough = |n| Message::new(Text::new("{n} independent repeats", "{n} 次独立重复"), args(n));
    check(said.filter(|n| *n >= REPEATS).map(enough), || match said {
        Some(n) => Message::new(
            Text::new(
                "at least {least} independent repeats of the run ({n} now)",
                "至少 {least} 次独立重复运行（当前 {n} 次）",
            ),
            args(n),
        ),
        None => Message::new(
            Text::new(
                "at least {least} independent repeats of the run; the capture does not say how many there were",
                "至少 {least} 次独立重复运行；采集未说明重复次数",
            ),
            args(0),
        ),
    })
}

/// How far the steps of one run lie apart: a gain that is smaller cannot be seen in single steps.
fn noise(cx: &Context<'_>) -> Condition {
    let class = cx.main_classes().max_by_key(|(_, class)| class.steady).map(|(_, class)| class);
    let steps = class.map_or(0, |class| class.steady);
    let floor = class.filter(|class| class.steady >= NOISE_STEPS && class.p50 > 0).map(|class| {
        Message::new(
            Text::new(
                "noise floor: over {n} steps of {class} the 95th percentile lies {share} above the median",
                "噪声基线：{class} 的 {n} 个步中，95 分位比中位数高 {share}",
            ),
            [
                ("n", Value::Count(class.steady as u64)),
                ("class", Value::Raw(class.key.clone())),
                ("share", Value::Share((class.p95 - class.p50) as f64 / class.p50 as f64)),
            ],
        )
    });
    check(floor, || {
        Message::new(
            Text::new(
                "at least {least} steps that count, to know the noise of a step ({n} now)",
                "至少 {least} 个被采用的步，以获知步的噪声（当前 {n} 个）",
            ),
            [("least", Value::Count(NOISE_STEPS as u64)), ("n", Value::Count(steps as u64))],
        )
    })
}
