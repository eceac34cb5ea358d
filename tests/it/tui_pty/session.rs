//! A program on a terminal of its own, and the shell that started it.

use std::{
    io::{Read, Write},
    num::NonZeroU16,
    path::Path,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// How long a screen may take to come: the machine may be busy with other tests.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// A capture that every checkout has.
pub const SAMPLE: &str = "sample-traces/launch-bound-eager.json.gz";

/// A program on a terminal of its own.
pub struct Session {
    pub child: Box<dyn Child + Send + Sync>,
    pub master: Box<dyn MasterPty + Send>,
    pub keyboard: Box<dyn Write + Send>,
    pub screen: Arc<Mutex<vt100::Parser>>,
    pub raw: Arc<Mutex<Vec<u8>>>,
}

fn size(rows: u16, cols: u16) -> PtySize {
    PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }
}

impl Session {
    pub fn start(mut command: CommandBuilder) -> Self {
        let pty = native_pty_system().openpty(size(24, 80)).unwrap();
        command.env_clear();
        command.env("PATH", std::env::var("PATH").unwrap_or_default());
        command.env("TERM", "xterm-256color");
        command.env("LANG", "C.UTF-8");
        command.cwd(env!("CARGO_MANIFEST_DIR"));
        let child = pty.slave.spawn_command(command).unwrap();
        let mut reader = pty.master.try_clone_reader().unwrap();
        let keyboard = pty.master.take_writer().unwrap();
        let screen = Arc::new(Mutex::new(vt100::Parser::default()));
        let raw = Arc::new(Mutex::new(Vec::new()));
        let (seen, kept) = (Arc::clone(&screen), Arc::clone(&raw));
        std::thread::spawn(move || {
            let mut part = [0; 4096];
            while let Ok(n @ 1..) = reader.read(&mut part) {
                kept.lock().unwrap().extend_from_slice(&part[..n]);
                seen.lock().unwrap().process(&part[..n]);
            }
        });
        Self { child, master: pty.master, keyboard, screen, raw }
    }

    /// A shell that notes the terminal's modes, runs `strato view` and notes them again.
    pub fn view(notes: &Path, more: &str) -> Self {
        Self::strato_with(notes, &format!("view {more} {SAMPLE}"))
    }

    /// The same with other arguments.
    pub fn strato_with(notes: &Path, arguments: &str) -> Self {
        Self::strato_in("", notes, arguments)
    }

    /// The same with more variables, as a shell writes them before a command.
    pub fn strato_in(variables: &str, notes: &Path, arguments: &str) -> Self {
        let mut command = CommandBuilder::new("sh");
        let strato = env!("CARGO_BIN_EXE_strato");
        let notes = notes.display();
        let script = format!(
            "stty -g > {notes}/before; {variables} '{strato}' {arguments}; echo code $? >{notes}/code; stty -g > {notes}/after; echo back in the shell"
        );
        command.args(["-c", &script]);
        Self::start(command)
    }

    pub fn text(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    pub fn wait(&self, what: &str, seen: impl Fn(&str) -> bool) {
        let start = Instant::now();
        while !seen(&self.text()) {
            assert!(start.elapsed() < PATIENCE, "waited for {what} and saw:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn wait_for(&self, text: &str) {
        self.wait(text, |screen| screen.contains(text));
    }

    pub fn keys(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
        self.keyboard.flush().unwrap();
    }

    pub fn resize(&mut self, rows: u16, cols: u16) {
        self.master.resize(size(rows, cols)).unwrap();
        if let (Some(rows), Some(cols)) = (NonZeroU16::new(rows), NonZeroU16::new(cols)) {
            self.screen.lock().unwrap().screen_mut().set_size(rows, cols);
        }
    }

    pub fn raw(&self) -> String {
        String::from_utf8_lossy(&self.raw.lock().unwrap()).into_owned()
    }

    /// The `strato` that the shell started.
    pub fn strato(&self) -> String {
        let shell = self.child.process_id().unwrap();
        let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
        children.split_whitespace().next().unwrap().to_owned()
    }

    /// Waits for the shell, and checks that it has its terminal back.
    pub fn ends(mut self, notes: &Path, code: &str) {
        self.wait_for("back in the shell");
        self.child.wait().unwrap();
        let note = |name: &str| std::fs::read_to_string(notes.join(name)).unwrap().trim().to_owned();
        assert_eq!(note("code"), format!("code {code}"));
        assert_eq!(note("before"), note("after"), "modes of the terminal");
        let screen = self.screen.lock().unwrap();
        assert!(!screen.screen().alternate_screen() && !screen.screen().hide_cursor());
        assert_eq!(screen.screen().mouse_protocol_mode(), vt100::MouseProtocolMode::None);
    }
}
