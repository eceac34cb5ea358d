//! One kernel at the same position, between the same neighbours: late in the run against early (a clock), on one rank against the
//! others (a slow device), now and then (contention).

use std::collections::{BTreeMap, BTreeSet};

use model::{Ns, StringId};
use rayon::prelude::*;

use crate::{
    analysis::{Edit, Layer},
    cause::{Cost, Kind, Population, population::Counted},
    ledger::device::Work,
    platform::Packs,
};

/// Fewest calls of a position for its drift, for its outliers, and on each of several ranks.
const CALLS: (usize, usize, usize) = (12, 8, 3);
/// Median ratio, weighted by time, from which kernels became slower; that of the quarter that became slower least; and the part of
/// the time that must be covered. Healthy runs stay below.
const DRIFT: (f64, f64, f64) = (1.05, 1.03, 0.5);
/// Ratio from which the work differs rather than the clock: of late to early calls, and of the tenth that takes longest to the tenth
/// that takes least.
const OTHER_WORK: f64 = 2.5;
/// Names of kernels that a clock makes slower alike: of one nothing says whether it is the clock or its work.
const NAMES: usize = 2;
/// The lower quartile of a slow rank's ratios, and the median from which the work differs rather than the device.
const SLOW_RANK: (f64, f64) = (1.05, 4.0);
/// An outlier takes so many times the median, and so much longer than it, ns; of at most this part of the calls; and all of them are
/// at least this share of the counted time.
const OUTLIER: (f64, Ns, f64, f64) = (1.5, 3_000, 0.25, 0.03);
/// Two calls of one problem size take as long, within such a part.
const ALIKE: (Ns, Ns) = (4, 5);
/// Fewest operations.
const OPERATIONS: usize = 50;

/// A kernel with its launch and its neighbours.
type Position = (StringId, Option<u64>, Option<u64>, (Option<StringId>, Option<StringId>));

/// Kernels of one rank by position.
type Series<'w> = BTreeMap<Position, Vec<&'w Work>>;

/// Costs of kernels that are slower at the same position.
pub fn generate(population: &Population<'_>, _: &Packs) -> Vec<Cost> {
    let series: Vec<Series<'_>> = population.ranks.par_iter().map(series).collect();
    let each = || population.ranks.iter().zip(&series);
    let mut out = Vec::new();
    out.extend(population.across(each().filter_map(|(counted, series)| drift(counted, series)).collect()));
    out.extend(
        population.across(each().filter_map(|(counted, series)| sporadic(population, counted, series)).collect()),
    );
    out.extend(slow_rank(population, &series));
    out
}

fn series<'w>(counted: &'w Counted<'_>) -> Series<'w> {
    let mut out: Series<'w> = BTreeMap::new();
    for work in counted.work.iter().filter(|work| work.is_kernel()) {
        out.entry((work.name, work.blocks, work.threads, work.neighbours)).or_default().push(work);
    }
    out
}

fn durations<'w>(works: &'w [&Work]) -> impl Iterator<Item = Ns> + 'w {
    works.iter().map(|work| work.dur)
}

/// Median and lower quartile of ratios, weighted by time, and the time that they cover.
fn weighted(mut ratios: Vec<(f64, Ns)>) -> Option<(f64, f64, Ns)> {
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    let whole: Ns = ratios.iter().map(|(_, ns)| ns).sum();
    let at = |part: Ns| {
        let mut sum = 0;
        ratios.iter().find(|(_, ns)| {
            sum += ns;
            sum * 4 >= whole * part
        })
    };
    Some((at(2)?.0, at(1)?.0, whole))
}

fn early(works: &[&Work]) -> Option<Ns> {
    super::median(works.iter().take(works.len() / 4).map(|work| work.dur)).filter(|ns| *ns > 0)
}

/// Growth of the batch from which kernels take longer because they have more to do.
const GREW: f64 = 1.05;

/// Whether the last quarter of the steps works on more rows than the first.
fn grew(counted: &Counted<'_>) -> bool {
    let rows: Vec<Ns> = counted
        .steps
        .iter()
        .filter_map(|step| step.facts.batch.map(u64::from).or(step.rows))
        .filter_map(|rows| Ns::try_from(rows).ok())
        .collect();
    let quarter = rows.len() / 4;
    let early = super::median(rows.iter().take(quarter).copied());
    let late = super::median(rows.iter().rev().take(quarter).copied());
    early.zip(late).is_some_and(|(early, late)| late as f64 > GREW * early as f64)
}

/// Whether the calls of a position differ by no more than a clock can make them.
fn is_one_work(works: &[&Work]) -> bool {
    let mut times: Vec<Ns> = durations(works).collect();
    times.sort_unstable();
    let at = |tenths: usize| times.get(times.len().saturating_sub(1) * tenths / 10).copied().unwrap_or(0);
    at(9) as f64 <= OTHER_WORK * at(1) as f64
}

fn drift(counted: &Counted<'_>, series: &Series<'_>) -> Option<Cost> {
    if grew(counted) {
        return None;
    }
    let all: Ns = series.values().flatten().map(|work| work.dur).sum();
    let long = || series.values().filter(|works| works.len() >= CALLS.0 && is_one_work(works));
    let names: BTreeSet<StringId> = long().flatten().map(|work| work.name).collect();
    let ratios = long().filter(|works| works.iter().all(|work| !work.is_attention())).filter_map(|works| {
        let late = super::median(works.iter().rev().take(works.len() / 4).map(|work| work.dur))?;
        Some((late as f64 / early(works)? as f64, durations(works).sum()))
    });
    let (ratio, least, covered) = weighted(ratios.collect())?;
    let enough = counted.work.len() >= OPERATIONS && names.len() >= NAMES && covered as f64 >= DRIFT.2 * all as f64;
    if !enough || !(DRIFT.0..OTHER_WORK).contains(&ratio) || least < DRIFT.1 {
        return None;
    }
    let (mut slow, mut usual, mut excess) = (Vec::new(), Vec::new(), 0);
    for works in long() {
        let early = early(works)?;
        for work in works.iter().filter(|work| work.dur > early) {
            excess += (work.own * (work.dur - early)).checked_div(work.dur).unwrap_or(0);
            usual.push((work.at, early));
            slow.push(*work);
        }
    }
    let bounds = (excess * 9 / 10, excess * 11 / 10);
    Some(counted.of_work(Kind::Drift { ratio }, Layer::Operator, slow, (excess, bounds), vec![Edit::Resize(usual)]))
}

fn sporadic(population: &Population<'_>, counted: &Counted<'_>, series: &Series<'_>) -> Option<Cost> {
    let (mut slow, mut usual, mut excess, mut kinds) = (Vec::new(), Vec::new(), 0, 0);
    let mut most: Option<(Ns, StringId)> = None;
    for (position, works) in series.iter().filter(|(_, works)| works.len() >= CALLS.1) {
        // Operators of Ascend are named without their shapes: the same name is not the same work.
        if population.text(position.0).contains("aclnn") {
            continue;
        }
        let median = super::median(durations(works))?;
        let is_outlier = |work: &&&Work| work.dur as f64 > OUTLIER.0 * median as f64 && work.dur - median > OUTLIER.1;
        let found: Vec<&Work> = works.iter().filter(is_outlier).copied().collect();
        if found.is_empty() || found.len() as f64 > OUTLIER.2 * works.len() as f64 || comes_in_rows(works, is_outlier) {
            continue;
        }
        let own: Ns = found.iter().map(|work| work.dur - median).sum();
        (excess, kinds) = (excess + own, kinds + 1);
        most = most.max(Some((own, position.0)));
        usual.extend(found.iter().map(|work| (work.at, median)));
        slow.extend(found);
    }
    let (_, kernel) = most?;
    if counted.share(excess) < OUTLIER.3 {
        return None;
    }
    let kind = Kind::Sporadic { kernel, kinds };
    let edits = vec![Edit::Resize(usual)];
    Some(counted.of_work(kind, Layer::Operator, slow, (excess, (excess * 85 / 100, excess * 11 / 10)), edits))
}

/// Whether most outliers follow another one that took as long: a larger problem runs again and again. Contention hits single calls.
fn comes_in_rows(works: &[&Work], is_outlier: impl Fn(&&&Work) -> bool) -> bool {
    let outliers = works.iter().filter(&is_outlier).count();
    let alike = |a: &Work, b: &Work| a.dur.max(b.dur) <= a.dur.min(b.dur).saturating_mul(ALIKE.1) / ALIKE.0;
    let rows = works.windows(2).filter(|pair| match pair {
        [a, b] => is_outlier(&a) && is_outlier(&b) && alike(a, b),
        _ => false,
    });
    2 * rows.count() > outliers
}

/// The rank whose kernels all take longer than the same kernels of the others.
fn slow_rank(population: &Population<'_>, series: &[Series<'_>]) -> Option<Cost> {
    let median = |works: &Vec<&Work>| super::median(durations(works)).filter(|_| works.len() >= CALLS.2);
    let medians: Vec<BTreeMap<Position, Ns>> =
        series.iter().map(|own| own.iter().filter_map(|(at, works)| Some((*at, median(works)?))).collect()).collect();
    let against = |i: usize| {
        let own = medians.get(i)?;
        let of_others = |at: &Position| {
            let others = medians.iter().enumerate().filter(|(j, _)| *j != i);
            super::median(others.filter_map(|(_, other)| other.get(at).copied())).filter(|ns| *ns > 0)
        };
        let works = |at: &Position| series.get(i).and_then(|own| own.get(at));
        let ratios = own.iter().filter_map(|(at, ns)| {
            let works = works(at)?;
            let alike = works.iter().all(|work| !work.is_attention());
            Some((*ns as f64 / of_others(at)? as f64, durations(works).sum())).filter(|_| alike)
        });
        Some((i, weighted(ratios.collect())?))
    };
    if population.ranks.len() < 2 {
        return None;
    }
    // Of a large job each rank against a sample tells as much as against all.
    let ranks = (0..population.ranks.len()).collect::<Vec<_>>().into_par_iter().filter_map(against);
    let (i, (ratio, least, time)) = ranks.max_by(|a, b| a.1.0.total_cmp(&b.1.0).then(b.0.cmp(&a.0)))?;
    if least < SLOW_RANK.0 || ratio >= SLOW_RANK.1 {
        return None;
    }
    let (counted, own) = population.ranks.get(i).zip(series.get(i))?;
    let excess = (time as f64 * (1.0 - 1.0 / ratio)) as Ns;
    let slow: Vec<&Work> = own.values().flatten().copied().filter(|work| !work.is_attention()).collect();
    let usual = slow.iter().map(|work| (work.at, (work.dur as f64 / ratio) as Ns)).collect();
    let bounds = (excess * 9 / 10, excess * 115 / 100);
    Some(counted.of_work(Kind::SlowRank { ratio }, Layer::Operator, slow, (excess, bounds), vec![Edit::Resize(usual)]))
}
