//! Cells of a board in lines: what each is about, its light in a word, what it rests on, and the next step.

use super::prose::{self, Line, piece};
use crate::tui::{text, theme::Role};
use diagnosis::{
    diagnose::Severity,
    i18n::{Lang, Text},
};
use report::{
    phrase,
    readiness::{self, Row},
};

use model::Light;

/// Cells of what a cell is about, and of its light.
const NAME: usize = 20;
const LIGHT: usize = 11;

/// How the word of a light looks; it says everything without that.
fn role(light: Light) -> Role {
    match light {
        Light::Red => Role::Severity(Severity::Critical),
        Light::Amber => Role::Warn,
        Light::Green => Role::Strong,
        Light::Unknown => Role::Dim,
    }
}

/// The cells under a title.
pub fn lines(title: Text, rows: &[(Text, Row<'_>)], lang: Lang, width: usize) -> Vec<Line> {
    let mut out = vec![vec![piece(title.get(lang), Role::Title)]];
    let cells = |word: &str, most: usize| {
        let fit = text::fit(word, most);
        format!("{fit}{}", " ".repeat(most.saturating_sub(text::width(&fit))))
    };
    let below = if width > 3 * (NAME + LIGHT) / 2 { NAME + LIGHT } else { 2 };
    let indent = " ".repeat(below);
    for (name, row) in rows {
        let head = vec![
            piece(cells(name.get(lang), NAME), Role::Text),
            piece(cells(readiness::light(row.light).get(lang), LIGHT), role(row.light)),
        ];
        let facts: Vec<String> = row.facts.iter().map(|fact| phrase::plain(&readiness::fact(fact), lang)).collect();
        let facts = facts.join(Text::new("; ", "；").get(lang));
        let mut rest = prose::wrap(&[piece(facts, Role::Dim)], width, (&indent, &indent)).into_iter();
        if below > 2 {
            // What it rests on begins beside its light.
            let first = rest.next().unwrap_or_default();
            out.push(head.into_iter().chain(first.into_iter().skip(1)).collect());
        } else {
            out.push(head);
        }
        out.extend(rest);
        if let Some(next) = row.next {
            let arrow = format!("→ {}", phrase::plain(&readiness::next(next, row.vendor), lang));
            out.extend(prose::wrap(&[piece(arrow, Role::Text)], width, (&indent, &indent)));
        }
    }
    out
}
