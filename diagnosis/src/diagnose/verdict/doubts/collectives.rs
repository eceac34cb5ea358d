//! Collectives of a capture that holds one rank of a job: their transfer and their wait for a late rank look the same.

use model::{EvidenceClass, Ns, StringId};
use rustc_hash::FxHashMap;

use super::{Case, Unjudged};
use crate::{
    analysis::{Bucket, Class, Layer, OpKind, Rank, owners},
    i18n::{Message, Text, Value},
};

/// What it says.
const SENTENCE: Text = Text::new(
    "{share} of the step lies inside collectives{most}; one rank alone cannot tell their transfer from waiting for a late rank: capture the other ranks of the job too",
    "步时的 {share} 在集合通信内{most}；仅凭一个 rank 无法区分传输与等待迟到的 rank：请同时采集作业的其他 rank",
);

pub(super) fn ask(case: &Case<'_>) -> Option<Unjudged> {
    let (rank, class) = case.longest?;
    let share = class.share(|b| matches!(b, Bucket::CommTransfer | Bucket::CommWait));
    let judged = case.cx.analysis.evidence.has(EvidenceClass::MultiRank)
        || case.findings.iter().any(|f| f.layer == Layer::Communication);
    let sentence = Message::new(SENTENCE, [("share", Value::Share(share)), ("most", largest(case, rank, class))]);
    (!judged).then(|| Unjudged { share, sentence, because: Vec::new(), decides: share > case.best() })
}

/// The kernel that most of that time is, if one stands out: a single late collective is looked for elsewhere than all of them.
fn largest(case: &Case<'_>, rank: &Rank, class: &Class) -> Value {
    const STANDS_OUT: f64 = 0.5;
    const SAYS: Text = Text::new(
        ", most of it in {name} ({count} of them, the longest {longest})",
        "，其中大部分在 {name}（{count} 次，最长 {longest}）",
    );
    let mut kinds: FxHashMap<StringId, (Ns, u64, Ns)> = FxHashMap::default();
    let collectives =
        || rank.steady_steps(class).flat_map(|step| rank.ops_of(step)).filter(|op| op.kind == OpKind::Comm);
    for op in collectives() {
        let (sum, count, longest) = kinds.entry(op.name).or_default();
        *sum = sum.saturating_add(op.dur());
        *count += 1;
        *longest = op.dur().max(*longest);
    }
    let all: Ns = kinds.values().map(|(sum, ..)| *sum).sum();
    let most = kinds.into_iter().max_by_key(|(name, (sum, ..))| (*sum, std::cmp::Reverse(*name)));
    match most.filter(|(_, (sum, ..))| *sum as f64 >= STANDS_OUT * all as f64) {
        Some((name, (_, count, longest))) => {
            let name = owners::short(case.cx.trace.strings.get(name)).to_owned();
            let args = [("name", Value::Raw(name)), ("count", Value::Count(count)), ("longest", Value::Ns(longest))];
            Message::new(SAYS, args).within()
        }
        None => Value::Text(Text::new("", "")),
    }
}
