//! A declaration file for a pair: every value that the captures show or say, and the fields that are still open, commented out. It
//! can be read back as it is.

use diagnosis::{
    compare::{
        Side,
        contract::{Contract, Control, MAIN, Status},
    },
    i18n::Lang,
};
use model::manifest::declarable;

use super::DiffReport;

/// Characters of a value that are written; what is longer is no value that a person would type.
const LONGEST: usize = 200;

/// The file.
pub fn render(report: &DiffReport, lang: Lang) -> String {
    let contract = &report.contract;
    let open = contract.open(MAIN);
    let mut out = String::new();
    let head = match lang {
        Lang::En => {
            "# What the captures show or say. Fill in the commented lines, then: strato diff A B --declare FILE"
        }
        Lang::Zh => "# 采集显示或声明的内容。请填写被注释的行，然后运行：strato diff A B --declare FILE",
    };
    out.push_str(head);
    out.push_str("\n\n[both]\n");
    for control in contract.controls.iter().filter(|control| is_asked(contract, control)) {
        let is_open = open.iter().any(|field| field.key == control.field.key);
        match (control.status, &control.a, &control.b) {
            (Status::Equal, Some(entry), _) => line(&mut out, control, &entry.value),
            (_, None, None) if is_open => {
                out.push_str(&format!("# \"{}\" = \"\"  # {}\n", control.field.key, control.field.what));
            }
            _ => {}
        }
    }
    for side in Side::BOTH {
        out.push_str(&format!("\n[{}]\n", side.letter().to_ascii_lowercase()));
        for control in contract.controls.iter().filter(|control| is_asked(contract, control)) {
            let is_open = open.iter().any(|field| field.key == control.field.key);
            match control.entry(side) {
                Some(entry) if control.status != Status::Equal => line(&mut out, control, &entry.value),
                None if is_open && control.entry(side.other()).is_some() => {
                    out.push_str(&format!("# \"{}\" = \"\"  # {}\n", control.field.key, control.field.what));
                }
                _ => {}
            }
        }
    }
    out
}

/// Whether a field means anything for the work of this pair.
fn is_asked(contract: &Contract, control: &Control) -> bool {
    contract.work.as_ref().is_none_or(|work| work.asks(control.field)) && declarable(control.field.key).is_some()
}

/// A line of a value; one that is empty or longer than anybody writes is left out.
fn line(out: &mut String, control: &Control, value: &str) {
    if value.trim().is_empty() || value.chars().count() > LONGEST {
        return;
    }
    // A string of JSON is a basic string of TOML.
    if let Ok(text) = serde_json::to_string(value) {
        out.push_str(&format!("\"{}\" = {text}\n", control.field.key));
    }
}
