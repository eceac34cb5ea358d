//! `strato verify`: whether capture files are what was written.

use std::{
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
};

use serde_json::{Value as Json, json};

use super::{Global, exit::Exit, output::Output, terminal_text::plain};
use diagnosis::i18n::{Lang, Message, Text, Value};
use report::{phrase, screen::canvas};
use store::{self, Fault, Verification};

/// Say whether capture files are what was written, and what of a damaged one is lost.
///
/// Every page is held against the seal that the file ends with; then SQLite looks for what is broken, and rows and columns are held
/// against each other. A file from before capture files were sealed cannot be verified: its bytes may be others.
///
/// Exit code: 0 all files are sound, 1 one of them has no seal, 3 one of them is damaged or cannot be read.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Capture files.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Write a JSON array with one object per file.
    #[arg(long)]
    json: bool,
}

/// How a file stands, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    Sound,
    NotSealed,
    Damaged,
    Unreadable,
}

pub(super) fn run(global: &Global, arguments: &Arguments) -> anyhow::Result<Exit> {
    let lang = global.lang();
    let (mut worst, mut entries) = (Standing::Sound, Vec::new());
    let (terminal, width) = (io::stdout().is_terminal(), global.look().columns().saturating_sub(2));
    let mut out = io::stdout().lock();
    for file in &arguments.files {
        let found = store::verify(file);
        let standing = standing(&found);
        worst = worst.max(standing);
        let lines = lines(&found, standing, lang);
        if arguments.json {
            entries.push(entry(file, &found, standing, &lines));
        } else {
            for (i, line) in lines.iter().enumerate() {
                let line = if i == 0 { format!("{}: {line}", file.display()) } else { format!("  {line}") };
                let line = plain(&line).into_owned();
                // A terminal would break a line inside a word.
                let lines = if terminal { canvas::wrap(&line, width) } else { vec![line] };
                for (n, line) in lines.iter().enumerate() {
                    writeln!(out, "{}{line}", if terminal && i + n > 0 { "  " } else { "" })?;
                }
            }
        }
    }
    drop(out);
    if arguments.json {
        global.print(&Output::Data(format!("{:#}\n", Json::Array(entries))))?;
    }
    Ok(match worst {
        Standing::Sound => Exit::Done,
        Standing::NotSealed => Exit::Findings,
        Standing::Damaged | Standing::Unreadable => Exit::Partly,
    })
}

fn standing(found: &Result<Verification, store::Error>) -> Standing {
    match found {
        Err(_) => Standing::Unreadable,
        Ok(found) if !found.faults.is_empty() => Standing::Damaged,
        Ok(found) if !found.sealed => Standing::NotSealed,
        Ok(_) => Standing::Sound,
    }
}

/// What is said of a file: how it stands, then each fault.
fn lines(found: &Result<Verification, store::Error>, standing: Standing, lang: Lang) -> Vec<String> {
    let found = match found {
        Ok(found) => found,
        Err(e) => return vec![e.to_string()],
    };
    let first = match standing {
        Standing::Sound => Text::new(
            "sound: {pages} pages are what was written; rows and columns agree (captures: {captures}, slices: {slices})",
            "完好：{pages} 页与写入时一致；行与列一致（采集：{captures}，切片：{slices}）",
        ),
        Standing::NotSealed => Text::new(
            "not sealed: cannot be verified. It was written before capture files were sealed (schema version {version}); nothing in \
             it contradicts itself. To have it sealed, import it into a new file",
            "没有封印：无法校验。写入它时采集文件还没有封印（结构版本 {version}）；其中没有自相矛盾之处。要加封印，请把它导入到新文件",
        ),
        Standing::Damaged | Standing::Unreadable => Text::new("damaged", "已损坏"),
    };
    let args = [
        ("pages", found.pages.0),
        ("captures", found.captures),
        ("slices", found.slices),
        ("version", u64::from(found.version.unwrap_or(0))),
    ];
    let first = Message::new(first, args.map(|(name, n)| (name, Value::Count(n))));
    let messages = std::iter::once(first).chain(found.faults.iter().map(|fault| told(fault, found)));
    messages.map(|message| phrase::plain(&message, lang)).collect()
}

fn told(fault: &Fault, found: &Verification) -> Message {
    let raw = |text: &dyn ToString| Value::Raw(text.to_string());
    match fault {
        Fault::Closed(e) => {
            let what = if let store::Error::Altered { what, .. } = e { what.clone() } else { e.to_string() };
            Message::new(
                Text::new(
                    "it cannot be opened: {what}; everything in it is lost",
                    "无法打开：{what}；其中的一切都已丢失",
                ),
                [("what", Value::Raw(what))],
            )
        }
        Fault::Pages { count, first } => Message::new(
            Text::new(
                "{count} of {of} pages are not what was written; the first is page {first}",
                "{of} 页中有 {count} 页与写入时不一致，第一个是第 {first} 页",
            ),
            [("count", *count), ("of", found.pages.0), ("first", *first)].map(|(name, n)| (name, Value::Count(n))),
        ),
        Fault::Table(table) => Message::new(
            Text::new("table '{table}' is damaged: {lost}", "表 '{table}' 已损坏：{lost}"),
            [("table", raw(table)), ("lost", Value::Text(lost(table)))],
        ),
        Fault::Unused => {
            Message::new(Text::new("they belong to no table: nothing is lost", "它们不属于任何表：没有丢失内容"), [])
        }
        Fault::Structure(said) => Message::new(
            Text::new("SQLite finds it broken: {said}", "SQLite 发现它已损坏：{said}"),
            [("said", raw(said))],
        ),
        Fault::Unreadable(e) => Message::new(
            Text::new("its captures cannot be read: {what}", "无法读取其中的采集：{what}"),
            [("what", raw(e))],
        ),
        Fault::Differs { capture, track } => Message::new(
            Text::new(
                "rows and columns of track {track} of capture {capture} are not the same: 'strato sql' and reports differ",
                "采集 {capture} 的轨道 {track} 的行与列不一致：'strato sql' 与报告的结果不同",
            ),
            [("capture", Value::Count(*capture)), ("track", Value::Count(*track))],
        ),
        Fault::Stray(n) => Message::new(
            Text::new("{n} rows of table 'slice' belong to no track", "表 'slice' 中有 {n} 行不属于任何轨道"),
            [("n", Value::Count(*n))],
        ),
    }
}

/// What is lost with a table.
fn lost(table: &str) -> Text {
    match table {
        "sqlite_schema" => {
            Text::new("nothing can be read without it; everything is lost", "没有它什么都读不出；全部内容丢失")
        }
        "slice" => Text::new(
            "names and times of operations, for 'strato sql'; reports read them from 'lane_chunk'",
            "'strato sql' 读取的操作名称和时间；报告从 'lane_chunk' 读取它们",
        ),
        "lane_chunk" => Text::new(
            "names and times of operations, for reports and views; 'strato sql' reads them from 'slice'",
            "报告和界面读取的操作名称和时间；'strato sql' 从 'slice' 读取它们",
        ),
        "string" => Text::new("every name", "所有名称"),
        "capture" | "process" | "device" | "track" => {
            Text::new("where operations ran: reports cannot be made", "操作在哪里运行：无法生成报告")
        }
        "detail" | "collective" => Text::new(
            "details of operations: shapes, bytes, graphs, collectives",
            "操作的细节：形状、字节数、图、集合通信",
        ),
        "flow" => Text::new("links between operations", "操作之间的连线"),
        "counter" | "counter_track" => Text::new("samples of counters", "计数器的样本"),
        "manifest" => {
            Text::new("what the capture says of itself, and what was declared", "采集对自身的说明和声明的内容")
        }
        "import_stat" | "import_ledger" => Text::new("what the import could not read", "导入时读不出的内容"),
        "step" | "attribution" | "finding" | "wait_cause" | "name_op" => Text::new(
            "what a diagnosis said; 'strato diagnose --save' writes it again",
            "诊断的结果；'strato diagnose --save' 可以重新写入",
        ),
        "kernel_summary" | "kernel_metric" => Text::new("sums and measurements of kernels", "核函数的汇总和测量值"),
        "step_sum" | "link_sum" => Text::new("sums of the job", "作业的汇总"),
        "probe_result" | "probe_provenance" => Text::new("ceilings of the machine", "机器的上限"),
        _ => Text::new("its rows", "其中的行"),
    }
}

fn entry(file: &Path, found: &Result<Verification, store::Error>, standing: Standing, lines: &[String]) -> Json {
    let status = match standing {
        Standing::Sound => "sound",
        Standing::NotSealed => "not_sealed",
        Standing::Damaged => "damaged",
        Standing::Unreadable => "unreadable",
    };
    let mut entry = json!({ "file": file.display().to_string(), "status": status, "says": lines });
    if let Ok(found) = found {
        let count = |fault: &Fault| if let Fault::Pages { count, .. } = fault { Some(*count) } else { None };
        let table = |fault: &Fault| if let Fault::Table(table) = fault { Some(table.clone()) } else { None };
        entry["schema_version"] = json!(found.version);
        entry["pages"] = json!(found.pages.0);
        entry["page_bytes"] = json!(found.pages.1);
        entry["damaged_pages"] = json!(found.faults.iter().find_map(count).unwrap_or(0));
        entry["damaged_tables"] = json!(found.faults.iter().filter_map(table).collect::<Vec<_>>());
        entry["captures"] = json!(found.captures);
        entry["slices"] = json!(found.slices);
    }
    entry
}
