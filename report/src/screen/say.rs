//! Messages of rules and verdicts as they stand on a terminal: times with three digits, no marks of Markdown, and the class of
//! the steps left to the head of the screen.

use crate::{kernel_name, phrase, text, units};
use diagnosis::{
    analysis::owners::short,
    i18n::{Lang, Message, Text, Value},
};

/// Most characters of a name inside a sentence.
const NAME: usize = 60;

/// A message as one line of plain words. `class` is the key of the steps that it speaks of, which are "these steps" here.
pub fn message(message: &Message, class: &str, lang: Lang) -> String {
    let these = if message.speaks_of_window() { WINDOW } else { THESE }.get(lang);
    let said = message.render(lang, |value| value_of(value, (class, these), lang));
    // The head names the class: behind its subject it says nothing.
    let said = plain(&said).replace(&format!(" ({these})"), "").replace(&format!("（{these}）"), "");
    FITTED.iter().fold(said, |said, (as_named, fitted)| said.replace(as_named, fitted))
}

/// What stands around the name of a class, and the same around the words that stand for it.
const FITTED: [(&str, &str); 10] = [
    ("per step of these steps", "per step"),
    ("two steps of these steps", "two of these steps"),
    ("the steps of these steps", "these steps"),
    ("steps of these steps", "of these steps"),
    ("step of these steps", "step"),
    ("the window of the window", "the window"),
    ("这些步 每步", "每步"),
    ("这些步 的两步之间", "两步之间"),
    ("这些步 ", "这些步"),
    ("该窗口 ", "该窗口"),
];

fn value_of(value: &Value, (class, these): (&str, &str), lang: Lang) -> String {
    match value {
        Value::Ns(ns) => units::brief(*ns),
        Value::Share(share) => units::whole_share(*share),
        Value::Raw(raw) if !class.is_empty() && raw == class => these.to_owned(),
        Value::Raw(raw) => text::plain(&short(raw), NAME),
        Value::Phrase(phrase) => text::visible(phrase),
        Value::Kernel(name) => text::plain(&kernel_name::short(name), NAME),
        Value::Message(inner) => inner.render(lang, |value| value_of(value, (class, these), lang)),
        value => phrase::show(value, lang),
    }
}

/// What stands for the class of steps that the head names.
const THESE: Text = Text::new("these steps", "这些步");
/// The same where nothing marks steps.
const WINDOW: Text = Text::new("the window", "该窗口");

/// Words without the marks of the catalogue, on one line.
pub fn plain(words: &str) -> String {
    words.replace("**", "").replace(['`', '\n'], "")
}
