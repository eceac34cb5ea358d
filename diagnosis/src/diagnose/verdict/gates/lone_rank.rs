//! Much of the step is collectives, of a capture that holds one rank of a job.

use model::EvidenceClass;

use super::{Case, Ruling, step_args};
use crate::{
    analysis::{Bucket, Layer},
    i18n::{Message, Text, Value},
};

/// Share of collectives from which a single rank's capture must not be judged by what little it explains; own value, the
/// limit of rule RT-14 for idle time.
const COLLECTIVES: f64 = 0.15;

/// What it says.
const SENTENCE: Text = Text::new(
    "{subject} ({class}): {lasts} {step}, {share} of it inside collectives; one rank alone cannot tell their transfer from waiting for a late rank, so capture the other ranks of the job too.",
    "{subject}（{class}）：{lasts} {step}，其中 {share} 在集合通信内；仅凭一个 rank 无法区分传输与等待迟到的 rank，请同时采集作业的其他 rank。",
);

pub(super) fn decide(case: &Case<'_>) -> Option<Ruling> {
    let (rank, class) = case.longest?;
    let collectives = class.share(|b| matches!(b, Bucket::CommTransfer | Bucket::CommWait));
    let alone = !case.cx.analysis.evidence.has(EvidenceClass::MultiRank)
        && !case.findings.iter().any(|f| f.layer == Layer::Communication);
    if !alone || collectives < COLLECTIVES || collectives <= case.best() {
        return None;
    }
    let args = step_args(rank, class).into_iter().chain([("share", Value::Share(collectives))]);
    Some(Ruling::undecided(Message::new(SENTENCE, args), []))
}
