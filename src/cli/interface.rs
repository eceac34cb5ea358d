//! Options of every subcommand with an interface in the terminal: colours, letters, mouse and keys.

use std::{
    io,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use super::{Global, exit::Usage};
use crate::tui::{
    Keymap, Settings,
    at::Start,
    theme::{Depth, Theme},
};

/// How the interface looks and is used.
#[derive(Debug, clap::Args)]
pub struct Interface {
    /// Colours of the interface [default: of interface.toml in the configuration directory, else auto].
    ///
    /// auto is light where the variable COLORFGBG tells of a light background, else dark; the terminal is not asked. Without
    /// colour (--color never, NO_COLOR) letters and marks say the same.
    #[arg(long, value_name = "NAME", env = "STRATO_THEME", hide_env_values = true, value_parser = themes())]
    theme: Option<String>,
    /// Draw with ASCII only [default: where the locale is not UTF-8].
    #[arg(long)]
    ascii: bool,
    /// Leave the mouse to the terminal.
    #[arg(long)]
    no_mouse: bool,
    /// Keymap whose keys go before those of the program [default: keys.toml in the configuration directory].
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,
}

impl Interface {
    /// The settings of this terminal.
    ///
    /// # Errors
    /// A keymap that cannot be used.
    pub fn settings(&self, global: &Global) -> anyhow::Result<Settings> {
        let variable = |name: &str| std::env::var(name).ok();
        let own = Own::read(configured("interface.toml").as_deref())?;
        let theme = self.theme.clone().or(own.theme).filter(|theme| theme != Theme::AUTO);
        Ok(Settings {
            lang: global.lang(),
            theme: theme.unwrap_or_else(|| Theme::of_background(variable).to_owned()),
            depth: if global.paints(&io::stdout()) { Depth::detect(variable) } else { Depth::Mono },
            ascii: self.ascii || own.ascii.unwrap_or_else(|| !is_utf8(variable)),
            mouse: !self.no_mouse && own.mouse.unwrap_or(true),
            keymap: keymap(self.keys.as_deref())?,
            start: Start::default(),
        })
    }
}

/// Names that `--theme` takes.
fn themes() -> Vec<&'static str> {
    [Theme::AUTO].into_iter().chain(Theme::NAMES).collect()
}

/// What a user wants of every interface, in `interface.toml`; options and variables go before it.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    theme: Option<String>,
    ascii: Option<bool>,
    mouse: Option<bool>,
}

impl Own {
    /// Reads the file, where there is one.
    fn read(path: Option<&Path>) -> Result<Self, Usage> {
        let Some(path) = path else { return Ok(Self::default()) };
        let refused = |what: String| Usage(format!("'{}': {}", path.display(), what.trim()));
        let text =
            input::text(path, input::BY_HAND).map_err(|e| refused(format!("{e}; it holds theme, ascii and mouse")))?;
        let own: Self = toml::from_str(&text).map_err(|e| refused(e.to_string()))?;
        match own.theme.as_deref().filter(|theme| !themes().contains(theme)) {
            Some(theme) => Err(refused(format!("'{theme}' is no theme; the themes are {}", themes().join(", ")))),
            None => Ok(own),
        }
    }
}

/// A file of the user's configuration directory, if it is there.
fn configured(name: &str) -> Option<PathBuf> {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config"));
    let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).or_else(home);
    config.map(|config| config.join("stratoscope").join(name)).filter(|path| path.is_file())
}

/// Whether the locale says that the terminal shows UTF-8. A locale that says nothing is that of a bare environment, whose
/// terminal most likely does.
pub(super) fn is_utf8(variable: impl Fn(&str) -> Option<String>) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| variable(name).filter(|v| !v.is_empty()));
    locale.is_none_or(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// The keys of the program, with those of the file that was named, or else of the user's own, before them.
fn keymap(named: Option<&Path>) -> anyhow::Result<Keymap> {
    let Some(path) = named.map(Path::to_owned).or_else(|| configured("keys.toml")) else {
        return Ok(Keymap::load(None)?);
    };
    let refused = |what: String| Usage(format!("keymap '{}': {what}", path.display()));
    let text = input::text(&path, input::BY_HAND).map_err(|e| refused(format!("{e}; name a TOML file of keys")))?;
    Ok(Keymap::load(Some(&text)).map_err(|e| refused(e.to_string()))?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn a_users_own_interface_is_read_and_what_is_wrong_with_it_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("interface.toml");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Own::read(Some(&path))
        };
        let own = Own { theme: Some("light".into()), ascii: None, mouse: Some(false) };
        assert_eq!(read("theme = \"light\"\nmouse = false\n").unwrap(), own);
        for (text, named) in [("theme = \"pink\"", "'pink'"), ("colour = 1", "colour"), ("theme = 3", "theme")] {
            let refusal = read(text).expect_err("refused").0;
            assert!(refusal.contains(named) && refusal.contains("interface.toml"), "{refusal}");
        }
        assert_eq!(Own::read(None).unwrap(), Own::default());
    }

    #[test]
    fn the_locale_that_counts_decides_what_is_drawn_with() {
        let env = |pairs: &'static [(&'static str, &'static str)]| {
            is_utf8(move |name| pairs.iter().find(|(k, _)| *k == name).map(|(_, v)| (*v).to_owned()))
        };
        assert!(env(&[("LANG", "de_DE.UTF-8")]) && env(&[("LC_ALL", ""), ("LANG", "zh_CN.utf8")]) && env(&[]));
        assert!(!env(&[("LANG", "C.UTF-8"), ("LC_ALL", "C")]) && !env(&[("LC_CTYPE", "POSIX")]));
    }
}
