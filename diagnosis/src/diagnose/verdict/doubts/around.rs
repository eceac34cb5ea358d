//! What the host does alone around the only step that is marked: no window of a step holds it.

use super::{Case, Unjudged};
use crate::{
    analysis::owners,
    i18n::{Message, Text, Value},
};

/// What it says where the record that holds most of it is known.
const OWNED: Text = Text::new(
    "why the host works for {lead} before the step's first device operation, most of it in {owner}: the shares and gains leave that out. Record several steps, and each holds it",
    "该步首个设备操作之前仅主机工作的 {lead}，其中大部分在 {owner}：任何占比与收益都未计入；请采集多个步，它们便是各步的一部分",
);
/// What it says elsewhere.
const ALONE: Text = Text::new(
    "why the host works for {lead} before the step's first device operation and after its last: the shares and gains leave that out. Record several steps, and each holds it",
    "该步首个设备操作之前与最后一个之后仅主机工作的 {lead}：任何占比与收益都未计入；请采集多个步，它们便是各步的一部分",
);

pub(super) fn ask(case: &Case<'_>) -> Option<Unjudged> {
    let (rank, class) = case.longest?;
    let lead = rank.lead.as_ref()?;
    let owner = lead.owner.as_ref().map(|owner| owners::short(case.cx.trace.strings.get(owner.name)).to_owned());
    let (text, ns) = if owner.is_some() { (OWNED, lead.before.len()) } else { (ALONE, lead.alone()) };
    let share = ns as f64 / class.total.max(1) as f64;
    let args = [("lead", Value::Ns(ns)), ("owner", Value::Raw(owner.unwrap_or_default()))];
    Some(Unjudged { share, sentence: Message::new(text, args), because: Vec::new(), decides: false })
}
