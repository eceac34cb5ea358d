//! `strato record -- CMD`: a command under its vendor's profiler, with its devices and this machine looked at meanwhile, as one
//! capture.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    time::Duration,
};

use clap::builder::PossibleValuesParser;
use collectors::record::{
    self, Profiler,
    command::{self, End},
};
use model::{Provenance, Trace};
use session::Session;

use super::{
    Global, Lang,
    exit::{Exit, Usage},
    progress::Bar,
    results, say, target,
};
use diagnosis::{i18n::Text, platform::Packs};
use store::{self, Results};

mod beside;
mod choose;
mod room;
mod supervise;

use beside::Beside;
use room::Room;
use supervise::Ran;

/// Run a command under its vendor's profiler and leave a capture of it.
///
/// The command has this program's streams and gives it its exit code. Ctrl-c ends the command; what was recorded until then
/// becomes the capture.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Capture file to write; an earlier capture file of that name is replaced.
    #[arg(short, long, value_name = "FILE", required_unless_present = "inside")]
    output: Option<PathBuf>,
    /// Profiler [default: the one in PATH].
    #[arg(long, value_name = "NAME",
        value_parser = PossibleValuesParser::new(record::REGISTRY.iter().map(|profiler| profiler.id)))]
    profiler: Option<String>,
    /// Of nsys: whether a replayed graph is told kernel by kernel or as a whole, which makes it less long [default: node].
    #[arg(long, value_name = "WHAT", value_parser = ["node", "graph"])]
    cuda_graph_trace: Option<String>,
    /// Of msprof: how much of a task is told; l0 leaves out what each operator is and costs less [default: on].
    #[arg(long, value_name = "LEVEL", value_parser = ["on", "l1", "l0"])]
    task_time: Option<String>,
    /// Of rocprofv3: calls of HSA, RCCL and the rest too.
    #[arg(long)]
    sys_trace: bool,
    /// Of rocprofv3: the form of its files [default: csv].
    #[arg(long, value_name = "FORM", value_parser = ["csv", "json"])]
    output_format: Option<String>,
    /// A flag of the profiler, in place of strato's of that name or beside them, as in --flag=--delay=30 (may be given several
    /// times).
    #[arg(long, value_name = "FLAG", allow_hyphen_values = true)]
    flag: Vec<OsString>,
    /// Leave what the profiler wrote in this directory, which must be new or empty.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Device tools to ask meanwhile, with commas between them, such as nvidia-smi; 'none' asks none [default: those in PATH].
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    tools: Vec<String>,
    /// Print nothing but errors.
    #[arg(short, long)]
    quiet: bool,
    /// Be the process between the profiler and the command.
    #[arg(long, hide = true, value_name = "NOTE")]
    inside: Option<PathBuf>,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

pub(super) fn run(global: &Global, arguments: Arguments) -> anyhow::Result<Exit> {
    if let Some(note) = &arguments.inside {
        let end = command::run(&arguments.command, note).map_err(|error| {
            Usage(format!(
                "cannot note how the command ends in '{}': {error}; --inside is strato's own",
                note.display()
            ))
        })?;
        return Ok(Exit::Command(end.code()));
    }
    let output = arguments.output.clone().unwrap_or_default();
    target::check(&output, &[])?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    check(&arguments.command, &path)?;
    let (profiler, program) = choose::choose(arguments.profiler.as_deref(), &path)?;
    let asked = asked(&arguments, profiler)?;
    let tools = super::devices::tools(&arguments.tools)?;
    // From here on a signal ends what was begun, and leaves nothing of it.
    let signals = supervise::signals(profiler)?;
    let room = Room::make(&output, arguments.keep.as_deref())?;
    let line = profiler.arguments(room.reports(), &asked, &inside(&room, &arguments.command)?);
    // What is not kept is not shown either: a terminal is recorded as well.
    let shown = model::secret::kept(&shown(&program, &line));
    let told = |text: String| {
        if !arguments.quiet {
            say(&format!("strato: {text}"));
        }
    };
    for left in Room::left(&output) {
        told(format!(
            "a recording that was killed left '{0}'; 'strato import {0} -o FILE.strato' reads it",
            left.display()
        ));
    }
    told(shown.clone());
    let unix_offset = profiler.stamps.unix_offset();
    let beside = Beside::start(tools, profiler.devices)
        .map_err(|error| Usage(format!("cannot look at the devices meanwhile: {error}; end other programs")))?;
    let ran = supervise::run(profiler, &program, &line, &room, signals, global.lang(), &told);
    let telemetry = beside.finish();
    let ran = ran?;
    let recorded = import(profiler, &room, unix_offset, &ran).and_then(|mut traces| {
        for trace in &mut traces {
            telemetry.add_to(trace);
            trace.manifest.set("record.command", &*shown, Provenance::Observed);
            trace.manifest.set(
                "record.ended",
                ran.end.map_or_else(unknown, |end| end.to_string()),
                Provenance::Observed,
            );
        }
        save(&output, &traces)?;
        Ok(traces)
    });
    let code = ran.end.map_or(0, End::code);
    match recorded {
        Ok(traces) => {
            let slices: usize = traces.iter().map(Trace::slice_count).sum();
            told(written(global.lang(), &output, slices, ran.end));
            ran.ended.follow();
            Ok(Exit::Command(code))
        }
        Err(error) => {
            let error = room.explain(profiler, error);
            // What the command ended with is the answer to whoever waits for it; why there is no capture is said beside it.
            if code == 0 {
                return Err(error);
            }
            say(&format!("strato: {error}"));
            Ok(Exit::Command(code))
        }
    }
}

fn unknown() -> String {
    "unknown: whoever waited for the command was ended".to_owned()
}

/// Refuses a command that is none before a profiler is started for it.
fn check(command: &[OsString], path: &OsStr) -> Result<(), Usage> {
    let Some(program) = command.first() else { return Ok(()) };
    let is_path = Path::new(program).components().count() > 1;
    let found = if is_path {
        collectors::program::is_program(Path::new(program))
    } else {
        collectors::program::find(program, path).is_some()
    };
    if found {
        return Ok(());
    }
    let place = if is_path { "at that place" } else { "in PATH" };
    Err(Usage(format!("there is no program '{}' {place}; name one behind --", program.display())))
}

/// The flags that were asked for, by options of their own or as they are.
fn asked(arguments: &Arguments, profiler: &Profiler) -> Result<Vec<OsString>, Usage> {
    let value = |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("--{name}={value}"));
    let own = [
        ("nsys", value("cuda-graph-trace", &arguments.cuda_graph_trace)),
        ("msprof", value("task-time", &arguments.task_time)),
        ("rocprofv3", arguments.sys_trace.then(|| "--sys-trace".to_owned())),
        ("rocprofv3", value("output-format", &arguments.output_format)),
    ];
    let mut asked = Vec::new();
    for (of, flag) in own {
        let Some(flag) = flag else { continue };
        if of != profiler.id {
            let id = profiler.id;
            return Err(Usage(format!("{flag} is for {of}, and {id} is to run; leave it out, or add --profiler {of}")));
        }
        asked.push(flag.into());
    }
    asked.extend(arguments.flag.iter().cloned());
    Ok(asked)
}

/// The command as the profiler gets it: this program, which runs it and notes its end.
fn inside(room: &Room, command: &[OsString]) -> Result<Vec<OsString>, Usage> {
    let own = std::env::current_exe();
    let own = own.map_err(|error| {
        Usage(format!("cannot find this program to run the command: {error}; start it by its path"))
    })?;
    let words =
        [own.into_os_string(), "record".into(), "--inside".into(), room.note().as_os_str().to_owned(), "--".into()];
    Ok(words.into_iter().chain(command.iter().cloned()).collect())
}

/// A line as a shell takes it.
fn shown(program: &Path, line: &[OsString]) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_=./,:+@%".contains(c);
    let word = |word: &OsStr| {
        let text = word.to_string_lossy();
        if !text.is_empty() && text.chars().all(plain) {
            text.into_owned()
        } else {
            format!("'{}'", text.replace('\'', r"'\''"))
        }
    };
    std::iter::once(program.as_os_str())
        .chain(line.iter().map(OsString::as_os_str))
        .map(word)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Reads what the profiler wrote.
fn import(profiler: &Profiler, room: &Room, unix_offset: Option<i64>, ran: &Ran) -> anyhow::Result<Vec<Trace>> {
    if let Some(failure) = ran.failure(profiler, room) {
        return Err(failure);
    }
    let _bar = Bar::new(Lang::En);
    let reading = session::Reading { unix_offset, ..session::Reading::default() };
    Ok(Session::open(&[room.reports().to_owned()], &reading)?.into_captures())
}

fn save(output: &Path, traces: &[Trace]) -> anyhow::Result<()> {
    let packs = Packs::embedded()?;
    let named: Vec<Results> =
        traces.iter().map(|trace| Results { ops: results::ops(trace, &packs), ..Results::default() }).collect();
    store::save_results(output, &traces.iter().zip(&named).collect::<Vec<_>>())?;
    Ok(())
}

fn written(lang: Lang, output: &Path, slices: usize, end: Option<End>) -> String {
    let text = Text::new(
        "wrote {file} ({slices} slices); the command ended with {end}",
        "已写入 {file}（{slices} 个切片）；命令结束：{end}",
    );
    let end = match (end, lang) {
        (Some(end), Lang::En) => end.to_string(),
        (Some(End::Exit(code)), Lang::Zh) => format!("退出码 {code}"),
        (Some(End::Signal(signal)), Lang::Zh) => format!("信号 {signal}"),
        (None, Lang::En) => "nobody knows what".to_owned(),
        (None, Lang::Zh) => "未知".to_owned(),
    };
    let filled = text.get(lang).replace("{file}", &output.display().to_string());
    filled.replace("{slices}", &slices.to_string()).replace("{end}", &end)
}

/// Between two looks whether the profiler has ended.
const LOOK: Duration = Duration::from_millis(20);
