//! How ready a platform is, as JSON.

use model::{Area, Light, Maturity};
use schemars::JsonSchema;
use serde::Serialize;

use super::words;
use crate::{phrase, readiness};
use diagnosis::{
    diagnose::readiness::{Cell, Readiness},
    i18n::Lang,
};

/// How ready a platform is.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Readiness")]
pub struct Ready {
    board: Vec<BoardCell>,
    matrix: Vec<MatrixRow>,
}

/// An area of the board.
#[derive(Serialize, JsonSchema)]
struct BoardCell {
    #[schemars(schema_with = "words::area")]
    area: Area,
    /// What the light rests on; absent where the report on the side has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    evidence: Option<Vec<String>>,
    #[schemars(schema_with = "words::light")]
    light: Light,
    /// What to do next.
    next: Option<String>,
}

/// A row of the maturity matrix.
#[derive(Serialize, JsonSchema)]
struct MatrixRow {
    /// What the light rests on; absent where the report on the side has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    evidence: Option<Vec<String>>,
    #[schemars(schema_with = "words::light")]
    light: Light,
    /// What to do next.
    next: Option<String>,
    #[schemars(schema_with = "words::maturity")]
    row: Maturity,
}

/// Board and matrix, cell by cell, with what the lights rest on.
pub fn readiness(of: &Readiness, lang: Lang) -> Ready {
    cells(of, true, lang)
}

/// The same without what the lights rest on.
pub fn lights(of: &Readiness, lang: Lang) -> Ready {
    cells(of, false, lang)
}

fn cells(of: &Readiness, has_evidence: bool, lang: Lang) -> Ready {
    let board = of.board.iter().map(|cell| {
        let (evidence, next) = said(cell, has_evidence, &of.vendor, lang);
        BoardCell { area: cell.of, evidence, light: cell.light, next }
    });
    let matrix = of.matrix.iter().map(|cell| {
        let (evidence, next) = said(cell, has_evidence, &of.vendor, lang);
        MatrixRow { evidence, light: cell.light, next, row: cell.of }
    });
    Ready { board: board.collect(), matrix: matrix.collect() }
}

/// What a cell rests on, and what to do next.
fn said<K>(cell: &Cell<K>, has_evidence: bool, vendor: &str, lang: Lang) -> (Option<Vec<String>>, Option<String>) {
    let facts = cell.facts.iter().map(|fact| phrase::plain(&readiness::fact(fact), lang));
    let next = cell.next.as_ref().map(|next| phrase::plain(&readiness::next(next, vendor), lang));
    (has_evidence.then(|| facts.collect()), next)
}
