//! Which key does what: defaults that come with the program, and a file of the user's over them. Whatever is wrong with that
//! file is named at the start, all of it at once; nothing is guessed.

use std::collections::{BTreeMap, HashMap};

use super::{
    action::{Action, Scope},
    key::Key,
};

/// The keys that come with the program, which are also their documentation.
pub const DEFAULTS: &str = include_str!("keys.toml");

/// A keymap that cannot be used, with everything that is wrong with it.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct KeymapError(pub Vec<String>);

/// Keys of every action.
#[derive(Clone, Debug, Default)]
pub struct Keymap {
    keys: HashMap<Action, Vec<Key>>,
}

type Tables = BTreeMap<String, BTreeMap<String, Vec<String>>>;

impl Keymap {
    /// The keys that come with the program, with those of `user` (TOML text of the same form) in their place.
    ///
    /// # Errors
    /// Everything that is wrong with the text: unknown actions and keys, and keys with two meanings.
    pub fn load(user: Option<&str>) -> Result<Self, KeymapError> {
        let mut map = Self::default();
        map.overlay(DEFAULTS)?;
        if let Some(user) = user {
            map.overlay(user)?;
        }
        let conflicts = map.conflicts();
        if conflicts.is_empty() { Ok(map) } else { Err(KeymapError(conflicts)) }
    }

    fn overlay(&mut self, text: &str) -> Result<(), KeymapError> {
        let tables: Tables = toml::from_str(text).map_err(|e| KeymapError(vec![e.to_string().trim().to_owned()]))?;
        let mut wrong = Vec::new();
        for (table, entries) in &tables {
            if !Scope::ALL.iter().any(|scope| scope.id() == table) {
                let known = Scope::ALL.map(Scope::id).join(", ");
                wrong.push(format!("unknown table [{table}]; the tables are {known}"));
                continue;
            }
            for (id, names) in entries {
                match Action::parse(id) {
                    Some(action) if action.scope().id() == table => {
                        let keys = names.iter().filter_map(|name| {
                            let key = Key::parse(name).filter(|key| *key != Key::CTRL_C);
                            if key.is_none() {
                                wrong.push(format!(
                                    "'{name}' cannot be a key of {id}; write one such as 'G' or 'ctrl-u'"
                                ));
                            }
                            key
                        });
                        self.keys.insert(action, keys.collect());
                    }
                    Some(action) => {
                        wrong.push(format!("{id} belongs to table [{}], not [{table}]", action.scope().id()))
                    }
                    None => wrong.push(format!("unknown action '{id}' in [{table}]; the help lists them all")),
                }
            }
        }
        if wrong.is_empty() { Ok(()) } else { Err(KeymapError(wrong)) }
    }

    /// Keys that mean two things at once.
    fn conflicts(&self) -> Vec<String> {
        let mut taken: HashMap<Key, Vec<Action>> = HashMap::new();
        let mut found = Vec::new();
        for action in Action::ALL {
            for key in self.keys(*action) {
                let others = taken.entry(*key).or_default();
                for other in others.iter().filter(|other| other.scope().meets(action.scope())) {
                    let (one, two) = (other.id(), action.id());
                    found.push(format!("key '{key}' means both {one} and {two}; give one of them another key"));
                }
                others.push(*action);
            }
        }
        found
    }

    /// Keys of an action, the one to show first.
    pub fn keys(&self, action: Action) -> &[Key] {
        self.keys.get(&action).map_or(&[], Vec::as_slice)
    }

    /// What a key does in a view whose own actions lie in `scope`.
    pub fn action(&self, key: Key, scope: Scope) -> Option<Action> {
        if key == Key::CTRL_C {
            return Some(Action::Quit);
        }
        let active = |action: &Action| action.scope().meets(scope);
        Action::ALL.iter().copied().filter(active).find(|action| self.keys(*action).contains(&key))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn refusal(user: &str) -> String {
        Keymap::load(Some(user)).expect_err("refused").to_string()
    }

    #[test]
    fn every_action_has_a_key_that_leads_to_it() {
        let map = Keymap::load(None).unwrap();
        for action in Action::ALL {
            let key = map.keys(*action).first().unwrap_or_else(|| panic!("{} has no key", action.id()));
            assert_eq!(map.action(*key, action.scope()), Some(*action), "{key}");
        }
    }

    #[test]
    fn a_user_changes_only_what_the_file_names() {
        let map = Keymap::load(Some("[timeline]\nzoom_in = [\"z\"]\n[global]\nquit = []\n")).unwrap();
        let key = |name| Key::parse(name).unwrap();
        assert_eq!(map.action(key("z"), Scope::Timeline), Some(Action::ZoomIn));
        assert_eq!(map.action(key("+"), Scope::Timeline), None);
        assert_eq!(map.action(key("q"), Scope::Timeline), None);
        assert_eq!(map.action(Key::CTRL_C, Scope::List), Some(Action::Quit));
        assert_eq!(map.action(key("j"), Scope::List), Some(Action::Down));
    }

    #[test]
    fn what_is_wrong_is_named_and_all_of_it() {
        let both = refusal("[global]\nquit = [\"n\"]\n");
        assert!(both.contains("'n'") && both.contains("quit") && both.contains("search_next"), "{both}");
        let two = refusal("[list]\nsort = [\"hyper-x\"]\nfly = [\"f\"]\n[lists]\n");
        assert!(two.contains("hyper-x") && two.contains("fly") && two.contains("[lists]"), "{two}");
        assert!(refusal("[global]\nzoom_in = [\"z\"]").contains("[timeline]"));
        assert!(refusal("[global]\nback = [\"ctrl-c\"]").contains("ctrl-c"));
        assert!(refusal("[global").contains("expected"));
    }

    #[test]
    fn keys_of_views_that_are_never_active_together_may_agree() {
        let map = Keymap::load(None).unwrap();
        let s = Key::parse("s").unwrap();
        assert_eq!(map.action(s, Scope::List), Some(Action::Sort));
        assert_eq!(map.action(s, Scope::Timeline), Some(Action::ZoomOut));
    }
}
