//! CM-09: the experts of one rank get more tokens than those of the others, which wait for it.

use model::EvidenceClass::{Device, Logs, MultiRank};

use super::uneven;
use crate::{
    analysis::{Layer, RankCounter},
    diagnose::{
        Competing,
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text},
};

/// The rule.
pub struct MoeImbalance;

static DOC: Doc = Doc {
    id: "CM-09",
    title: Text::new("Unbalanced experts", "专家负载不均"),
    layer: Layer::Communication,
    needs: &[Device, MultiRank, Logs],
    sees: Text::new(
        "The experts of one rank get clearly more tokens than those of the others, and the others wait in their collectives.",
        "某个 rank 的专家分到的 token 明显多于其他 rank，其他 rank 在集合通信中等待。",
    ),
    matters: Text::new(
        "Each layer lasts as long as its most loaded rank: the other ranks' devices stand still meanwhile.",
        "每层的时长取决于负载最重的 rank，其余 rank 的设备只能空等。",
    ),
    trigger: Text::new(
        "Most tokens of a rank over the mean of the others at least 1.2, the ranks' waiting correlated with the tokens that they have less (r at least 0.6), and waiting at least 3 % of the step, over at least 10 steps.",
        "rank 的最多 token 数与其余 rank 均值之比至少 1.2，等待时间与少分到的 token 数相关（r 至少 0.6），且等待至少占步时的 3%，至少 10 步。",
    ),
    source: Text::new(
        "1.2: NVIDIA's triage guide. 0.6: rule catalogue. 3 %: own value.",
        "1.2：NVIDIA 排查指南。0.6：规则目录。3%：自定值。",
    ),
    guards: Text::new(
        "Without the tokens of each rank's experts the rule abstains: unequal times alone may have any cause (CM-01). A balance forced for a benchmark says nothing about real text (CP-10).",
        "没有各 rank 专家 token 数时不作判断：仅时间不均可能另有原因（CM-01）。为测试强制的均衡不代表真实文本（CP-10）。",
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
        let counters: Vec<_> = cx
            .analysis
            .ranks
            .iter()
            .map(|rank| Some((rank.rank, RankCounter::ExpertTokens.of(cx.trace, rank.process)?)))
            .collect();
        let Some(counters) = counters.into_iter().collect::<Option<Vec<_>>>() else {
            return Outcome::Abstain(Message::plain(Text::new(
                "the tokens of each rank's experts are not counted; record the engine's counter moe_tokens on every rank",
                "没有各 rank 专家 token 数；请在每个 rank 上记录引擎计数器 moe_tokens",
            )));
        };
        let uneven = uneven::compare(cx, |rank, step| {
            let (_, series) = counters.iter().find(|(id, _)| *id == rank.rank)?;
            let tokens = series.set_in(step.host.unwrap_or(step.window))?;
            // A larger batch brings more tokens without any expert being busier: that is CM-10's.
            Some(tokens / uneven::batch(cx, rank)(step).unwrap_or(1.0))
        });
        let one = uneven.map(|uneven| {
            let formula = Text::new(
                "most tokens of a rank's experts / mean of the others",
                "各 rank 专家的最多 token 数 / 其余 rank 的均值",
            );
            let claim = Text::new(
                "In {class} the experts of rank {loaded} get {ratio} the mean tokens of the others; rank {rank} waits {idle} of {step} for them.",
                "{class} 中 rank {loaded} 的专家分到的 token 为其余 rank 均值的 {ratio}；rank {rank} 每步为此等待 {idle}，步时 {step}。",
            );
            uneven.finding(cx, &DOC, formula, claim).against(Competing::open(
                Text::new("the loaded rank is slow for another reason too", "负载最重的 rank 另有变慢的原因"),
                Text::new("the same run with experts rebalanced decides", "重新均衡专家后再跑一次可以判定"),
            ))
        });
        one.into_iter().collect()
    }
}
