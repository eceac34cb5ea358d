//! How far the replay can be trusted, and what the first findings bring together.

use model::Ns;

use super::{Page, answer::rule_name};
use crate::document::Inlines;
use diagnosis::{
    analysis::{Layer, replay::CriticalPath},
    diagnose::{Joint, RankCheck},
    i18n::{Text, Value},
};

/// Ranks whose self-check is written out; of more only the worst is.
const RANKS: usize = 4;

/// Writes the section, if anything was replayed.
pub(super) fn write(page: &mut Page<'_>) {
    let capture = page.capture;
    let replay = &capture.counterfactual;
    if replay.checks.is_empty() || capture.findings.is_empty() {
        return;
    }
    page.heading(Text::new("Replay", "重放"));
    let mut checks: Vec<&RankCheck> = replay.checks.iter().collect();
    checks.sort_by(|a, b| b.check.p95.total_cmp(&a.check.p95).then(a.rank.cmp(&b.rank)));
    let shown = if checks.len() > RANKS { 1 } else { checks.len() };
    let mut items: Vec<Inlines> = checks.iter().take(shown).map(|check| self_check(page, check)).collect();
    if let Some(joint) = &replay.joint {
        items.push(together(page, joint));
    }
    for pair in &replay.interactions {
        let [a, b] = pair.rules.map(|rule| Value::Raw(rule.to_owned()));
        let text = if pair.ns < 0 {
            Text::new(
                "{a} with {b}: together {ns} per step less than the sum of both, one hides part of the other",
                "{a} 与 {b}：合计比两者之和每步少 {ns}，彼此掩盖了一部分",
            )
        } else {
            Text::new(
                "{a} with {b}: together {ns} per step more than the sum of both",
                "{a} 与 {b}：合计比两者之和每步多 {ns}",
            )
        };
        let args = [("a", a), ("b", b), ("ns", Value::Ns(pair.ns.abs()))];
        items.push(page.fill(text, args));
    }
    items.extend(replay.paths.iter().take(RANKS).map(|path| critical_path(page, path)));
    page.list(items);
}

fn critical_path(page: &Page<'_>, path: &CriticalPath) -> Inlines {
    let part = |layer: Layer| path.layers.iter().find(|(l, _)| *l == layer).map_or(0, |(_, ns)| *ns);
    let share = |layer: Layer| Value::Share(part(layer) as f64 / path.length.max(1) as f64);
    page.fill(
        Text::new(
            "critical path of step {step} on rank {rank} ({length}, the median of {class}): operator {operator}, runtime {runtime}, communication {communication}, not traced back {rest}; {ops} operations, {hops} times over to another rank",
            "rank {rank} 第 {step} 步的关键路径（{length}，{class} 的中位步）：算子 {operator}，运行时 {runtime}，通信 {communication}，无法追溯 {rest}；共 {ops} 个算子，{hops} 次转到其他 rank",
        ),
        [
            ("step", Value::Count(u64::from(path.step))),
            ("rank", Value::Count(u64::from(path.rank))),
            ("length", Value::Ns(path.length)),
            ("class", Value::Raw(path.class.clone())),
            ("operator", share(Layer::Operator)),
            ("runtime", share(Layer::Runtime)),
            ("communication", share(Layer::Communication)),
            ("rest", share(Layer::Measurement)),
            ("ops", Value::Count(path.ops as u64)),
            ("hops", Value::Count(path.hops as u64)),
        ],
    )
}

fn self_check(page: &Page<'_>, check: &RankCheck) -> Inlines {
    let text = if check.check.passed() {
        Text::new(
            "rank {rank}, {class}: without any change the replay meets the {steps} recorded steps within {median} (median) and {p95} (95th percentile)",
            "rank {rank}，{class}：不作改动时，重放与已记录的 {steps} 步相差 {median}（中位）与 {p95}（95 分位）",
        )
    } else {
        Text::new(
            "rank {rank}, {class}: without any change the replay misses the {steps} recorded steps by {median} (median) and {p95} (95th percentile), so its estimates are bounds only",
            "rank {rank}，{class}：不作改动时，重放与已记录的 {steps} 步相差 {median}（中位）与 {p95}（95 分位），因此其估计仅为上界",
        )
    };
    page.fill(
        text,
        [
            ("rank", Value::Count(u64::from(check.rank))),
            ("class", Value::Raw(check.class.clone())),
            ("steps", Value::Count(check.check.steps as u64)),
            ("median", Value::Share(check.check.median)),
            ("p95", Value::Share(check.check.p95)),
        ],
    )
}

fn together(page: &Page<'_>, joint: &Joint) -> Inlines {
    let e = &joint.estimate;
    let share = |to: Ns| Value::Share((e.from - to) as f64 / e.from.max(1) as f64);
    let rules: Vec<Inlines> = joint.rules.iter().map(|rule| rule_name(page, rule)).collect();
    let told = page.fill(
        Text::new(
            "carried out together, a step of {from} comes to between {low} (−{most}) and {high} (−{least})",
            "一并实施时，每步从 {from} 变为 {low}（−{most}）至 {high}（−{least}）",
        ),
        [
            ("from", Value::Ns(e.from)),
            ("low", Value::Ns(e.to_low)),
            ("high", Value::Ns(e.to_high)),
            ("most", share(e.to_low)),
            ("least", share(e.to_high)),
        ],
    );
    page.join(rules) + page.colon() + told
}
