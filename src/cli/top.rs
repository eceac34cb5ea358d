//! `strato top`: the counters of this machine, of its devices and of a serving engine, without running anything.

use std::{
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use collectors::{
    metrics::{PATIENCE, Server},
    telemetry::{Collector, Counter, Sampler, frequency, power, ticks},
};
use engine::record::Clock;
use model::{Ns, Reading};

use super::{
    Global,
    devices::{self, Asking, Source},
    ended::Ended,
    exit::{Exit, Usage},
    feed::{Feed, Told},
    interface::Interface,
    recording::{Recorded, Replay},
    showing, terminal_text,
};
use crate::tui::{
    Session,
    live::{Dashboard, Gauge, Group, Run, label, said, value},
};
use diagnosis::i18n::Lang;

/// Show what this machine and a serving engine do, without running anything.
///
/// On a terminal as a dashboard; elsewhere as lines, one per counter and look.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Metrics page of a vLLM, SGLang or TensorRT-LLM server, such as http://localhost:8000/metrics.
    #[arg(long, value_name = "URL")]
    metrics: Option<String>,
    /// Device tools to ask, with commas between them, such as npu-smi,rocm-smi; 'nvml' is the library of NVIDIA's driver, 'none'
    /// asks none [default: that library, and those in PATH].
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    tools: Vec<String>,
    /// Seconds between two looks.
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    every: Duration,
    /// Seconds between two questions to a device tool, which costs far more than a look.
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    tools_every: Duration,
    /// End after so many looks; lines are printed, also on a terminal.
    #[arg(long, value_name = "N")]
    count: Option<u32>,
    /// Write what is seen to this file, to be shown once more with --replay.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["count", "replay"])]
    record: Option<PathBuf>,
    /// Show what was recorded in this file, and ask nothing.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["count", "metrics", "tools"])]
    replay: Option<PathBuf>,
    /// So many times as fast as it was recorded.
    #[arg(long, value_name = "TIMES", default_value = "1", requires = "replay", value_parser = speed)]
    speed: f64,
    #[command(flatten)]
    interface: Interface,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: Option<f64> = text.parse().ok().filter(|s| (0.1..=3600.0).contains(s));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| format!("'{text}' is no time between 0.1 and 3600 seconds"))
}

fn speed(text: &str) -> Result<f64, String> {
    let speed = text.parse().ok().filter(|times| (0.1..=1000.0).contains(times));
    speed.ok_or_else(|| format!("'{text}' is no number between 0.1 and 1000"))
}

/// What belongs to the machine, and not to this process.
fn machine() -> Vec<Box<dyn Collector>> {
    vec![Box::new(ticks::Processors::default()), Box::new(frequency::Frequency), Box::new(power::Power::default())]
}

pub(super) fn run(global: &Global, arguments: Arguments) -> anyhow::Result<Exit> {
    if let Some(path) = &arguments.replay {
        return replay(global, &arguments, path);
    }
    let server = arguments.metrics.as_deref().map(|url| Server::new(url, PATIENCE)).transpose();
    let server = server.map_err(|error| Usage(error.to_string()))?;
    let sources = devices::sources(&arguments.tools)?;
    let lines = arguments.count.is_some() || !io::stdout().is_terminal() || !io::stdin().is_terminal();
    if lines {
        return print(global, &arguments, server, sources);
    }
    let settings = arguments.interface.settings(global)?;
    let (feed, inlet) = Feed::new();
    let inlet = Recorded::new(inlet, arguments.record.as_deref())?;
    let clock = Clock::start();
    let told = |collector, group: fn(Counter) -> Group| -> Box<dyn Collector> {
        Box::new(Told { collector, feed: feed.clone(), group: Box::new(group) })
    };
    let own: Vec<Box<dyn Collector>> = machine().into_iter().map(|c| told(c, of_machine)).collect();
    let mut samplers = vec![Sampler::start(clock, arguments.every, own)?];
    // A slow page holds up nobody else.
    if let Some(server) = server {
        samplers.push(Sampler::start(clock, arguments.every, vec![told(Box::new(server), of_server)])?);
    }
    let asking = Asking::start(sources, arguments.every, arguments.tools_every, &feed)?;
    let title = match &arguments.metrics {
        Some(url) => format!("strato top · {url}"),
        None => "strato top".to_owned(),
    };
    let mut session = Session::take(settings.mouse)?;
    let left = session.show(&mut Dashboard::new(inlet, Run { title, ..Run::default() }, settings))?;
    drop(asking);
    // Not waited for: one of them may sit in a page that never comes.
    drop(samplers);
    showing::end(session, left);
    Ok(Exit::Done)
}

/// Shows a recording as it went by.
fn replay(global: &Global, arguments: &Arguments, path: &Path) -> anyhow::Result<Exit> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(Usage(
            "a recording is shown on a terminal; its lines are JSON and can be read as they are".to_owned(),
        )
        .into());
    }
    let settings = arguments.interface.settings(global)?;
    let source = Replay::open(path, arguments.speed)?;
    let title = format!("strato top · {}", path.display());
    let mut session = Session::take(settings.mouse)?;
    let left = session.show(&mut Dashboard::new(source, Run { title, ..Run::default() }, settings))?;
    showing::end(session, left);
    Ok(Exit::Done)
}

fn of_machine(counter: Counter) -> Group {
    if counter.device.is_some() { Group::Device("CPU".to_owned()) } else { Group::Host }
}

fn of_server(_: Counter) -> Group {
    Group::Server(String::new())
}

/// Looks again and again and prints what was seen.
fn print(
    global: &Global,
    arguments: &Arguments,
    server: Option<Server>,
    mut sources: Vec<Source>,
) -> anyhow::Result<Exit> {
    let mut collectors = machine();
    collectors.extend(server.map(|server| -> Box<dyn Collector> { Box::new(server) }));
    let began = Instant::now();
    let mut look = 0u32;
    let mut out = io::stdout().lock();
    let ended = if sources.iter().any(Source::is_tool) { Ended::receive()? } else { Ended::never() };
    while arguments.count.is_none_or(|count| look < count) {
        if look > 0 {
            ended.wait(arguments.every);
            ended.follow();
        }
        let at = Ns::try_from(began.elapsed().as_nanos()).unwrap_or(Ns::MAX);
        let mut seen: Vec<Gauge> = Vec::new();
        let mut give = |counter: Counter, value| {
            let (name, unit) = (counter.name.to_owned(), counter.unit.to_owned());
            seen.push(Gauge { group: Group::Host, name, unit, value });
        };
        collectors.iter_mut().for_each(|c| c.look(at, &mut give));
        seen.extend(sources.iter_mut().flat_map(|source| source.look(arguments.tools_every, ended.flag())));
        ended.follow();
        for gauge in seen {
            line(&mut out, at, &gauge, global.lang())?;
        }
        out.flush()?;
        look += 1;
    }
    Ok(Exit::Done)
}

/// One reading as a line.
fn line(out: &mut impl Write, at: Ns, gauge: &Gauge, lang: Lang) -> io::Result<()> {
    let name = label(&gauge.name).map_or(gauge.name.as_str(), |text| text.get(lang));
    let said = match &gauge.value {
        Reading::Value(number) => value(*number, &gauge.name, &gauge.unit),
        Reading::Unavailable(reason) => format!("– {}", said(reason, lang)),
    };
    let of = match &gauge.group {
        Group::Device(device) => format!("{device}  "),
        _ => String::new(),
    };
    let seconds = at as f64 / 1e9;
    writeln!(out, "{seconds:>8.1} s  {}{name:<20} {}", terminal_text::plain(&of), terminal_text::plain(&said))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_dashboard_knows_the_counter_that_says_whether_a_page_is_read() {
        assert_eq!(crate::tui::live::state::PAGE, collectors::metrics::SCRAPE.name);
    }
}
