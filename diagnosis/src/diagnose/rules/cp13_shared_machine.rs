//! CP-13: other processes had the machine while a run on its CPU was recorded.

use super::{machine::Use, measurement::about};
use crate::{
    analysis::Layer,
    diagnose::{
        Evidence, Trigger,
        relations::{Advice, Relations, Role},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
};

/// Share of the time of all cores in other hands from which a run is not alone; own value, above what a system's own
/// services take.
const OTHERS: f64 = 0.05;
/// The rule.
pub struct SharedMachine;

static DOC: Doc = Doc {
    id: "CP-13",
    title: Text::new("Machine shared during the run", "运行期间机器被共享"),
    layer: Layer::Measurement,
    needs: &[],
    advice: Advice::Host,
    relations: Relations { role: Some(Role::SharedMachine), ..Relations::NONE },
    sees: Text::new(
        "While the steps of a run on the CPU were recorded, other processes or the hypervisor had part of the processors' time.",
        "在 CPU 上的运行被记录期间，其他进程或虚拟机监控程序占用了处理器时间。",
    ),
    matters: Text::new(
        "A worker that loses its core makes its operator longer and all other workers wait: operators, gaps and launches all look slow, and none of them is.",
        "某个工作线程失去核心时，其算子变长，其余线程都要等待：算子、间隙与下发看起来都慢，实际上都不慢。",
    ),
    trigger: Text::new(
        "Over the steps that count, the time that all cores were busy less that of the run's own processes is at least 5 % of all cores' time. From 20 % on, if the cores were busy for 90 % and more, the capture allows no verdict on a layer, and every finding about it is of low confidence and low severity.",
        "在计入统计的步内，全部核心的忙碌时间减去本次运行各进程的时间至少占全部核心时间的 5%。达到 20% 且核心忙碌 90% 以上时，该采集不足以判定任何一层，相关结论的置信度与严重度均降为低。",
    ),
    source: Text::new(
        "5 %, 20 % and 90 %: own values. The counts are those of proc(5).",
        "5%、20% 与 90%：自定值。计数来自 proc(5)。",
    ),
    guards: Text::new(
        "Without samples of the processors' use the rule says nothing. Threads of the run's own processes count as its own, whatever they do. A quota of the control group stalls threads without anyone else being busy, and is not seen here.",
        "没有处理器使用率采样时不作判断。本次运行各进程的线程无论做什么都算自己的。控制组配额会在无人繁忙时暂停线程，此处看不到。",
    ),
    verify: Text::new(
        "Stop the other processes, or wait for them, and run again: the share falls below 5 %, and the steps become shorter and more alike.",
        "停止其他进程或等其结束后重跑：占比降到 5% 以下，各步变短且更一致。",
    ),
};

impl Rule for SharedMachine {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        // Ranks on one machine share it: the one that had least of it speaks for them.
        let uses = cx.main_classes().filter_map(|(rank, class)| Some((rank, class, Use::of(cx, rank, class)?)));
        let most = uses.max_by(|a, b| a.2.others.total_cmp(&b.2.others)).filter(|(.., shared)| shared.others >= OTHERS);
        let found = most.map(|(rank, class, shared)| {
            let claim = Message::new(
                Text::new(
                    "Other processes had {others} of the processors' time while {class} ran, and the cores were busy for {busy}: its times are those of what was left of the machine.",
                    "{class} 运行期间其他进程占用了 {others} 的处理器时间，核心忙碌 {busy}：其时间只反映机器的余力。",
                ),
                [
                    ("class", Value::Raw(class.key.clone())),
                    ("others", Value::Share(shared.others)),
                    ("busy", Value::Share(shared.busy)),
                ],
            );
            let formula = Text::new(
                "(busy time - time of the run's processes) / time of all cores",
                "（忙碌时间 − 本次运行各进程的时间）/ 全部核心时间",
            );
            let trigger = Trigger { formula, value: shared.others, threshold: OTHERS };
            about(cx, &DOC, rank, class, claim, trigger).with(Evidence::new(
                Text::new("share of all cores' time in other hands", "其他进程占全部核心时间的比例"),
                Value::Share(shared.others),
                Vec::new(),
            ))
        });
        found.into_iter().collect()
    }
}
