//! The words that the sentences of a verdict share: what the class is, how long its step takes, and what is largest in it.

use crate::{
    analysis::{AnchorKind, Bucket, Class, Rank},
    diagnose::rule::Context,
    i18n::{Text, Value},
    platform::Stage,
};

/// What the class is, in plain words: a capture without decode steps must not pass for one.
pub(super) fn subject(rank: &Rank, class: &Class) -> Value {
    Value::Text(match class.stage {
        Stage::Train if rank.anchor.kind == AnchorKind::WholeCapture => Text::new(
            "Training, not decode; no steps found, one window from the first device operation to the end of the last",
            "训练，并非解码；未找到步，取首个设备操作开始到最后一个设备操作结束的一个窗口",
        ),
        _ if rank.anchor.kind == AnchorKind::WholeCapture => Text::new(
            "No steps found, one window from the first device operation to the end of the last",
            "未找到步，取首个设备操作开始到最后一个设备操作结束的一个窗口",
        ),
        Stage::Decode => Text::new("Decode", "解码"),
        Stage::Prefill => Text::new("Prefill only, no decode step in the capture", "仅预填充，采集中无解码步"),
        Stage::Mixed => Text::new("Mixed prefill and decode", "预填充与解码混合"),
        Stage::Train => Text::new("Training, not decode", "训练，并非解码"),
        Stage::Unknown => Text::new("Steps of unknown stage", "阶段未知的步"),
    })
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

/// The bucket with the most time and its share: what a person asks for next. Equals are all named.
pub(super) fn largest(cx: &Context<'_>, class: &Class) -> [(&'static str, Value); 2] {
    let order = |bucket: Bucket| (bucket.layer(), bucket.name(&cx.analysis.host_labels));
    let most = class.buckets.iter().max_by_key(|(bucket, ns)| (*ns, std::cmp::Reverse(order(*bucket))));
    let equal = class.buckets.iter().filter(|(_, ns)| most.is_some_and(|(_, longest)| ns == longest));
    let mut equal: Vec<Bucket> = equal.map(|(bucket, _)| *bucket).collect();
    equal.sort_by_key(|bucket| order(*bucket));
    let names: Vec<String> = equal.iter().map(|bucket| bucket.name(&cx.analysis.host_labels)).collect();
    let name = names.join(" = ");
    let share = most.map_or(0.0, |(bucket, _)| class.share(|b| b == *bucket));
    [("bucket", Value::Raw(name)), ("part", Value::Share(share))]
}
