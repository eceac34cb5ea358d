//! Collectives and sends of which all ranks were captured, and of which nobody knows how long they should take.

use super::{Case, Unjudged};
use crate::{
    analysis::Layer,
    diagnose::signals::transfers::{self, Transfer},
    i18n::{Message, Text, Value},
};

/// What it says where no size is known.
const SIZELESS: Text = Text::new(
    "how fast the transfers could be, {share} of the step: nothing tells how large they are; name the model (--model config.json), or record the arguments of collectives",
    "传输还能快多少（占步时 {share}）：没有任何记录说明其大小；请给出模型（--model config.json），或采集集合通信的参数",
);
/// What it says where sizes are known and the link is not.
const LINKLESS: Text = Text::new(
    "how fast the transfers could be, {share} of the step: no link between these devices is published or they lie in several nodes; measure the same sizes between the same devices (nccl-tests, rccl-tests, hccl_test)",
    "传输还能快多少（占步时 {share}）：这些设备之间没有公布的链路带宽，或位于多个节点；请在相同设备间测量相同大小（nccl-tests、rccl-tests、hccl_test）",
);

pub(super) fn ask(case: &Case<'_>) -> Option<Unjudged> {
    let (rank, class) = case.longest?;
    if case.weighty().any(|f| f.layer == Layer::Communication) {
        return None;
    }
    let index = case.cx.analysis.ranks.iter().position(|other| std::ptr::eq(other, rank))?;
    let mut unknown = transfers::of(case.cx, index, rank, class);
    unknown.retain(|transfer| transfer.best.is_none());
    let share = |picked: &mut dyn Iterator<Item = &Transfer>| {
        picked.map(|t| t.exposed).sum::<i64>() as f64 / class.total.max(1) as f64
    };
    let all = share(&mut unknown.iter());
    let sizeless = share(&mut unknown.iter().filter(|t| t.message.is_none()));
    let sentence = Message::new(if 2.0 * sizeless > all { SIZELESS } else { LINKLESS }, [("share", Value::Share(all))]);
    (all > 0.0).then(|| Unjudged { share: all, sentence, because: Vec::new(), decides: false })
}
