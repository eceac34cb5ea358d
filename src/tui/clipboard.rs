//! Copies text to where a person pastes from, and says where that is. Inside tmux its own command takes the text, because tmux keeps
//! the terminal's sequence for itself in its default settings; elsewhere the terminal is asked (OSC 52), which also works over SSH
//! and needs no library. Nobody answers to that, so that it can only be said that it was asked.

use std::{
    io::{self, Write},
    process::{Command, Stdio},
};

use diagnosis::i18n::Text;

/// Bytes that are copied at most: xterm takes about 100 kB of base64, and a row is far shorter.
const MOST: usize = 64 * 1024;

/// Where a text went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Went {
    /// Into tmux's buffer.
    Tmux,
    /// To the terminal, which may take it or not.
    Asked,
}

impl Went {
    /// What is said of it.
    pub fn text(self) -> Text {
        match self {
            Self::Tmux => Text::new(
                "copied to tmux's buffer and, where tmux may, to the clipboard",
                "已复制到 tmux 缓冲区；若 tmux 允许，也已复制到剪贴板",
            ),
            Self::Asked => Text::new(
                "sent to the terminal's clipboard (OSC 52; some terminals ignore it)",
                "已发送到终端剪贴板（OSC 52，部分终端会忽略）",
            ),
        }
    }
}

/// Copies `text`: to tmux where `tmux` says that it runs, else to the terminal.
///
/// # Errors
/// Those of the terminal.
pub fn copy(out: &mut impl Write, text: &str, tmux: bool) -> io::Result<Went> {
    let cut = &text[..text.floor_char_boundary(MOST)];
    // What tmux refuses, the terminal may take.
    if tmux && load_buffer(cut).is_ok_and(|taken| taken) {
        return Ok(Went::Tmux);
    }
    write!(out, "\u{1b}]52;c;{}\u{1b}\\", base64(cut.as_bytes()))?;
    out.flush()?;
    Ok(Went::Asked)
}

/// Whether the program runs inside tmux.
pub fn is_in_tmux() -> bool {
    std::env::var_os("TMUX").is_some_and(|socket| !socket.is_empty())
}

/// Gives a text to tmux; whether it took it.
fn load_buffer(text: &str) -> io::Result<bool> {
    let mut command = Command::new("tmux");
    command.args(["load-buffer", "-w", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let written = child.stdin.take().map_or(Ok(()), |mut input| input.write_all(text.as_bytes()));
    Ok(child.wait()?.success() && written.is_ok())
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for part in bytes.chunks(3) {
        let bits = part.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - part.len()));
        for i in 0..4 {
            let letter = LETTERS.get((bits >> (18 - 6 * i)) as usize & 63).copied().unwrap_or(b'=');
            out.push(if i <= part.len() { char::from(letter) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn base64_as_rfc_4648_has_it() {
        let cases = [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy"), ("核", "5qC4")];
        for (text, coded) in cases {
            assert_eq!(base64(text.as_bytes()), coded);
        }
    }

    #[test]
    fn a_hostile_text_cannot_leave_the_sequence() {
        let mut out = Vec::new();
        copy(&mut out, &"\u{1b}\\\u{7}核".repeat(100_000), false).unwrap();
        let inside = &out[7..out.len() - 2];
        assert!(inside.iter().all(u8::is_ascii_graphic) && out.len() < 2 * MOST);
    }
}
