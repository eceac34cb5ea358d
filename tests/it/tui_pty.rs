//! `strato view` on a real terminal: it starts, obeys keys and sizes, and whatever ends it, the shell finds its terminal as it
//! was.

mod session;

use crate::common::{
    self,
    pair::{Known, declaration, steady},
};
use std::{
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use self::session::{PATIENCE, SAMPLE, Session};
use model::{Category, Slice, TraceBuilder, TraceSink, TrackKey, TrackKind};
use portable_pty::CommandBuilder;

fn signal(name: &str, process: &str) {
    assert!(Command::new("kill").args([&format!("-{name}"), process]).status().unwrap().success());
}

/// Whether the kernel shows the process as stopped: `T` behind the name in brackets (proc_pid_stat(5)).
#[cfg(target_os = "linux")]
fn is_stopped(process: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    status.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
}

#[test]
fn keys_sizes_and_a_quiet_end() {
    let notes = tempfile::tempdir().unwrap();
    let mut session = Session::view(notes.path(), "");
    session.wait_for(" step takes ");
    assert!(session.screen.lock().unwrap().screen().alternate_screen());
    session.keys("2");
    session.wait_for("idle: why");
    session.keys("3");
    session.wait_for("in the timeline: stretch");
    session.keys("\r");
    session.wait_for("idle: why");
    // Everything at once, and sizes that no terminal should have.
    for (rows, cols) in [(60, 200), (3, 20), (1, 1), (0, 0), (24, 0), (50, 132), (2, 300), (24, 80)] {
        session.resize(rows, cols);
        std::thread::sleep(Duration::from_millis(30));
    }
    session.keys("?");
    session.wait_for("everywhere");
    session.keys("\u{1b}");
    session.wait("the help to go", |screen| !screen.contains("everywhere"));
    session.keys("q");
    session.ends(notes.path(), "0");
}

/// Both come at once wherever someone types while a window is pulled larger.
#[test]
fn a_key_that_comes_with_another_size_is_taken() {
    let notes = tempfile::tempdir().unwrap();
    let mut session = Session::view(notes.path(), "");
    session.wait_for(" step takes ");
    for turn in 0..10 {
        let (key, shown) = [("2", "idle: why"), ("3", "in the timeline: stretch")][turn % 2];
        session.resize(24 + (turn as u16 % 3), 90 + turn as u16);
        session.keys(key);
        session.wait_for(shown);
    }
    session.keys("q");
    session.ends(notes.path(), "0");
}

#[cfg(target_os = "linux")] // which lists the children of a process
/// "copied" was said inside tmux, whose buffer was empty: in its default settings it keeps the terminal's sequence for itself.
#[test]
fn inside_tmux_its_own_buffer_has_what_was_copied() {
    let notes = tempfile::tempdir().unwrap();
    let tmux = notes.path().join("tmux");
    let script = format!("#!/bin/sh\necho \"$@\" > '{0}/asked'\ncat > '{0}/buffer'\n", notes.path().display());
    std::fs::write(&tmux, script).unwrap();
    std::fs::set_permissions(&tmux, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let variables = format!("TMUX=/tmp/none,1,0 PATH='{}':\"$PATH\"", notes.path().display());
    let mut session = Session::strato_in(&variables, notes.path(), &format!("view {}", SAMPLE));
    session.resize(40, 120);
    session.wait_for("A decode step takes");
    session.keys("3y");
    session.wait_for("copied to tmux's buffer");
    let note = |name: &str| std::fs::read_to_string(notes.path().join(name)).unwrap();
    assert_eq!(note("asked").trim(), "load-buffer -w -");
    assert!(note("buffer").contains("RT-14"), "{}", note("buffer"));
    assert!(!session.raw().contains("\u{1b}]52;"));
    session.keys("q");
    session.ends(notes.path(), "0");
    // Elsewhere nobody answers, and that is said.
    let mut session = Session::view(notes.path(), "");
    session.resize(40, 120);
    session.wait_for("A decode step takes");
    session.keys("3y");
    session.wait_for("some terminals ignore it");
    assert!(session.raw().contains("\u{1b}]52;c;"));
    session.keys("q");
    session.ends(notes.path(), "0");
}

#[test]
fn signals_end_it_and_leave_the_terminal_as_it_was() {
    for (name, code) in [("TERM", "143"), ("HUP", "129"), ("INT", "130")] {
        let notes = tempfile::tempdir().unwrap();
        let session = Session::view(notes.path(), "");
        session.wait_for(" step takes ");
        let strato = session.strato();
        signal(name, &strato);
        session.ends(notes.path(), code);
    }
}

#[cfg(target_os = "linux")] // which lists the children of a process
#[test]
fn it_stops_and_goes_on() {
    let notes = tempfile::tempdir().unwrap();
    let mut session = Session::view(notes.path(), "--no-mouse");
    session.wait_for(" step takes ");
    let strato = session.strato();
    session.keys("\u{1a}");
    session.wait("the screen to be given back", |_| !session.screen.lock().unwrap().screen().alternate_screen());
    // The screen is given back before the stop; a signal to go on that came between the two would be lost.
    session.wait("a process that is stopped", |_| is_stopped(&strato));
    signal("CONT", &strato);
    session.wait_for(" step takes ");
    session.keys("q");
    let raw = session.raw();
    session.ends(notes.path(), "0");
    assert!(!raw.contains("\u{1b}[?1000h"), "the mouse was to be left alone");
}

#[test]
fn without_colour_nothing_is_coloured_and_the_selection_is_still_seen() {
    let notes = tempfile::tempdir().unwrap();
    let mut session = Session::view(notes.path(), "--color never");
    session.wait_for(" step takes ");
    session.keys("3");
    session.wait_for("in the timeline: stretch");
    let raw = session.raw();
    session.keys("q");
    session.ends(notes.path(), "0");
    assert!(raw.contains("\u{1b}[7m") && !raw.contains("\u{1b}[m"), "reverse is there and not taken back");
    for colour in ["\u{1b}[3", "\u{1b}[4", "[38;", "[48;"] {
        let coloured = raw.match_indices(colour).any(|(at, _)| {
            let code: String = raw[at + 2..].chars().take_while(|c| c.is_ascii_digit() || *c == ';').collect();
            !["3", "4", "39", "49", "39;49"].contains(&code.as_str()) && raw[at + 2 + code.len()..].starts_with('m')
        });
        assert!(!coloured, "{colour:?}");
    }
}

/// A run of many small steps, whose capture goes beside the notes.
fn tiny(notes: &Path, steps: u32, more: &str) -> Session {
    let capture = notes.join("run.strato");
    let run = format!("run --model tiny --prompt-len 4 --gen {steps} --threads 1 {more} -o '{}'", capture.display());
    Session::strato_with(notes, &run)
}

fn steps_in(notes: &Path) -> usize {
    let traces = store::load(&notes.join("run.strato")).unwrap();
    traces[0].manifest.value("workload.output_len").unwrap().parse().unwrap()
}

#[test]
fn a_run_shows_a_dashboard_and_opens_its_capture_in_place() {
    let notes = tempfile::tempdir().unwrap();
    let mut session = tiny(notes.path(), 300, "");
    session.wait_for("tokens/s");
    session.wait_for("over, the capture is there");
    for (rows, cols) in [(40, 120), (1, 1), (0, 0), (3, 20), (24, 80)] {
        session.resize(rows, cols);
        std::thread::sleep(Duration::from_millis(30));
    }
    session.keys("{");
    session.wait_for("shown: step");
    session.keys("o");
    session.wait_for(" step takes ");
    session.keys("q");
    session.ends(notes.path(), "0");
    // The prompt gives the first token.
    assert_eq!(steps_in(notes.path()), 299);
}

#[cfg(target_os = "linux")] // which lists the children of a process
#[test]
fn a_run_that_is_left_early_leaves_a_capture() {
    for (how, code) in [("q", "0"), ("TERM", "143")] {
        let notes = tempfile::tempdir().unwrap();
        let mut session = tiny(notes.path(), 20_000, "--tp 2");
        session.wait_for("Operators");
        session.wait("steps", |screen| screen.contains("/19999") && !screen.contains(" 0/19999"));
        match how {
            "q" => session.keys("q"),
            name => signal(name, &session.strato()),
        }
        session.ends(notes.path(), code);
        let steps = steps_in(notes.path());
        assert!((1..20_000).contains(&steps), "{steps}");
    }
}

#[test]
fn top_shows_this_machine_and_prints_lines_elsewhere() {
    let notes = tempfile::tempdir().unwrap();
    let mut session = Session::strato_with(notes.path(), "top --every 0.2 --metrics http://127.0.0.1:9/metrics");
    session.wait_for("cores busy");
    session.wait_for("running");
    session.keys("q");
    session.ends(notes.path(), "0");
    let output = Command::new(env!("CARGO_BIN_EXE_strato")).args(["top", "--count", "2", "--every", "0.1"]).output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.contains("cores busy"), "{said}");
}

#[test]
fn top_shows_what_a_device_tool_prints_and_ends_one_that_hangs() {
    let notes = tempfile::tempdir().unwrap();
    let row = "| 3     Ascend910           | OK            | 182.0       36                0    / 0             |";
    let table = format!(
        "+---+\n| npu-smi 24.1 Version: 24.1 |\n+---+\n\
         | NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|\n\
         | Chip  Phy-ID              | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |\n\
         +===+\n{row}\n\
         | 0     6                   | 0000:9D:00.0  | 7           0    / 0          57895/ 65536         |\n+---+"
    );
    let hangs = format!("echo $$ > '{}/hanging'; exec sleep 600", notes.path().display());
    for (name, script) in [("npu-smi", format!("cat <<'TABLE'\n{table}\nTABLE")), ("cnmon", hangs)] {
        let file = notes.path().join(name);
        std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let variables = format!("PATH='{}':\"$PATH\"", notes.path().display());
    let asked = "top --every 0.2 --tools npu-smi,cnmon,hy-smi --tools-every 0.2";
    let mut session = Session::strato_in(&variables, notes.path(), asked);
    session.resize(50, 160);
    session.wait_for("npu-smi  3.0  Ascend910");
    session.wait_for("182.0 W");
    session.wait_for("hy-smi is not in PATH");
    let hanging = || std::fs::read_to_string(notes.path().join("hanging")).unwrap_or_default();
    session.wait("the other tool to hang", |_| hanging().ends_with('\n'));
    let hanging = hanging();
    session.keys("q");
    session.ends(notes.path(), "0");
    let start = Instant::now();
    while Path::new("/proc").join(hanging.trim()).exists() {
        assert!(start.elapsed() < PATIENCE, "the tool outlives the program");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A capture whose diagnosis takes some seconds.
fn large(notes: &Path) -> String {
    let mut b = TraceBuilder::new("large", "large");
    let process = b.process(0);
    let names: Vec<_> = (0..40).map(|i| b.intern(&format!("void gemm_bf16_{i}_tn(Params)"))).collect();
    for stream in 0..8 {
        let kind = TrackKind::DeviceQueue;
        let track = b.track(TrackKey { kind, process, device: Some(0), context: None, id: stream });
        for i in 0..25_000 {
            let (start, name) = (i * 10_000 + stream * 900, names[(i * 7 + stream) as usize % names.len()]);
            let category = Category::Kernel;
            b.slice(Slice { track, start, dur: 8_000, name, category, correlation: None, detail: None });
        }
    }
    let file = notes.join("large.strato");
    store::save(&file, &[b.finish()]).unwrap();
    file.display().to_string()
}

#[test]
fn the_timeline_is_there_before_the_diagnosis_and_stays_when_it_comes() {
    let notes = tempfile::tempdir().unwrap();
    let file = large(notes.path());
    let early = |screen: &str| screen.contains("sing … ") && screen.contains("stream 7");
    let mut session = Session::strato_with(notes.path(), &format!("view '{file}'"));
    session.wait("the timeline", early);
    let began = Instant::now();
    session.keys("q");
    session.ends(notes.path(), "0");
    assert!(began.elapsed() < Duration::from_secs(5), "it waited for the diagnosis: {:?}", began.elapsed());

    let mut session = Session::strato_with(notes.path(), &format!("view '{file}'"));
    session.wait("the timeline", early);
    session.keys("++]]");
    session.wait_for("the diagnosis is done");
    session.wait("the steps", |screen| screen.contains("steps") && !screen.contains("Nothing marks steps"));
    session.keys("1");
    session.wait_for("Nothing marks steps");
    session.keys("q");
    session.ends(notes.path(), "0");
}

/// Not a test of its own: the next one runs it on a terminal, and says so by this variable.
#[test]
#[ignore = "run on a terminal by the test below"]
fn panics_while_it_has_the_terminal() {
    if std::env::var_os("STRATO_ON_A_TERMINAL").is_none() {
        return;
    }
    let mut screen = stratoscope::tui::terminal::Screen::take(true).unwrap();
    screen
        .draw(|frame| frame.buffer_mut().set_string(0, 0, "about to fail", ratatui::style::Style::default()))
        .unwrap();
    panic!("on purpose");
}

#[test]
fn a_panic_leaves_the_terminal_as_it_was_and_is_told() {
    let notes = tempfile::tempdir().unwrap();
    let here = std::env::current_exe().unwrap();
    let mut command = CommandBuilder::new("sh");
    let (here, place) = (here.display(), notes.path().display());
    let script = format!(
        "stty -g > {place}/before; STRATO_ON_A_TERMINAL=1 '{here}' --ignored --exact tui_pty::panics_while_it_has_the_terminal --nocapture; echo code $? >{place}/code; stty -g > {place}/after; echo back in the shell"
    );
    command.args(["-c", &script]);
    let session = Session::start(command);
    session.wait_for("on purpose");
    session.ends(notes.path(), "101");
}

#[test]
fn a_pipe_is_no_terminal_and_a_keymap_with_two_meanings_is_told() {
    let run = |arguments: &[&str]| {
        let output =
            Command::new(env!("CARGO_BIN_EXE_strato")).args(arguments).env("LANG", "C.UTF-8").output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    let (code, said) = run(&["view", SAMPLE]);
    assert_eq!(code, Some(2));
    assert!(said.contains("strato diagnose"), "{said}");
    let (code, keys) = run(&["view", "--print-keys"]);
    assert_eq!(code, Some(0));
    assert!(keys.contains("[timeline]"));
    let notes = tempfile::tempdir().unwrap();
    let file = notes.path().join("keys.toml");
    std::fs::write(&file, "[timeline]\nmark = [\"w\"]\n").unwrap();
    let session = Session::view(notes.path(), &format!("--keys '{}'", file.display()));
    session.wait_for("'w'");
    let told = session.text();
    assert!(told.contains("mark") && told.contains("zoom_in"), "{told}");
}

#[test]
fn two_captures_are_compared_panel_by_panel() {
    let notes = tempfile::tempdir().unwrap();
    let declared = notes.path().join("pair.toml");
    let files = steady();
    let captures = files.each_ref().map(|file| common::read(file));
    std::fs::write(&declared, declaration(captures.each_ref(), Known::Hard)).unwrap();
    let [a, b] = files.each_ref().map(|file| file.display());
    let view = format!("view '{a}' '{b}' --declare {}", declared.display());
    let mut session = Session::strato_with(notes.path(), &view);
    session.wait_for("The two ladders");
    for (key, seen) in [
        ("p", "add up to it exactly"),
        ("p", "on one side only"),
        ("\r", "followed"),
        ("p", "May the two be compared?"),
        ("p", "Readiness board"),
        ("p", "The two ladders"),
        ("1", " step takes "),
        ("9", "The two ladders"),
    ] {
        session.keys(key);
        session.wait_for(seen);
    }
    session.keys("q");
    session.ends(notes.path(), "0");
}
