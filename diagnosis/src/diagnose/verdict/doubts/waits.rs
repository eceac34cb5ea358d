//! Waits of a rank for the others of its job, of which no finding says the cause.

use model::Ns;

use super::{Case, Unjudged};
use crate::{
    analysis::{Bucket, Layer},
    diagnose::{
        Finding,
        estimate::Method,
        relations::Role,
        signals::late::{self, Absent},
    },
    i18n::{Message, Text, Value},
};

/// Share of the step from which waits without a cause need a word; own value, that of the runtime.
const LEAST: f64 = 0.10;

/// Part of the waits that every finding must fall short of before they say that mending one rank lets the next be late; own value.
const SHORT_OF: f64 = 1.0 / 3.0;

/// What it says where no finding speaks of the waits.
const SENTENCE: Text = Text::new(
    "{share} of the step rank {rank} waits in collectives for other ranks, {part} of it for rank {late}; no finding says what keeps that rank: its own report tells what it does meanwhile (--rank {late})",
    "步时的 {share}，rank {rank} 在集合通信中等待其他 rank，其中 {part} 是等待 rank {late}；没有发现指出后者因何迟到：可用 --rank {late} 查看该 rank 当时在做什么",
);

/// What it says where what was found takes little of them away.
const NEXT: Text = Text::new(
    "{share} of the step rank {rank} waits in collectives for other ranks, and what was found takes away {gain} of the step: behind the rank for which most is waited ({late}, {part} of the waits) the next one is late; compare what the hosts of all ranks do",
    "步时的 {share}，rank {rank} 在集合通信中等待其他 rank，而已发现的原因只能减少步时的 {gain}：等待最多的对象（rank {late}，占等待的 {part}）之后还有下一个迟到的 rank；请比较所有 rank 的主机行为",
);

/// What it says where ranks of the group were not captured: what all that were captured wait alike is theirs.
const ABSENT: Text = Text::new(
    "{share} of the step rank {rank} waits in collectives of which not every rank was captured, for {part} of that as long as all that were: an absent rank is the first suspect; capture every rank",
    "步时的 {share}，rank {rank} 在未采集全部 rank 的集合通信中等待，其中 {part} 是所有已采集的 rank 同样在等待：首要嫌疑是未采集的 rank；请采集所有 rank",
);

pub(super) fn ask(case: &Case<'_>) -> Option<Unjudged> {
    let (rank, class) = case.longest?;
    let share = class.share(|bucket| bucket == Bucket::CommWait);
    if share < LEAST {
        return None;
    }
    let analysis = case.cx.analysis;
    let at = analysis.ranks.iter().position(|own| std::ptr::eq(own, rank))?;
    let waits = || rank.steady_steps(class).flat_map(|step| analysis.job.waits_in(at, &step.ops));
    let of_absent = Absent::of(&analysis.job);
    let absent: Ns = waits().map(|wait| of_absent.of_wait(wait)).sum();
    if absent > 0 {
        let all: Ns = waits().map(|wait| wait.ns).sum();
        let part = Value::Share(absent as f64 / all.max(1) as f64);
        let args = [("share", Value::Share(share)), ("rank", Value::Count(rank.rank.into())), ("part", part)];
        return Some(Unjudged { share, sentence: Message::new(ABSENT, args), because: Vec::new(), decides: false });
    }
    // What makes ranks wait may lie in another layer.
    let causes = [Role::LateRank, Role::RankNoise, Role::UnevenStages];
    let of_ranks = |f: &Finding| causes.into_iter().any(|role| case.rules.plays(f.rule, role));
    // A size without a change speaks of no cause.
    let changes = |f: &Finding| f.layer == Layer::Communication && f.estimate.method != Method::None;
    let gain = |found: &dyn Fn(&Finding) -> bool| {
        case.findings.iter().filter(|f| found(f)).map(|f| f.estimate.max_gain_share()).fold(0.0, f64::max)
    };
    let mended = case.findings.iter().any(of_ranks);
    let spoken_of = mended || gain(&changes) >= SHORT_OF * share;
    // Of two ranks none is the next one.
    let gain = gain(&|_| true);
    if spoken_of && (!mended || gain >= SHORT_OF * share || analysis.ranks.len() < 3) {
        return None;
    }
    let waited = late::waited_for(analysis, at, class);
    let all: Ns = waited.values().sum();
    let (late, ns) = waited.into_iter().max_by_key(|(late, ns)| (*ns, std::cmp::Reverse(*late)))?;
    let late_rank = analysis.ranks.get(late)?.rank;
    // What a finding says of that rank and not of the one that waits, keeps it, if it takes as long.
    let of_late = |f: &Finding| f.ranks.contains(&late_rank) && !f.ranks.contains(&rank.rank);
    let keeps = |f: &Finding| of_late(f) && 2 * f.cost.max(f.claimed) >= ns / class.steady.max(1) as Ns;
    if !spoken_of && case.findings.iter().any(keeps) {
        return None;
    }
    let args = [
        ("share", Value::Share(share)),
        ("rank", Value::Count(rank.rank.into())),
        ("part", Value::Share(ns as f64 / all.max(1) as f64)),
        ("late", Value::Count(late_rank.into())),
        ("gain", Value::Share(gain)),
    ];
    let sentence = Message::new(if spoken_of { NEXT } else { SENTENCE }, args);
    Some(Unjudged { share, sentence, because: Vec::new(), decides: false })
}
