//! CM-10: data-parallel ranks decode batches of different sizes, and those with less wait for those with more.

use std::collections::BTreeMap;

use model::{
    Area,
    EvidenceClass::{Device, MultiRank},
};

use super::uneven;
use crate::{
    analysis::{Layer, Rank},
    diagnose::{
        Competing,
        relations::{Advice, Feeds, Relations, Role},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text},
};

/// The rule.
pub struct DpMismatch;

static DOC: Doc = Doc {
    id: "CM-10",
    title: Text::new("Unequal batches of data-parallel ranks", "数据并行各 rank 批大小不等"),
    layer: Layer::Communication,
    needs: &[Device, MultiRank],
    advice: Advice::Host,
    relations: Relations { board: &[Feeds::Area(Area::Communication)], role: Some(Role::LateRank), ..Relations::NONE },
    sees: Text::new(
        "In the same steps the ranks decode different numbers of sequences, and those with fewer wait in their collectives.",
        "同一步中各 rank 解码的序列数不同，较少者在集合通信中等待。",
    ),
    matters: Text::new(
        "Data-parallel ranks meet in every exchange of experts' tokens: the largest batch sets the pace for all of them.",
        "数据并行各 rank 在每次专家 token 交换时会合：最大的批决定所有 rank 的节奏。",
    ),
    trigger: Text::new(
        "Largest batch of a rank over the mean of the others at least 1.2, the ranks' waiting correlated with the sequences that they have less (r at least 0.6), and waiting at least 3 % of the step, over at least 10 steps.",
        "rank 的最大批与其余 rank 均值之比至少 1.2，等待时间与少的序列数相关（r 至少 0.6），且等待至少占步时的 3%，至少 10 步。",
    ),
    source: Text::new(
        "1.2: NVIDIA's triage guide. 0.6: rule catalogue. 3 %: own value.",
        "1.2：NVIDIA 排查指南。0.6：规则目录。3%：自定值。",
    ),
    guards: Text::new(
        "Needs the batch of each rank's steps from their annotations, the engine's count of tokens, or the rows that the launches of norms and cache writes show, padding included. Ranks of one tensor-parallel group decode the same batch and never fire it.",
        "需要各 rank 的批大小：取自步标注、引擎 token 计数，或归一化与缓存写入启动所示的行数（含填充）。同一张量并行组的 rank 批大小相同，不会触发。",
    ),
    verify: Text::new(
        "Balance the requests over the ranks: the batches even out, and the waiting falls with them.",
        "在各 rank 间均衡请求：批大小趋于一致，等待随之减少。",
    ),
};

impl Rule for DpMismatch {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn needs_steps(&self) -> bool {
        true
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let batches: BTreeMap<u32, _> =
            cx.analysis.ranks.iter().map(|rank| (rank.rank, uneven::batch(cx, rank))).collect();
        let known = |rank: &Rank| {
            let first = rank.main_class().and_then(|class| rank.steady_steps(class).next());
            first.and_then(|step| batches.get(&rank.rank)?(step)).is_some()
        };
        if !cx.analysis.ranks.iter().all(known) {
            return Outcome::Abstain(Message::plain(Text::new(
                "the batch of each rank's steps is not known; use the engine's step annotations on every rank, or record its counter num_scheduled_tokens",
                "不知道各 rank 每步的批大小；请在每个 rank 上启用引擎的步标注，或记录其计数器 num_scheduled_tokens",
            )));
        }
        let one = uneven::compare(cx, |rank, step| batches.get(&rank.rank)?(step)).map(|uneven| {
            let formula = Text::new("largest batch of a rank / mean of the others", "rank 的最大批 / 其余 rank 的均值");
            let claim = Text::new(
                "In {class} rank {loaded} decodes {ratio} the mean batch of the others; rank {rank} waits {idle} of {step} for it.",
                "{class} 中 rank {loaded} 的批为其余 rank 均值的 {ratio}；rank {rank} 每步为此等待 {idle}，步时 {step}。",
            );
            uneven.finding(cx, &DOC, formula, claim).against(Competing::open(
                Text::new("the loaded rank is slow for another reason too", "负载最重的 rank 另有变慢的原因"),
                Text::new("the same run with equal batches decides", "各 rank 批大小相同时再跑一次可以判定"),
            ))
        });
        one.into_iter().collect()
    }
}
