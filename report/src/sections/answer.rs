//! The answer: the verdict in a sentence, how good the evidence is, and which level the capture reached.

use super::{Page, findings, words};
use crate::{
    Grade, cells,
    document::{Align, Document, Inlines, Table},
    grade, inlines, link_test,
    model::Report,
    phrase, serving, text, units,
};
use diagnosis::{
    analysis::Layer,
    diagnose::{Place, Severity, rules},
    i18n::{Lang, Text, Value},
};

/// Doubts on the first screen.
const DOUBTS: usize = 3;
/// Findings on the first screen.
const CHANGES: usize = 3;
/// Share of the step from which a layer is told on the first screen.
const LEAST_SHOWN: f64 = 0.005;
/// So many times the steps of the workload a rank has in all where it is said that the others do other work; own value.
const OTHERS: usize = 2;
/// Mean over median from which the slow steps have words of their own (decided form of the verdict).
const SLOW_STEPS: f64 = 1.05;

/// Steps of which a median can differ from the others; of two it is simply the shorter one.
const FEWEST_STEPS: usize = 3;

/// One row per capture, for reports on several.
pub(super) fn overview(report: &Report, lang: Lang) -> Document {
    let get = |text: Text| phrase::text(text, lang);
    let mut table = Table::new([
        ("#".into(), Align::Right),
        (get(Text::new("capture", "采集")), Align::Left),
        (get(Text::new("layer", "瓶颈层")), Align::Left),
        (get(Text::new("verdict", "结论")), Align::Left),
    ]);
    for capture in &report.captures {
        let simulated =
            if capture.simulated { get(Text::new(" **simulated**", " **模拟数据**")) } else { Inlines::new() };
        let page = Page { lang, capture, out: Document::new() };
        let headline = measured(&page).unwrap_or_else(|| phrase::inlines(&capture.verdict.headline, lang));
        table.row(cells![
            capture.id.to_string(),
            inlines![Inlines::name(&capture.source), simulated],
            get(words::verdict_layer(capture.verdict.layer)),
            headline,
        ]);
    }
    let mut out = Document::new();
    out.heading(1, get(Text::new("Diagnosis of several captures", "多个采集的诊断")));
    out.table(table);
    out
}

/// The headline of what was measured and has no steps: a load on a server, links under test.
fn measured(page: &Page<'_>) -> Option<Inlines> {
    serving::headline(page).or_else(|| link_test::headline(page))
}

/// Title, verdict, grade and level.
pub(super) fn write(page: &mut Page<'_>) {
    let capture = page.capture;
    let verdict = &capture.verdict;
    let source = Inlines::quoted(&capture.source, text::PHRASE);
    let title = page.get(Text::new("Diagnosis of ", "诊断报告："));
    page.out.heading(1, inlines![title, source]);
    if capture.simulated {
        page.out.notice(page.get(Text::new(
            "**simulated**: this capture was written by a simulator. No number in it was measured on a device.",
            "**simulated（模拟数据）**：本采集由模拟器生成，其中没有任何数字是在设备上测得的。",
        )));
    }
    page.heading(Text::new("Verdict", "结论"));
    // The times between the tokens of a client's requests are no steps of its server.
    match measured(page) {
        Some(headline) => {
            page.title(headline);
            // No step is in it; what could not be judged of steps needs no list.
            page.paragraph(page.get(match capture.link_test.is_empty() {
                true => Text::new("Two results of one load are compared by `strato diff A B`; `strato decide A B` weighs them with prices.", "`strato diff A B` 比较相同负载的两个结果；`strato decide A B` 结合价格作出比较。"),
                false => Text::new("Two link tests are compared size by size by `strato diff A B`.", "`strato diff A B` 按消息大小比较两个链路测试。"),
            }));
            if !capture.findings.is_empty() {
                changes(page);
            }
            return;
        }
        None => page.title(page.message(&verdict.headline)),
    }
    if let Some(place) = &verdict.place {
        shares(page, place);
    }
    changes(page);
    let mut facts = Vec::new();
    for doubt in verdict.unjudged.iter().take(DOUBTS) {
        facts.push(page.labelled(Text::new("Not judged", "未判断"), page.message(&doubt.sentence) + page.stop()));
    }
    for breach in &capture.breaches {
        facts.push(page.labelled(Text::new("Withheld", "未予采用"), page.message(&breach.sentence) + page.stop()));
    }
    let integrity = &capture.integrity;
    let lost = match capture.grade {
        Grade::C if integrity.judged_unlinked > 0 => page.aside(page.fill(
            Text::new(
                "{n} of {all} device operations of the steps that count have no launch call in the capture",
                "被采用的步共有 {all} 个设备操作，其中 {n} 个在采集中没有下发调用",
            ),
            [("n", Value::Count(integrity.judged_unlinked)), ("all", Value::Count(integrity.judged))],
        )),
        _ => Inlines::new(),
    };
    let sure = page.sure(verdict.confidence);
    let layer = page.get(words::verdict_layer(verdict.layer));
    facts.push(page.labelled(Text::new("Layer", "瓶颈层"), inlines![layer, sure]));
    let allows = match () {
        () if capture.loss.forbids_shares() => grade::LOST,
        () if capture.contradicted => grade::CONTRADICTED,
        () => capture.grade.text(),
    };
    let grade = inlines![format!("{:?} — ", capture.grade), page.get(allows), lost];
    facts.push(page.labelled(Text::new("Evidence", "证据等级"), grade));
    facts.push(page.labelled(Text::new("Level reached", "达到的级别"), page.get(words::level(verdict.level))));
    page.list(facts);
}

/// The layers of the mean step, the largest first, and what its slow steps change in it.
fn shares(page: &mut Page<'_>, place: &Place) {
    let mut layers: Vec<(Layer, f64)> = Layer::ALL.into_iter().zip(place.layers).collect();
    layers.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let visible = layers.into_iter().filter(|(_, share)| *share >= LEAST_SHOWN);
    let each = visible.map(|(layer, share)| inlines![page.get(words::layer(layer)), " ", units::share(share)]);
    let mut line = Inlines::joined(each.collect::<Vec<_>>(), " · ");
    if place.mean as f64 > SLOW_STEPS * place.median as f64 && place.steps >= FEWEST_STEPS {
        let slow = Text::new(
            " — mean of {n} steps; the median is {median}, so some steps are much slower",
            " — {n} 步的平均值；中位数为 {median}，即部分步明显更慢",
        );
        line += page.fill(slow, [("n", Value::Count(place.steps as u64)), ("median", Value::Ns(place.median))]);
    }
    let rank = page.capture.ranks.iter().find(|rank| rank.rank == place.rank);
    let counted: usize = rank.map_or(0, |rank| rank.classes.iter().map(|class| class.used).sum());
    if counted >= OTHERS * place.steps {
        let others = Text::new(
            " — {n} of {all} steps; the others do other work",
            " — {all} 步中的 {n} 步；其余的步工作内容不同",
        );
        line += page.fill(others, [("n", Value::Count(place.steps as u64)), ("all", Value::Count(counted as u64))]);
    }
    page.paragraph(line);
}

/// The first findings, one line each, with what a step becomes without the cost.
fn changes(page: &mut Page<'_>) {
    let capture = page.capture;
    let worth = capture.findings.iter().filter(|f| f.layer != Layer::Measurement && f.severity > Severity::Info);
    let lines: Vec<Inlines> = worth
        .take(CHANGES)
        .enumerate()
        .map(|(n, finding)| {
            let gain = findings::short_estimate(page, &finding.estimate);
            let same = finding.same_time_as.map_or_else(Inlines::new, |rule| {
                page.aside(page.fill(
                    Text::new("the same time as {rule}", "与 {rule} 为同一段时间"),
                    [("rule", Value::Raw(rule.to_owned()))],
                ))
            });
            let beyond = match finding.layer {
                _ if !finding.beyond => Inlines::new(),
                Layer::Operator => page.aside(page.get(Text::new("includes their launches", "含其下发"))),
                _ => page.aside(page.get(Text::new("includes the idle time around it", "含其前后的空闲"))),
            };
            let number = Inlines::strong(format!("{}. {}", n + 1, finding.rule));
            inlines![number, " ", page.message(&finding.claim), " ", gain, beyond, same]
        })
        .collect();
    if lines.is_empty() {
        let silent = capture.abstained.len() as u64;
        page.paragraph(page.fill(
            Text::new(
                "No cause was found. {n} rules were skipped; the section on skipped rules lists what they need.",
                "未找到原因。{n} 条规则被跳过，所需输入见“跳过的规则”一节。",
            ),
            [("n", Value::Count(silent))],
        ));
    }
    page.list(lines);
}

/// Id and title of a rule.
pub(super) fn rule_name(page: &Page<'_>, id: &str) -> Inlines {
    match rules::find(id) {
        Some(rule) => inlines![id, page.aside(page.get(rule.doc().title))],
        None => id.into(),
    }
}
