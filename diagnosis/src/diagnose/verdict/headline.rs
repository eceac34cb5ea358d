//! The words that the sentences of a verdict share: what the class is, how long its step takes, and what is largest in it.

use std::collections::BTreeMap;

use model::{EvidenceClass, Ns};

use crate::{
    analysis::{AnchorKind, Bucket, Class, Layer, Rank, Workload},
    diagnose::rule::Context,
    i18n::{Text, Value},
    platform::Stage,
};

/// What the class is, in plain words: a capture without decode steps must not pass for one.
pub(super) fn subject(rank: &Rank, class: &Class) -> Value {
    Value::Text(match class.stage {
        Stage::Train if rank.anchor.kind == AnchorKind::WholeCapture && begins_late(rank) => Text::new(
            "Training, not decode; nothing marks steps, so everything from the first device operation after loading to the end of the last counts as one",
            "训练，并非解码；没有步的标记，从加载之后的首个设备操作到最后一个设备操作结束按一步计",
        ),
        Stage::Train if rank.anchor.kind == AnchorKind::WholeCapture => Text::new(
            "Training, not decode; nothing marks steps, so everything from the first device operation to the end of the last counts as one",
            "训练，并非解码；没有步的标记，从首个设备操作到最后一个设备操作结束按一步计",
        ),
        _ if rank.anchor.kind == AnchorKind::WholeCapture && begins_late(rank) => Text::new(
            "Nothing marks steps, so everything from the first device operation after loading to the end of the last counts as one",
            "没有步的标记，从加载之后的首个设备操作到最后一个设备操作结束按一步计",
        ),
        _ if rank.anchor.kind == AnchorKind::WholeCapture => Text::new(
            "Nothing marks steps, so everything from the first device operation to the end of the last counts as one",
            "没有步的标记，从首个设备操作到最后一个设备操作结束按一步计",
        ),
        Stage::Decode => Text::new("Decode", "解码"),
        Stage::Prefill => Text::new("Prefill only, no decode step in the capture", "仅预填充，采集中无解码步"),
        Stage::Mixed => Text::new("Mixed prefill and decode", "预填充与解码混合"),
        Stage::Train => Text::new("Training, not decode", "训练，并非解码"),
        Stage::Unknown => Text::new("Steps of unknown stage", "阶段未知的步"),
    })
}

/// Whether the one window of a capture without steps leaves out what loads a model.
pub(super) fn begins_late(rank: &Rank) -> bool {
    rank.steps.first().is_some_and(|step| step.ops.start > 0)
}

pub(super) fn step_args(rank: &Rank, class: &Class) -> [(&'static str, Value); 4] {
    let lasts = if rank.anchor.kind == AnchorKind::WholeCapture {
        Text::new("it lasts", "时长")
    } else {
        Text::new("a step takes", "步时")
    };
    [
        ("subject", subject(rank, class)),
        ("class", Value::Raw(class.key.clone())),
        ("step", Value::Ns(rank.workload(class).mean())),
        ("lasts", Value::Text(lasts)),
    ]
}

/// The bucket of a layer with the most time of a workload and its share: what a person asks for next. Equals are all named, and
/// so are waiting and transfer where one rank alone, whose profiler did not see it, cannot tell them apart.
pub(super) fn largest(cx: &Context<'_>, workload: &Workload<'_>, layer: Layer) -> (String, f64) {
    let mut sums: BTreeMap<Bucket, Ns> = BTreeMap::new();
    let all = workload.classes.iter().flat_map(|class| &class.buckets);
    for (bucket, ns) in all.filter(|(bucket, _)| bucket.layer() == layer) {
        *sums.entry(*bucket).or_default() += ns;
    }
    let most = sums.values().copied().max().unwrap_or(0);
    let name = |bucket: Bucket| bucket.name(&cx.analysis.host_labels);
    let of = |ns: Ns| ns as f64 / workload.total().max(1) as f64;
    let inside = [Bucket::CommTransfer, Bucket::CommWait];
    let apart = cx.analysis.evidence.has(EvidenceClass::MultiRank);
    let modelled = cx.analysis.ranks.iter().any(|rank| rank.collectives.is_modelled());
    if !apart && modelled {
        let both = inside.iter().filter_map(|bucket| sums.get(bucket)).sum::<Ns>();
        if both >= most {
            return (inside.map(name).join(" + "), of(both));
        }
    }
    let mut equal: Vec<Bucket> = sums.into_iter().filter(|(_, ns)| *ns == most).map(|(bucket, _)| bucket).collect();
    equal.sort_by_key(|bucket| name(*bucket));
    let names: Vec<String> = equal.into_iter().map(name).collect();
    (names.join(" = "), of(most))
}
