//! Text in the languages of the reports. A leaf: it knows nothing of what the texts are about.
//!
//! A [`Text`] stands in the file of the rule or report that says it, both languages side by side, so that they cannot
//! drift apart; `{name}` in it is filled from the arguments of a [`Message`].

use std::{borrow::Cow, fmt};

/// Language of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lang {
    /// English.
    #[default]
    En,
    /// Simplified Chinese.
    Zh,
}

impl Lang {
    /// The language that `LC_ALL`, `LC_MESSAGES` or `LANG` asks for: the first that is set decides.
    pub fn from_locale(get: impl Fn(&str) -> Option<String>) -> Self {
        let locale = ["LC_ALL", "LC_MESSAGES", "LANG"].into_iter().find_map(|v| get(v).filter(|s| !s.is_empty()));
        if locale.is_some_and(|l| l.to_ascii_lowercase().starts_with("zh")) { Self::Zh } else { Self::En }
    }
}

/// The same text in every language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Text {
    /// English.
    pub en: &'static str,
    /// Simplified Chinese.
    pub zh: &'static str,
}

impl Text {
    /// A text in both languages.
    pub const fn new(en: &'static str, zh: &'static str) -> Self {
        Self { en, zh }
    }

    /// The text in one language.
    pub fn get(self, lang: Lang) -> &'static str {
        match lang {
            Lang::En => self.en,
            Lang::Zh => self.zh,
        }
    }
}

/// A value inside a message. It is formatted when the message is rendered, in the language and unit that fit.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// Nanoseconds.
    Ns(i64),
    /// A share of one, shown in percent.
    Share(f64),
    /// A ratio, shown with two decimals and `×`.
    Ratio(f64),
    /// A number without unit.
    Number(f64),
    /// A count.
    Count(u64),
    /// Bytes.
    Bytes(i64),
    /// Bytes per second.
    BytesPerSecond(f64),
    /// Text from the capture: possibly hostile, escaped by the renderer.
    Raw(String),
    /// Name of a kernel from the capture: as [`Value::Raw`], in a short form that keeps what tells kernels apart.
    Kernel(String),
    /// A sentence of the capture, which is no name: shown whole up to the length of a sentence, and escaped as well.
    Phrase(String),
    /// A text that exists in every language.
    Text(Text),
    /// A sentence inside a sentence.
    Message(Box<Message>),
}

/// A text with the values for its placeholders.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Message {
    /// The text.
    pub text: Text,
    /// Values by placeholder name.
    pub args: Vec<(&'static str, Value)>,
    /// Whether it speaks of one window instead of steps, because nothing marks any.
    #[serde(skip)]
    in_window: bool,
}

/// Words about steps, and those that take their place where the one step is the whole window.
const IN_WINDOW: [(Lang, &str, &str); 10] = [
    (Lang::En, " in its steady steps", ""),
    (Lang::En, " in the steady steps of ", " in the window of "),
    (Lang::Zh, "在稳态步中", "在窗口内"),
    (Lang::En, " per step on average", ""),
    (Lang::En, " per step", " in the window"),
    (Lang::En, " of the step", " of the window"),
    (Lang::En, " the step of ", " the window of "),
    (Lang::Zh, "平均每步", ""),
    (Lang::Zh, "每步", "窗口内"),
    (Lang::Zh, "步时", "窗口时长"),
];

impl Message {
    /// A message from its text and values.
    pub fn new(text: Text, args: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
        Self { text, args: args.into_iter().collect(), in_window: false }
    }

    /// The message as a value of another one.
    pub fn within(self) -> Value {
        Value::Message(Box::new(self))
    }

    /// A message without placeholders.
    pub fn plain(text: Text) -> Self {
        Self { text, args: Vec::new(), in_window: false }
    }

    /// Speaks of one window from now on, in which no step is marked.
    pub fn speak_of_window(&mut self) {
        self.in_window = true;
        for (_, value) in &mut self.args {
            if let Value::Message(inner) = value {
                inner.speak_of_window();
            }
        }
    }

    /// Whether it speaks of one window.
    pub fn speaks_of_window(&self) -> bool {
        self.in_window
    }

    /// Its text in one language, with places for the values.
    pub fn template(&self, lang: Lang) -> Cow<'static, str> {
        let text = self.text.get(lang);
        if !self.in_window {
            return text.into();
        }
        let words = IN_WINDOW.iter().filter(|(of, ..)| *of == lang);
        words.fold(Cow::from(text), |text, (_, step, window)| text.replace(step, window).into())
    }

    /// The message in one language; `show` formats a value. A placeholder without value stays as it is.
    pub fn render(&self, lang: Lang, show: impl Fn(&Value) -> String) -> String {
        let mut out = String::new();
        let template = self.template(lang);
        let mut rest = template.as_ref();
        while let Some(open) = rest.find('{') {
            let (before, tail) = rest.split_at(open);
            out.push_str(before);
            match tail.find('}').and_then(|close| Some((close, self.value(&tail[1..close])?))) {
                Some((close, value)) => {
                    out.push_str(&show(value));
                    rest = &tail[close + 1..];
                }
                None => {
                    out.push('{');
                    rest = &tail[1..];
                }
            }
        }
        out.push_str(rest);
        out
    }

    fn value(&self, name: &str) -> Option<&Value> {
        self.args.iter().find(|(n, _)| *n == name).map(|(_, v)| v)
    }
}

impl fmt::Display for Lang {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::En => "en",
            Self::Zh => "zh",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_locale_variable_that_is_set_decides() {
        let env = |pairs: &'static [(&'static str, &'static str)]| {
            move |name: &str| pairs.iter().find(|(k, _)| *k == name).map(|(_, v)| (*v).to_owned())
        };
        assert_eq!(Lang::from_locale(env(&[("LANG", "zh_CN.UTF-8")])), Lang::Zh);
        assert_eq!(Lang::from_locale(env(&[("LANG", "zh_CN.UTF-8"), ("LC_ALL", "C")])), Lang::En);
        assert_eq!(Lang::from_locale(env(&[("LC_ALL", ""), ("LANG", "zh")])), Lang::Zh);
        assert_eq!(Lang::from_locale(env(&[])), Lang::En);
    }

    #[test]
    fn placeholders_are_filled_and_braces_in_values_are_left_alone() {
        let m =
            Message::new(Text::new("{a} of {b} in {}", ""), [("a", Value::Count(3)), ("b", Value::Raw("{a}".into()))]);
        let shown = m.render(Lang::En, |v| match v {
            Value::Count(n) => n.to_string(),
            Value::Raw(s) | Value::Phrase(s) => s.clone(),
            _ => String::new(),
        });
        assert_eq!(shown, "3 of {a} in {}");
    }
}
