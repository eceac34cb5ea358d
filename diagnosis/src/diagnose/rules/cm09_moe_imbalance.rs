//! CM-09: the experts of one rank get more tokens than those of the others, which wait for it.

use model::{
    Area,
    EvidenceClass::{Device, MultiRank},
    Ns,
};

use super::{
    cm12_jitter_wait::{self, is_experts},
    excess::Excess,
    late::{self, Waiting},
    uneven,
};
use crate::{
    analysis::{Bucket, Class, Confidence, Edit, Layer, Rank, RankCounter, scheduler::Series},
    diagnose::{
        Competing, Evidence, Finding, Intervention, Trigger,
        relations::{Advice, Feeds, Relations, Role},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
};

/// Part of what a rank's kernels take longer that must be in its experts, where no tokens are counted; own value.
const ALONE: f64 = 0.8;

/// The rule.
pub struct MoeImbalance;

static DOC: Doc = Doc {
    id: "CM-09",
    title: Text::new("Unbalanced experts", "专家负载不均"),
    layer: Layer::Communication,
    needs: &[Device, MultiRank],
    advice: Advice::Host,
    relations: Relations { board: &[Feeds::Area(Area::Communication)], role: Some(Role::LateRank), ..Relations::NONE },
    sees: Text::new(
        "The experts of one rank get clearly more tokens than those of the others, and the others wait in their collectives.",
        "某个 rank 的专家分到的 token 明显多于其他 rank，其他 rank 在集合通信中等待。",
    ),
    matters: Text::new(
        "Each layer lasts as long as its most loaded rank: the other ranks' devices stand still meanwhile.",
        "每层的时长取决于负载最重的 rank，其余 rank 的设备只能空等。",
    ),
    trigger: Text::new(
        "Most tokens of a rank over the mean of the others at least 1.2, the ranks' waiting correlated with the tokens that they have less (r at least 0.6), and waiting at least 3 % of the step, over at least 10 steps. Where no tokens are counted: one rank is late persistently (CM-01), its experts take at least 1.2 times as long as the others', and at least 80 % of what its kernels take longer is in them.",
        "rank 的最多 token 数与其余 rank 均值之比至少 1.2，等待时间与少分到的 token 数相关（r 至少 0.6），且等待至少占步时的 3%，至少 10 步。没有 token 计数时：某个 rank 持续迟到（CM-01），其专家时间至少为其他 rank 的 1.2 倍，且其内核多花的时间至少 80% 在专家上。",
    ),
    source: Text::new(
        "1.2: NVIDIA's triage guide. 0.6: rule catalogue. 3 % and 80 %: own values.",
        "1.2：NVIDIA 排查指南。0.6：规则目录。3% 与 80%：自定值。",
    ),
    guards: Text::new(
        "A slow device or a larger batch makes all kernels of a rank longer, not only its experts: then CM-01 or CM-10 speaks. Without the tokens of each rank's experts the confidence is at most medium. A balance forced for a benchmark says nothing about real text (CP-10).",
        "设备变慢或批更大会使该 rank 的所有内核变长，而不只是专家：此时由 CM-01 或 CM-10 指出。没有各 rank 专家 token 数时置信度最多为中。为测试强制的均衡不代表真实文本（CP-10）。",
    ),
    verify: Text::new(
        "Rebalance or replicate the busy experts: the tokens per rank even out, and the waiting falls with them.",
        "重新均衡或复制繁忙专家：各 rank 的 token 数趋于均匀，等待随之减少。",
    ),
};

impl Rule for MoeImbalance {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn needs_steps(&self) -> bool {
        true
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let in_turn = || -> Vec<Finding> {
            let groups = late::waiting(cx);
            let by_experts =
                groups.iter().filter(|g| cm12_jitter_wait::is_spread(cx, g) && cm12_jitter_wait::by_experts(g));
            by_experts.filter_map(|group| cm12_jitter_wait::spread(cx, group, &DOC)).collect()
        };
        match loaded(cx) {
            Some((_, finding)) => Outcome::Found(vec![finding]),
            None if counters(cx).is_none() && !in_turn().is_empty() => Outcome::Found(in_turn()),
            None if counters(cx).is_none() && cx.main_classes().any(|(_, class)| has_experts(class)) => {
                Outcome::Abstain(Message::plain(UNCOUNTED))
            }
            None => Outcome::Quiet,
        }
    }
}

/// Why the rule cannot decide.
const UNCOUNTED: Text = Text::new(
    "the tokens of each rank's experts are not counted; record the engine's counter moe_tokens on every rank",
    "没有各 rank 专家 token 数；请在每个 rank 上记录引擎计数器 moe_tokens",
);

fn has_experts(class: &Class) -> bool {
    class.share(is_experts) > 0.0
}

/// The rank whose experts have most to do, as an index into the analysis' ranks, and what is to be said of it.
pub(super) fn loaded(cx: &Context<'_>) -> Option<(usize, Finding)> {
    match counters(cx) {
        Some(counters) => by_tokens(cx, &counters),
        None => late::waiting(cx).iter().find_map(|group| by_time(cx, group)),
    }
}

/// The tokens of each rank's experts, if every rank counts them.
fn counters(cx: &Context<'_>) -> Option<Vec<(u32, Series)>> {
    let ranks = cx.analysis.ranks.iter();
    ranks.map(|rank| Some((rank.rank, RankCounter::ExpertTokens.of(cx.trace, rank.process)?))).collect()
}

fn by_tokens(cx: &Context<'_>, counters: &[(u32, Series)]) -> Option<(usize, Finding)> {
    let uneven = uneven::compare(cx, |rank, step| {
        let (_, series) = counters.iter().find(|(id, _)| *id == rank.rank)?;
        let tokens = series.of_step(&rank.timeline, rank.ops_of(step))?;
        // A larger batch brings more tokens without any expert being busier: that is CM-10's.
        Some(tokens / uneven::batch(cx, rank)(step).unwrap_or(1.0))
    })?;
    let formula = Text::new(
        "most tokens of a rank's experts / mean of the others",
        "各 rank 专家的最多 token 数 / 其余 rank 的均值",
    );
    let claim = Text::new(
        "In {class} the experts of rank {loaded} get {ratio} the mean tokens of the others; rank {rank} waits {idle} of {step} for them.",
        "{class} 中 rank {loaded} 的专家分到的 token 为其余 rank 均值的 {ratio}；rank {rank} 每步为此等待 {idle}，步时 {step}。",
    );
    let (at, rank, class) = uneven.loaded;
    let mut finding = uneven.finding(cx, &DOC, formula, claim).against(Competing::open(
        Text::new("the loaded rank is slow for another reason too", "负载最重的 rank 另有变慢的原因"),
        Text::new("the same run with experts rebalanced decides", "重新均衡专家后再跑一次可以判定"),
    ));
    let all: Vec<usize> = late::counted(cx).map(|(i, ..)| i).collect();
    let excess = Excess::of(cx.analysis, &all, at, class, is_experts);
    for (_, change) in &mut finding.changes {
        change.edits = balanced(excess.clone(), all.len(), rank, class);
    }
    Some((at, finding))
}

/// The router gives each token to as many experts wherever they are: what the loaded rank loses the others get, and all of
/// them end at the mean.
fn balanced(excess: Excess, ranks: usize, rank: &Rank, class: &Class) -> Vec<Edit> {
    excess.shared(ranks).edits(rank, class)
}

/// Where nobody counted tokens: one rank is late again and again, and all that its kernels take longer than those of the
/// others is in its experts. A slow device or a larger batch would show in the other kernels too.
fn by_time(cx: &Context<'_>, group: &Waiting) -> Option<(usize, Finding)> {
    let late = group.persistent()?;
    let (at, rank, class) = late::counted(cx).find(|(i, ..)| *i == late.rank)?;
    let excess = Excess::of(cx.analysis, &group.ranks, at, class, is_experts);
    let all = Excess::of(cx.analysis, &group.ranks, at, class, |b| matches!(b, Bucket::Compute(_)));
    let ratio = excess.ratio().filter(|ratio| *ratio >= uneven::RATIO)?;
    let waiting = (group.ranks.len() as Ns - 1).max(1);
    let wait = late.wait / class.steady.max(1) as Ns / waiting;
    let share = wait as f64 / class.mean().max(1) as f64;
    if (excess.total as f64) < ALONE * all.total as f64 || share < uneven::SHARE {
        return None;
    }
    let claim = Message::new(
        Text::new(
            "In {class} the experts of rank {rank} compute for {ratio} the time of the others' while its other kernels are as fast as theirs; each of the others waits {wait} of {step} for it.",
            "{class} 中 rank {rank} 的专家计算时间为其他 rank 的 {ratio}，而其余内核与它们一样快；其他每个 rank 每步为此等待 {wait}，步时 {step}。",
        ),
        [
            ("class", Value::Raw(class.key.clone())),
            ("rank", Value::Count(u64::from(rank.rank))),
            ("ratio", Value::Ratio(ratio)),
            ("wait", Value::Ns(wait)),
            ("step", Value::Ns(class.mean())),
        ],
    );
    let formula = Text::new("time of a rank's experts / median of the others", "rank 的专家时间 / 其余 rank 的中位数");
    let trigger = Trigger { formula, value: ratio, threshold: uneven::RATIO };
    let part = excess.total as f64 / all.total.max(1) as f64;
    let edits = balanced(excess, group.ranks.len(), rank, class);
    let change = Intervention { removes: wait, layer: Layer::Communication, edits };
    let finding = cx
        .finding(&DOC, rank, class, claim, trigger, change)
        .with(Evidence::new(
            Text::new("wait per step of each other rank for it", "其他每个 rank 每步对它的等待"),
            Value::Ns(wait),
            late.rows.iter().map(|(_, slice)| *slice).collect(),
        ))
        .with(Evidence::new(
            Text::new(
                "part of what its kernels take longer than those of the others that is in its experts",
                "其内核多花的时间中专家所占的比例",
            ),
            Value::Share(part),
            Vec::new(),
        ))
        .against(Competing::open(
            Text::new("the experts of this rank run a slower kernel", "该 rank 的专家用了较慢的内核"),
            Text::new(
                "the tokens of each rank's experts decide; record the engine's counter moe_tokens",
                "各 rank 专家的 token 数可以判定；请记录引擎计数器 moe_tokens",
            ),
        ));
    finding.gated(Confidence::Medium).map(|finding| (at, finding))
}
