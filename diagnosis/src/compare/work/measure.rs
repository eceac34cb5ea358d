//! How far two sides are apart in each part of their work.

use std::collections::BTreeMap;

use super::{Part, kernels::Tally, profile::Profile};
use crate::platform::{CanonicalOp, OpClass, Stage};

type Measured = (Option<String>, Option<String>, Option<f64>);

/// A part that is a number, apart by a share of the larger one.
fn count<N: Copy + PartialEq + std::fmt::Display + Into<f64>>(a: Option<N>, b: Option<N>) -> Measured {
    let distance = a.zip(b).map(|(a, b)| apart(a.into(), b.into()));
    (a.map(|n| n.to_string()), b.map(|n| n.to_string()), distance)
}

fn apart(a: f64, b: f64) -> f64 {
    let most = a.abs().max(b.abs());
    if most > 0.0 { (a - b).abs() / most } else { 0.0 }
}

/// A part that is the same or is not.
fn word(a: Option<String>, b: Option<String>) -> Measured {
    let distance = a.as_ref().zip(b.as_ref()).map(|(a, b)| if a == b { 0.0 } else { 1.0 });
    (a, b, distance)
}

pub(super) fn measure(part: Part, p: &Profile, q: &Profile) -> Measured {
    let whole = |n: Option<u64>| n.map(|n| u32::try_from(n).unwrap_or(u32::MAX));
    let both = |of: &dyn Fn(&Profile) -> Option<u64>| count(whole(of(p)), whole(of(q)));
    match part {
        Part::Stage => {
            let (a, b, _) = word(stage(p), stage(q));
            // Decode beside chunks of prompts is decode of a population that both may have.
            let distance = a.as_ref().zip(b.as_ref()).map(|_| if stages_meet(p.stage, q.stage) { 0.0 } else { 1.0 });
            (a, b, distance)
        }
        Part::Sequences => {
            let told =
                |own: &Profile| own.sequences.map(|(a, b)| if a == b { a.to_string() } else { format!("{a}…{b}") });
            let distance = p.sequences.zip(q.sequences).map(|(a, b)| if a.0 <= b.1 && b.0 <= a.1 { 0.0 } else { 1.0 });
            (told(p), told(q), distance)
        }
        Part::Tokens => both(&|own| own.rows.filter(|_| !own.whole)),
        Part::Layers => both(&|own| own.layers().filter(|_| !own.whole)),
        Part::Attention => both(&|own| own.attentions().filter(|n| !own.whole || *n == 0)),
        Part::Width => width(p, q),
        Part::Weights => both(&|own| own.kernels.weights()),
        Part::Images => both(&|own| own.kernels.images()),
        Part::CacheWidth => both(&|own| own.kernels.cached.last().and_then(|n| u64::try_from(*n).ok())),
        Part::Experts => {
            let grouped = |own: &Profile| own.kernels.calls(|op| op == CanonicalOp::GroupedGemm) > 0;
            let said = |own: &Profile| {
                (grouped(own) || own.is_known()).then(|| if grouped(own) { "experts" } else { "none" }.to_owned())
            };
            let (a, b, distance) = word(said(p), said(q));
            if [&a, &b].iter().all(|side| side.as_deref() != Some("experts")) {
                (None, None, None)
            } else {
                (a, b, distance)
            }
        }
        Part::Sampling => {
            let said = |own: &Profile| own.samples().map(|does| if does { "sampling" } else { "none" }.to_owned());
            let (a, b, distance) = word(said(p), said(q));
            if [&a, &b].iter().all(|side| side.as_deref() != Some("sampling")) {
                (None, None, None)
            } else {
                (a, b, distance)
            }
        }
        Part::Formats => formats(p, q),
        Part::Cache => {
            let said = |own: &Profile| match own.kernels.cache.as_slice() {
                [] => None,
                all => Some(all.join(" ")),
            };
            word(said(p), said(q))
        }
        Part::Context => both(&|own| own.kernels.context.last().and_then(|n| u64::try_from(*n).ok())),
        Part::Grids => grids(p, q),
        Part::Exchange => exchange(p, q),
        Part::Adapters => {
            let said = |own: &Profile| {
                let seen = own.kernels.adapters > 0;
                (seen || own.is_known()).then(|| if seen { "adapters" } else { "none" }.to_owned())
            };
            word(said(p), said(q))
        }
        Part::Operations => both(&|own| {
            let calls = own.kernels.calls(|op| op.class() == OpClass::Matrix || super::profile::attends(op));
            let any = || own.kernels.calls(|_| true);
            if calls > 0 { Some(calls) } else { Some(any()).filter(|n| *n > 0 && own.whole) }
        }),
        Part::Mix => mix(p, q),
        Part::Requests => {
            let said = |own: &Profile| Some(percent(own.awaits));
            if p.awaits == 0.0 && q.awaits == 0.0 {
                (None, None, None)
            } else {
                (said(p), said(q), Some((p.awaits - q.awaits).abs()))
            }
        }
        Part::Recording => {
            let said = |own: &Profile| {
                own.switches.as_ref().map(|on| if on.is_empty() { "times".to_owned() } else { on.join(", ") })
            };
            let more = |one: &Profile, other: &Profile| one.switches > other.switches && one.host > other.host;
            let slowed = more(p, q) || more(q, p);
            let distance = p.switches.as_ref().zip(q.switches.as_ref());
            let distance = distance.map(|(a, b)| if a != b && slowed { (p.host - q.host).abs() } else { 0.0 });
            (said(p), said(q), distance)
        }
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

fn stage(own: &Profile) -> Option<String> {
    (own.stage != Stage::Unknown).then(|| own.stage.name().to_owned())
}

fn stages_meet(a: Stage, b: Stage) -> bool {
    a == b || matches!((a, b), (Stage::Decode, Stage::Mixed) | (Stage::Mixed, Stage::Decode))
}

/// Products that become one at most: queries, keys and values; gate and up.
const FUSED: usize = 3;
/// Outputs of one input that are looked at; a layer has a handful.
const OUTPUTS: usize = 12;

/// The widest product of each side: the same where each side has the other's, or where one is made of the other side's by fusion:
/// products of one input become one whose outputs are their sum. The head of a vocabulary that one side lacks is no such sum.
fn width(p: &Profile, q: &Profile) -> Measured {
    let [of_p, of_q] = [p, q].map(|own| own.kernels.widest());
    let told = |own: Option<(i64, i64)>| own.map(|(inputs, outputs)| format!("{inputs} × {outputs}"));
    let distance = of_p.zip(of_q).map(|(a, b)| if is_made_of(a, q) && is_made_of(b, p) { 0.0 } else { 1.0 });
    (told(of_p), told(of_q), distance)
}

/// Whether a side has a product, or products of the same input that are it together, or it as a part of a larger one.
fn is_made_of((inputs, outputs): (i64, i64), own: &Profile) -> bool {
    let alike = own.kernels.products.keys().filter(|(_, other, _)| *other == inputs).map(|(.., other)| *other);
    let mut parts: Vec<i64> = alike.filter(|other| *other > 0).collect();
    parts.sort_unstable_by_key(|other| std::cmp::Reverse(*other));
    parts.dedup();
    parts.truncate(OUTPUTS);
    let whole = |times: i64| parts.contains(&outputs.saturating_mul(times));
    (1..=FUSED as i64).any(whole) || sums_to(outputs, &parts, FUSED)
}

/// Whether at most so many of `parts`, each as often as needed, add up to `sum`.
fn sums_to(sum: i64, parts: &[i64], most: usize) -> bool {
    sum == 0 || most > 0 && parts.iter().any(|part| *part <= sum && sums_to(sum - part, parts, most - 1))
}

/// Shares of the products' time by number format, where they are known of nearly all of it.
fn formats(p: &Profile, q: &Profile) -> Measured {
    let shares = |own: &Profile| -> Option<BTreeMap<&'static str, f64>> {
        let all: f64 = own.kernels.formats.values().map(|ns| *ns as f64).sum();
        let unknown = own.kernels.formats.get("").copied().unwrap_or(0) as f64;
        let known = all > 0.0 && unknown <= 0.2 * all;
        known.then(|| {
            own.kernels
                .formats
                .iter()
                .filter(|(f, _)| !f.is_empty())
                .map(|(f, ns)| (*f, *ns as f64 / (all - unknown)))
                .collect()
        })
    };
    let (a, b) = (shares(p), shares(q));
    let told = |own: &Option<BTreeMap<&'static str, f64>>| {
        own.as_ref()
            .map(|own| own.iter().map(|(f, share)| format!("{f} {}", percent(*share))).collect::<Vec<_>>().join(", "))
    };
    let distance = a.as_ref().zip(b.as_ref()).map(|(a, b)| {
        let common: f64 = a.iter().map(|(f, share)| share.min(b.get(f).copied().unwrap_or(0.0))).sum();
        (1.0 - common).max(0.0)
    });
    // On two devices products of different formats take different shares: what counts is which there are.
    let distance = distance.map(|far| {
        let main = |own: &Option<BTreeMap<&'static str, f64>>| -> Vec<&'static str> {
            own.iter().flatten().filter(|(_, share)| **share >= 0.1).map(|(f, _)| *f).collect()
        };
        if p.device != q.device && main(&a) == main(&b) { 0.0 } else { far }
    });
    (told(&a), told(&b), distance)
}

/// From this natural logarithm of the blocks' ratio on a kernel works on another amount; own value, half as many more.
const GROWN: f64 = 0.4;
/// Share of the time in kernels common to both sides from which their blocks tell how much work there is; own values, the second
/// where neither side names its device.
const MOST: f64 = 0.5;
/// See [`MOST`].
const NEARLY_ALL: f64 = 0.9;
/// Share of that time from which they tell something although they are not most of it, if so much
/// of them grew; own values.
const FEW: f64 = 0.1;
/// See [`FEW`].
const AGREED: f64 = 0.9;

/// By how much blocks of equal kernels differ, weighted with the time they have on both sides. Other devices are given other
/// numbers of blocks for the same work.
fn grids(p: &Profile, q: &Profile) -> Measured {
    if p.device != q.device {
        return (None, None, None);
    }
    // Two devices that nobody named are taken for the same where nearly all of their kernels are.
    let most = if p.device.is_some() { MOST } else { NEARLY_ALL };
    let per_call =
        |tally: &Tally| (tally.gridded == tally.calls && tally.blocks > 0.0).then(|| tally.blocks / tally.calls as f64);
    let share = |tally: &Tally, own: &Profile| tally.ns as f64 / own.kernels.busy.max(1) as f64;
    let (mut weight, mut far, mut grown, mut shrunk, mut sums) = (0.0, 0.0, 0.0, 0.0, [0.0, 0.0]);
    for (name, a) in &p.kernels.names {
        let Some(b) = q.kernels.names.get(name) else { continue };
        let Some((of_a, of_b)) = per_call(a).zip(per_call(b)) else { continue };
        let own = share(a, p).min(share(b, q));
        weight += own;
        let apart = (of_b / of_a).ln();
        far += own * apart.abs();
        grown += if apart >= GROWN { own } else { 0.0 };
        shrunk += if apart <= -GROWN { own } else { 0.0 };
        sums = [sums[0] + a.blocks, sums[1] + b.blocks];
    }
    // Few kernels in common still tell, where all of them say the same.
    let agree = weight >= FEW && f64::max(grown, shrunk) >= AGREED * weight;
    if weight < most && !(agree && p.device.is_some()) {
        return (None, None, None);
    }
    (Some(format!("{:.0}", sums[0])), Some(format!("{:.0}", sums[1])), Some(far / weight))
}

fn exchange(p: &Profile, q: &Profile) -> Measured {
    let said = |own: &Profile| {
        let groups = own.kernels.groups.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
        match own.kernels.exchanges {
            0 => own.is_known().then(|| "none".to_owned()),
            _ if groups.is_empty() => Some("some".to_owned()),
            _ => Some(format!("groups of {groups}")),
        }
    };
    let (a, b, distance) = word(said(p), said(q));
    let sized = |own: &Profile| !own.kernels.groups.is_empty();
    // Kernels of an engine's own do not say how many take part.
    let open = p.kernels.exchanges > 0 && q.kernels.exchanges > 0 && !(sized(p) && sized(q));
    (a, b, if open { Some(0.0) } else { distance })
}

/// How much of the kernels' time goes to other families of operators.
fn mix(p: &Profile, q: &Profile) -> Measured {
    if !p.is_known() || !q.is_known() {
        return (None, None, None);
    }
    let families = |own: &Profile| {
        let mut of: BTreeMap<OpClass, f64> = BTreeMap::new();
        for (op, tally) in own
            .kernels
            .ops
            .iter()
            .filter(|(op, _)| !matches!(op.class(), OpClass::Comm | OpClass::Wait | OpClass::Format))
        {
            *of.entry(op.class()).or_default() += tally.ns as f64;
        }
        let all: f64 = of.values().sum::<f64>().max(1.0);
        of.into_iter().map(|(class, ns)| (class, ns / all)).collect::<BTreeMap<_, _>>()
    };
    let (a, b) = (families(p), families(q));
    let told = |own: &BTreeMap<OpClass, f64>| {
        let first = own.iter().max_by(|x, y| x.1.total_cmp(y.1));
        first.map(|(class, share)| format!("{} {}", class.name(), percent(*share)))
    };
    let common: f64 = a.iter().map(|(class, share)| share.min(b.get(class).copied().unwrap_or(0.0))).sum();
    (told(&a), told(&b), Some((1.0 - common).max(0.0)))
}
