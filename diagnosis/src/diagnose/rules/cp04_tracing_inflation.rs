//! CP-04: how much the profiler slowed the run down.

use model::{Category, Trace};

use super::{
    measurement::{about, extras},
    reading,
};
use crate::{
    analysis::{
        Bucket, Class, Layer, Rank,
        inflation::{DISTRUSTED, REFUSED, TRUSTED, ratio},
    },
    diagnose::{
        Competing, Evidence, Finding, Trigger,
        relations::{Advice, Relations, Role},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
};

/// The rule.
pub struct TracingInflation;

static DOC: Doc = Doc {
    id: "CP-04",
    title: Text::new("Tracing inflation", "剖析膨胀"),
    layer: Layer::Measurement,
    needs: &[],
    advice: Advice::Device,
    relations: Relations { role: Some(Role::TracingInflation), ..Relations::NONE },
    sees: Text::new(
        "The profiler recorded time of its own, or the run is known to be slower traced than untraced.",
        "剖析器记录了自身耗时，或已知剖析时比不剖析时慢。",
    ),
    matters: Text::new(
        "A profiler makes host calls slower, not kernels: a launch-bound verdict may be the profiler's own doing.",
        "剖析器拖慢的是主机调用而非算子：“下发受限”的结论可能是剖析器自己造成的。",
    ),
    trigger: Text::new(
        "Traced over untraced median step above 1.05 (host buckets are upper bounds), 1.30 (only the order of operator buckets holds) or 2 (no verdict); without that ratio, any recorded overhead.",
        "剖析与不剖析的中位步时之比超过 1.05（主机桶为上界）、1.30（仅算子桶的次序可信）或 2（不下结论）；没有该比值时，任何记录的自身开销。",
    ),
    source: Text::new(
        "2: NVIDIA's triage guide. 1.05 and 1.30: own values.",
        "2：NVIDIA 排查指南。1.05 与 1.30：自定值。",
    ),
    guards: Text::new(
        "Without an untraced run the ratio is unknown, and overhead that the profiler does not record remains unseen.",
        "没有不剖析的运行则比值未知，剖析器未记录的开销也看不到。",
    ),
    verify: Text::new(
        "Run the same workload untraced and compare the median step.",
        "同一负载不剖析再跑，比较中位步时。",
    ),
};

impl Rule for TracingInflation {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        match ratio(&cx.trace.manifest) {
            Some(ratio) if ratio > TRUSTED => {
                once(cx.main_classes().map(|(rank, class)| inflated(cx, rank, class, ratio))).into_iter().collect()
            }
            Some(_) => Outcome::Quiet,
            None => {
                let found = once(cx.main_classes().filter_map(|(rank, class)| recorded(cx, rank, class)));
                found.map_or_else(|| Outcome::Abstain(unknown(cx.trace)), |finding| Outcome::Found(vec![finding]))
            }
        }
    }
}

/// One profiler recorded all ranks: the finding of the rank that it slowed most speaks for all of them.
fn once(findings: impl Iterator<Item = Finding>) -> Option<Finding> {
    findings.reduce(|a, b| {
        let (mut most, other) = if b.trigger.value > a.trigger.value { (b, a) } else { (a, b) };
        most.ranks.extend(other.ranks);
        most.ranks.sort_unstable();
        most
    })
}

fn unknown(trace: &Trace) -> Message {
    let extras = extras(trace);
    if extras.is_empty() {
        return Message::plain(Text::new(
            "the ratio of traced to untraced step time is unknown and no overhead is recorded; run the same workload untraced",
            "剖析与不剖析的步时之比未知，且没有开销记录；请用同一负载不剖析再跑一次",
        ));
    }
    Message::new(
        Text::new(
            "the ratio of traced to untraced step time is unknown and no overhead is recorded, but the profiler ran with {extras}, and recording that slows the host; run the same workload untraced",
            "剖析与不剖析的步时之比未知，且没有开销记录，但剖析器开启了 {extras}，每一项都会拖慢主机；请用同一负载不剖析再跑一次",
        ),
        [("extras", Value::Raw(extras))],
    )
}

fn inflated(cx: &Context<'_>, rank: &Rank, class: &Class, ratio: f64) -> Finding {
    let text = if ratio > REFUSED {
        Text::new(
            "Tracing makes the step of {class} {ratio} as long: no verdict can be drawn from this capture.",
            "剖析使 {class} 的步时变为 {ratio}：无法据此采集下结论。",
        )
    } else if ratio > DISTRUSTED {
        Text::new(
            "Tracing makes the step of {class} {ratio} as long: only the order of the operator buckets can be trusted.",
            "剖析使 {class} 的步时变为 {ratio}：仅算子桶的次序可信。",
        )
    } else {
        Text::new(
            "Tracing makes the step of {class} {ratio} as long: the host's buckets are upper bounds.",
            "剖析使 {class} 的步时变为 {ratio}：主机桶为上界。",
        )
    };
    let claim = Message::new(text, [("class", Value::Raw(class.key.clone())), ("ratio", Value::Ratio(ratio))]);
    let trigger = Trigger {
        formula: Text::new("traced step / untraced step", "剖析步时 / 不剖析步时"),
        value: ratio,
        threshold: TRUSTED,
    };
    about(cx, &DOC, rank, class, claim, trigger).with(Evidence::new(
        Text::new("traced over untraced step, as the run says", "运行声明的剖析/不剖析步时之比"),
        Value::Ratio(ratio),
        Vec::new(),
    ))
}

/// Overhead that the profiler recorded, without a ratio to go with it.
fn recorded(cx: &Context<'_>, rank: &Rank, class: &Class) -> Option<Finding> {
    let records =
        || rank.steady_steps(class).flat_map(|s| reading::host_slices(cx.trace, rank, s.window, Category::Overhead));
    let total: i64 = records().map(|(_, span)| span.len()).sum();
    let exposed = class.sum(|b| b == Bucket::Prof);
    if total == 0 && exposed == 0 {
        return None;
    }
    // Overhead that is no thread's own, or begins before its step, is known by what it exposes.
    let total = total.max(exposed);
    // Several threads may record overhead at once, and a record may outlast its step.
    let spans = reading::merged(records().map(|(_, span)| span).collect());
    let covered: i64 = spans.iter().map(|s| s.len()).sum();
    let share = (covered as f64 / class.total.max(1) as f64).min(1.0);
    let claim = Message::new(
        Text::new(
            "The profiler recorded at least {total} of its own work in the steps of {class}; it kept the device idle for {exposed}. Until an untraced run is known, the host's buckets are upper bounds.",
            "剖析器在 {class} 的步中至少记录了 {total} 的自身工作，其中 {exposed} 造成了设备空闲；在得到不剖析的运行之前，主机桶为上界。",
        ),
        [("class", Value::Raw(class.key.clone())), ("total", Value::Ns(total)), ("exposed", Value::Ns(exposed))],
    );
    let trigger = Trigger {
        formula: Text::new(
            "time in profiler overhead / time of the steps (any overhead counts)",
            "剖析器自身耗时 / 各步总时间（任何开销都算）",
        ),
        value: share,
        threshold: 0.0,
    };
    Some(
        about(cx, &DOC, rank, class, claim, trigger)
            .with(Evidence::new(
                Text::new("overhead that the profiler recorded", "剖析器记录的自身开销"),
                Value::Ns(total),
                reading::sample(records().map(|(id, _)| id)),
            ))
            .against(Competing::open(
                Text::new("the overhead is small beside what is not recorded", "未记录的开销可能更大"),
                Text::new("an untraced run of the same workload decides", "同一负载不剖析再跑一次可以判定"),
            )),
    )
}
