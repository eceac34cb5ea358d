//! `strato probe`: what this machine can do at best, measured, printed and kept for the diagnosis of runs on it.

use std::{
    io::{self, IsTerminal},
    path::{Path, PathBuf},
    time::Duration,
};

use clap::ValueEnum;
use collectors::host::Host;
use engine::{Dtype, Target};
use model::{Detail, ProbeRow, ProbeRun, ProbeUnit, Provenance, Reading, Trace, TraceBuilder, TraceSink};
use probes::{Probe, Product, REGISTRY, Setup};
use serde_json::{Value, json};
use session::Session;
use tracing::info;

use super::{
    Global,
    backend::On,
    ceilings, ended,
    exit::{Exit, Usage},
    memory,
    output::Output,
    progress::Bar,
    say, target,
};
use diagnosis::{
    analysis::op_shapes,
    i18n::{Lang, Text},
};
use report::{
    document::{Align, Document, Table},
    inlines, phrase, screen, units,
};

/// Format id of a capture that holds ceilings and no run.
const FORMAT: &str = "strato-probe";
/// Greatest side of a product that is measured: above the vocabulary of any model.
const MAX_SIDE: usize = 1 << 19;

/// Measure what this machine can do at best: the ceilings that runs on it are held against.
///
/// Every probe takes up to two seconds. A run on a busy machine measures what was left of it, and says so.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    on: On,
    /// Only this probe (may be given several times).
    #[arg(long, value_name = "NAME", value_parser = clap::builder::PossibleValuesParser::new(REGISTRY.iter().map(|probe| probe.name)))]
    only: Vec<String>,
    /// Also measure the products of this run of the engine, shape by shape, for the rules that judge them one by one.
    #[arg(long, value_name = "CAPTURE")]
    like: Option<PathBuf>,
    /// Threads [default: one per core].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Bytes that the probes of --like may take of this machine's memory, such as 8G; products that need more are refused
    /// [default: what is free].
    #[arg(long, value_name = "SIZE", value_parser = memory::size)]
    max_memory: Option<u64>,
    /// Time for each probe, in milliseconds.
    #[arg(long, default_value_t = 2000, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=2000))]
    budget: u64,
    /// Form of the output [default: term on a terminal, else md].
    #[arg(long, value_enum)]
    format: Option<Form>,
    /// Write the output to this file instead of the terminal.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Keep the ceilings in this capture file, for 'strato diagnose --probe' and 'strato sql'; an earlier one is replaced.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Print nothing but errors.
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// One screen of a terminal: the best that each probe measured.
    Term,
    /// Markdown, for people.
    Md,
    /// JSON, for scripts.
    Json,
}

pub(super) fn run(global: &Global, arguments: Arguments) -> anyhow::Result<Exit> {
    let lang = global.lang();
    if arguments.threads == Some(0) {
        return Err(Usage("probes need at least one thread; leave --threads out to use every core".to_owned()).into());
    }
    if let Some(save) = &arguments.save {
        target::check(save, arguments.like.as_slice())?;
        if arguments.output.as_ref().is_some_and(|report| target::is_same(report, save)) {
            return Err(Usage(format!("--output and --save both name '{}'; choose two names", save.display())).into());
        }
        refuse_run(save)?;
    }
    let target = arguments.on.target(&[("--threads", arguments.threads.is_some())])?;
    target.check()?;
    let setup = Setup { target, budget: Duration::from_millis(arguments.budget), ..Setup::default() };
    let products = arguments.like.as_deref().map(products).transpose()?.unwrap_or_default();
    let setup = Setup { threads: arguments.threads.unwrap_or(setup.threads), products, ..setup };
    let largest = setup.products.iter().map(|product| {
        let rows = product.dtype.row_bytes(product.inputs) as u64;
        let results = (product.rows as u64).saturating_mul((product.inputs + product.outputs) as u64).saturating_mul(4);
        rows.saturating_mul(product.outputs as u64).saturating_add(results)
    });
    if setup.target == Target::Cpu {
        let next = "leave --like out, or name a capture of a smaller model";
        memory::check_total("the largest product of --like", largest.max().unwrap_or(0), arguments.max_memory, next)?;
    }
    let picks = |probe: &Probe| arguments.only.is_empty() || arguments.only.iter().any(|n| n == probe.name);
    let host = Host::read();
    let run = ceilings::measured(&setup, &host, picks, |probe, rows| {
        if !arguments.quiet {
            let about = Text::new(probe.about[0], probe.about[1]).get(lang);
            say(&format!("strato: {}: {about} ({})", probe.name, rows.len()));
        }
    });
    let terminal = arguments.output.is_none() && io::stdout().is_terminal();
    let text = match arguments.format.unwrap_or(if terminal { Form::Term } else { Form::Md }) {
        Form::Term => {
            let command = "strato probe --format md";
            Output::Data(screen::page::first(&best(&run, lang), lang, global.look(), command))
        }
        Form::Md => Output::Markdown(page(&run, lang)),
        Form::Json => Output::Data(format!("{:#}\n", document(&run))),
    };
    if let Some(save) = &arguments.save {
        ended::whole(|| store::save(save, &[capture(run, &setup.target, &host)]))?;
        info!(target: "strato", "wrote {}", save.display());
    }
    if arguments.output.is_some() || !arguments.quiet {
        global.deliver(&text, arguments.output.as_deref())?;
    }
    Ok(Exit::Done)
}

/// The matrix products of a run, largest first, as far as the engine has their type of weights.
fn products(like: &Path) -> anyhow::Result<Vec<Product>> {
    let _bar = Bar::hidden();
    let traces = Session::open(&[like.to_owned()], &session::Reading::default())?.into_captures();
    let mut found = Vec::new();
    for trace in &traces {
        let weights = trace.manifest.value("precision.weights");
        let all = [Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::Q8];
        let Some(dtype) = all.into_iter().find(|dtype| Some(dtype.name()) == weights) else { continue };
        for detail in &trace.details {
            let Detail::Op(op) = detail else { continue };
            let Some(product) = op_shapes::gemm(&op_shapes::tensors(trace, op)) else { continue };
            let side = |n: i64| usize::try_from(n).ok().filter(|n| (1..=MAX_SIDE).contains(n));
            let sides = side(product.rows).zip(side(product.outputs)).zip(side(product.inputs));
            if let Some(((rows, outputs), inputs)) = sides {
                let product = Product { rows, outputs, inputs, dtype };
                found.extend((!found.contains(&product)).then_some(product));
            }
        }
    }
    if found.is_empty() {
        return Err(Usage(format!(
            "'{}' holds no matrix product of known shape and type of weights; give a capture of 'strato run -o FILE'",
            like.display()
        ))
        .into());
    }
    Product::sort(&mut found);
    Ok(found)
}

/// Ceilings replace earlier ceilings, never a run.
fn refuse_run(save: &Path) -> anyhow::Result<()> {
    let is_run = save.is_file() && store::is_capture(save)? && store::load(save)?.iter().any(|t| t.format != FORMAT);
    if is_run {
        let save = save.display();
        return Err(Usage(format!(
            "will not replace '{save}', which holds a run; choose another name, and give it to 'strato diagnose --probe'"
        ))
        .into());
    }
    Ok(())
}

/// The ceilings as a capture of their own.
fn capture(run: ProbeRun, target: &Target, host: &Host) -> Trace {
    let mut builder = TraceBuilder::new("ceilings of this machine", FORMAT);
    let cpu = host.cpu.value().cloned();
    let facts = [
        ("hardware.vendor", Some(target.vendor().to_owned())),
        ("hardware.device", run.fact(ProbeRun::DEVICE).map(str::to_owned)),
        ("hardware.cpu", cpu),
        ("hardware.memory_bytes", host.memory_bytes.value().map(i64::to_string)),
        ("software.driver", host.system.value().cloned()),
        ("software.engine", Some(concat!("stratoscope ", env!("CARGO_PKG_VERSION")).to_owned())),
        ("measurement.timer", Some("monotonic clock of the host".to_owned())),
    ];
    for (key, value) in facts.into_iter().filter_map(|(key, value)| Some((key, value?))) {
        builder.manifest(key, &value, Provenance::Observed);
    }
    let mut trace = builder.finish();
    trace.start_unix_ns = run.fact("taken_unix_ns").and_then(|ns| ns.parse().ok());
    trace.probes = run;
    trace
}

/// The best of what each probe measured: of rates the largest median, of times the smallest.
fn best(run: &ProbeRun, lang: Lang) -> Document {
    let get = |text: Text| phrase::text(text, lang);
    let mut out = Document::new();
    out.heading(1, get(Text::new("Measured peaks of this machine", "本机实测峰值")));
    if let Some(noise) = run.fact(ProbeRun::NOISE) {
        let said = Text::new("Noisy run, repeat it on a quiet machine", "运行受到干扰，请在空闲时重测");
        out.paragraph(inlines![get(said), " (", noise, ")"]);
    }
    let mut groups: Vec<(&str, &str, Vec<&ProbeRow>)> = Vec::new();
    for row in &run.rows {
        match groups
            .iter_mut()
            .find(|(probe, metric, _)| (*probe, *metric) == (row.probe.as_str(), row.metric.as_str()))
        {
            Some((.., rows)) => rows.push(row),
            None => groups.push((&row.probe, &row.metric, vec![row])),
        }
    }
    let mut table = Table::new([
        (get(Text::new("probe", "探针")), Align::Left),
        (get(Text::new("quantity", "量")), Align::Left),
        (get(Text::new("best", "最佳")), Align::Right),
        (get(Text::new("spread", "离散度")), Align::Right),
        (get(Text::new("settings", "设置数")), Align::Right),
        (get(Text::new("with", "条件")), Align::Left),
    ]);
    for (probe, metric, rows) in &groups {
        let measured = rows.iter().filter_map(|row| match &row.value {
            Reading::Value(sum) => Some((*row, sum)),
            Reading::Unavailable(_) => None,
        });
        let found = measured.max_by(|(a, x), (_, y)| {
            let order = x.median.total_cmp(&y.median);
            if a.unit == ProbeUnit::Ns { order.reverse() } else { order }
        });
        let count = rows.len().to_string();
        let cells = match found {
            Some((row, sum)) => {
                let spread = units::share(sum.relative_spread());
                [units::probed(sum.median, row.unit), spread, count, row.setting.to_string()]
            }
            None => ["–".to_owned(), "–".to_owned(), count, String::new()],
        };
        table.row([(*probe).to_owned(), (*metric).to_owned()].into_iter().chain(cells));
    }
    out.table(table);
    out.paragraph(inlines![get(Text::new("Every setting:", "全部设置：")), " strato probe --format md"]);
    out
}

fn page(run: &ProbeRun, lang: Lang) -> Document {
    let get = |text: Text| phrase::text(text, lang);
    let mut out = Document::new();
    out.heading(1, get(Text::new("Ceilings of this machine", "本机上限")));
    if let Some(noise) = run.fact(ProbeRun::NOISE) {
        let said = Text::new(
            "**A noisy run**: these are the ceilings of what was left of the machine; repeat it on a quiet one.",
            "**运行受到干扰**：以下只是机器余力的上限，请在空闲时重测。",
        );
        out.paragraph(inlines![get(said), " (", noise, ")"]);
    }
    let mut facts =
        Table::new([(get(Text::new("condition", "条件")), Align::Left), (get(Text::new("value", "值")), Align::Left)]);
    for (key, value) in run.provenance.iter().filter(|(key, _)| key != ProbeRun::NOISE) {
        let value = match value {
            Reading::Value(ns) if key == "taken_unix_ns" => ns.parse().map_or_else(|_| ns.clone(), units::utc),
            Reading::Value(value) => value.clone(),
            Reading::Unavailable(reason) => format!("{}: {reason}", Text::new("unreadable", "无法读取").get(lang)),
        };
        facts.row([key.clone(), value]);
    }
    out.table(facts);
    let mut rows = Table::new([
        (get(Text::new("probe", "探针")), Align::Left),
        (get(Text::new("quantity", "量")), Align::Left),
        (get(Text::new("setting", "设置")), Align::Left),
        (get(Text::new("median", "中位数")), Align::Right),
        (get(Text::new("least", "最小")), Align::Right),
        (get(Text::new("greatest", "最大")), Align::Right),
        (get(Text::new("spread", "离散度")), Align::Right),
        (get(Text::new("repeats", "次数")), Align::Right),
    ]);
    for row in &run.rows {
        let first = [row.probe.clone(), row.metric.clone(), row.setting.to_string()];
        let values = match &row.value {
            Reading::Value(s) => [
                units::probed(s.median, row.unit),
                units::probed(s.min, row.unit),
                units::probed(s.max, row.unit),
                units::share(s.relative_spread()),
                s.repeats.to_string(),
            ],
            Reading::Unavailable(reason) => {
                let none = || "–".to_owned();
                [reason.clone(), none(), none(), none(), none()]
            }
        };
        rows.row(first.into_iter().chain(values));
    }
    out.table(rows);
    out.paragraph(get(Text::new(
        "Spread: median distance of the repeats from their median (MAD), over the median.",
        "离散度：各次与中位数之差的中位数（MAD）除以中位数。",
    )));
    out
}

fn document(run: &ProbeRun) -> Value {
    let reading = |reading: &Reading<String>| match reading {
        Reading::Value(value) => json!(value),
        Reading::Unavailable(reason) => json!({ "unavailable": reason }),
    };
    let provenance = run.provenance.iter().map(|(key, value)| (key.clone(), reading(value)));
    let rows = run.rows.iter().map(|row| {
        let setting: serde_json::Map<String, Value> =
            row.setting.iter().map(|(name, value)| (name.to_owned(), json!(value))).collect();
        let mut out = json!({ "probe": row.probe, "metric": row.metric, "unit": row.unit.name(), "setting": setting });
        let members = match &row.value {
            Reading::Value(s) => json!({
                "median": s.median, "min": s.min, "max": s.max, "mad": s.mad, "repeats": s.repeats,
            }),
            Reading::Unavailable(reason) => json!({ "unavailable": reason }),
        };
        if let (Some(out), Value::Object(members)) = (out.as_object_mut(), members) {
            out.extend(members);
        }
        out
    });
    json!({
        "schema": "strato.probe/1",
        "provenance": provenance.collect::<serde_json::Map<String, Value>>(),
        "rows": rows.collect::<Vec<Value>>(),
    })
}
