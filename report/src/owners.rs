//! Who owns the idle time: groups of gaps by what the host was doing in them.

use model::{Category, Ns, SliceId, Trace};

use diagnosis::analysis::{Analysis, Rank, owners::Group};

/// Groups of one rank that are told; the rest is one sum.
const MOST: usize = 24;
/// Groups of a capture that are told.
const IN_ALL: usize = 64;

/// Idle time of one rank with one owner.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct IdleOwner {
    /// Rank.
    pub rank: u32,
    /// Bucket of most of it; absent for what several small groups make up.
    pub bucket: Option<String>,
    /// The record of the host that owns it; absent where none says anything.
    pub owner: Option<String>,
    /// What kind of record that is.
    pub kind: Option<&'static str>,
    /// Whether the owner spans the whole step, so that nothing narrower is known.
    pub wraps: bool,
    /// The records around the owner, innermost first.
    pub around: Vec<String>,
    /// The most frequent records inside it, each with how often it comes per gap.
    pub children: Vec<(String, u64)>,
    /// What the gaps end with.
    pub ended_by: Option<String>,
    /// Gaps per step.
    pub per_step: f64,
    /// Their time per step, ns.
    pub ns: Ns,
    /// The same as a share of the steps that count.
    pub share: f64,
    /// The longest of them, ns.
    pub longest: Ns,
    /// The owner's longest record, and operations that end such gaps.
    pub slices: Vec<SliceId>,
}

/// The owners of a capture's idle time, longest first.
pub(super) fn of(trace: &Trace, analysis: &Analysis) -> Vec<IdleOwner> {
    let mut out: Vec<IdleOwner> = analysis.ranks.iter().flat_map(|rank| of_rank(trace, analysis, rank)).collect();
    out.sort_by(|a, b| {
        a.bucket
            .is_none()
            .cmp(&b.bucket.is_none())
            .then(b.ns.cmp(&a.ns))
            .then(a.rank.cmp(&b.rank))
            .then_with(|| a.owner.cmp(&b.owner))
    });
    // A rank's sum must be exact: rows of what is left are kept.
    let mut told = 0;
    out.retain(|row| {
        told += usize::from(row.bucket.is_some());
        told <= IN_ALL || row.bucket.is_none()
    });
    out
}

fn of_rank(trace: &Trace, analysis: &Analysis, rank: &Rank) -> Vec<IdleOwner> {
    let owners = &rank.owners;
    let steps = owners.steps.max(1);
    let counted: Ns = rank.counted_steps().map(|step| step.window.len()).fold(0, Ns::saturating_add);
    let share = |ns: Ns| ns as f64 / counted.max(1) as f64;
    let text = |id: model::StringId| trace.strings.get(id).to_owned();
    let row = |group: &Group| IdleOwner {
        rank: rank.rank,
        bucket: Some(group.bucket.name(&analysis.host_labels)),
        owner: group.owner.map(text),
        kind: group.kind.map(Category::name),
        wraps: group.wraps,
        around: group.around.iter().map(|id| text(*id)).collect(),
        children: group
            .children
            .iter()
            .map(|(id, count, _)| (text(*id), (count / group.count.max(1)).max(1)))
            .collect(),
        ended_by: group.ended_by.map(|ending| ending.name()),
        per_step: group.count as f64 / steps as f64,
        ns: group.ns / steps as Ns,
        share: share(group.ns),
        longest: group.longest,
        slices: group.slices.clone(),
    };
    let mut out: Vec<IdleOwner> = owners.groups.iter().take(MOST).map(row).collect();
    let told = owners.groups.iter().skip(MOST);
    let (count, longest) = told.clone().fold((0, 0), |(n, most), group| (n + group.count, most.max(group.longest)));
    let rest = told.map(|group| group.ns).fold(owners.rest, Ns::saturating_add);
    if rest > 0 {
        out.push(IdleOwner {
            rank: rank.rank,
            bucket: None,
            owner: None,
            kind: None,
            wraps: false,
            around: Vec::new(),
            children: Vec::new(),
            ended_by: None,
            per_step: count as f64 / steps as f64,
            ns: rest / steps as Ns,
            share: share(rest),
            longest,
            slices: Vec::new(),
        });
    }
    out
}
