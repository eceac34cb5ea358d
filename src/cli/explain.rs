//! `strato explain`: the text of one rule.

use super::{
    Global,
    exit::{Exit, Usage},
    output::Output,
    terminal_text::plain,
};
use diagnosis::{diagnose::rules, platform::Packs};
use report::explain;

/// Ids that are offered when there is no rule of the name asked for.
const NEAREST: usize = 3;

/// Explain a rule: what it sees, its threshold and where that comes from, what to do, how to verify.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Id of the rule, such as RT-14.
    #[arg(value_name = "RULE")]
    rule: String,
}

pub(super) fn run(global: &Global, arguments: Arguments) -> anyhow::Result<Exit> {
    let Some(rule) = rules::find(&arguments.rule) else {
        let near = nearest(&arguments.rule).join(", ");
        let asked = plain(&arguments.rule);
        return Err(Usage(format!("there is no rule '{asked}'; near it are {near}; 'strato rules' lists all")).into());
    };
    let doc = rule.doc();
    let packs = Packs::embedded().map_err(|e| Usage(e.to_string()))?;
    let page = explain::document(doc, &packs.all_remedies(doc.id), global.lang());
    global.print(&Output::Document(page))?;
    Ok(Exit::Done)
}

/// The ids nearest to what was asked for: those of the same layer first, then by number.
fn nearest(asked: &str) -> Vec<&'static str> {
    let parts = |id: &str| {
        let letters: String = id.chars().filter(char::is_ascii_alphabetic).collect::<String>().to_ascii_uppercase();
        let digits: String = id.chars().filter(char::is_ascii_digit).take(6).collect();
        (letters, digits.parse::<i64>().unwrap_or(0))
    };
    let (letters, number) = parts(asked);
    let mut ids: Vec<&'static str> = rules::REGISTRY.iter().map(|rule| rule.doc().id).collect();
    ids.sort_by_key(|id| {
        let (own, at) = parts(id);
        (own != letters, (at - number).abs(), *id)
    });
    ids.truncate(NEAREST);
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_nearest_comes_first() {
        assert_eq!(nearest("rt13").first().map(|id| &id[..3]), Some("RT-"));
        assert_eq!(nearest("RT-14").first(), Some(&"RT-14"));
        assert_eq!(nearest("\u{1b}").len(), NEAREST);
    }
}
