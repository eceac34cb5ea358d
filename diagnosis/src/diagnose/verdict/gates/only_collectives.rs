//! Of every rank only its collectives were recorded: who waits for whom is known, and what the late ones did is not.

use std::{cmp::Reverse, collections::BTreeMap};

use model::{Ns, StepPart};

use super::{Case, Ruling};
use crate::{
    analysis::{Layer, job_sums::JobTotals},
    diagnose::sums,
    i18n::{Message, Text, Value},
};

/// What it says.
const SENTENCE: Text = Text::new(
    "Only collectives were recorded, of {n} ranks: the ranks are inside them for {share} of their time.{late}{job} What a rank does between its collectives is not in the capture, so no layer can be blamed: record its kernels and its host.",
    "仅记录了 {n} 个 rank 的集合通信：各 rank 有 {share} 的时间处于其中。{late}{job}采集中没有 rank 在集合通信之间所做的工作，因此无法判定瓶颈层：请同时采集其内核与主机。",
);
/// The same of one rank.
const ALONE: Text = Text::new(
    "Of rank {rank} only collectives were recorded: it is inside them for {share} of the time from its first to its last one.{own} What it does between its collectives is not in the capture, so no layer can be blamed: record its kernels and its host.",
    "rank {rank} 只记录了集合通信：在其首个到最后一个集合通信之间，有 {share} 的时间处于其中。{own}采集中没有其在集合通信之间所做的工作，因此无法判定瓶颈层：请同时采集其内核与主机。",
);
/// What the sums of its steps say of it.
const STEP: Text = Text::new(
    " By the sums of its steps one takes {step}: it computes for {computing}, communicates and does not compute for {exposed}, and is free for {free}.",
    "按其步内合计，每步 {step}：计算 {computing}，未掩盖通信 {exposed}，空闲 {free}。",
);
/// What the sums of the steps of more ranks say.
const JOB: Text = Text::new(
    " By the sums of the steps of {n} ranks {share} of a step is communication that no computation hides{bubble}.",
    "按 {n} 个 rank 的步内总和，一步中有 {share} 是没有被计算掩盖的通信{bubble}。",
);
/// For whom the others wait.
const LATE: Text = Text::new(
    " Of {waits} of waiting for each other, summed over the ranks, {most} is for rank {rank}{second}.{own}",
    "各 rank 相互等待共 {waits}（各 rank 之和），其中 {most} 是在等 rank {rank}{second}。{own}",
);
/// For whom they wait besides.
const SECOND: Text = Text::new(" and {share} for rank {rank}", "，{share} 是在等 rank {rank}");
/// What the sums of a step say of the rank that the others wait for.
const OWN: Text = Text::new(
    " By the sums of its steps it computes or idles for {own} per step, the fastest rank for {least}.",
    "按其步内总和，它每步计算或空闲 {own}，最快的 rank 为 {least}。",
);
/// Share of all waiting from which a second rank is named; own value.
const ALSO: f64 = 0.2;

pub(super) fn decide(case: &Case<'_>) -> Option<Ruling> {
    let analysis = case.cx.analysis;
    let ranks = &analysis.ranks;
    if ranks.is_empty() || !ranks.iter().all(|rank| rank.timeline.collectives_only) {
        return None;
    }
    let classes = || ranks.iter().filter_map(|rank| rank.main_class());
    let (inside, all) = classes().fold((0, 0), |(inside, all): (Ns, Ns), class| {
        (
            inside.saturating_add(class.sum(|bucket| bucket.layer() == Layer::Communication)),
            all.saturating_add(class.total),
        )
    });
    if all <= 0 {
        return None;
    }
    let share = Value::Share(inside as f64 / all as f64);
    if let [rank] = &ranks[..] {
        let own = step(case, rank.rank).unwrap_or(Value::Text(Text::new("", "")));
        let args = [("rank", Value::Count(u64::from(rank.rank))), ("share", share), ("own", own)];
        return Some(Ruling::undecided(Message::new(ALONE, args), []));
    }
    let args = [
        ("n", Value::Count(ranks.len() as u64)),
        ("share", share),
        ("late", late(case).unwrap_or(Value::Text(Text::new("", "")))),
        ("job", job(case).unwrap_or(Value::Text(Text::new("", "")))),
    ];
    Some(Ruling::undecided(Message::new(SENTENCE, args), []))
}

/// The ranks that the others wait for, the one that costs most first.
fn late(case: &Case<'_>) -> Option<Value> {
    let analysis = case.cx.analysis;
    let mut by_rank: BTreeMap<usize, Ns> = BTreeMap::new();
    for wait in &analysis.job.waits {
        *by_rank.entry(wait.late).or_default() += wait.ns;
    }
    let waits: Ns = by_rank.values().sum();
    let mut order: Vec<(usize, Ns)> = by_rank.into_iter().filter(|(_, ns)| *ns > 0).collect();
    order.sort_by_key(|(rank, ns)| (Reverse(*ns), *rank));
    let number = |rank: usize| analysis.ranks.get(rank).map(|rank| rank.rank);
    let share = |ns: Ns| Value::Share(ns as f64 / waits.max(1) as f64);
    let (most, ns) = order.first().copied()?;
    let nothing = || Value::Text(Text::new("", ""));
    let second = order.get(1).filter(|(_, ns)| *ns as f64 >= ALSO * waits as f64);
    let second = second.and_then(|(rank, ns)| {
        let args = [("share", share(*ns)), ("rank", Value::Count(u64::from(number(*rank)?)))];
        Some(Message::new(SECOND, args).within())
    });
    let args = [
        ("waits", Value::Ns(waits)),
        ("most", share(ns)),
        ("rank", Value::Count(u64::from(number(most)?))),
        ("second", second.unwrap_or_else(nothing)),
        ("own", number(most).and_then(|rank| own(case, rank)).unwrap_or_else(nothing)),
    ];
    Some(Message::new(LATE, args).within())
}

/// What the sums of the steps say of the job, where they are those of more ranks than have collectives.
fn job(case: &Case<'_>) -> Option<Value> {
    let totals = JobTotals::of(case.cx.trace);
    let (exposed, all) = totals.exposed().filter(|_| totals.ranks.len() > case.cx.analysis.ranks.len())?;
    let args = [
        ("n", Value::Count(totals.ranks.len() as u64)),
        ("share", Value::Share(exposed as f64 / all as f64)),
        ("bubble", sums::bubble(&totals).unwrap_or(Value::Text(Text::new("", "")))),
    ];
    Some(Message::new(JOB, args).within())
}

/// How long that rank does something else in a step, where the sums of its steps say it and it is among the longest.
fn own(case: &Case<'_>, rank: u32) -> Option<Value> {
    let totals = JobTotals::of(case.cx.trace);
    let own = |total: &crate::analysis::job_sums::RankTotal| total.own();
    let least = totals.ranks.iter().filter_map(own).min()?;
    let its = totals.ranks.iter().find(|total| total.rank == rank).and_then(own)?;
    let args = [("own", Value::Ns(its)), ("least", Value::Ns(least))];
    (its > least).then(|| Message::new(OWN, args).within())
}

/// What a step of a rank consists of, by the sums of its steps.
fn step(case: &Case<'_>, rank: u32) -> Option<Value> {
    let totals = JobTotals::of(case.cx.trace);
    let total = totals.ranks.iter().find(|total| total.rank == rank)?;
    let computing = total.mean(StepPart::Computing)?;
    let exposed = total.mean(StepPart::ExposedCommunication)?;
    let free = total.mean(StepPart::Free)?;
    let args = [
        ("step", Value::Ns(computing.checked_add(exposed)?.checked_add(free)?)),
        ("computing", Value::Ns(computing)),
        ("exposed", Value::Ns(exposed)),
        ("free", Value::Ns(free)),
    ];
    Some(Message::new(STEP, args).within())
}
