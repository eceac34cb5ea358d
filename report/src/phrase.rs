//! Messages of rules and verdicts with their values filled in, as inlines or as plain text.

use super::{
    document::{Inlines, notation},
    kernel_name, text, units,
};
use diagnosis::{
    diagnose::Evidence,
    i18n::{Lang, Message, Text, Value},
};

/// A text of the catalogue without places.
pub fn text(text: Text, lang: Lang) -> Inlines {
    notation::plain(text.get(lang))
}

/// A text whose places take what is built already.
pub fn compose<const N: usize>(text: Text, lang: Lang, parts: [(&str, Inlines); N]) -> Inlines {
    let part = |name: &str| parts.iter().find(|(known, _)| *known == name).map(|(_, part)| part.clone());
    notation::read(text.get(lang), &part)
}

/// A message as inlines.
pub fn inlines(message: &Message, lang: Lang) -> Inlines {
    let value = |name: &str| message.args.iter().find(|(known, _)| *known == name);
    notation::read(&message.template(lang), &|name| value(name).map(|(_, value)| shown(value, lang)))
}

/// A message as plain text.
pub fn plain(message: &Message, lang: Lang) -> String {
    message.render(lang, |value| show(value, lang))
}

/// A fact of a finding as inlines: its sentence with `{value}` filled in, or followed by the value where it has no such place.
pub fn fact(evidence: &Evidence, lang: Lang) -> Inlines {
    let (what, follows) = fact_message(evidence, lang);
    let sentence = inlines(&what, lang);
    if follows { sentence + colon(lang) + shown(&evidence.value, lang) } else { sentence }
}

/// The same as plain text.
pub fn plain_fact(evidence: &Evidence, lang: Lang) -> String {
    let (what, follows) = fact_message(evidence, lang);
    let sentence = plain(&what, lang);
    if follows { sentence + colon(lang) + &show(&evidence.value, lang) } else { sentence }
}

/// The sentence of a fact, and whether its value follows it.
fn fact_message(evidence: &Evidence, lang: Lang) -> (Message, bool) {
    let mut what = evidence.what.clone();
    let place = what.text.get(lang).contains("{value}");
    if place && !what.args.iter().any(|(name, _)| *name == "value") {
        what.args.push(("value", evidence.value.clone()));
    }
    (what, !place)
}

/// What stands between a word and what it introduces.
pub fn colon(lang: Lang) -> &'static str {
    match lang {
        Lang::En => ": ",
        Lang::Zh => "：",
    }
}

/// A value as inlines: a text from the capture is a name.
pub fn shown(value: &Value, lang: Lang) -> Inlines {
    match value {
        Value::Raw(raw) => Inlines::name(raw),
        Value::Kernel(name) => Inlines::name(&kernel_name::short(name)),
        Value::Phrase(said) => Inlines::quoted(said, text::PHRASE),
        Value::Text(words) => text(*words, lang),
        Value::Message(message) => inlines(message, lang),
        value => show(value, lang).into(),
    }
}

/// A value as plain text, in the unit that fits.
pub fn show(value: &Value, lang: Lang) -> String {
    match value {
        Value::Ns(ns) => units::time(*ns),
        Value::Share(share) => units::share(*share),
        Value::Ratio(ratio) => units::ratio(*ratio),
        Value::Number(n) => units::number(*n),
        Value::Count(n) => units::count(*n),
        Value::Bytes(n) => units::bytes(*n),
        Value::BytesPerSecond(rate) => units::probed(*rate, model::ProbeUnit::BytesPerSecond),
        Value::Raw(raw) | Value::Phrase(raw) => text::plain(raw, text::PHRASE),
        Value::Kernel(name) => text::plain(&kernel_name::short(name), text::PHRASE),
        Value::Text(text) => text.get(lang).to_owned(),
        Value::Message(message) => plain(message, lang),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inlines;

    #[test]
    fn a_fact_shows_its_value_once() {
        let fact_of = |text| {
            let evidence = Evidence {
                what: Message::new(Text::new(text, text), [("op", Value::Raw("a|b".into()))]),
                value: Value::Ns(1500),
                rows: Vec::new(),
            };
            assert_eq!(fact(&evidence, Lang::En).words(), plain_fact(&evidence, Lang::En));
            fact(&evidence, Lang::En)
        };
        let name = || Inlines::code("a|b");
        assert_eq!(fact_of("gap before {op} is {value}"), inlines!["gap before ", name(), " is 1.5 µs"]);
        assert_eq!(fact_of("gap before {op}"), inlines!["gap before ", name(), ": 1.5 µs"]);
    }
}
