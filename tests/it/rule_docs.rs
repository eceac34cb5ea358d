//! The pages in `docs/rules` are the rules' own texts. `STRATO_BLESS=1 cargo test --test rule_docs` rewrites them.

use std::{collections::BTreeMap, fs, path::Path};

use diagnosis::{diagnose::rules::REGISTRY, i18n::Lang, platform::Packs};
use report::explain::document;

/// Path below `docs/rules` and content of every page.
fn pages() -> BTreeMap<String, String> {
    let packs = Packs::embedded().unwrap();
    let mut pages = BTreeMap::new();
    let mut index = String::from("# Rules\n\n| rule | | layer |\n| --- | --- | --- |\n");
    for rule in REGISTRY {
        let doc = rule.doc();
        let remedies = packs.all_remedies(doc.id);
        pages.insert(format!("{}.md", doc.id), document(doc, &remedies, Lang::En).markdown());
        pages.insert(format!("zh/{}.md", doc.id), document(doc, &remedies, Lang::Zh).markdown());
        let (en, zh) = (doc.title.get(Lang::En), doc.title.get(Lang::Zh));
        let layer = doc.layer.key();
        index.push_str(&format!("| [{id}]({id}.md) | {en} ([{zh}](zh/{id}.md)) | {layer} |\n", id = doc.id));
    }
    pages.insert("README.md".into(), index);
    pages
}

#[test]
fn the_pages_are_the_rules_own_texts() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/rules");
    let pages = pages();
    if std::env::var_os("STRATO_BLESS").is_some() {
        fs::create_dir_all(dir.join("zh")).unwrap();
        pages.iter().for_each(|(path, text)| fs::write(dir.join(path), text).unwrap());
    }
    for (path, text) in &pages {
        let held = fs::read_to_string(dir.join(path)).unwrap_or_default();
        assert!(held == *text, "docs/rules/{path} is not the rule's text; run with STRATO_BLESS=1");
    }
    let written =
        |sub: &str| fs::read_dir(dir.join(sub)).unwrap().filter(|e| e.as_ref().unwrap().path().is_file()).count();
    assert_eq!(written("") + written("zh"), pages.len(), "docs/rules holds a page of no rule");
}

#[test]
fn ids_are_unique_and_every_text_is_there_in_both_languages() {
    for rule in REGISTRY {
        let doc = rule.doc();
        assert_eq!(REGISTRY.iter().filter(|r| r.doc().id == doc.id).count(), 1, "{}", doc.id);
        for text in [doc.title, doc.sees, doc.matters, doc.trigger, doc.source, doc.guards, doc.verify] {
            assert!(!text.en.is_empty() && text.zh.chars().any(|c| c as u32 > 0x2e80), "{}: {}", doc.id, text.en);
        }
    }
}
