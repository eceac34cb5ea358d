//! Collectives of a capture that holds one rank of a job: their transfer and their wait for a late rank look the same.

use model::EvidenceClass;

use super::{Case, Unjudged};
use crate::{
    analysis::{Bucket, Layer},
    i18n::{Message, Text, Value},
};

/// What it says.
const SENTENCE: Text = Text::new(
    "{share} of the step lies inside collectives; one rank alone cannot tell their transfer from waiting for a late rank: capture the other ranks of the job too",
    "步时的 {share} 在集合通信内；仅凭一个 rank 无法区分传输与等待迟到的 rank：请同时采集作业的其他 rank",
);

pub(super) fn ask(case: &Case<'_>) -> Option<Unjudged> {
    let (_, class) = case.longest?;
    let share = class.share(|b| matches!(b, Bucket::CommTransfer | Bucket::CommWait));
    let judged = case.cx.analysis.evidence.has(EvidenceClass::MultiRank)
        || case.findings.iter().any(|f| f.layer == Layer::Communication);
    let sentence = Message::new(SENTENCE, [("share", Value::Share(share))]);
    (!judged).then(|| Unjudged { share, sentence, because: Vec::new(), decides: share > case.best() })
}
