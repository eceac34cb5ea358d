//! Runtime that no finding claims: many small causes, or one that no rule knows.

use super::{super::case::UNEXPLAINED, Case, Unjudged, copies, demand, pause, unexplained};
use crate::{
    analysis::{Bucket, CopyDir, Layer},
    i18n::{Message, Text, Value},
};

/// Share of the step from which unclaimed time needs a word; own value.
const LEAST: f64 = 0.10;

/// Part of the runtime up to which what findings claim changes nothing about its largest bucket; own value.
const FEW: f64 = 0.1;

/// What it says.
const SENTENCE: Text = Text::new(
    "for {share} of the step, which is runtime, no finding names a cause; most of it is {bucket} ({part} of the step)",
    "步时的 {share} 属于运行时，但没有发现指出其原因；其中最多的是 {bucket}（占步时 {part}）",
);
/// The same where findings claim a part of the runtime, or no bucket has most of it.
const SHARED: Text = Text::new(
    "for {share} of the step, which is runtime, no finding names a cause",
    "步时的 {share} 属于运行时，但没有发现指出其原因",
);

pub(super) fn ask(case: &Case<'_>) -> Option<Unjudged> {
    let (_, class) = case.longest?;
    // What another doubt speaks of is named already: time that nothing recorded explains, pauses without requests, copies.
    let crosses = |bucket: Bucket| matches!(bucket, Bucket::Copy(CopyDir::HtoD | CopyDir::DtoH));
    if [unexplained::ask(case), demand::ask(case), pause::ask(case)]
        .iter()
        .flatten()
        .any(|doubt| doubt.share >= UNEXPLAINED)
    {
        return None;
    }
    let runtime = class.share(|bucket| bucket.layer() == Layer::Runtime);
    let explained = case.explained.iter().find(|explained| explained.layer == Layer::Runtime).map_or(0.0, |e| e.share);
    let left = 1.0 - explained;
    let copies = if copies::ask(case).is_some() { class.share(crosses) } else { 0.0 };
    let share = (runtime - copies) * left;
    let own = class.buckets.iter().filter(|(bucket, _)| bucket.layer() == Layer::Runtime && !crosses(*bucket));
    let (bucket, ns) = own.max_by_key(|(bucket, ns)| (*ns, std::cmp::Reverse(*bucket)))?;
    let part = *ns as f64 / class.total.max(1) as f64;
    let args = [
        ("share", Value::Share(share)),
        ("bucket", Value::Raw(bucket.name(&case.cx.analysis.host_labels))),
        ("part", Value::Share(part)),
    ];
    // Where findings claim some of it, nobody knows of which bucket.
    let named = explained < FEW && part <= share && 2.0 * part > share;
    let sentence = Message::new(if named { SENTENCE } else { SHARED }, args);
    (share >= LEAST).then(|| Unjudged { share, sentence, because: Vec::new(), decides: false })
}
