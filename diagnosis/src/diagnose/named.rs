//! Which rows of the tables a finding names: in its claim, in a fact, by the slices that it rests on, or because most of their time
//! is what it is about.

use model::{SliceId, Span, StringId};
use rustc_hash::FxHashSet;

use super::{Finding, rule::Context};
use crate::{
    analysis::{Layer, Rank, owners::short},
    cause::statement::REST,
    i18n::{Message, Value},
    largest::{self, Kind, Largest},
};

/// Letters from which a name inside a longer text is no accident; own value.
const TELLING: usize = 8;

/// The tables of a capture, with every row marked that one of the findings names.
pub(super) fn largest(cx: &Context<'_>, findings: &[Finding]) -> Largest {
    let about = |rank: &Rank| -> Vec<Span> {
        let own = findings.iter().filter(|finding| finding.selected_on == rank.rank && finding.rule != REST);
        own.flat_map(|finding| finding.selection.iter().copied()).collect()
    };
    let mut largest = largest::of(cx.trace, cx.analysis, about);
    let exchange = findings.iter().filter(|f| f.layer == Layer::Communication).map(Finding::size).fold(0.0, f64::max);
    let mut words = FxHashSet::<&str>::default();
    let mut names = FxHashSet::<(bool, StringId)>::default();
    for finding in findings {
        said(&finding.claim, &mut words);
        for fact in &finding.evidence {
            said(&fact.what, &mut words);
            of_value(&fact.value, &mut words);
            // What is said of the host rests on kernels that end its pauses, which it does not name.
            let of_host = finding.layer == Layer::Runtime;
            names.extend(fact.rows.iter().filter_map(|slice| Some((of_host, name(cx, *slice)?))));
        }
    }
    let rows = largest.tables.iter_mut().flat_map(|tables| {
        let time = tables.time;
        tables.rows.iter_mut().map(move |row| (time, row))
    });
    for (time, row) in rows {
        let of_exchange = |ns: model::Ns| 2.0 * exchange >= ns as f64 / time.max(1) as f64;
        let own = short(&row.name);
        let of_host = !matches!(row.kind, Kind::Kernel | Kind::Collective);
        let shown = row.longest.and_then(|slice| name(cx, slice)).is_some_and(|name| names.contains(&(of_host, name)));
        // Claims name a record with those around it: `llama.py(374): forward ← …`.
        let within = own.len() >= TELLING && words.iter().any(|said| said.contains(&*own));
        // What is said of waiting and transfers is said of the collectives of every rank.
        let exchanges = row.kind == Kind::Collective || row.kind == Kind::Kernel && row.exposed.is_some();
        row.named |= within
            || (exchanges && of_exchange(row.exposed.unwrap_or(row.total)))
            || shown
            || words.contains(row.name.as_str())
            || words.contains(&*own)
            || words.contains(row.of.as_str());
    }
    largest
}

/// The name of a slice.
fn name(cx: &Context<'_>, slice: SliceId) -> Option<StringId> {
    let (track, row) = cx.trace.locate(slice)?;
    cx.trace.lanes.get(track.0 as usize)?.name.get(row).copied()
}

/// Texts from the capture in a message.
fn said<'m>(message: &'m Message, words: &mut FxHashSet<&'m str>) {
    message.args.iter().for_each(|(_, value)| of_value(value, words));
}

fn of_value<'m>(value: &'m Value, words: &mut FxHashSet<&'m str>) {
    match value {
        Value::Raw(text) | Value::Kernel(text) | Value::Phrase(text) => {
            words.insert(text);
        }
        Value::Message(message) => said(message, words),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use model::Category;

    use crate::{analysis::script::Script, diagnose::diagnose, largest::Kind, platform::Packs};

    /// A frame that keeps the device waiting in every step is named by a finding; a kernel of half the step by none.
    #[test]
    fn rows_that_findings_name_are_marked() {
        let mut script = Script::default();
        let mut at = 1_000;
        for _ in 0..12 {
            script.host(Category::UserRange, "execute_context_0(0)_generation_4(4)", (at, at + 900_000));
            script.host(Category::PythonFrame, "scheduler.py(7): schedule", (at + 1_000, at + 500_000));
            script.launch((at + 510_000, at + 515_000), "my_kernel", (at + 520_000, at + 990_000));
            at += 1_000_000;
        }
        let (trace, analysis) = script.analyze();
        let Ok(packs) = Packs::embedded() else { return assert!(Packs::embedded().is_ok()) };
        let found = diagnose(&trace, &analysis, &packs);
        let tables = found.largest.tables.first();
        let named =
            |kind: Kind| tables.and_then(|tables| tables.of(kind).next()).map(|row| (row.name.as_str(), row.named));
        let rules: Vec<&str> = found.findings.iter().map(|finding| finding.rule).collect();
        assert_eq!(named(Kind::Idle), Some(("scheduler.py(7): schedule", true)), "{rules:?}");
        assert_eq!(named(Kind::Kernel), Some(("my_kernel", false)));
        let wanting: Vec<&str> =
            tables.map(|t| t.unnamed().iter().map(|row| row.name.as_str()).collect()).unwrap_or_default();
        assert_eq!(wanting, ["my_kernel"]);
    }
}
