//! Findings with all they rest on, and what could not be decided.

use std::collections::BTreeMap;

use model::{EvidenceClass, SliceId};

use super::{Page, answer::rule_name, rest, words};
use crate::{
    cells,
    document::{About, Align, Inlines, Table, notation},
    grade, inlines, phrase, text,
};
use diagnosis::{
    analysis::Confidence,
    diagnose::{Estimate, Finding, Method},
    i18n::{Lang, Text, Value},
};

/// Slice ids that are shown for a fact; the JSON report has all.
const ROWS: usize = 4;

/// Steps below which their number is why a finding is not sure (common gate of the rules).
const FEW: u64 = 3;

/// Writes the findings.
pub(super) fn write(page: &mut Page<'_>) {
    list(page, |_| true);
}

/// Writes those that promise a gain.
pub(super) fn write_gains(page: &mut Page<'_>) {
    list(page, |finding| !rest::is_aside(finding));
}

fn list(page: &mut Page<'_>, shown: fn(&Finding) -> bool) {
    page.heading(Text::new("Findings", "发现"));
    let capture = page.capture;
    if !capture.findings.iter().any(shown) {
        page.paragraph(match capture.findings.is_empty() {
            true => page.get(Text::new("None.", "无。")),
            false => page.get(Text::new("None that promises a gain.", "没有能带来收益的发现。")),
        });
    } else if capture.simulated {
        page.paragraph(page.get(Text::new("All numbers below are **simulated**.", "以下所有数字均为**模拟数据**。")));
    }
    for (n, finding) in capture.findings.iter().enumerate().filter(|(_, finding)| shown(finding)) {
        one(page, n, finding);
    }
}

/// Writes the finding at a position under its number.
pub(super) fn one(page: &mut Page<'_>, at: usize, finding: &Finding) {
    let severity = page.get(words::severity(finding.severity));
    let name = rule_name(page, finding.rule);
    let title = inlines![format!("{}. ", at + 1), name, " — ", severity.clone()];
    page.out.heading_about(3, title, About::Finding(at));
    page.paragraph(page.message(&finding.claim));
    let of = if finding.class.is_empty() {
        page.get(Text::new("the whole capture", "整个采集"))
    } else {
        Inlines::name(&finding.class)
    };
    let ranks = page.join(finding.ranks.iter().map(u32::to_string));
    let scope = if ranks.is_empty() { of } else { page.join([of, inlines!["rank ", ranks]]) };
    let mut items = vec![
        page.labelled(Text::new("Layer", "层"), page.get(words::layer(finding.layer))),
        page.labelled(Text::new("Severity", "严重程度"), severity),
        page.labelled(Text::new("Confidence", "置信度"), confidence(page, finding)),
        page.labelled(Text::new("Speaks of", "范围"), scope),
        page.labelled(Text::new("Estimate", "估计"), estimate(page, &finding.estimate) + limits(page, finding)),
        page.labelled(Text::new("Trigger", "触发条件"), trigger(page, finding)),
    ];
    for fact in &finding.evidence {
        let text = phrase::fact(fact, page.lang) + slices(page, &fact.rows);
        items.push(page.labelled(Text::new("Evidence", "证据"), text));
    }
    for other in &finding.competing {
        let status = if other.refuted { Text::new("refuted", "已排除") } else { Text::new("open", "未排除") };
        let status = Inlines::emphasis(page.get(status));
        let text = inlines![page.message(&other.claim), " — ", status, page.colon(), page.message(&other.why)];
        items.push(page.labelled(Text::new("Other explanation", "其他解释"), text));
    }
    for remedy in &finding.remedy {
        let advice = match page.lang {
            Lang::En => &remedy.text_en,
            Lang::Zh => &remedy.text_zh,
        };
        let about = [remedy.platform.as_str(), &remedy.source, &remedy.date];
        let about: Vec<&str> = about.into_iter().filter(|s| !s.is_empty()).collect();
        items.push(
            page.labelled(Text::new("What to do", "建议"), notation::plain(advice) + page.aside(about.join(", "))),
        );
    }
    if finding.remedy.is_empty() {
        let none = page.get(Text::new("no advice for this platform is recorded", "没有针对该平台的建议记录"));
        items.push(page.labelled(Text::new("What to do", "建议"), none));
    }
    items.push(page.labelled(Text::new("How to verify", "如何验证"), page.message(&finding.verify)));
    if !finding.supersedes.is_empty() {
        let rules: Vec<Inlines> = finding.supersedes.iter().map(|rule| rule_name(page, rule)).collect();
        items.push(page.labelled(Text::new("Claims the same time as", "与其主张同一段时间的规则"), page.join(rules)));
    }
    page.list(items);
}

/// The slices that show a fact, the first of them by their ids.
fn slices(page: &Page<'_>, slices: &[SliceId]) -> Inlines {
    if slices.is_empty() {
        return Inlines::new();
    }
    let ids: Vec<String> = slices.iter().take(ROWS).map(|id| id.0.to_string()).collect();
    let more = if slices.len() > ROWS { ", …" } else { "" };
    let shown = inlines![page.get(Text::new("slices", "切片")), format!(" {}{more}", ids.join(", "))];
    page.aside(Inlines::evidence(slices.to_vec(), shown))
}

/// How sure the finding is, and that few steps are why.
fn confidence(page: &Page<'_>, finding: &Finding) -> Inlines {
    let word = page.get(words::confidence(finding.confidence));
    let classes = page.capture.ranks.iter().filter(|r| finding.ranks.contains(&r.rank)).flat_map(|r| &r.classes);
    let used = classes.filter(|c| c.key == finding.class).map(|c| c.used as u64).max().unwrap_or(0);
    if finding.confidence != Confidence::Low || !(1..FEW).contains(&used) {
        return word;
    }
    let why = Text::new("steps or windows that count: {n}", "被采用的步或窗口：{n}");
    word + page.aside(page.fill(why, [("n", Value::Count(used))]))
}

fn estimate(page: &Page<'_>, estimate: &Estimate) -> Inlines {
    let share = |to: i64| Value::Share((estimate.from as f64 - to as f64) / estimate.from.max(1) as f64);
    let args = [
        ("from", Value::Ns(estimate.from)),
        ("low", Value::Ns(estimate.to_low)),
        ("high", Value::Ns(estimate.to_high)),
        ("most", share(estimate.to_low)),
        ("least", share(estimate.to_high)),
    ];
    page.fill(
        match estimate.method {
            Method::None => Text::new("none: this finding promises no gain", "无：该发现不承诺收益"),
            Method::Bound if estimate.to_high >= estimate.from => Text::new(
                "a step takes {from}; without this cost at best {low} (−{most}). Modelled as a bound; nothing is promised from below",
                "当前每步 {from}；去除该开销后最好为 {low}（−{most}）。由上界模型得出，不保证下限收益",
            ),
            Method::Bound => Text::new(
                "a step takes {from}; without this cost between {low} (−{most}) and {high} (−{least}). Modelled as bounds",
                "当前每步 {from}；去除该开销后在 {low}（−{most}）与 {high}（−{least}）之间。由上下界模型得出",
            ),
            Method::Replay => Text::new(
                "a step takes {from}; without this cost between {low} (−{most}) and {high} (−{least}). Modelled by replay of the step",
                "当前每步 {from}；去除该开销后在 {low}（−{most}）与 {high}（−{least}）之间。由步重放模型得出",
            ),
        },
        args,
    )
}

/// What a step becomes, in few words.
pub(super) fn short_estimate(page: &Page<'_>, estimate: &Estimate) -> Inlines {
    let share = |to: i64| Value::Share((estimate.from as f64 - to as f64) / estimate.from.max(1) as f64);
    let text = match estimate.method {
        Method::None => return Inlines::new(),
        _ if estimate.to_high >= estimate.from => Text::new(
            "{from} → {low} at best (−{most} at most, modelled).",
            "{from} → 最好 {low}（最多 −{most}，建模值）。",
        ),
        _ => Text::new(
            "{from} → {low} to {high} (−{least} to −{most}, modelled).",
            "{from} → {low} 至 {high}（−{least} 至 −{most}，建模值）。",
        ),
    };
    page.fill(
        text,
        [
            ("from", Value::Ns(estimate.from)),
            ("low", Value::Ns(estimate.to_low)),
            ("high", Value::Ns(estimate.to_high)),
            ("least", share(estimate.to_high)),
            ("most", share(estimate.to_low)),
        ],
    )
}

/// What stands beside the estimate: the bounds of a replay, or why there is none.
fn limits(page: &Page<'_>, finding: &Finding) -> Inlines {
    if let Some(limits) = finding.limits {
        return page.aside(page.fill(
            Text::new(
                "without all device and host time that the change concerns at least {amdahl}; with everything overlapped at least {overlap}",
                "扣除该改动涉及的全部设备与主机时间至少 {amdahl}；即使全部重叠也至少 {overlap}",
            ),
            [("amdahl", Value::Ns(limits.amdahl)), ("overlap", Value::Ns(limits.overlap))],
        ));
    }
    finding.unreplayed.map_or_else(Inlines::new, |why| page.aside(page.get(why)))
}

fn trigger(page: &Page<'_>, finding: &Finding) -> Inlines {
    let trigger = &finding.trigger;
    let numbers = page.fill(
        Text::new("is {value}, threshold {threshold}", "为 {value}，阈值 {threshold}"),
        [("value", Value::Number(trigger.value)), ("threshold", Value::Number(trigger.threshold))],
    );
    inlines![Inlines::quoted(trigger.formula.get(page.lang), text::PHRASE), " ", numbers]
}

/// Writes what could not be decided, grouped by what would decide it.
pub(super) fn write_abstained(page: &mut Page<'_>) {
    page.heading(Text::new("Skipped rules", "跳过的规则"));
    let capture = page.capture;
    if capture.evidence.has(EvidenceClass::Device) && !capture.evidence.has(EvidenceClass::Probes) {
        page.paragraph(page.get(Text::new(
            "How efficient each operator is was not judged: that takes probes of this platform.",
            "未判断各算子自身的效率：这需要本平台的探针。",
        )));
    }
    if capture.abstained.is_empty() {
        page.paragraph(page.get(Text::new("None was skipped.", "没有被跳过的规则。")));
        return;
    }
    let mut groups: BTreeMap<Vec<EvidenceClass>, Vec<&str>> = BTreeMap::new();
    for abstention in capture.abstained.iter().filter(|a| !a.needs.is_empty()) {
        groups.entry(abstention.needs.clone()).or_default().push(abstention.rule);
    }
    if !groups.is_empty() {
        let mut table = Table::new([
            (page.get(Text::new("missing evidence", "缺少的证据")), Align::Left),
            (page.get(Text::new("rules that need it", "需要它的规则")), Align::Left),
            (page.get(Text::new("how to collect it", "如何采集")), Align::Left),
        ]);
        for (needs, rules) in &groups {
            let each = |text: &dyn Fn(EvidenceClass) -> Text| page.join_long(needs.iter().map(|n| page.get(text(*n))));
            let how = each(&|class| grade::how_to_collect(class, page.capture.vendor()));
            table.row(cells![each(&grade::name), rules.join(", "), how]);
        }
        page.out.table(table);
    }
    let mut whys: Vec<(Inlines, Vec<Inlines>)> = Vec::new();
    for (rule, why) in capture.abstained.iter().filter_map(|a| Some((a.rule, a.why.as_ref()?))) {
        let (rule, why) = (rule_name(page, rule), page.message(why));
        match whys.iter_mut().find(|(known, _)| *known == why) {
            Some((_, rules)) => rules.push(rule),
            None => whys.push((why, vec![rule])),
        }
    }
    let whys: Vec<Inlines> = whys.into_iter().map(|(why, rules)| page.join(rules) + page.colon() + why).collect();
    page.list(whys);
}
