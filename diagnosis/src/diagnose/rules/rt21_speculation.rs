//! RT-21: speculative decoding costs more than the tokens it brings.

use model::{EvidenceClass::Logs, Ns};

use super::{
    exposed::{Exposed, Saying},
    gate::{Cost, LEAST_STEPS},
    reading,
    speculation::{Drafts, counted},
};
use crate::{
    analysis::{Class, Confidence, Layer, Rank, Scheduler, Step},
    diagnose::{
        Competing, Evidence, Finding, Intervention, Severity,
        relations::{Advice, Relations, Role},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
};

/// The rule.
pub struct Speculation;

static DOC: Doc = Doc {
    id: "RT-21",
    title: Text::new("Speculation does not pay", "投机解码得不偿失"),
    layer: Layer::Runtime,
    needs: &[Logs],
    advice: Advice::Host,
    relations: Relations { role: Some(Role::Speculation), ..Relations::NONE },
    sees: Text::new(
        "Draft tokens are computed and verified, but so few are accepted that a token takes longer than without speculation.",
        "草稿 token 被计算并验证，但接受的太少，平均每个 token 反而比不投机更慢。",
    ),
    matters: Text::new(
        "A speculative step costs the draft and a verification of several tokens; it must bring as many tokens to pay for itself.",
        "投机步要付出草稿与多 token 验证的代价，必须多产出足够的 token 才划算。",
    ),
    trigger: Text::new(
        "Time per token with speculation (step / (1 + tokens accepted per sequence)) above the time of a plain step: that of the run's own steps without drafts at the same batch, else the step without its draft, which a plain step cannot exceed.",
        "投机时每 token 时间（步时 /（1 + 每序列接受数））高于普通步时：取本次运行中相同批大小、没有草稿的步；没有时取去掉草稿部分的步时，普通步不会比它更长。",
    ),
    source: Text::new("By definition.", "由定义得出。"),
    guards: Text::new(
        "Needs the batch of the steps, the counts of drafted and accepted tokens, and either plain steps, ranges round the draft, or a sampler that runs once for each draft token and once more; without them the rule abstains. Acceptance depends on the text: a repeated or synthetic prompt says little.",
        "需要步的批大小、草稿与接受 token 计数，以及普通步、草稿区间的标注，或每个草稿 token 运行一次且另加一次的采样器；缺少时不作判断。接受率取决于文本：重复或合成提示说明不了问题。",
    ),
    verify: Text::new(
        "Run the same requests without speculation, or with a shorter draft, and compare the time per token.",
        "同样的请求关闭投机或缩短草稿再跑，比较每 token 时间。",
    ),
};

impl Rule for Speculation {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn needs_steps(&self) -> bool {
        true
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        if cx.trace.manifest.value("workload.speculative") == Some("none") {
            return Outcome::Quiet;
        }
        let scheduler = Scheduler::of(cx.trace);
        let drafts = |s: &Step| counted(&scheduler, s).map_or(0.0, |(drafted, _)| drafted);
        let (mut found, mut blind, mut any) = (Vec::new(), false, false);
        for (rank, class) in reading::marked(cx) {
            let drafted: f64 = rank.steady_steps(class).map(&drafts).sum();
            if drafted <= 0.0 {
                continue;
            }
            any = true;
            match judge(cx, &scheduler, rank, class) {
                Some(finding) => found.extend(finding),
                None => blind = true,
            }
        }
        if found.is_empty() && (blind || !any) {
            return Outcome::Abstain(Message::plain(if any {
                Text::new(
                    "what a plain step takes is unknown; annotate the batch and the draft of each step, or record steps without speculation",
                    "不知道普通步需要多久；请标注每步的批大小与草稿区间，或采集不投机的步",
                )
            } else {
                Text::new(
                    "no draft tokens are counted; with speculative decoding, record the engine's counters of drafted and accepted tokens",
                    "没有草稿 token 计数；若使用投机解码，请记录引擎的草稿与接受 token 计数器",
                )
            }));
        }
        found.into_iter().collect()
    }
}

/// Whether speculation pays; `None` if that cannot be told.
fn judge(cx: &Context<'_>, scheduler: &Scheduler, rank: &Rank, class: &Class) -> Option<Option<Finding>> {
    let Drafts { drafted, accepted, per_sequence, plain } = Drafts::of(cx, scheduler, rank, class)?;
    let steps = class.steady.max(1);
    let step = class.total / steps as Ns;
    let earned = ((1.0 + per_sequence) * plain.takes as f64) as Ns;
    if plain.takes <= 0 || step <= earned {
        return Some(None);
    }
    let value = step as f64 / earned.max(1) as f64;
    let most = match (steps < LEAST_STEPS, plain.measured) {
        (true, _) => Confidence::Low,
        (_, true) => Confidence::High,
        (_, false) => Confidence::Medium,
    };
    let cost = Cost { per_step: step - earned, share: value, most };
    let saying = Saying {
        formula: Text::new(
            "step / ((1 + tokens accepted per sequence) x plain step)",
            "步时 /（（1 + 每序列接受 token 数）× 普通步时）",
        ),
        claim: Text::new(
            "Of {drafted} draft tokens {rate} are accepted, {each} per sequence and step of {class}: a step of {step} brings what plain steps bring in {earned}.",
            "{drafted} 个草稿 token 中 {rate} 被接受，{class} 每步每序列 {each} 个：{step} 的一步只产出普通步 {earned} 就能产出的 token。",
        ),
        more: vec![
            ("drafted", Value::Count(drafted.clamp(0.0, 1e15) as u64)),
            ("rate", Value::Share(accepted / drafted.max(1.0))),
            ("each", Value::Number((per_sequence * 100.0).round() / 100.0)),
            ("earned", Value::Ns(earned)),
        ],
        // Without the draft the step also brings fewer tokens: no edit of the recorded run shows the gain. The draft is
        // work of the device.
        change: Intervention { removes: step - plain.takes, layer: Layer::Operator, edits: Vec::new() },
    };
    let mut finding = Exposed { cx, doc: &DOC, rank, class }.finding(1.0, &cost, saying);
    // The step becomes shorter by all that the draft adds; for as many tokens as before the gain is what is not earned.
    let from = finding.estimate.from;
    finding.estimate.to_high = from - (step - earned).min(from - finding.estimate.to_low);
    finding.severity = Severity::of_estimate(&finding.estimate);
    let how = if plain.measured {
        Text::new("median step without drafts at the same batch", "相同批大小、无草稿的中位步时")
    } else {
        Text::new(
            "mean step without its draft; a plain step takes at most this",
            "去掉草稿部分的平均步时；普通步不会更长",
        )
    };
    let rows = rank.steady_steps(class).filter_map(|s| rank.ops_of(s).first()).map(|op| op.slice);
    Some(
        finding
            .with(Evidence::new(
                Text::new("accepted share of the draft tokens", "草稿 token 的接受率"),
                Value::Share(accepted / drafted.max(1.0)),
                reading::sample(rows),
            ))
            .with(Evidence::new(how, Value::Ns(plain.takes), Vec::new()))
            .against(Competing::open(
                Text::new(
                    "the prompts of this run are harder to predict than those served",
                    "本次运行的提示比线上更难预测",
                ),
                Text::new("the acceptance on the requests that are served decides", "线上请求的接受率可以判定"),
            ))
            .gated(most),
    )
}
