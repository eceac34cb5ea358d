//! Colours, from what a terminal can show: 24 bits, 256 colours, 16, or none. Neither ratatui nor crossterm step down by
//! themselves. Without colour, bold, reverse and underline say what colour says elsewhere, and lanes are drawn with letters;
//! crossterm's own treatment of NO_COLOR would also take the reverse away, so it is switched off and ours used.

use std::collections::BTreeMap;

use ratatui::{
    buffer::Buffer,
    style::{Color, Modifier, Style},
};

use super::lane::Kind;
use diagnosis::{analysis::Layer, diagnose::Severity};

const THEMES: &str = include_str!("themes.toml");

/// How many colours a terminal shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// None.
    Mono,
    /// The 16 that have names.
    Sixteen,
    /// The 256 of xterm.
    Indexed,
    /// 24 bits.
    True,
}

impl Depth {
    /// What the variables `COLORTERM` and `TERM` promise of a terminal that is to be coloured.
    pub fn detect(get: impl Fn(&str) -> Option<String>) -> Self {
        let (colours, term) = (get("COLORTERM").unwrap_or_default(), get("TERM").unwrap_or_default());
        match (colours.as_str(), term.as_str()) {
            ("truecolor" | "24bit", _) => Self::True,
            (_, term) if term.ends_with("-direct") => Self::True,
            (_, "dumb" | "vt100" | "vt220") => Self::Mono,
            (_, "linux" | "xterm" | "xterm-color" | "ansi" | "cygwin" | "rxvt" | "screen") => Self::Sixteen,
            _ => Self::Indexed,
        }
    }
}

/// What a piece of the screen means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Text.
    Text,
    /// Text of less weight.
    Dim,
    /// Text of more weight.
    Strong,
    /// Titles and the names of columns.
    Title,
    /// The tab of the view that is seen.
    Tab,
    /// Names from the capture.
    Name,
    /// Keys in the footer and the help.
    Key,
    /// The row or slice that is selected.
    Selected,
    /// The slice that is selected, over whatever colour it has.
    Chosen,
    /// What was searched for.
    Match,
    /// Something worth a look.
    Warn,
    /// A kind of work, as marks on the background.
    Kind(Kind),
    /// The same, as the background of a label.
    Block(Kind),
    /// A layer.
    Layer(Layer),
    /// A severity.
    Severity(Severity),
}

/// One theme at the depth of one terminal.
#[derive(Clone, Debug)]
pub struct Theme {
    /// Its name.
    pub name: String,
    /// What the terminal shows.
    pub depth: Depth,
    colours: BTreeMap<String, Color>,
}

impl Theme {
    /// Names of the themes, the default first.
    pub const NAMES: [&str; 4] = ["dark", "light", "high-contrast", "blue-orange"];
    /// The name that stands for the theme that fits the background.
    pub const AUTO: &str = "auto";

    /// The theme for the background that the variable `COLORFGBG` tells, which rxvt, Konsole and others set to `foreground;background`:
    /// of the 16 colours, 0 to 6 and 8 are dark, as Vim reads it. Without it the background is taken for dark. The terminal
    /// itself is not asked: one that never answers would be waited for, and an answer over a slow line comes between the keys.
    pub fn of_background(get: impl Fn(&str) -> Option<String>) -> &'static str {
        let told = get("COLORFGBG").and_then(|both| both.rsplit(';').next()?.trim().parse::<u8>().ok());
        if matches!(told, Some(7 | 9..=15)) { "light" } else { Self::NAMES[0] }
    }

    /// The theme with this name; the default for a name that is none.
    pub fn new(name: &str, depth: Depth) -> Self {
        let name = Self::NAMES.into_iter().find(|known| *known == name).unwrap_or(Self::NAMES[0]);
        let all: BTreeMap<String, BTreeMap<String, String>> = toml::from_str(THEMES).unwrap_or_default();
        let entries = all.get(name).into_iter().flatten();
        let colours = entries.filter_map(|(slot, colour)| Some((slot.clone(), read(colour, depth)?))).collect();
        Self { name: name.to_owned(), depth, colours }
    }

    /// The theme after this one.
    pub fn next(&self) -> Self {
        let at = Self::NAMES.iter().position(|name| *name == self.name).unwrap_or(0);
        let next = Self::NAMES.get((at + 1) % Self::NAMES.len()).copied().unwrap_or(Self::NAMES[0]);
        Self::new(next, self.depth)
    }

    /// Whether there is no colour, so that letters and marks have to say everything.
    pub fn is_mono(&self) -> bool {
        self.depth == Depth::Mono
    }

    /// How a role looks.
    pub fn style(&self, role: Role) -> Style {
        if self.is_mono() { mono(role) } else { self.coloured(role) }
    }

    /// Gives cells without colours of their own those of the theme, where it does not leave them to the terminal.
    pub fn ground(&self, buf: &mut Buffer) {
        let Some(back) = self.colours.get("back").copied().filter(|_| !self.is_mono()) else { return };
        for cell in &mut buf.content {
            if cell.bg == Color::Reset {
                cell.bg = back;
            }
            if cell.fg == Color::Reset {
                cell.fg = self.colour("text");
            }
        }
    }

    fn coloured(&self, role: Role) -> Style {
        let fg = |slot: &str| Style::new().fg(self.colour(slot));
        match role {
            Role::Text => fg("text"),
            Role::Dim => fg("dim"),
            Role::Strong => fg("text").add_modifier(Modifier::BOLD),
            Role::Title => fg("accent").add_modifier(Modifier::BOLD),
            Role::Tab => fg("accent").add_modifier(Modifier::BOLD | Modifier::REVERSED),
            Role::Name | Role::Key => fg("accent"),
            Role::Selected => Style::new().bg(self.colour("selected")).add_modifier(Modifier::BOLD),
            Role::Chosen => Style::new().add_modifier(Modifier::REVERSED | Modifier::BOLD),
            Role::Match => fg("warn").add_modifier(Modifier::UNDERLINED),
            Role::Warn => fg("warn"),
            Role::Kind(kind) => fg(slot(kind)),
            Role::Block(kind) => {
                let back = self.colour(slot(kind));
                Style::new().bg(back).fg(if is_bright(back) { Color::Black } else { Color::White })
            }
            Role::Layer(layer) => fg(slot(Kind::of_layer(layer))),
            Role::Severity(severity) => match severity {
                Severity::Critical | Severity::High => fg("bad").add_modifier(Modifier::BOLD),
                Severity::Medium => fg("warn"),
                Severity::Low => fg("text"),
                Severity::Info => fg("dim"),
            },
        }
    }

    fn colour(&self, slot: &str) -> Color {
        self.colours.get(slot).copied().unwrap_or(Color::Reset)
    }
}

fn mono(role: Role) -> Style {
    let with = |modifier| Style::new().add_modifier(modifier);
    match role {
        Role::Text | Role::Name | Role::Kind(_) | Role::Layer(_) => Style::new(),
        Role::Dim => with(Modifier::DIM),
        Role::Strong | Role::Warn => with(Modifier::BOLD),
        Role::Title => with(Modifier::BOLD | Modifier::UNDERLINED),
        Role::Key => with(Modifier::BOLD),
        Role::Tab | Role::Selected | Role::Block(_) => with(Modifier::REVERSED),
        // Reverse is what wide slices are drawn with; reversed once more they would vanish.
        Role::Chosen => with(Modifier::REVERSED | Modifier::BOLD | Modifier::UNDERLINED),
        Role::Match => with(Modifier::UNDERLINED),
        Role::Severity(severity) if severity >= Severity::High => with(Modifier::BOLD),
        Role::Severity(_) => Style::new(),
    }
}

fn slot(kind: Kind) -> &'static str {
    match kind {
        Kind::Matrix => "matrix",
        Kind::Attention => "attention",
        Kind::Norm => "norm",
        Kind::Compute => "compute",
        Kind::Graph => "graph",
        Kind::Comm => "comm",
        Kind::Wait => "wait",
        Kind::Copy => "copy",
        Kind::Launch => "launch",
        Kind::Sync => "sync",
        Kind::Host => "host",
        Kind::Framework => "framework",
        Kind::Range => "range",
        Kind::Device => "device",
        Kind::Unknown => "unknown",
    }
}

/// Reads `#rrggbb name`, or `default`.
fn read(text: &str, depth: Depth) -> Option<Color> {
    if text == "default" {
        return Some(Color::Reset);
    }
    let (rgb, name) = text.split_once(' ')?;
    let code = u32::from_str_radix(rgb.strip_prefix('#')?, 16).ok()?;
    let [_, r, g, b] = code.to_be_bytes();
    match depth {
        Depth::Mono => Some(Color::Reset),
        Depth::Sixteen => name.parse().ok(),
        Depth::Indexed => Some(Color::Indexed(nearest([r, g, b]))),
        Depth::True => Some(Color::Rgb(r, g, b)),
    }
}

/// The nearest of xterm's 256 colours: its cube of 6×6×6 and its ramp of greys, which no terminal lets people change.
fn nearest(rgb: [u8; 3]) -> u8 {
    const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    let distance =
        |other: [u8; 3]| -> u32 { rgb.iter().zip(other).map(|(a, b)| u32::from(a.abs_diff(b)).pow(2)).sum() };
    let grey = |i: u8| 8 + 10 * i;
    let cube = (0..216u8).map(|i| {
        let step = |at: u8| STEPS.get(usize::from(at)).copied().unwrap_or(0);
        (16 + i, [step(i / 36), step(i / 6 % 6), step(i % 6)])
    });
    let greys = (0..24u8).map(|i| (232 + i, [grey(i); 3]));
    cube.chain(greys).min_by_key(|(_, colour)| distance(*colour)).map_or(7, |(index, _)| index)
}

/// Whether dark text reads better on it (luma of ITU-R BT.601).
fn is_bright(colour: Color) -> bool {
    match colour {
        Color::Rgb(r, g, b) => 299 * u32::from(r) + 587 * u32::from(g) + 114 * u32::from(b) > 128_000,
        Color::Indexed(index) => match index {
            16..232 => {
                let i = index - 16;
                2 * (i / 36) + 4 * (i / 6 % 6) + i % 6 > 15
            }
            232.. => index > 243,
            _ => index > 6 && index != 8,
        },
        Color::Blue | Color::Red | Color::Magenta | Color::DarkGray | Color::Black => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_theme_has_a_colour_for_everything_at_every_depth() {
        let all: BTreeMap<String, BTreeMap<String, String>> = toml::from_str(THEMES).unwrap();
        assert_eq!(all.len(), Theme::NAMES.len());
        let rest = ["text", "dim", "accent", "selected", "good", "warn", "bad"];
        for name in Theme::NAMES {
            let slots: Vec<&str> = Kind::ALL.into_iter().map(slot).chain(rest).collect();
            let own = all[name].keys().filter(|slot| *slot != "back").count();
            assert_eq!(own, slots.len(), "{name}");
            for depth in [Depth::Sixteen, Depth::Indexed, Depth::True] {
                let theme = Theme::new(name, depth);
                assert!(slots.iter().all(|slot| theme.colours.contains_key(*slot)), "{name} {depth:?}");
            }
        }
    }

    #[test]
    fn terminals_get_no_more_than_they_show() {
        let env = |colours: &'static str, term: &'static str| {
            Depth::detect(move |name| Some(if name == "TERM" { term } else { colours }.to_owned()))
        };
        assert_eq!(env("truecolor", "xterm"), Depth::True);
        assert_eq!(env("", "xterm-256color"), Depth::Indexed);
        assert_eq!(env("", "linux"), Depth::Sixteen);
        assert_eq!(env("", "dumb"), Depth::Mono);
        assert_eq!(nearest([255, 0, 0]), 196);
        assert_eq!(nearest([0x8b, 0x94, 0x9e]), 246);
        for name in Theme::NAMES {
            let mono = Theme::new(name, Depth::Mono);
            assert!(Kind::ALL.iter().all(|k| mono.style(Role::Block(*k)).fg.is_none()));
            assert!(mono.style(Role::Selected).add_modifier.contains(Modifier::REVERSED));
        }
    }

    #[test]
    fn the_background_decides_where_it_is_told() {
        let of = |told: Option<&'static str>| Theme::of_background(move |_| told.map(str::to_owned));
        for light in ["0;15", "0;default;15", "12;7", "0; 11"] {
            assert_eq!(of(Some(light)), "light", "{light}");
        }
        for dark in ["15;0", "7;8", "15;default", "", ";", "0;256", "15;-1", "0;16", "x"] {
            assert_eq!(of(Some(dark)), "dark", "{dark}");
        }
        assert_eq!(of(None), "dark");
    }

    #[test]
    fn themes_follow_one_another_round() {
        let mut theme = Theme::new("dark", Depth::True);
        for name in Theme::NAMES {
            assert_eq!(theme.name, name);
            theme = theme.next();
        }
        assert_eq!(theme.name, "dark");
    }
}
