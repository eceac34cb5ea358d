//! Commands with an argument, as they are typed after a colon: `:step 12` or `:12`, `:t 155.9ms` or `:155.9ms`, `:k flash`,
//! `:rule RT-03`, `:at step=3,lane=stream7`.

use super::{App, Request};
use crate::tui::{
    action::Action,
    at::{self, At},
    view::{Place, TIMELINE, rule},
};
use diagnosis::i18n::Text;

/// What a command asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Command {
    At(At),
    Kernel(String),
    Rule(String),
}

/// Commands with what they take and do, for the palette.
pub const COMMANDS: [(&str, Text); 5] = [
    ("step N", Text::new("go to step N; N alone does the same", "转到第 N 步；仅输入 N 亦可")),
    ("t TIME", Text::new("go to a time, such as 155.9ms", "转到某一时刻，如 155.9ms")),
    ("k NAME", Text::new("find slices by name", "按名称查找切片")),
    ("rule ID", Text::new("what a rule says", "规则说明")),
    ("at PLACE", Text::new("go to step=3,t=155.9ms,rank=0,lane=stream7", "转到 step=3,t=155.9ms,rank=0,lane=stream7")),
];

/// Reads a command; `None` for what is none.
fn parse(typed: &str) -> Option<Result<Command, String>> {
    let typed = typed.trim();
    let at = |at: At| Some(Ok(Command::At(at)));
    if let Ok(step) = typed.parse() {
        return at(At { step: Some(step), ..At::default() });
    }
    if let Some(t) = at::time(typed) {
        return at(At { t: Some(t), ..At::default() });
    }
    let (name, rest) = typed.split_once(' ')?;
    let rest = rest.trim();
    match name {
        _ if rest.is_empty() => None,
        "step" => Some(format!("step={rest}").parse().map(Command::At)),
        "t" => Some(format!("t={rest}").parse().map(Command::At)),
        "rank" => Some(format!("rank={rest}").parse().map(Command::At)),
        "at" => Some(rest.parse().map(Command::At)),
        "k" => Some(Ok(Command::Kernel(rest.to_owned()))),
        "rule" => Some(Ok(Command::Rule(rest.to_owned()))),
        _ => None,
    }
}

/// Whether what was typed is a command with its argument.
pub fn is_command(typed: &str) -> bool {
    parse(typed).is_some()
}

impl App {
    /// Carries out what was typed.
    pub(super) fn command(&mut self, typed: &str) -> Option<Request> {
        match parse(typed)? {
            Err(why) => self.chrome.message = Some(why),
            Ok(Command::At(at)) => self.go_to(&at),
            Ok(Command::Kernel(name)) => {
                self.search = name;
                let timeline = self.views.iter().position(|(action, _)| *action == TIMELINE)?;
                self.go(timeline);
                return self.act(Action::SearchNext);
            }
            Ok(Command::Rule(id)) => {
                let look = self.captures.look(self.capture);
                let width = usize::from(self.body.width);
                match rule::page(look.as_ref(), &id, width, self.chrome.lang) {
                    Some((title, lines)) => self.chrome.show(title, lines),
                    None => {
                        let none = Text::new("there is no rule", "没有规则").get(self.chrome.lang);
                        self.chrome.message = Some(format!("{none} {id}"));
                    }
                }
            }
        }
        None
    }

    /// Goes to a place in the timeline, or says what is not there.
    pub fn go_to(&mut self, at: &At) {
        let Some(look) = self.captures.look(self.capture) else { return };
        match at::find(at, &look, self.rank, self.chrome.lang) {
            Err(why) => self.chrome.message = Some(why),
            Ok((rank, place)) => {
                self.rank = rank;
                if place != (Place::Window { window: None, cursor: None, lane: None }) {
                    self.show(place);
                }
            }
        }
    }

    /// A command that opens this place again.
    pub(super) fn link(&self, at: &At) -> String {
        let paths = if self.chrome.start.paths.is_empty() { "FILE" } else { &self.chrome.start.paths };
        let place = at.to_string();
        // A shell reads a lane with a space as two words.
        let quoted = place.chars().any(|c| !(c.is_ascii_alphanumeric() || "=,.-_:".contains(c)));
        let place = if quoted { format!("'{}'", place.replace('\'', "'\\''")) } else { place };
        format!("strato view {paths} --at {place}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_short_and_names_of_actions_are_none() {
        let step = Some(Ok(Command::At(At { step: Some(12), ..At::default() })));
        assert_eq!((parse("12"), parse("step 12")), (step.clone(), step));
        let t = Some(Ok(Command::At(At { t: Some(155_900_000), ..At::default() })));
        assert_eq!((parse("155.9ms"), parse("t 155.9ms")), (t.clone(), t));
        assert!(parse("zoom").is_none() && parse("next step").is_none() && parse("k ").is_none());
        assert!(parse("step many").is_some_and(|read| read.is_err()));
    }
}
