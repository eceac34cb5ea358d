//! Which finding comes first, and which gives way to another.
//!
//! Gains are never added up: two findings may speak of the same nanoseconds. Where two rules claim the same time the one
//! with the better evidence stays and the other becomes its competing explanation.

use rustc_hash::FxHashSet;

use super::{
    catalogue::Catalogue,
    estimate::{Estimate, LEAST_GAIN, Method},
    finding::{Competing, Finding, Severity},
    relations::Role,
    rule::Context,
    signals::{machine, reading::merged, start_up},
    state::{self, State},
};
use crate::{
    analysis::{Analysis, Bucket, Class, Confidence, Layer, contradiction::Against, inflation},
    i18n::{Message, Text, Value},
};

/// Drops the findings of layers without a visible share of the step.
pub fn screen(findings: &mut Vec<Finding>, analysis: &Analysis) {
    findings.retain(|f| layer_matters(f, analysis));
}

/// Lowers what is said of a run that had too little of its machine.
pub fn temper(cx: &Context<'_>, findings: &mut [Finding], rules: Catalogue) {
    let is_starved = |finding: &Finding| {
        let ranks = cx.analysis.ranks.iter().filter(|rank| finding.ranks.contains(&rank.rank));
        ranks
            .flat_map(|rank| rank.classes.iter().map(move |class| (rank, class)))
            .any(|(rank, class)| class.key == finding.class && machine::starved(cx, rank, class).is_some())
    };
    let is_of_time = |f: &Finding| f.layer != Layer::Measurement && !rules.plays(f.rule, Role::Numbers);
    for finding in findings.iter_mut().filter(|f| is_of_time(f)) {
        if !is_starved(finding) {
            continue;
        }
        finding.severity = finding.severity.min(Severity::Low);
        finding.confidence = Confidence::Low;
        finding.competing.push(Competing::open(
            Text::new("other processes took the cores away", "核心被其他进程占用"),
            Text::new("a run on a quiet machine decides (CP-13)", "在空闲机器上重跑可以判定（CP-13）"),
        ));
    }
}

/// Lowers what rests on sums of a rank that contradict each other, for nothing else was kept of it: what is said of the rank, and
/// of communication, where every rank waits for when the others come.
pub fn doubt_sums(cx: &Context<'_>, findings: &mut [Finding]) {
    let ranks: Vec<u32> =
        cx.analysis.contradictions.iter().filter(|of| of.against != Against::Rows).map(|of| of.rank).collect();
    let rests = |finding: &&mut Finding| match finding.layer {
        Layer::Communication => !ranks.is_empty(),
        Layer::Measurement => false,
        Layer::Operator | Layer::Runtime => finding.ranks.iter().any(|rank| ranks.contains(rank)),
    };
    for finding in findings.iter_mut().filter(rests) {
        finding.confidence = Confidence::Low;
        finding.competing.push(Competing::open(
            Text::new(
                "the files of sums of a rank that it rests on contradict each other",
                "其所依据的某个 rank 的各合计文件相互矛盾",
            ),
            Text::new("a whole export of that rank decides (CP-05)", "重新完整导出该 rank 可以判定（CP-05）"),
        ));
    }
}

/// Takes the gain from what is said of the runtime in a start-up: where the step is mostly what happens once, nothing follows from
/// it for a warm one. What was seen stays, as a fact.
pub fn set_apart_start_ups(findings: &mut [Finding], analysis: &Analysis, rules: Catalogue) {
    let is_start_up = |finding: &Finding| {
        let ranks = analysis.ranks.iter().filter(|rank| finding.ranks.contains(&rank.rank));
        let mut classes = ranks.flat_map(|rank| rank.classes.iter().map(move |class| (rank, class)));
        classes.any(|(rank, class)| class.key == finding.class && start_up::is_start_up(rank, class))
    };
    let of_runtime = |f: &Finding| f.layer == Layer::Runtime && !rules.plays(f.rule, Role::StartUp);
    for finding in findings.iter_mut().filter(|f| of_runtime(f) && is_start_up(f)) {
        finding.estimate = Estimate::none(finding.estimate.from);
        finding.severity = Severity::Info;
        finding.competing.push(Competing::open(
            Text::new("a warm step has none of it", "预热后的步没有这一问题"),
            Text::new("run the same work once before recording", "采集前先运行一次相同的工作"),
        ));
    }
}

/// What may gain nothing at all is at most a hint, however much it might gain.
pub fn assure(findings: &mut [Finding]) {
    for finding in findings.iter_mut().filter(|f| f.estimate.method == Method::Replay) {
        if finding.estimate.to_high >= finding.estimate.from {
            finding.severity = finding.severity.min(Severity::Low);
        }
    }
}

/// A rule that never fired outside of the program's own simulation leads only where it names a cost that was found without it.
pub fn hold_back(findings: &mut [Finding]) {
    let alone = |f: &&mut Finding| state::of(f.rule) == State::Preview && f.cost == 0 && f.layer != Layer::Measurement;
    for finding in findings.iter_mut().filter(alone) {
        finding.severity = finding.severity.min(Severity::Low);
    }
}

/// Orders findings and lets one give way where two claim the same time.
pub fn settle(findings: &mut Vec<Finding>, analysis: &Analysis, rules: Catalogue) {
    give_way(findings, rules);
    name_shared(findings, rules);
    mask_operators(findings, rules);
    distrust(findings, analysis, rules);
    // What costs most comes first. That nothing was asked of the stack comes before what it could do better, where it is the larger
    // part.
    let best = findings.iter().filter(|f| f.layer != Layer::Measurement).map(|f| f.estimate.max_gain_share());
    let best = best.fold(0.0, f64::max);
    let idle = |f: &Finding| rules.plays(f.rule, Role::LoadLimited) && f.trigger.value >= best;
    findings.sort_by(|a, b| {
        let gate = |f: &Finding| f.layer == Layer::Measurement;
        // What a run costs that computes nothing right is no matter yet.
        let wrong = |f: &Finding| rules.plays(f.rule, Role::Numbers);
        (gate(a).cmp(&gate(b)))
            .then(wrong(b).cmp(&wrong(a)))
            .then(idle(b).cmp(&idle(a)))
            .then(b.size().total_cmp(&a.size()))
            .then(b.severity.cmp(&a.severity))
            .then(b.confidence.cmp(&a.confidence))
            .then(a.rule.cmp(b.rule))
            .then(a.ranks.cmp(&b.ranks))
            .then(a.class.cmp(&b.class))
    });
}

/// A rule is looked at only under a layer that has a visible share of the class's time (top-down analysis): its own, or the one
/// whose time the change takes away, as padding is the runtime's doing and the kernels' time. Findings without a gain of their
/// own are facts and stay.
fn layer_matters(finding: &Finding, analysis: &Analysis) -> bool {
    if finding.layer == Layer::Measurement || finding.estimate.max_gain_share() == 0.0 {
        return true;
    }
    // What a log does not show may lie in any layer.
    let is_concerned =
        |layer| layer == finding.layer || finding.changes.iter().any(|(_, change)| change.layer == layer);
    let visible = |b: Bucket| is_concerned(b.layer()) || b == Bucket::Unseen;
    classes_of(finding, analysis).any(|c| c.share(visible) >= LEAST_GAIN)
}

fn classes_of<'a>(finding: &'a Finding, analysis: &'a Analysis) -> impl Iterator<Item = &'a Class> {
    let ranks = analysis.ranks.iter().filter(|r| finding.ranks.contains(&r.rank));
    ranks.flat_map(|r| &r.classes).filter(|c| c.key == finding.class)
}

fn same_scope(a: &Finding, b: &Finding) -> bool {
    a.class == b.class && a.ranks == b.ranks
}

/// Whether the general finding speaks of what the specific one does: on no rank that the specific one does not name; or on
/// those that wait for the one that it names, as who names that rank explains what the waiting does to all of them.
fn covers(general: &Finding, specific: &Finding, rules: Catalogue) -> bool {
    let among = |few: &Finding, many: &Finding| few.ranks.iter().all(|rank| many.ranks.contains(rank));
    let culprit = rules.plays(specific.rule, Role::LateRank) && among(specific, general);
    general.class == specific.class && (among(general, specific) || culprit)
}

/// Of two rules that claim the same time one stays and names the other.
fn give_way(findings: &mut Vec<Finding>, rules: Catalogue) {
    for general in rules.from_the_most_general() {
        for specific in rules.closer(general) {
            while let Some((winner, loser)) = conflict(findings, specific, general.id, rules) {
                let lost = findings.remove(loser);
                let Some(won) = findings.get_mut(if loser < winner { winner - 1 } else { winner }) else { return };
                take_over(won, lost);
            }
        }
    }
}

fn take_over(won: &mut Finding, lost: Finding) {
    // The cost that the other one named is this one's now.
    won.take_price(&lost);
    if won.selected_on == lost.selected_on {
        won.selection = merged(won.selection.iter().chain(&lost.selection).copied().collect());
    }
    won.supersedes.push(lost.rule);
    won.supersedes.extend(&lost.supersedes);
    won.competing.push(Competing {
        claim: lost.claim,
        refuted: false,
        why: Message::new(
            Text::new(
                "{rule} claims the same time; its gain must not be added to this one",
                "{rule} 主张同一段时间；其收益不能与此相加",
            ),
            [("rule", Value::Raw(lost.rule.to_owned()))],
        ),
    });
}

/// Of two findings that stay although their times overlap, the second says that the gains must not be added.
fn name_shared(findings: &mut [Finding], rules: Catalogue) {
    for (first, second) in rules.docs().flat_map(|doc| rules.beside(doc).map(move |first| (first, doc.id))) {
        let partners: Vec<Finding> =
            findings.iter().filter(|f| f.rule == first && f.estimate.max_gain_share() > 0.0).cloned().collect();
        for f in findings.iter_mut().filter(|f| f.rule == second && f.estimate.max_gain_share() > 0.0) {
            if let Some(partner) = partners.iter().find(|p| same_scope(p, f)) {
                f.competing.push(Competing {
                    claim: partner.claim.clone(),
                    refuted: false,
                    why: Message::new(
                        Text::new(
                            "{rule} counts some of the same time; the two gains must not be added",
                            "{rule} 计入了部分相同的时间；两者的收益不能相加",
                        ),
                        [("rule", Value::Raw(partner.rule.to_owned()))],
                    ),
                });
            }
        }
    }
}

/// Share of the operations that `general` would change which `specific` would change too; `None` where it changes none.
fn common(specific: &Finding, general: &Finding) -> Option<f64> {
    let changed = |finding: &Finding| -> FxHashSet<(u32, u32)> {
        let edits =
            finding.changes.iter().flat_map(|(rank, change)| change.edits.iter().map(move |edit| (*rank, edit)));
        edits.flat_map(|(rank, edit)| edit.operations().into_iter().map(move |op| (rank, op))).collect()
    };
    let (specific, general) = (changed(specific), changed(general));
    let both = general.iter().filter(|op| specific.contains(op)).count();
    (!general.is_empty() && !specific.is_empty()).then(|| both as f64 / general.len() as f64)
}

/// The first pair of findings of the two rules that claim the same time: who stays, and who gives way. Where the specific
/// rule explains less than half, the rest of the time is the general rule's own, and both stay.
fn conflict(findings: &[Finding], specific: &str, general: &str, rules: Catalogue) -> Option<(usize, usize)> {
    findings.iter().enumerate().filter(|(_, f)| f.rule == specific).find_map(|(i, s)| {
        let j = findings.iter().position(|g| g.rule == general && covers(g, s, rules))?;
        let g = findings.get(j)?;
        if common(s, g).is_some_and(|share| share < 0.5) {
            return None;
        }
        // A replayed gain is better evidence than a bound, however sure each is that its cause is the right one.
        if s.confidence < g.confidence && s.estimate.method != Method::Replay {
            return Some((j, i));
        }
        (claimed(s, rules) >= 0.5 * claimed(g, rules)).then_some((i, j))
    })
}

/// Share of the step that a finding claims: the middle of its gain, or the time of its claim where it promises none. A run without
/// requests has time that nobody can gain.
fn claimed(finding: &Finding, rules: Catalogue) -> f64 {
    match finding.estimate.method {
        _ if rules.plays(finding.rule, Role::LoadLimited) => finding.trigger.value,
        Method::None => finding.claimed as f64 / finding.estimate.from.max(1) as f64,
        _ => finding.estimate.mid_gain_share(),
    }
}

/// Where launches set the pace, faster or fewer kernels gain little: operator findings of the class are less sure, unless
/// the replay has said how little.
fn mask_operators(findings: &mut [Finding], rules: Catalogue) {
    let paced: Vec<(String, Vec<u32>)> = findings
        .iter()
        .filter(|f| rules.plays(f.rule, Role::LaunchBound))
        .map(|f| (f.class.clone(), f.ranks.clone()))
        .collect();
    for f in findings.iter_mut().filter(|f| f.layer == Layer::Operator && f.estimate.method != Method::Replay) {
        if paced.iter().any(|(class, ranks)| *class == f.class && *ranks == f.ranks) {
            f.confidence = Confidence::Low;
            f.competing.push(Competing::open(
                Text::new("the launches set the pace, and the device waits anyway", "下发决定节奏，设备本就在等待"),
                Text::new("the same comparison with graphs on decides", "开启图执行后再做同样比较可以判定"),
            ));
        }
    }
}

/// Measurement comes first: what it casts doubt on is less sure.
fn distrust(findings: &mut [Finding], analysis: &Analysis, rules: Catalogue) {
    let those = |role: Role| findings.iter().filter(move |f| rules.plays(f.rule, role));
    let unexplained: Vec<(String, Vec<u32>)> =
        those(Role::Unexplained).map(|f| (f.class.clone(), f.ranks.clone())).collect();
    let inflated = those(Role::TracingInflation).map(|f| f.trigger.value).fold(0.0, f64::max);
    let folded = analysis.integrity.is_folded();
    for f in findings.iter_mut().filter(|f| f.layer != Layer::Measurement) {
        let most = if unexplained.iter().any(|(class, ranks)| *class == f.class && *ranks == f.ranks)
            || (inflated > inflation::DISTRUSTED && f.layer == Layer::Runtime)
        {
            Confidence::Low
        } else if (inflated > inflation::TRUSTED && f.layer == Layer::Runtime) || folded {
            Confidence::Medium
        } else {
            Confidence::High
        };
        f.confidence = f.confidence.min(most);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{
        analysis::script::Script,
        diagnose::{diagnose, rules::CATALOGUE},
        platform::Packs,
    };

    /// 630 µs before collectives took over 5.98 ms of waiting for launches, because the gains of both were withheld.
    #[test]
    fn without_a_gain_the_time_of_the_claim_counts() {
        let mut script = Script::default();
        for i in 0..12 {
            let at = 1_000_000 * i;
            script.host(model::Category::UserRange, "execute_context_0(0)_generation_4(4)", (at, at + 990_000));
            script.launch((at + 510_000, at + 515_000), "my_kernel", (at + 520_000, at + 990_000));
        }
        let (trace, analysis) = script.analyze();
        let mut small = diagnose(&trace, &analysis, &Packs::embedded().unwrap()).findings.remove(0);
        small.estimate = Estimate::none(1_000_000);
        let mut large = small.clone();
        (small.claimed, large.claimed) = (48_000, 460_000);
        assert_eq!((claimed(&small, CATALOGUE), claimed(&large, CATALOGUE)), (0.048, 0.46));
    }
}
