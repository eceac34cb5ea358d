//! Idle time, or time inside replays, of which nothing recorded says what it was.

use model::{EvidenceClass, ImportStat, Ns};

use super::{super::case::opaque, Case, Unjudged};
use crate::{
    analysis::{Bucket, Class, Integrity, Rank},
    diagnose::{relations::Role, signals::reading},
    i18n::{Message, Text, Value},
};

/// What it says of idle time.
const IDLE: Text = Text::new(
    "for {share} of the step nothing recorded says why the device does not work: record the host's calls and which of them launched what",
    "步时的 {share} 没有任何记录能说明设备为何不工作：请采集主机调用及其与设备操作的关联",
);
/// What it says of replays.
const REPLAYS: Text = Text::new(
    "{share} of the step lies inside graph replays of which one row was recorded: trace graphs node by node, or give the capture of the graph (--graph-capture)",
    "步时的 {share} 位于只有一行记录的图重放内：请按节点采集图，或提供图捕获（--graph-capture）",
);

/// What it says of idle time before work whose launch is unknown although calls were recorded.
const LINKS: Text = Text::new(
    "for {share} of the step nothing recorded says why the device does not work: the host's calls were recorded, but not which of them launched what; record the links between both",
    "步时的 {share} 没有任何记录能说明设备为何不工作：已采集主机调用，但缺少其与设备操作的关联；请采集两者的关联",
);
/// What it says of idle time inside replays, or long after what was launched.
const MISSING: Text = Text::new(
    "for {share} of the step nothing recorded says why the device does not work: what follows was launched long before, so work of the device is missing from the capture, and it works for more than is said here; record with larger buffers, and graphs node by node",
    "步时的 {share} 没有任何记录能说明设备为何不工作：其后的操作早已下发，说明采集缺少部分设备工作，设备的实际工作占比高于此处；请增大采集缓冲区，并按节点采集图",
);

/// What it says where kernels are missing by their own numbers.
const LOST: Text = Text::new(
    "for {share} of the step nothing recorded says why the device does not work: the numbers of the dispatches have holes, so kernels are missing and the device works for more than is said here; record every kernel",
    "步时的 {share} 没有任何记录能说明设备为何不工作：派发编号有缺口，说明缺少部分内核，设备的实际工作占比高于此处；请采集全部内核",
);

/// What is said of idle time: whether host calls, their links or work of the device are missing decides.
fn idle(case: &Case<'_>, rank: &Rank, class: &Class) -> Text {
    let holes = case.cx.trace.stat(ImportStat::MISSING_KERNELS) as f64;
    if holes > Integrity::LOST * (holes + case.cx.analysis.integrity.device_ops as f64) {
        return LOST;
    }
    if !case.cx.analysis.evidence.has(EvidenceClass::HostApi) {
        return IDLE;
    }
    let (mut linked, mut all): (Ns, Ns) = (0, 0);
    for gap in rank.steady_steps(class).flat_map(|step| reading::gaps(rank, step)) {
        let ns = reading::time_in(gap, |bucket| matches!(bucket, Bucket::Unattributed | Bucket::IdleUndecided));
        all = all.saturating_add(ns);
        if reading::owner(rank, gap).is_some_and(|op| op.call.is_some()) {
            linked = linked.saturating_add(ns);
        }
    }
    if 2 * linked > all { MISSING } else { LINKS }
}

pub(super) fn ask(case: &Case<'_>) -> Option<Unjudged> {
    let (rank, class) = case.longest?;
    let share = opaque(class);
    let replays = 2.0 * class.share(|bucket| bucket == Bucket::GraphOpaque) > share;
    let sentence =
        Message::new(if replays { REPLAYS } else { idle(case, rank, class) }, [("share", Value::Share(share))]);
    (share > case.best()).then(|| Unjudged {
        share,
        sentence,
        because: case.rules.with(Role::Unexplained).collect(),
        decides: true,
    })
}
