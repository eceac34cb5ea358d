//! The level a capture reached: how far it supports work on performance, and what is missing for the next one.

use model::EvidenceClass;

use super::rule::Context;
use crate::{
    i18n::{Message, Text, Value},
    platform::Stage,
};

/// Share of device time whose operators must be named before a hot path counts as known.
const NAMED: f64 = 0.95;

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

/// Level reached, and what the next one needs.
pub(super) fn reached(cx: &Context<'_>) -> (Option<Level>, Vec<Message>) {
    let has = |class| cx.analysis.evidence.has(class);
    if !has(EvidenceClass::Device) {
        let text = Text::new("device operations: record with the vendor's profiler", "设备算子：请用厂商剖析器采集");
        return (None, vec![Message::plain(text)]);
    }
    let mut missing = Vec::new();
    let mut need = |met: bool, text: Text, args: Vec<(&'static str, Value)>| {
        if !met {
            missing.push(Message::new(text, args));
        }
    };
    let decodes = cx.main_classes().any(|(_, c)| matches!(c.stage, Stage::Decode | Stage::Mixed));
    let trains = cx.main_classes().any(|(_, c)| c.stage == Stage::Train);
    need(
        decodes || trains,
        Text::new(
            "steps that the capture itself names as decode, if the model decodes",
            "若模型有解码：采集自身标明为解码的步",
        ),
        Vec::new(),
    );
    let coverage = cx.analysis.op_coverage;
    need(
        coverage.is_some_and(|c| c >= NAMED),
        Text::new(
            "named operators for 95 % of the device time ({coverage} now)",
            "95% 设备时间的算子可识别（当前 {coverage}）",
        ),
        vec![("coverage", Value::Share(coverage.unwrap_or(0.0)))],
    );
    need(
        has(EvidenceClass::HostApi) && has(EvidenceClass::Graph),
        Text::new("host calls that show compilation and graph launches", "能看到编译与图下发的主机调用"),
        Vec::new(),
    );
    need(
        has(EvidenceClass::Probes),
        Text::new(
            "probes of this platform, to decide which resource bounds the step",
            "本平台探针，用于判定受哪种资源限制",
        ),
        Vec::new(),
    );
    need(
        has(EvidenceClass::SecondRun),
        Text::new(
            "a second run with one setting changed and its measured effect",
            "只改一个设置的第二次运行及其实测效果",
        ),
        Vec::new(),
    );
    if missing.is_empty() {
        let next =
            Text::new("a complete contract, repeats and an on/off control", "完整的可比契约、重复运行与开关对照");
        return (Some(Level::Optimise), vec![Message::plain(next)]);
    }
    (Some(Level::Run), missing)
}
