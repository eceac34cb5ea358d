//! Options of every subcommand with an interface in the terminal: colours, letters, mouse and keys.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::{Global, exit::Usage};
use crate::tui::{
    Keymap, Settings,
    theme::{Depth, Theme},
};

/// How the interface looks and is used.
#[derive(Debug, clap::Args)]
pub struct Interface {
    /// Colours of the interface; without colour (--color never, NO_COLOR) letters and marks say the same.
    #[arg(long, value_name = "NAME", default_value = Theme::NAMES[0], value_parser = Theme::NAMES)]
    theme: String,
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
        Ok(Settings {
            lang: global.lang(),
            theme: self.theme.clone(),
            depth: if global.paints(&io::stdout()) { Depth::detect(variable) } else { Depth::Mono },
            ascii: self.ascii || !is_utf8(variable),
            mouse: !self.no_mouse,
            keymap: keymap(self.keys.as_deref())?,
        })
    }
}

/// Whether the locale says that the terminal shows UTF-8. A locale that says nothing is that of a bare environment, whose
/// terminal most likely does.
fn is_utf8(variable: impl Fn(&str) -> Option<String>) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| variable(name).filter(|v| !v.is_empty()));
    locale.is_none_or(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// The keys of the program, with those of the file that was named, or else of the user's own, before them.
fn keymap(named: Option<&Path>) -> anyhow::Result<Keymap> {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config"));
    let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).or_else(home);
    let own = config.map(|config| config.join("stratoscope/keys.toml"));
    let Some(path) = named.map(Path::to_owned).or(own.filter(|path| path.is_file())) else {
        return Ok(Keymap::load(None)?);
    };
    let refused = |what: String| Usage(format!("keymap '{}': {what}", path.display()));
    let text = std::fs::read_to_string(&path).map_err(|e| refused(format!("{e}; name a TOML file of keys")))?;
    Ok(Keymap::load(Some(&text)).map_err(|e| refused(e.to_string()))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_locale_that_counts_decides_what_is_drawn_with() {
        let env = |pairs: &'static [(&'static str, &'static str)]| {
            is_utf8(move |name| pairs.iter().find(|(k, _)| *k == name).map(|(_, v)| (*v).to_owned()))
        };
        assert!(env(&[("LANG", "de_DE.UTF-8")]) && env(&[("LC_ALL", ""), ("LANG", "zh_CN.utf8")]) && env(&[]));
        assert!(!env(&[("LANG", "C.UTF-8"), ("LC_ALL", "C")]) && !env(&[("LC_CTYPE", "POSIX")]));
    }
}
