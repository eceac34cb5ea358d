//! Copies between host and device that take much of the step although they are neither pageable nor waited for.

use super::{Case, Unjudged};
use crate::{
    analysis::{AnchorKind, Bucket, CopyDir, OpKind},
    i18n::{Message, Text, Value},
};

/// Share of the step from which copies need a word: a token, its positions and a table of blocks take far less; own value.
const LEAST: f64 = 0.10;

/// What it says.
const SENTENCE: Text = Text::new(
    "whether the copies between host and device, {share} of the step with nothing beside them, are needed in every step: weights, optimizer states or a cache kept on the host return that way; keep them on the device, or copy them while it computes",
    "主机与设备间的拷贝（占步时 {share}，期间设备没有其他工作）是否每步都需要：放在主机上的权重、优化器状态或缓存会这样反复搬运；请留在设备上，或在计算时并行拷贝",
);

/// Copies of a window without steps up to which they are the set-up of a program and its result rather than what returns; own
/// value.
const FEW: usize = 16;

/// What it says of those.
const ONCE: Text = Text::new(
    "whether the few copies between host and device, {share} of the step with nothing beside them, are set-up and result or part of what repeats: nothing marks the steps; annotate them, or record from the first one on",
    "主机与设备间为数不多的拷贝（占步时 {share}，期间设备没有其他工作）是准备与取回结果，还是重复工作的一部分：没有步标记；请标注各步，或从首个步开始采集",
);

pub(super) fn ask(case: &Case<'_>) -> Option<Unjudged> {
    let (rank, class) = case.longest?;
    let across = |kind: OpKind| matches!(kind, OpKind::Copy(CopyDir::HtoD | CopyDir::DtoH));
    let copies = rank.timeline.ops.iter().filter(|op| across(op.kind)).take(FEW + 1).count();
    let text = if rank.anchor.kind == AnchorKind::WholeCapture && copies <= FEW { ONCE } else { SENTENCE };
    let share = class.share(|b| matches!(b, Bucket::Copy(CopyDir::HtoD | CopyDir::DtoH)));
    let claimed = case.best();
    let sentence = Message::new(text, [("share", Value::Share(share))]);
    (share >= LEAST && share > claimed).then(|| Unjudged { share, sentence, because: Vec::new(), decides: false })
}
