//! Idle time, or time inside replays, of which nothing recorded says what it was.

use super::{super::case::opaque, Case, Unjudged};
use crate::{
    analysis::Bucket,
    diagnose::relations::Role,
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

pub(super) fn ask(case: &Case<'_>) -> Option<Unjudged> {
    let (_, class) = case.longest?;
    let share = opaque(class);
    let replays = 2.0 * class.share(|bucket| bucket == Bucket::GraphOpaque) > share;
    let sentence = Message::new(if replays { REPLAYS } else { IDLE }, [("share", Value::Share(share))]);
    (share > case.best()).then(|| Unjudged {
        share,
        sentence,
        because: case.rules.with(Role::Unexplained).collect(),
        decides: true,
    })
}
