//! What the brief report leaves out, in one paragraph: how much it is, and what would show it.

use std::collections::BTreeSet;

use model::EvidenceClass;

use super::{Page, answer::rule_name, words};
use crate::{document::Inlines, grade, inlines, units};
use diagnosis::{
    diagnose::{Finding, Severity},
    i18n::Text,
};

/// Writes the paragraphs.
pub(super) fn write(page: &mut Page<'_>) {
    page.heading(Text::new("Left out here", "此处略去"));
    let lines = [measurement(page), undecided(page), Some(import(page)), Some(sections(page))];
    page.list(lines.into_iter().flatten());
}

/// Whether the brief report leaves a finding out: a fact about the measurement that promises nothing.
pub(super) fn is_aside(finding: &Finding) -> bool {
    finding.severity == Severity::Info
}

fn measurement(page: &Page<'_>) -> Option<Inlines> {
    let aside = page.capture.findings.iter().filter(|finding| is_aside(finding));
    let rules: Vec<Inlines> = aside.map(|finding| rule_name(page, finding.rule)).collect();
    let label = Text::new("Facts without a gain of their own", "自身没有收益的事实");
    (!rules.is_empty()).then(|| page.labelled(label, page.join(rules)))
}

fn undecided(page: &Page<'_>) -> Option<Inlines> {
    let abstained = &page.capture.abstained;
    let needs: BTreeSet<EvidenceClass> = abstained.iter().flat_map(|a| a.needs.iter().copied()).collect();
    let wanted = match needs.is_empty() {
        true => Inlines::new(),
        false => {
            let needs = page.join_long(needs.into_iter().map(|need| page.get(grade::name(need))));
            page.aside(inlines![page.get(Text::new("for want of: ", "缺少：")), needs])
        }
    };
    let label = Text::new("Skipped rules", "跳过的规则");
    (!abstained.is_empty()).then(|| page.labelled(label, inlines![units::count(abstained.len() as u64), wanted]))
}

fn import(page: &Page<'_>) -> Inlines {
    let capture = page.capture;
    let sum =
        |of: fn(&model::LedgerRow) -> u64| units::count(capture.ledger.iter().map(of).fold(0, u64::saturating_add));
    let kept = page.compose(
        Text::new("{kept} of {read} records of the source were kept", "数据源的 {read} 条记录中保留了 {kept} 条"),
        [("kept", sum(|row| row.kept).into()), ("read", sum(|row| row.read).into())],
    );
    let met = capture.stats.iter().map(|stat| {
        let severity = page.get(words::stat_severity(stat.severity));
        inlines![Inlines::name(&stat.name), page.aside(inlines![severity, ", ", units::count(stat.count), "×"])]
    });
    let met: Vec<Inlines> = met.collect();
    let met = match met.is_empty() {
        true => page.get(Text::new("the import met nothing unusual", "导入过程没有异常")),
        false => inlines![page.get(Text::new("the import met ", "导入时遇到：")), page.join(met)],
    };
    page.labelled(Text::new("What was read", "导入情况"), page.join_long([kept, met]))
}

fn sections(page: &Page<'_>) -> Inlines {
    page.labelled(
        Text::new("With `--full`", "加 `--full`"),
        page.get(Text::new(
            "the capture and what it says of itself, how the steps were found, operators and kernels, the replay, what the capture supports, how ready the platform is, what each undecided rule lacks, the import ledger",
            "采集及其自述、步的识别方法、算子与内核、重放、采集所支持的结论、平台就绪度、各条未判定规则所缺的证据、导入台账",
        )),
    )
}
