//! CP-07: the sum of kernel times is longer than the time that passed.

use model::EvidenceClass::Device;

use super::measurement::about;
use crate::{
    analysis::Layer,
    diagnose::{
        Competing, Evidence, Finding, Trigger,
        relations::{Advice, Relations, Role},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
};

/// Sum over wall time from which a sum misleads: below it rounding of the ends explains it, and nobody sees the difference.
const LEAST: f64 = 1.01;

/// The rule.
pub struct SumAboveWall;

static DOC: Doc = Doc {
    id: "CP-07",
    title: Text::new("Sum of kernels above wall time", "算子时间之和超过墙钟时间"),
    layer: Layer::Measurement,
    needs: &[Device],
    advice: Advice::Device,
    relations: Relations { role: Some(Role::SumAboveWall), ..Relations::NONE },
    sees: Text::new(
        "The durations of the device operations of a class add up to more than the steps took.",
        "某类步中设备算子时长之和超过这些步的实际时长。",
    ),
    matters: Text::new(
        "Operations overlap, or their durations hold more than their work: a claim built on such a sum is wrong.",
        "算子相互重叠，或其时长不止包含自身工作：建立在这种求和上的结论是错的。",
    ),
    trigger: Text::new(
        "Sum of the durations of device operations over the sum of the step windows at least 1.01.",
        "设备算子时长之和与步窗口之和的比值至少为 1.01。",
    ),
    source: Text::new(
        "Arithmetic; a public case summed 35.4 ms of kernels in 19.7 ms of wall time (pypto-lib #1054).",
        "算术判据；公开案例中 19.7 ms 墙钟内算子之和达 35.4 ms（pypto-lib #1054）。",
    ),
    guards: Text::new(
        "The buckets of this report are exclusive and do not suffer from it: they add up to the step by construction.",
        "本报告的时间桶互斥，不受此影响：按构造其和等于步时。",
    ),
    verify: Text::new("Compare exclusive times instead of sums of durations.", "比较独占时间而不是时长之和。"),
};

impl Rule for SumAboveWall {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let mut found = Vec::new();
        for (rank, class) in cx.main_classes() {
            let ops = rank.steady_steps(class).flat_map(|s| rank.ops_of(s));
            let sum = ops.fold(0i64, |sum, op| sum.saturating_add(op.dur()));
            let ratio = sum as f64 / class.total.max(1) as f64;
            if ratio < LEAST || class.total <= 0 {
                continue;
            }
            let trigger = Trigger {
                formula: Text::new("sum of operation durations / sum of step windows", "算子时长之和 / 步窗口之和"),
                value: ratio,
                threshold: LEAST,
            };
            let claim = Message::new(
                Text::new(
                    "Device operations of {class} add up to {ratio} the time that passed: sums of durations must not be read as wall time.",
                    "{class} 的设备算子时长之和为实际时长的 {ratio}：时长之和不能当作墙钟时间。",
                ),
                [("class", Value::Raw(class.key.clone())), ("ratio", Value::Ratio(ratio))],
            );
            let finding = about(cx, &DOC, rank, class, claim, trigger)
                .with(Evidence::new(
                    Text::new("sum of operation durations", "算子时长之和"),
                    Value::Ns(sum),
                    Vec::new(),
                ))
                .with(Evidence::new(
                    Text::new("sum of step windows", "步窗口之和"),
                    Value::Ns(class.total),
                    Vec::new(),
                ));
            let overlap = Text::new("operations of several queues run at once", "多个队列的算子同时运行");
            found.push(finding.against(if rank.timeline.overlapping == 0 {
                Competing::open(
                    overlap,
                    Text::new("no queue overlaps itself, so several queues do", "没有队列与自身重叠，因此是多队列并行"),
                )
            } else {
                Competing::open(
                    overlap,
                    Text::new("one queue also overlaps itself; see CP-05", "也有单个队列与自身重叠；见 CP-05"),
                )
            }));
        }
        by_class(found).into_iter().collect()
    }
}

/// One finding of all ranks that share a class, with the words of the rank where the ratio is highest.
fn by_class(found: Vec<Finding>) -> Vec<Finding> {
    let mut classes: Vec<Finding> = Vec::new();
    for mut finding in found {
        let Some(known) = classes.iter_mut().find(|known| known.class == finding.class) else {
            classes.push(finding);
            continue;
        };
        finding.ranks.splice(0..0, known.ranks.drain(..));
        if finding.trigger.value > known.trigger.value {
            *known = finding;
        } else {
            known.ranks = finding.ranks;
        }
    }
    classes
}
