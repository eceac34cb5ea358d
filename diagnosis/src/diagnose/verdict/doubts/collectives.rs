//! Collectives of a capture that holds one rank of a job: their transfer and their wait for a late rank look the same.

use model::{EvidenceClass, Ns};

use super::{Case, Unjudged};
use crate::{
    analysis::{Bucket, Class, DeviceOp, Layer, OpKind, Rank, owners},
    diagnose::Severity,
    i18n::{Message, Text, Value},
};

/// What it says.
const SENTENCE: Text = Text::new(
    "{share} of the step lies inside collectives{longest}; one rank alone cannot tell their transfer from waiting for a late rank: capture the other ranks of the job too",
    "步时的 {share} 在集合通信内{longest}；仅凭一个 rank 无法区分传输与等待迟到的 rank：请同时采集作业的其他 rank",
);

pub(super) fn ask(case: &Case<'_>) -> Option<Unjudged> {
    let (rank, class) = case.longest?;
    let share = class.share(|b| matches!(b, Bucket::CommTransfer | Bucket::CommWait));
    let judged = case.cx.analysis.evidence.has(EvidenceClass::MultiRank)
        // A size judges nothing.
        || case.findings.iter().any(|f| f.layer == Layer::Communication && f.severity > Severity::Info);
    let sentence = Message::new(SENTENCE, [("share", Value::Share(share)), ("longest", longest(case, rank, class))]);
    (!judged).then(|| Unjudged { share, sentence, because: Vec::new(), decides: share > case.best() })
}

/// The collective that much of that time is, if one stands out: a single late one is looked for elsewhere than all of them.
fn longest(case: &Case<'_>, rank: &Rank, class: &Class) -> Value {
    const STANDS_OUT: f64 = 0.5;
    const SAYS: Text = Text::new(", the longest of which, one {name}, takes {ns}", "，其中最长的一次 {name} 耗时 {ns}");
    let steps = rank.steady_steps(class);
    let collectives: Vec<&DeviceOp> = steps.flat_map(|s| rank.ops_of(s)).filter(|op| op.kind == OpKind::Comm).collect();
    let all: Ns = collectives.iter().map(|op| op.dur()).fold(0, Ns::saturating_add);
    let longest = collectives.iter().max_by_key(|op| (op.dur(), std::cmp::Reverse(op.start)));
    match longest.filter(|op| collectives.len() > 1 && op.dur() as f64 >= STANDS_OUT * all as f64) {
        Some(op) => {
            let name = owners::short(case.cx.trace.strings.get(op.name)).to_owned();
            Message::new(SAYS, [("ns", Value::Ns(op.dur())), ("name", Value::Raw(name))]).within()
        }
        None => Value::Text(Text::new("", "")),
    }
}
