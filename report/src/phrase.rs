//! Messages of rules and verdicts with their values filled in, as markdown or as plain text.

use super::{text, units};
use diagnosis::{
    diagnose::Evidence,
    i18n::{Lang, Message, Value},
};

/// A message as markdown.
pub fn markdown(message: &Message, lang: Lang) -> String {
    message.render(lang, |value| show(value, lang, true))
}

/// A message as plain text.
pub fn plain(message: &Message, lang: Lang) -> String {
    message.render(lang, |value| show(value, lang, false))
}

/// A fact of a finding: its sentence with `{value}` filled in, or followed by the value where it has no such place.
pub fn fact(evidence: &Evidence, lang: Lang, as_markdown: bool) -> String {
    let mut what = evidence.what.clone();
    let place = what.text.get(lang).contains("{value}");
    if place && !what.args.iter().any(|(name, _)| *name == "value") {
        what.args.push(("value", evidence.value.clone()));
    }
    let sentence = what.render(lang, |value| show(value, lang, as_markdown));
    let colon = match lang {
        Lang::En => ": ",
        Lang::Zh => "：",
    };
    if place { sentence } else { format!("{sentence}{colon}{}", show(&evidence.value, lang, as_markdown)) }
}

/// A value in the unit that fits. Text from the capture is escaped.
pub fn show(value: &Value, lang: Lang, as_markdown: bool) -> String {
    match value {
        Value::Ns(ns) => units::time(*ns),
        Value::Share(share) => units::share(*share),
        Value::Ratio(ratio) => units::ratio(*ratio),
        Value::Number(n) => units::number(*n),
        Value::Count(n) => units::count(*n),
        Value::Bytes(n) => units::bytes(*n),
        Value::BytesPerSecond(rate) => units::probed(*rate, model::ProbeUnit::BytesPerSecond),
        Value::Raw(raw) if as_markdown => text::code(raw, text::NAME),
        Value::Raw(raw) => text::plain(raw, text::PHRASE),
        Value::Text(text) => text.get(lang).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diagnosis::i18n::Text;

    #[test]
    fn a_fact_shows_its_value_once() {
        let fact_of = |text| {
            let evidence = Evidence {
                what: Message::new(Text::new(text, text), [("op", Value::Raw("a|b".into()))]),
                value: Value::Ns(1500),
                rows: Vec::new(),
            };
            fact(&evidence, Lang::En, true)
        };
        assert_eq!(fact_of("gap before {op} is {value}"), "gap before `a|b` is 1.5 µs");
        assert_eq!(fact_of("gap before {op}"), "gap before `a|b`: 1.5 µs");
    }
}
