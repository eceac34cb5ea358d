//! Names of keys, as a keymap writes them and the help shows them. Letters differ by case, as they do on the keyboard.

use std::fmt;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A key with what is held down beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    code: KeyCode,
    modifiers: KeyModifiers,
}

/// Keys that have a name, and what the footer writes for them.
const NAMED: &[(&str, KeyCode)] = &[
    ("enter", KeyCode::Enter),
    ("esc", KeyCode::Esc),
    ("tab", KeyCode::Tab),
    ("backtab", KeyCode::BackTab),
    ("space", KeyCode::Char(' ')),
    ("backspace", KeyCode::Backspace),
    ("delete", KeyCode::Delete),
    ("insert", KeyCode::Insert),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("pageup", KeyCode::PageUp),
    ("pagedown", KeyCode::PageDown),
];

impl Key {
    /// ctrl-c, which always quits.
    pub const CTRL_C: Self = Self { code: KeyCode::Char('c'), modifiers: KeyModifiers::CONTROL };

    /// The key of an event. A terminal may or may not say that shift was held for a character; the character itself does.
    pub fn of(event: KeyEvent) -> Self {
        let held = event.modifiers & (KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SHIFT);
        match event.code {
            KeyCode::Char(c) if held.contains(KeyModifiers::CONTROL) => {
                Self { code: KeyCode::Char(c.to_ascii_lowercase()), modifiers: held - KeyModifiers::SHIFT }
            }
            code @ (KeyCode::Char(_) | KeyCode::BackTab) => Self { code, modifiers: held - KeyModifiers::SHIFT },
            code => Self { code, modifiers: held },
        }
    }

    /// The character that the key types into a text, if it types one.
    pub fn typed(self) -> Option<char> {
        match self.code {
            KeyCode::Char(c) if self.modifiers.is_empty() => Some(c),
            _ => None,
        }
    }

    /// Whether it deletes the character before the cursor of a text.
    pub fn erases(self) -> bool {
        self.code == KeyCode::Backspace
    }

    /// Reads a name such as `G`, `ctrl-u` or `pagedown`.
    pub fn parse(name: &str) -> Option<Self> {
        let (mut modifiers, mut rest) = (KeyModifiers::NONE, name);
        for (prefix, modifier) in
            [("ctrl-", KeyModifiers::CONTROL), ("alt-", KeyModifiers::ALT), ("shift-", KeyModifiers::SHIFT)]
        {
            if let Some(tail) = rest.strip_prefix(prefix).filter(|tail| !tail.is_empty()) {
                (modifiers, rest) = (modifiers | modifier, tail);
            }
        }
        let named = NAMED.iter().find(|(known, _)| *known == rest).map(|(_, code)| *code);
        let function = || rest.strip_prefix('f')?.parse().ok().filter(|n| (1..=24).contains(n)).map(KeyCode::F);
        let character = || {
            let mut letters = rest.chars();
            let only = letters.next().filter(|c| letters.next().is_none() && !c.is_control())?;
            (!modifiers.contains(KeyModifiers::SHIFT)).then_some(KeyCode::Char(only))
        };
        let code = named.or_else(function).or_else(character)?;
        Some(Self::of(KeyEvent::new(code, modifiers)))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = [(KeyModifiers::CONTROL, "ctrl-"), (KeyModifiers::ALT, "alt-"), (KeyModifiers::SHIFT, "shift-")];
        for (modifier, name) in held {
            f.write_str(if self.modifiers.contains(modifier) { name } else { "" })?;
        }
        match (NAMED.iter().find(|(_, code)| *code == self.code), self.code) {
            (Some((name, _)), _) => f.write_str(name),
            (None, KeyCode::Char(c)) => write!(f, "{c}"),
            (None, KeyCode::F(n)) => write!(f, "f{n}"),
            (None, _) => f.write_str("?"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_written_as_it_is_read() {
        for name in
            ["G", "g", "ctrl-u", "-", "+", "ctrl--", "alt-x", "f12", "shift-left", "backtab", "space", "'", "核"]
        {
            assert_eq!(Key::parse(name).map(|key| key.to_string()).as_deref(), Some(name));
        }
        for bad in ["", "ctrl-", "hyper-x", "f0", "f99", "gg", "shift-g", "\u{1b}", "Enter"] {
            assert_eq!(Key::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn terminals_that_say_shift_and_those_that_do_not_agree() {
        let event = |code, modifiers| Key::of(KeyEvent::new(code, modifiers));
        assert_eq!(event(KeyCode::Char('G'), KeyModifiers::SHIFT), event(KeyCode::Char('G'), KeyModifiers::NONE));
        assert_eq!(event(KeyCode::Char('?'), KeyModifiers::SHIFT), event(KeyCode::Char('?'), KeyModifiers::NONE));
        assert_eq!(event(KeyCode::BackTab, KeyModifiers::SHIFT), event(KeyCode::BackTab, KeyModifiers::NONE));
        assert_ne!(event(KeyCode::Char('g'), KeyModifiers::NONE), event(KeyCode::Char('G'), KeyModifiers::NONE));
    }
}
