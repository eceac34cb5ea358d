//! RT-20: the KV cache is full, and requests are preempted and computed again.

use model::{EvidenceClass::Logs, Ns, Span};

use super::{
    exposed::{Exposed, Saying},
    gate::Cost,
    reading,
};
use crate::{
    analysis::{Bucket, Class, Confidence, Layer, Rank, Scheduler, Selection, Step},
    diagnose::{
        Competing, Estimate, Evidence, Finding, Intervention, Method, Over, Severity,
        relations::{Advice, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
    platform::Stage,
};

/// Use of the KV cache from which a request more may have to be preempted; own value.
const FULL: f64 = 0.95;

/// Share of the usual compute time by which a step must exceed it to compute something else too; own value.
const LONG: f64 = 0.2;

/// The rule.
pub struct Preemption;

static DOC: Doc = Doc {
    id: "RT-20",
    title: Text::new("Preemption and recomputation", "抢占与重算"),
    layer: Layer::Runtime,
    needs: &[Logs],
    advice: Advice::Host,
    relations: Relations::NONE,
    sees: Text::new(
        "The scheduler preempts requests because the KV cache has no room for them, or its use comes close to that.",
        "调度器因 KV 缓存空间不足而抢占请求，或其使用率已接近上限。",
    ),
    matters: Text::new(
        "A preempted request loses its cache. Its tokens are computed again, in steps that then mix prefill with the decode of the others.",
        "被抢占的请求会丢失缓存，其 token 需重新计算，且重算的预填充会混入其他请求的解码步。",
    ),
    trigger: Text::new(
        "At least one preemption in the steps that count, or more than 95 % of the KV cache in use.",
        "计入统计的步中至少发生一次抢占，或 KV 缓存使用率超过 95%。",
    ),
    source: Text::new("A preemption is structural. 95 %: own value.", "抢占是结构性判据。95%：自定值。"),
    guards: Text::new(
        "A full cache without preemption is a fact without a gain: blocks kept for prefix reuse may count as used. The gain after a preemption is bounded by what mixed steps take beyond pure decode, and new requests share it; where no step is marked as mixed, by what as many decode steps as there were preemptions compute beyond 1.2 times the usual.",
        "缓存已满但无抢占时只陈述事实、不估计收益：为前缀复用保留的块也可能计为已用。抢占后的收益以混合步超出纯解码步的时间为上界，其中也包含新请求的预填充；若没有标注混合步，则取与抢占次数同样多、计算时间超过通常 1.2 倍的解码步的超出部分。",
    ),
    verify: Text::new(
        "Give the KV cache more memory or lower the batch cap: no preemption is counted, and the mixed steps become fewer.",
        "增大 KV 缓存内存或降低批上限：不再出现抢占，混合步减少。",
    ),
};

impl Rule for Preemption {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn needs_steps(&self) -> bool {
        true
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let scheduler = Scheduler::of(cx.trace);
        let Some(span) = judged(cx) else { return Outcome::Quiet };
        let (preempted, usage) = (scheduler.preemptions(span), scheduler.kv_usage(span));
        if preempted.is_none() && usage.is_none() {
            return Outcome::Abstain(Message::plain(Text::new(
                "the scheduler publishes neither preemptions nor the use of the KV cache; record num_preemptions and kv_cache_usage",
                "调度器没有给出抢占次数与 KV 缓存使用率；请记录 num_preemptions 与 kv_cache_usage",
            )));
        }
        let preempted = preempted.unwrap_or(0.0);
        if preempted <= 0.0 && usage.is_none_or(|u| u <= FULL) {
            return Outcome::Quiet;
        }
        // One scheduler serves all ranks: the first speaks for them.
        let first = reading::marked(cx).next();
        first.and_then(|(rank, class)| full(cx, &scheduler, (rank, class), span, preempted)).into_iter().collect()
    }
}

/// Steps that compute preempted requests again.
struct Again<'a> {
    class: &'a Class,
    /// What each takes beyond a step of decode only, ns.
    each: Ns,
    /// How many there are at most.
    steps: usize,
    /// How many there are in doubt.
    least: usize,
}

impl<'a> Again<'a> {
    /// Steps that the engine says compute prompts beside the decode, if some come after the first preemption.
    fn of_mixed(rank: &'a Rank, decode: &Class, since: Option<Ns>, preempted: f64) -> Option<Self> {
        let mixed = rank.classes.iter().filter(|c| c.stage == Stage::Mixed && c.steady > 0).max_by_key(|c| c.total)?;
        let mean = |c: &Class| c.total / c.steady.max(1) as Ns;
        let each = mean(mixed) - mean(decode);
        let after = rank.steady_steps(mixed).any(|s| since.is_some_and(|t| s.window.end > t));
        let least = mixed.steady.min(preempted.clamp(0.0, 1e15) as usize);
        (after && each > 0).then_some(Self { class: mixed, each, steps: mixed.steady, least })
    }

    /// Where the steps say nothing of prompts: of those after the first preemption as many as there were preemptions, in
    /// which the device computes clearly more than usual.
    fn of_long(rank: &Rank, decode: &'a Class, since: Option<Ns>, preempted: f64) -> Option<Self> {
        let since = since?;
        let compute = |s: &Step| -> Ns {
            s.buckets.iter().filter(|(b, _)| matches!(b, Bucket::Compute(_))).map(|(_, ns)| ns).sum()
        };
        let mut all: Vec<Ns> = rank.steady_steps(decode).map(compute).collect();
        all.sort_unstable();
        let usual = *all.get(all.len() / 2)?;
        let after = rank.steady_steps(decode).filter(|s| s.window.end > since);
        let mut more: Vec<Ns> =
            after.map(|s| compute(s) - usual).filter(|ns| *ns as f64 > LONG * usual as f64).collect();
        more.sort_unstable_by(|a, b| b.cmp(a));
        more.truncate(preempted.clamp(0.0, 1e15) as usize);
        let steps = more.len();
        let each = more.iter().sum::<Ns>().checked_div(steps as Ns)?;
        Some(Self { class: decode, each, steps, least: steps })
    }
}

/// From the first step that counts to the end of the last one.
fn judged(cx: &Context<'_>) -> Option<Span> {
    let steps = || cx.analysis.ranks.iter().flat_map(|r| &r.steps).filter(|s| s.selection == Selection::Steady);
    Some(Span::new(steps().map(|s| s.window.start).min()?, steps().map(|s| s.window.end).max()?))
}

fn full(
    cx: &Context<'_>,
    scheduler: &Scheduler,
    (rank, decode): (&Rank, &Class),
    span: Span,
    preempted: f64,
) -> Option<Finding> {
    let since = scheduler.first_preemption(span);
    let again =
        Again::of_mixed(rank, decode, since, preempted).or_else(|| Again::of_long(rank, decode, since, preempted));
    let removes = again.as_ref().map_or(0, |again| again.each);
    let class = again.as_ref().map_or(decode, |again| again.class);
    let usage = scheduler.kv_usage(span);
    let (formula, value, threshold) = if preempted > 0.0 {
        (Text::new("preemptions in the steps that count", "计入统计的步中的抢占次数"), preempted, 0.0)
    } else {
        (Text::new("most of the KV cache in use", "KV 缓存最高使用率"), usage?, FULL)
    };
    let claim = if preempted > 0.0 {
        Text::new(
            "The scheduler preempts {preempted} requests in the steps that count, and their tokens are computed again.",
            "计入统计的步中调度器抢占了 {preempted} 个请求，其 token 需重新计算。",
        )
    } else {
        Text::new(
            "{usage} of the KV cache is in use: the next request may have to be preempted.",
            "KV 缓存使用率达 {usage}：再来请求就可能发生抢占。",
        )
    };
    let more =
        vec![("preempted", Value::Count(preempted.min(1e15) as u64)), ("usage", Value::Share(usage.unwrap_or(0.0)))];
    let change = Intervention { removes, layer: Layer::Runtime, edits: Vec::new() };
    let cost = Cost { per_step: removes, share: value, most: Confidence::High };
    let mut finding =
        Exposed { cx, doc: &DOC, rank, class }.finding(threshold, &cost, Saying { formula, claim, more, change });
    // Only the mixed steps gain; the run gains it on their part of its steps. Nobody tells which of the mixed steps compute
    // preempted requests again: all of them at best, and in doubt as many as there were preemptions.
    finding.ranks = cx.main_classes().map(|(rank, _)| rank.rank).collect();
    finding.over = Over::Workload;
    let (from, count) = finding.over.mean(rank, class);
    let share = |steps: usize| removes.saturating_mul(steps as Ns) / count;
    let (least, most) = again.as_ref().map_or((0, 0), |again| (share(again.least), share(again.steps)));
    finding.estimate = Estimate::gaining(from, (least, most), Method::Bound);
    finding.severity = Severity::of_estimate(&finding.estimate);
    if removes == 0 {
        finding.estimate = Estimate::none(finding.estimate.from);
        finding.severity = Severity::Info;
    }
    let starts = |s: &&Step| since.is_some_and(|t| s.window.end > t);
    let rows = rank.steady_steps(class).filter(starts).filter_map(|s| rank.ops_of(s).first()).map(|op| op.slice);
    finding = finding.with(Evidence::new(
        Text::new("requests preempted in the steps that count", "计入统计的步中被抢占的请求数"),
        Value::Count(preempted.min(1e15) as u64),
        reading::sample(rows),
    ));
    if let Some(usage) = usage {
        let what = Text::new("most of the KV cache in use", "KV 缓存最高使用率");
        finding = finding.with(Evidence::new(what, Value::Share(usage), Vec::new()));
    }
    if let Some(waiting) = scheduler.most_waiting(span) {
        let what = Text::new("most requests waiting at once", "同时等待的最多请求数");
        finding = finding.with(Evidence::new(what, Value::Number(waiting), Vec::new()));
    }
    Some(finding.against(Competing::open(
        Text::new("the prefill in mixed steps is that of new requests", "混合步中的预填充来自新请求"),
        Text::new("the scheduler's log of each request decides", "调度器对每个请求的日志可以判定"),
    )))
}
