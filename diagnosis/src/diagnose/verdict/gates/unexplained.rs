//! More of the step is unexplained than what was found would gain.

use super::{Case, Ruling, UNEXPLAINED, opaque, step_args};
use crate::{
    diagnose::relations::Role,
    i18n::{Message, Text, Value},
};

/// What it says.
const SENTENCE: Text = Text::new(
    "{subject} ({class}): {lasts} {step}; for {share} of it nothing recorded says why the device does not work, and that is more than what was found would gain ({gain} at most): record the host's calls and which of them launched what.",
    "{subject}（{class}）：{lasts} {step}；其中 {share} 的时间没有任何记录能说明设备为何不工作，多于已发现问题的最大收益（{gain}）：请采集主机调用及其与设备操作的关联。",
);

pub(super) fn decide(case: &Case<'_>) -> Option<Ruling> {
    let (rank, class) = case.longest?;
    let (opaque, best) = (opaque(class), case.best());
    if opaque < UNEXPLAINED || opaque <= best {
        return None;
    }
    let args = [("share", Value::Share(opaque)), ("gain", Value::Share(best))];
    let headline = Message::new(SENTENCE, step_args(rank, class).into_iter().chain(args));
    Some(Ruling::undecided(headline, case.rules.with(Role::Unexplained)))
}
