//! CP-05: signs that the trace cannot be taken at face value.

use model::{EvidenceClass::Device, Severity as Loss};

use crate::{
    analysis::{Confidence, Layer},
    diagnose::{
        Competing, Evidence, Finding, Severity, Trigger,
        estimate::Estimate,
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
};

/// Share of operations without a launch, where launches are recorded.
pub const UNLINKED: f64 = 0.02;
/// Share of gaps of at most 2 ns from which durations hold the dispatch time.
pub const FOLDED: f64 = 0.80;
/// Gaps below which their distribution says nothing.
const FEW_GAPS: u64 = 100;

/// The rule.
pub struct TraceIntegrity;

static DOC: Doc = Doc {
    id: "CP-05",
    title: Text::new("Trace integrity", "轨迹完整性"),
    layer: Layer::Measurement,
    needs: &[Device],
    sees: Text::new(
        "Device work that starts before its launch, work without a launch, durations that hold the time between operations, records that were lost.",
        "先于下发开始的设备工作、没有下发记录的工作、把算子间隙折入时长的格式、丢失的记录。",
    ),
    matters: Text::new(
        "Attribution follows the launch of each operation: where that link is missing or impossible, the split between host and device is a guess.",
        "归因依赖每个算子的下发：关联缺失或不可能时，主机与设备的划分只是猜测。",
    ),
    trigger: Text::new(
        "Any operation before its launch call; more than 2 % of the operations without a launch although launches are linked; more than 80 % of at least 100 gaps zero; any record counted as lost or wrong on import.",
        "任何算子先于其下发调用；有下发关联时超过 2% 的算子无下发；至少 100 个间隙中超过 80% 为零；导入时有记录被计为丢失或错误。",
    ),
    source: Text::new(
        "Structural. 2 % and 80 %: own values; a format that folds gaps shows 97 % zero gaps.",
        "结构性判据。2% 与 80%：自定值；折叠间隙的格式有 97% 的零间隙。",
    ),
    guards: Text::new(
        "Captures without any linked launch have no correlation at all; rules that need it abstain instead.",
        "完全没有关联的捕获不在此列；需要关联的规则会弃权。",
    ),
    verify: Text::new(
        "Record again with larger profiler buffers and fewer steps; the counts are zero.",
        "增大剖析缓冲、减少步数重新采集；上述计数应为零。",
    ),
};

impl Rule for TraceIntegrity {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let i = &cx.analysis.integrity;
        let ops = i.device_ops.max(1) as f64;
        let unlinked = i.unlinked as f64 / ops;
        let folded = i.zero_gaps as f64 / i.gaps.max(1) as f64;
        let lost: u64 = cx.trace.stats.iter().filter(|s| s.severity >= Loss::DataLoss).map(|s| s.count).sum();
        let mut facts = Vec::new();
        let mut fact = |what: Text, value: Value, ratio: f64, threshold: f64| {
            facts.push((Evidence::new(what, value, Vec::new()), ratio, threshold));
        };
        if i.before_launch > 0 {
            let what = Text::new("operations that start before their launch call", "先于下发调用开始的算子");
            fact(what, Value::Count(i.before_launch), i.before_launch as f64 / ops, 0.0);
        }
        if unlinked > UNLINKED && i.unlinked < i.device_ops {
            let what = Text::new("operations without a launch, share", "无下发记录的算子占比");
            fact(what, Value::Share(unlinked), unlinked, UNLINKED);
        }
        if folded > FOLDED && i.gaps >= FEW_GAPS {
            let what = Text::new("gaps of at most 2 ns, share", "不超过 2 ns 的间隙占比");
            fact(what, Value::Share(folded), folded, FOLDED);
        }
        if lost > 0 {
            let what = Text::new("records counted as lost or wrong on import", "导入时计为丢失或错误的记录");
            fact(what, Value::Count(lost), lost as f64 / cx.trace.slice_count().max(1) as f64, 0.0);
        }
        let Some((_, value, threshold)) = facts.first() else { return Outcome::Quiet };
        let claim = Message::new(
            Text::new(
                "The trace shows {signs} of the signs that its times cannot be taken at face value; see the evidence.",
                "该轨迹出现 {signs} 项迹象，表明其时间不能直接采信；见证据。",
            ),
            [("signs", Value::Count(facts.len() as u64))],
        );
        let trigger = Trigger {
            formula: "share of the records concerned, first kind of problem listed",
            value: *value,
            threshold: *threshold,
        };
        let folds = folded > FOLDED && i.gaps >= FEW_GAPS;
        let mut finding = Finding {
            rule: DOC.id,
            layer: DOC.layer,
            severity: Severity::Info,
            confidence: Confidence::High,
            claim,
            class: String::new(),
            ranks: cx.analysis.ranks.iter().map(|r| r.rank).collect(),
            evidence: facts.into_iter().map(|(evidence, ..)| evidence).collect(),
            trigger,
            estimate: Estimate::none(0),
            competing: Vec::new(),
            remedy: cx.packs.remedies(DOC.id, cx.vendor()),
            verify: Message::plain(DOC.verify),
            supersedes: Vec::new(),
        };
        if folds {
            finding = finding.against(Competing::open(
                Text::new("the device really starts operations back to back", "设备确实背靠背启动算子"),
                Text::new("a probe of empty kernels on this platform decides", "在该平台上运行空核探针可以判定"),
            ));
        }
        Outcome::Found(vec![finding])
    }
}
