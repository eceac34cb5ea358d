//! CP-05: signs that the trace cannot be taken at face value.

use model::{EvidenceClass::Device, Severity as Loss};

use super::reading;
use crate::{
    analysis::{Bucket, Confidence, Integrity, Layer, contradiction::Against, idle::Gap},
    diagnose::{
        Competing, Evidence, Finding, Over, Severity, Trigger,
        estimate::Estimate,
        relations::{Advice, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
    platform::HostCall,
};

/// Gaps below which their distribution says nothing.
const FEW_GAPS: u64 = 100;

/// The rule.
pub struct TraceIntegrity;

static DOC: Doc = Doc {
    id: "CP-05",
    title: Text::new("Trace integrity", "采集完整性"),
    layer: Layer::Measurement,
    needs: &[Device],
    advice: Advice::Device,
    relations: Relations::NONE,
    sees: Text::new(
        "Device work that starts before its launch, work without a launch, launches without work, durations that hold the time between operations, records that were lost, sums of a rank that contradict each other.",
        "先于下发开始的设备工作、没有下发记录的工作、没有执行记录的下发、把算子间隙折入时长的格式、丢失的记录、同一 rank 相互矛盾的合计。",
    ),
    matters: Text::new(
        "Attribution follows the launch of each operation: where that link is missing or impossible, the split between host and device is a guess.",
        "归因依赖每个算子的下发：关联缺失或不可能时，主机与设备的划分只是猜测。",
    ),
    trigger: Text::new(
        "Any operation before its launch call; more than 2 % of the operations without a launch although earlier ones of their queue have one; more than 2 % of the launched operations without a record; more than 80 % of at least 100 gaps zero; any record counted as lost or wrong on import; any sum of a rank without rows that lies more than 2 % from what its other files add up to.",
        "任何算子先于其下发调用；同一队列上更早的算子已有下发关联，却有超过 2% 的算子无下发；超过 2% 的已下发算子没有记录；至少 100 个间隙中超过 80% 为零；导入时有记录被计为丢失或错误；没有明细行的 rank，其任一合计与其他文件所得相差超过 2%。",
    ),
    source: Text::new(
        "Structural. 2 % and 80 %: own values; a format that folds gaps shows 97 % zero gaps. Sums: torch_npu defines the parts of a step (`step_trace_time.csv`) by the collectives and kernels that `communication.json` and `analysis.db` sum; whole captures agree within 1 %.",
        "结构性判据。2% 与 80%：自定值；折叠间隙的格式有 97% 的零间隙。合计：torch_npu 按 `communication.json` 与 `analysis.db` 所汇总的同一批集合通信与内核定义步的各部分（`step_trace_time.csv`）；完整采集的差异在 1% 以内。",
    ),
    guards: Text::new(
        "Captures without any linked launch have no correlation at all; rules that need it abstain instead. Work that was launched before the recording began has no launch to lose; launches during a graph capture, or at either end of the recording, run nothing that could be recorded.",
        "完全没有关联的采集不在此列；需要关联的规则会弃权。采集开始之前就已下发的工作本就没有下发记录，不算丢失；图捕获期间以及采集首尾的下发没有可记录的执行。",
    ),
    verify: Text::new(
        "Record again with larger profiler buffers and fewer steps: counts of lost or impossible records fall to zero. Zero gaps stay where the profiler folds them; there a probe of empty kernels tells the dispatch time.",
        "增大剖析缓冲、减少步数重新采集：丢失或不可能的记录应降为零。若剖析器本身折叠间隙，零间隙会依旧存在，此时用空内核探针测出调度时间。",
    ),
};

/// How to verify where folded gaps are all there is.
const PROBE: Text = Text::new(
    "Run a probe of empty kernels on this platform: it tells the dispatch time that the durations may hold.",
    "在该平台上运行空内核探针：可测出内核时长中可能包含的调度时间。",
);

impl Rule for TraceIntegrity {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let i = &cx.analysis.integrity;
        let ops = i.device_ops.max(1) as f64;
        let unlinked = i.lost_launches();
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
        if unlinked > Integrity::LOST && i.unlinked < i.device_ops {
            let what = Text::new(
                "share of operations whose launch was not recorded although earlier ones of the queue have one",
                "同一队列更早的算子有下发记录、自身却没有的算子占比",
            );
            fact(what, Value::Share(unlinked), unlinked, Integrity::LOST);
        }
        let silent = i.lost_operations();
        if silent > Integrity::LOST && i.unlinked < i.device_ops {
            let what = Text::new(
                "share of the launched operations of which no record exists, so that the device seems idle while they run",
                "已下发却没有任何执行记录的算子占比，其执行期间设备看似空闲",
            );
            fact(what, Value::Share(silent), silent, Integrity::LOST);
        }
        let graphs = lost_replays(cx);
        if graphs > Integrity::LOST {
            let what = Text::new(
                "share of the graph launches of which no work is recorded, or only work that begins long after an idle device could have begun it",
                "没有任何执行记录的图下发占比（含设备空闲却在很久之后才出现首个记录者）",
            );
            fact(what, Value::Share(graphs), graphs, Integrity::LOST);
        }
        if folded > Integrity::FOLDED && i.gaps >= FEW_GAPS {
            let what = Text::new(
                "share of gaps between operations that are at most 2 ns, so that durations may hold the dispatch time",
                "不超过 2 ns 的算子间隙占比（算子时长可能包含调度时间）",
            );
            fact(what, Value::Share(folded), folded, Integrity::FOLDED);
        }
        if lost > 0 {
            let what = Text::new("records counted as lost or wrong on import", "导入时计为丢失或错误的记录");
            fact(what, Value::Count(lost), lost as f64 / cx.trace.slice_count().max(1) as f64, 0.0);
        }
        let sums = cx.analysis.contradictions.iter().filter(|of| of.against != Against::Rows).count() as u64;
        if sums > 0 {
            let what = Text::new(
                "sums of ranks of which nothing else was kept that contradict other sums of the same rank",
                "只保留了合计的 rank 中，与同一 rank 其他合计相互矛盾的合计",
            );
            fact(what, Value::Count(sums), sums as f64 / cx.trace.stated.len().max(1) as f64, 0.0);
        }
        let Some((first, value, threshold)) = facts.first() else { return Outcome::Quiet };
        let claim = Message::new(
            Text::new(
                "Not all times of this capture can be taken at face value: {what}: {value}. Kinds of problem found: {signs}.",
                "该采集的时间不能全部直接采信：{what}：{value}。问题共 {signs} 类。",
            ),
            [
                ("signs", Value::Count(facts.len() as u64)),
                ("what", Value::Text(first.what.text)),
                ("value", first.value.clone()),
            ],
        );
        let trigger = Trigger {
            formula: Text::new(
                "share of the records concerned, first kind of problem listed",
                "受影响记录的占比，取列出的第一类问题",
            ),
            value: *value,
            threshold: *threshold,
        };
        let folds = folded > Integrity::FOLDED && i.gaps >= FEW_GAPS;
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
            over: Over::Class,
            limits: None,
            unreplayed: None,
            changes: Vec::new(),
            competing: Vec::new(),
            remedy: cx.remedies(DOC.id),
            verify: Message::plain(DOC.verify),
            supersedes: Vec::new(),
            explains: 0,
            same_time_as: None,
            beyond: false,
            claimed: 0,
            cost: 0,
            weight: 1.0,
            selection: Vec::new(),
            stretches: Vec::new(),
            selected_on: 0,
        };
        if folds {
            // Whether the durations hold dispatch time is open, so the finding is no surer than that; and where nothing was
            // lost, larger buffers bring nothing.
            finding.confidence = Confidence::Medium;
            if finding.evidence.len() == 1 {
                let own = finding.remedy.iter().any(|remedy| remedy.platform != "generic");
                finding.remedy.retain(|remedy| !own || remedy.platform != "generic");
                finding.verify = Message::plain(PROBE);
            }
            finding = finding.against(Competing::open(
                Text::new("the device really starts operations back to back", "设备确实背靠背启动算子"),
                Text::new("a probe of empty kernels on this platform decides", "在该平台上运行空内核探针可以判定"),
            ));
        }
        Outcome::Found(vec![finding])
    }
}

/// Share of the graph launches whose work the capture lacks, wholly or in part.
fn lost_replays(cx: &Context<'_>) -> f64 {
    let (mut lost, mut all) = (0, 0);
    for rank in &cx.analysis.ranks {
        let replays = |gap: &&Gap| {
            let call = reading::owner(rank, gap).and_then(|op| rank.timeline.call(op));
            call.is_some_and(|call| call.kind == HostCall::GraphLaunch)
                && gap.parts.iter().any(|(bucket, _)| *bucket == Bucket::Unattributed)
        };
        lost += rank.timeline.unrecorded_graphs.len() + rank.gaps.iter().filter(replays).count();
        all += rank.timeline.graph_launches;
    }
    lost as f64 / all.max(1) as f64
}
