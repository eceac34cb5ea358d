//! What could not be decided and what was lost, as JSON.

use model::{EvidenceClass, Severity};
use schemars::JsonSchema;
use serde::Serialize;

use super::{plain, words};
use crate::{ledger_note, model::Capture, phrase};
use diagnosis::i18n::Lang;

/// A rule that could not decide.
#[derive(Serialize, JsonSchema)]
pub(super) struct Abstained {
    capture: usize,
    /// Evidence that it lacks.
    #[schemars(schema_with = "words::evidence_classes")]
    needs: Vec<EvidenceClass>,
    rule: &'static str,
    /// Why, where it is not for evidence.
    why: Option<String>,
}

/// Something that the import met.
#[derive(Serialize, JsonSchema)]
pub(super) struct ImportStat {
    capture: usize,
    count: u64,
    example: Option<String>,
    #[schemars(schema_with = "words::stat_severity")]
    severity: Severity,
    stat: String,
}

/// What became of a category of the source.
#[derive(Serialize, JsonSchema)]
pub(super) struct LedgerRow {
    capture: usize,
    category: String,
    kept: u64,
    note: String,
    read: u64,
    /// Time of the rows that were kept.
    time_ns: i64,
}

pub(super) fn abstained(capture: &Capture, lang: Lang) -> impl Iterator<Item = Abstained> {
    capture.abstained.iter().map(move |a| Abstained {
        capture: capture.id,
        needs: a.needs.clone(),
        rule: a.rule,
        why: a.why.as_ref().map(|why| phrase::plain(why, lang)),
    })
}

pub(super) fn import(capture: &Capture) -> impl Iterator<Item = ImportStat> {
    capture.stats.iter().map(|s| ImportStat {
        capture: capture.id,
        count: s.count,
        example: s.example.as_deref().map(plain),
        severity: s.severity,
        stat: plain(&s.name),
    })
}

pub(super) fn ledger(capture: &Capture, lang: Lang) -> impl Iterator<Item = LedgerRow> {
    capture.ledger.iter().map(move |l| LedgerRow {
        capture: capture.id,
        category: plain(&l.category),
        kept: l.kept,
        note: plain(ledger_note::in_language(&l.note, lang)),
        read: l.read,
        time_ns: l.time_ns,
    })
}
