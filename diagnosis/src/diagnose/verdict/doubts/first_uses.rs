//! Calls that are slow because they are the first of their kind, in a capture of one or two steps: they are no cost of the work,
//! and less than a start-up's.

use super::{Case, Unjudged};
use crate::{
    diagnose::signals::{first_use::FirstUses, start_up::FEW},
    i18n::{Message, Text, Value},
};

/// What it says.
const SENTENCE: Text = Text::new(
    "{share} of the step: there the device waits for calls that are slow because they are the first of their kind ({n} in the window: code is loaded, a context is made). The same run a second time has none of them: warm up before recording",
    "步时的 {share}：设备在等待首次调用（窗口内共 {n} 次：加载代码、创建上下文）。同样的运行再来一遍便没有这些：请在采集前预热",
);

pub(super) fn ask(case: &Case<'_>) -> Option<Unjudged> {
    let (rank, class) = case.longest.filter(|(_, class)| class.steady <= FEW)?;
    let first = FirstUses::of(rank, class);
    let share = first.all_idle(rank, class) as f64 / class.total.max(1) as f64;
    let args = [("share", Value::Share(share)), ("n", Value::Count(first.calls.len() as u64))];
    Some(Unjudged { share, sentence: Message::new(SENTENCE, args), because: Vec::new(), decides: false })
}
