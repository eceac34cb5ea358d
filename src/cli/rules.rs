//! `strato rules`: every rule with its layer, its name and the evidence it needs.

use super::{Global, exit::Exit, output::Output};
use diagnosis::{diagnose::rules, i18n::Text};
use report::{
    document::{Align, Document, Table},
    grade,
};

/// List the rules: what each looks for and the evidence it needs.
#[derive(Debug, clap::Args)]
pub struct Arguments {}

pub(super) fn run(global: &Global, _: Arguments) -> anyhow::Result<Exit> {
    let lang = global.lang();
    let mut table = Table::new([
        (Text::new("rule", "规则").get(lang), Align::Left),
        (Text::new("layer", "层").get(lang), Align::Left),
        (Text::new("looks for", "检查内容").get(lang), Align::Left),
        (Text::new("needs", "所需证据").get(lang), Align::Left),
    ]);
    for rule in rules::REGISTRY {
        let doc = rule.doc();
        let needs: Vec<&str> = doc.needs.iter().map(|class| grade::name(*class).get(lang)).collect();
        table.row([doc.id, doc.layer.key(), doc.title.get(lang), &needs.join("; ")]);
    }
    let mut document = Document::new();
    document.table(table);
    global.print(&Output::Document(document))?;
    Ok(Exit::Done)
}
