//! Which captures have a second run beside them: the same work once more, as it was or with one setting changed, so that what a
//! change brings is measured and not only estimated.

use model::manifest::{Control, Field};

use super::{
    chosen::Captured,
    contract::{self, Facts, Status, Subject, Verdict, claim},
};

/// Whether each of these has another one among them that it may be compared with. Two readings of one launch are one run.
pub fn held(captures: &[Captured<'_>]) -> Vec<bool> {
    // Facts of a capture take a look at all of it.
    if captures.len() < 2 {
        return vec![false; captures.len()];
    }
    let facts: Vec<Facts> = captures.iter().map(|(trace, analysis)| Facts::of(trace, analysis)).collect();
    let subjects: Vec<Subject<'_>> =
        captures.iter().zip(&facts).map(|((trace, _), facts)| Subject { manifest: &trace.manifest, facts }).collect();
    let is_other = |a: &Subject<'_>, b: &Subject<'_>| a.facts.digest != b.facts.digest && is_second(*a, *b);
    subjects.iter().map(|own| subjects.iter().any(|other| is_other(own, other))).collect()
}

/// Whether one is the other once more, with at most one setting changed. What only costs a caveat may differ, as sizes of graphs do
/// where one run has none.
fn is_second(a: Subject<'_>, b: Subject<'_>) -> bool {
    let as_it_is = contract::judge(a, b, &[]);
    let changed = as_it_is
        .controls
        .iter()
        .filter(|control| control.status == Status::Different && control.field.control == Control::Hard);
    let changed: Vec<&'static Field> =
        changed.map(|control| control.field).filter(|field| claim::may_be_studied(field)).collect();
    match changed.as_slice() {
        [] => as_it_is.verdict() != Verdict::NotComparable,
        [_] => contract::judge(a, b, &changed).verdict() != Verdict::NotComparable,
        _ => false,
    }
}
