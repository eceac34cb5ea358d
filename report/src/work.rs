//! Which operators, kernels and slots of a layer take the time of a class.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
};

use model::{Detail, Ns, SliceId, Span, StringId, Trace};
use rustc_hash::FxHashMap;

use super::model::Copies;
use diagnosis::{
    analysis::{Analysis, Call, Class, CopyDir, DeviceOp, OpKind, Rank, attribution::Exclusive},
    compare::{
        align::{Alignment, Part, Placer, Reader},
        chosen::Chosen,
    },
};

/// Operators and kernels listed by name; the rest is one row.
const TOP: usize = 12;

/// What one row of device work stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Group {
    /// A canonical operator.
    #[default]
    Operator,
    /// A place in a layer, or before or after the layers.
    Slot,
    /// The same place in each layer, beside what it takes in the layer in the middle.
    Layer,
    /// A name on the device.
    Kernel,
}

/// Device work of one name.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Work {
    /// Name of the kernel, the operator or the slot (`layer.gemm#2`); empty for all names that are not listed.
    pub name: String,
    /// Canonical operator.
    pub op: &'static str,
    /// Operations over the steps that count.
    pub count: u64,
    /// Time attributed to them and to nothing else, ns over the steps that count.
    pub busy: Ns,
    /// Idle time that they end, ns over the steps that count.
    pub idle: Ns,
    /// The first of them, of a slot the first of its longest kernel; absent for all names that are not listed.
    pub first: Option<SliceId>,
}

/// Operators and kernels of a class by exclusive time, longest first, over the steps that count: the first dozen and one row
/// for all others.
pub fn of(trace: &Trace, rank: &Rank, class: &Class) -> (Vec<Work>, Vec<Work>) {
    let works = works(rank, class);
    (top(rows(&works, by_operator)), top(rows(&works, by_name(trace))))
}

/// All rows of a class of the rank at `index`, over the steps that count: slots in the order of a step, others by exclusive
/// time, longest first.
pub fn all(trace: &Trace, analysis: &Analysis, index: usize, class: &Class, group: Group) -> Vec<Work> {
    let Some(rank) = analysis.ranks.get(index) else { return Vec::new() };
    match group {
        Group::Operator => rows(&works(rank, class), by_operator),
        Group::Kernel => rows(&works(rank, class), by_name(trace)),
        Group::Slot => slots(&Chosen { trace, analysis, index, rank, class }),
        Group::Layer => layers(trace, analysis, index, class).into_iter().map(|(work, _)| work).collect(),
    }
}

/// The slots of the steps that count, found as for a comparison, of a side with itself.
fn slots(side: &Chosen<'_>) -> Vec<Work> {
    let alignment = Alignment::of(&[*side, *side]);
    let (reader, mut placer) = (Reader::new(*side), Placer::new(&alignment, 0));
    let mut sums: FxHashMap<(u32, Named), Sum> = FxHashMap::default();
    for step in side.steps() {
        let places = placer.step(&reader, step);
        let exclusive = side.rank.exclusive.get(step.ops.clone()).unwrap_or(&[]);
        for ((op, exclusive), place) in side.rank.ops_of(step).iter().zip(exclusive).zip(places) {
            sums.entry((place.slot, (op.name, operator(op)))).or_default().add(op, *exclusive);
        }
    }
    // Layers need not be equal to the last kernel: the one with the most time stands for the slot.
    let mut slots: BTreeMap<u32, (Sum, Sum, &'static str)> = BTreeMap::new();
    for ((slot, (_, op)), sum) in sums {
        let (all, most, of) = slots.entry(slot).or_default();
        all.join(sum);
        if (sum.busy, Reverse(sum.first)) > (most.busy, Reverse(most.first)) || most.count == 0 {
            (*most, *of) = (sum, op);
        }
    }
    let row = |(slot, (sum, most, op)): (u32, (Sum, Sum, &'static str))| {
        let slot = alignment.slots.get(slot as usize)?;
        let name = match slot.part {
            // In a step without layers its operator is all that is known of a place.
            Part::Anywhere => slot.name.clone(),
            _ => slot.key(),
        };
        Some(Sum { first: most.first, ..sum }.work(name, op))
    };
    slots.into_iter().filter_map(row).collect()
}

/// Every place of every layer, with how many times as long it takes as the same place of the layer in the middle: first those that
/// take the most beyond that.
pub fn layers(trace: &Trace, analysis: &Analysis, index: usize, class: &Class) -> Vec<(Work, f64)> {
    let Some(rank) = analysis.ranks.get(index) else { return Vec::new() };
    let side = Chosen { trace, analysis, index, rank, class };
    let alignment = Alignment::of(&[side, side]);
    let (reader, mut placer) = (Reader::new(side), Placer::new(&alignment, 0));
    let mut sums: BTreeMap<(u32, u32), (Sum, &'static str)> = BTreeMap::new();
    for step in side.steps() {
        let places = placer.step(&reader, step);
        let exclusive = side.rank.exclusive.get(step.ops.clone()).unwrap_or(&[]);
        for ((op, exclusive), place) in side.rank.ops_of(step).iter().zip(exclusive).zip(places) {
            let Some(layer) = place.layer else { continue };
            let (sum, of) = sums.entry((place.slot, layer)).or_insert((Sum::default(), operator(op)));
            sum.add(op, *exclusive);
            *of = operator(op);
        }
    }
    let mut usual: BTreeMap<u32, Vec<Ns>> = BTreeMap::new();
    sums.iter().for_each(|((slot, _), (sum, _))| usual.entry(*slot).or_default().push(sum.busy));
    usual.values_mut().for_each(|times| times.sort_unstable());
    let median = |slot: u32| usual.get(&slot).and_then(|times| times.get(times.len() / 2)).copied().unwrap_or(0).max(1);
    let row = |((slot, layer), (sum, op)): ((u32, u32), (Sum, &'static str))| {
        let name = alignment.slots.get(slot as usize)?.key();
        let beyond = sum.busy - median(slot);
        let ratio = sum.busy as f64 / median(slot) as f64;
        let name = name.strip_prefix("layer.").unwrap_or(&name);
        Some((beyond, (sum.work(format!("{layer}.{name}"), op), ratio)))
    };
    let mut rows: Vec<_> = sums.into_iter().filter_map(row).collect();
    rows.sort_by_key(|(beyond, _)| Reverse(*beyond));
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Copies of a class that say their bytes, by direction, over the steps that count.
pub fn copies(trace: &Trace, rank: &Rank, class: &Class) -> Vec<Copies> {
    let mut found: Vec<(CopyDir, Copies)> = Vec::new();
    for op in rank.steady_steps(class).flat_map(|step| rank.ops_of(step)) {
        let OpKind::Copy(dir) = op.kind else { continue };
        let said =
            trace.locate(op.slice).and_then(|(track, row)| trace.detail(trace.lanes.get(track.0 as usize)?, row));
        let Some(Detail::Copy(detail)) = said else { continue };
        let Some(bytes) = detail.bytes else { continue };
        let at = found.iter().position(|(known, _)| *known == dir).unwrap_or_else(|| {
            found.push((dir, Copies { name: dir.name(), count: 0, bytes: 0, time: 0 }));
            found.len() - 1
        });
        if let Some((_, sum)) = found.get_mut(at) {
            sum.count += 1;
            sum.bytes = sum.bytes.saturating_add(bytes);
            sum.time = sum.time.saturating_add(op.dur());
        }
    }
    found.sort_by_key(|(dir, _)| *dir);
    found.into_iter().map(|(_, copies)| copies).collect()
}

/// Blocking copies that only their calls tell of and that say their bytes, by direction and size, over the steps that count, those that
/// take longest first. Of a call the time counts after what the device still had to do when it began.
pub fn untraced(trace: &Trace, rank: &Rank, class: &Class) -> Vec<Copies> {
    let mut found: BTreeMap<(CopyDir, i64), Copies> = BTreeMap::new();
    // Windows of steps lie one behind the other.
    let windows: Vec<Span> = rank.steady_steps(class).map(|step| step.window).collect();
    let counts = |call: &Call| {
        let next = windows.partition_point(|window| window.end <= call.start);
        windows.get(next).is_some_and(|window| window.start < call.end)
    };
    // Until when the device has something to do, with each operation that starts.
    let busy: Vec<Ns> = rank
        .timeline
        .ops
        .iter()
        .scan(Ns::MIN, |end, op| {
            *end = op.end.max(*end);
            Some(*end)
        })
        .collect();
    for call in rank.timeline.untraced_copies().filter(|call| counts(call)) {
        let said =
            trace.locate(call.slice).and_then(|(track, row)| trace.detail(trace.lanes.get(track.0 as usize)?, row));
        let Some(Detail::Copy(detail)) = said else { continue };
        let Some(bytes) = detail.bytes else { continue };
        let dir = detail.direction.map_or(CopyDir::Unknown, |name| CopyDir::named(trace.strings.get(name)));
        let begun = rank.timeline.ops.partition_point(|op| op.start < call.end);
        let free = begun.checked_sub(1).and_then(|last| busy.get(last)).copied().unwrap_or(call.start);
        let none = || Copies { name: dir.name(), count: 0, bytes: 0, time: 0 };
        let sum = found.entry((dir, bytes)).or_insert_with(none);
        sum.count += 1;
        sum.bytes = sum.bytes.saturating_add(bytes);
        sum.time = sum.time.saturating_add((call.end - free.max(call.start)).max(0));
    }
    let mut found: Vec<Copies> = found.into_values().collect();
    found.sort_by_key(|copies| Reverse(copies.time));
    found
}

/// Operations of one name while they are counted.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: u64,
    busy: Ns,
    idle: Ns,
    first: Option<(Ns, SliceId)>,
}

impl Sum {
    fn add(&mut self, op: &DeviceOp, exclusive: Exclusive) {
        self.join(Self { count: 1, busy: exclusive.busy, idle: exclusive.idle, first: Some((op.start, op.slice)) });
    }

    fn join(&mut self, other: Self) {
        *self = Self {
            count: self.count + other.count,
            busy: self.busy.saturating_add(other.busy),
            idle: self.idle.saturating_add(other.idle),
            first: [self.first, other.first].into_iter().flatten().min(),
        };
    }

    fn work(self, name: String, op: &'static str) -> Work {
        let Self { count, busy, idle, first } = self;
        Work { name, op, count, busy, idle, first: first.map(|(_, slice)| slice) }
    }
}

/// What an operation is called beside its name.
fn operator(op: &DeviceOp) -> &'static str {
    match op.kind {
        OpKind::Copy(dir) => dir.name(),
        OpKind::Opaque => "graph",
        OpKind::Compute | OpKind::Comm => op.op.name(),
    }
}

/// A device name and its operator.
type Named = (StringId, &'static str);

fn by_operator((_, op): &Named) -> (String, &'static str) {
    (String::from(*op), op)
}

fn by_name(trace: &Trace) -> impl Fn(&Named) -> (String, &'static str) + use<'_> {
    |(name, op)| (trace.strings.get(*name).to_owned(), op)
}

/// Counts the device work of the steps of a class that count.
fn works(rank: &Rank, class: &Class) -> FxHashMap<Named, Sum> {
    let mut works: FxHashMap<Named, Sum> = FxHashMap::default();
    for step in rank.steady_steps(class) {
        let exclusive = rank.exclusive.get(step.ops.clone()).unwrap_or(&[]);
        for (op, exclusive) in rank.ops_of(step).iter().zip(exclusive) {
            works.entry((op.name, operator(op))).or_default().add(op, *exclusive);
        }
    }
    works
}

/// The works under the name that `key` gives them, longest first.
fn rows<'w, K: 'w>(
    works: impl IntoIterator<Item = (&'w K, &'w Sum)>,
    key: impl Fn(&K) -> (String, &'static str),
) -> Vec<Work> {
    let mut merged: HashMap<(String, &'static str), Sum> = HashMap::new();
    for (work, sum) in works {
        merged.entry(key(work)).or_default().join(*sum);
    }
    let mut rows: Vec<Work> = merged.into_iter().map(|((name, op), sum)| sum.work(name, op)).collect();
    rows.sort_by(|a, b| b.busy.cmp(&a.busy).then_with(|| a.name.cmp(&b.name)).then_with(|| a.op.cmp(b.op)));
    rows
}

/// The longest works, and one row for the rest.
fn top(mut rows: Vec<Work>) -> Vec<Work> {
    if rows.len() > TOP + 1 {
        let rest = rows.split_off(TOP);
        let sum = |pick: fn(&Work) -> Ns| rest.iter().fold(0, |sum: Ns, w| sum.saturating_add(pick(w)));
        rows.push(Work {
            name: String::new(),
            op: "",
            count: rest.iter().map(|w| w.count).sum(),
            busy: sum(|w| w.busy),
            idle: sum(|w| w.idle),
            first: None,
        });
    }
    rows
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use model::Category;

    use super::*;
    use diagnosis::analysis::script::Script;

    #[test]
    fn the_rest_of_the_works_is_one_row_and_nothing_is_lost() {
        let sum = |i| Sum { count: 1, busy: Ns::from(i), idle: 1, first: None };
        let works: HashMap<u32, Sum> = (0..20).map(|i| (i, sum(i))).collect();
        let rows = top(rows(&works, |i| (format!("k{i:02}"), "gemm")));
        assert_eq!(rows.len(), TOP + 1);
        assert_eq!(rows.first().map(|w| w.name.as_str()), Some("k19"));
        assert_eq!(rows.iter().map(|w| w.busy).sum::<Ns>(), 190);
        assert_eq!(rows.last().map(|w| (w.name.as_str(), w.count, w.idle)), Some(("", 8, 8)));
    }

    /// A copy of 4 MiB in 12.5 ms was a copy of no direction and no rate that nothing recorded owned.
    #[test]
    fn a_blocking_copy_without_a_record_is_what_its_call_says() {
        let mut script = Script::default();
        script.launch((0, 5_000), "gemm_nt", (10_000, 50_000));
        script.copy_call("hipMemcpy", (20_000, 12_550_000), "HtoD", 4 << 20);
        script.launch((12_560_000, 12_565_000), "gemm_nt", (12_570_000, 12_600_000));
        let (trace, analysis) = script.analyze();
        let rank = &analysis.ranks[0];
        let class = rank.main_class().unwrap();
        let expected = Copies { name: "copy.h2d", count: 1, bytes: 4 << 20, time: 12_500_000 };
        assert_eq!(untraced(&trace, rank, class), [expected], "after the kernel that ran when it began");
        let bucket = |name: &str| -> Ns {
            class
                .buckets
                .iter()
                .filter(|(bucket, _)| bucket.name(&analysis.host_labels) == name)
                .map(|(_, ns)| ns)
                .sum()
        };
        assert_eq!((bucket("copy.h2d"), bucket("copy.unknown")), (12_500_000, 0));
        let owner = analysis.ranks[0].owners.groups.iter().max_by_key(|group| group.ns).unwrap();
        assert!(owner.owner.is_some_and(|name| trace.strings.get(name) == "hipMemcpy"));
    }

    /// Six layers of a norm and a product; in the first another kernel stands where the product is.
    #[test]
    fn a_slot_counts_all_layers_and_shows_the_kernel_with_the_most_time() {
        let mut script = Script::default();
        let mut at: Ns = 1_000;
        for _ in 0..8 {
            script.host(Category::UserRange, "execute_context_0(0)_generation_4(4)", (at, at + 400));
            for layer in 0..6 {
                let product = if layer == 0 { "cublas_small_gemm" } else { "ampere_bf16_gemm" };
                for (name, busy) in [("fused_add_rms_norm_kernel", 5), (product, 20 + layer)] {
                    script.launch((at, at + 2), name, (at + 4, at + 4 + busy));
                    at += 40;
                }
            }
            at += 100;
        }
        let (trace, analysis) = script.analyze();
        let class = analysis.ranks[0].main_class().unwrap();
        let of = |group| all(&trace, &analysis, 0, class, group);
        let slots = of(Group::Slot);
        let total = |works: &[Work]| works.iter().fold((0, 0, 0), |s, w| (s.0 + w.busy, s.1 + w.idle, s.2 + w.count));
        assert_eq!(total(&slots), total(&of(Group::Kernel)));
        assert_eq!(total(&slots), total(&of(Group::Operator)));
        let product = slots.iter().max_by_key(|slot| slot.busy).unwrap();
        assert_eq!((product.op, product.count % 6), ("gemm", 0), "{slots:#?}");
        let (track, row) = trace.locate(product.first.unwrap()).unwrap();
        assert_eq!(trace.strings.get(trace.lanes[track.0 as usize].name[row]), "ampere_bf16_gemm");
    }
}
