//! How ready a platform is, as JSON.

use serde_json::{Value, json};

use crate::{phrase, readiness};
use diagnosis::{
    diagnose::readiness::{Cell, Readiness},
    i18n::Lang,
};

/// Board and matrix, cell by cell.
pub fn readiness(of: &Readiness, lang: Lang) -> Value {
    json!({
        "board": of.board.iter().map(|cell| one(cell, "area", lang)).collect::<Vec<_>>(),
        "matrix": of.matrix.iter().map(|cell| one(cell, "row", lang)).collect::<Vec<_>>(),
    })
}

fn one<K: serde::Serialize>(cell: &Cell<K>, key: &str, lang: Lang) -> Value {
    let facts = cell.facts.iter().map(|fact| phrase::plain(&readiness::fact(fact), lang));
    json!({
        key: cell.of,
        "light": cell.light,
        "evidence": facts.collect::<Vec<_>>(),
        "next": cell.next.as_ref().map(|next| phrase::plain(&readiness::next(next), lang)),
    })
}
