//! Runtime that no finding claims: many small causes, or one that no rule knows.

use std::collections::BTreeMap;

use model::{Category, Ns};

use super::{super::case::UNEXPLAINED, Case, Unjudged, copies, demand, first_uses, pause, unexplained};
use crate::{
    analysis::{Bucket, CopyDir, Layer, Rank, owners::short},
    i18n::{Message, Text, Value},
};

/// Share of the step from which unclaimed time needs a word; own value.
const LEAST: f64 = 0.10;

/// Part of the runtime up to which what findings claim changes nothing about its largest bucket; own value.
const FEW: f64 = 0.1;

/// What it says.
const SENTENCE: Text = Text::new(
    "for {share} of the step, which is runtime, no finding names a cause; most of it is {bucket} ({part} of the step){owner}",
    "步时的 {share} 属于运行时，但没有发现指出其原因；其中最多的是 {bucket}（占步时 {part}）{owner}",
);
/// The same where findings claim a part of the runtime, or no bucket has most of it.
const SHARED: Text = Text::new(
    "for {share} of the step, which is runtime, no finding names a cause",
    "步时的 {share} 属于运行时，但没有发现指出其原因",
);

/// Share of the idle time from which the record that owns it is named; own value.
const OWNS: f64 = 0.3;
/// What the host was doing.
const OWNER: Text = Text::new(
    "; {owned} of the device's idle time goes to `{owner}` on the host",
    "；设备空闲时间的 {owned} 归属于主机上的 `{owner}`",
);

pub(super) fn ask(case: &Case<'_>) -> Option<Unjudged> {
    let (rank, class) = case.longest?;
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
    let first = first_uses::ask(case).map(|doubt| doubt.share).filter(|share| *share >= UNEXPLAINED).unwrap_or(0.0);
    let share = (runtime - copies - first) * left;
    let own = class.buckets.iter().filter(|(bucket, _)| bucket.layer() == Layer::Runtime && !crosses(*bucket));
    let (bucket, ns) = own.max_by_key(|(bucket, ns)| (*ns, std::cmp::Reverse(*bucket)))?;
    let part = *ns as f64 / class.total.max(1) as f64;
    let args = [
        ("share", Value::Share(share)),
        ("bucket", Value::Raw(bucket.name(&case.cx.analysis.host_labels))),
        ("part", Value::Share(part)),
        ("owner", owner(case, rank).unwrap_or(Value::Text(Text::new("", "")))),
    ];
    // Where findings claim some of it, nobody knows of which bucket.
    let named = explained < FEW && part <= share && 2.0 * part > share;
    let sentence = Message::new(if named { SENTENCE } else { SHARED }, args);
    (share >= LEAST).then(|| Unjudged { share, sentence, because: Vec::new(), decides: false })
}

/// The record that owns most of the idle time of a rank. Ranges that only a number tells apart are one.
fn owner(case: &Case<'_>, rank: &Rank) -> Option<Value> {
    let owners = &rank.owners;
    let mut families: BTreeMap<String, Ns> = BTreeMap::new();
    // What spans the whole step says nothing of any part of it.
    for group in owners.groups.iter().filter(|group| !group.wraps) {
        // What stops a thread is not what it does: that is said by the record around the pause.
        let stopped = group.activity.is_none() && group.kind == Some(Category::OsApi);
        let name = if stopped { group.around.first().copied().or(group.owner) } else { group.owner };
        let Some(name) = name else { continue };
        *families.entry(family(&short(case.cx.trace.strings.get(name)))).or_default() += group.ns;
    }
    let (name, ns) = families.into_iter().max_by_key(|(_, ns)| *ns)?;
    let share = ns as f64 / owners.idle.max(1) as f64;
    let args = [("owned", Value::Share(share)), ("owner", Value::Raw(name))];
    (share >= OWNS).then(|| Message::new(OWNER, args).within())
}

/// A name without the numbers that count: `layer_3_weights` is `layer_*_weights`. Lines of code stay.
fn family(name: &str) -> String {
    if name.contains(['(', ':']) {
        return name.to_owned();
    }
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        match c.is_ascii_digit() {
            false => out.push(c),
            true if !out.ends_with('*') => out.push('*'),
            true => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::family;

    #[test]
    fn names_that_a_number_tells_apart_are_one() {
        for (name, of) in [
            ("ensure_layer_31_weights", "ensure_layer_*_weights"),
            ("token_7", "token_*"),
            ("llama.py(374): forward", "llama.py(374): forward"),
            ("aten::bmm", "aten::bmm"),
        ] {
            assert_eq!(family(name), of);
        }
    }
}
