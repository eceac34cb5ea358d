//! A report on one screen of a terminal: at most [`ROWS`] lines, fitted to its width, and no Markdown. It reads only the
//! [`Report`]; one file per part, in the order of the screen.
//!
//! | module | owns |
//! | --- | --- |
//! | [`canvas`] | lines, words and columns in cells of a terminal |
//! | `say` | messages of rules as plain words with three digits |
//! | `head` | what ran, and what the file lacks |
//! | `answer` | the sentence and the bar of layers |
//! | `costs` | findings with what a step becomes |
//! | `tables` | what takes the most time, by name |
//! | `others` | the other captures that were read, a sentence each |
//! | `rest` | what is not known, and what to do next |
//! | [`brief`] | the same parts for what has a screen or a page of its own |
//! | [`diff`] | two captures on one screen |
//! | [`page`] | any document on a terminal |

mod answer;
pub mod brief;
pub mod canvas;
mod costs;
pub mod diff;
mod head;
mod others;
pub mod page;
mod rest;
mod say;
mod tables;

use canvas::Line;
pub use canvas::Look;

use crate::{
    document::Document,
    kernel_name, link_test,
    model::{Capture, Report},
    sections::Page,
    serving,
};
use diagnosis::{
    analysis::{AnchorKind, Layer},
    i18n::{Lang, Text},
    largest::Kind,
    platform::Stage,
};

/// The operator of kernels that no pack knows.
const UNKNOWN: &str = "other";

/// Lines at most: what a terminal of 40 rows shows with the prompt below it.
pub const ROWS: usize = 39;

/// The report on one screen; empty where it holds no capture.
pub fn render(report: &Report, lang: Lang, look: Look) -> String {
    let Some(capture) = report.leading() else { return String::new() };
    let screen = Screen { all: &report.captures, capture, lang, look };
    let mut out = String::new();
    screen.lines().iter().for_each(|line| line.write(&mut out, look));
    out
}

/// A screen about one capture.
struct Screen<'a> {
    /// All that were read.
    all: &'a [Capture],
    capture: &'a Capture,
    lang: Lang,
    look: Look,
}

impl Screen<'_> {
    /// All lines: the fixed parts first, then the costs and the tables in the room that is left.
    fn lines(&self) -> Vec<Line> {
        let bottom = [rest::unknown(self), others::lines(self), rest::next(self)];
        canvas::stacked(
            self.parts(bottom, ROWS).into_iter().map(|part| part.into_iter().map(|(_, line)| line).collect()),
        )
    }

    /// The parts in at most so many lines, with those that are below the costs and tables. A line that begins a cost has the position
    /// of its finding.
    fn parts(&self, bottom: [Vec<Line>; 3], most: usize) -> Vec<Vec<costs::Told>> {
        let top = [head::lines(self), answer::lines(self), answer::bar(self)];
        let size = |parts: &[Vec<Line>]| {
            parts.iter().filter(|part| !part.is_empty()).map(|part| part.len() + 1).sum::<usize>()
        };
        let room = most.saturating_sub(size(&top) + size(&bottom));
        let rows = self.capture.tables().map(|own| own.rows.len()).sum::<usize>();
        let reserved = rows.min(tables::FEWEST) + 3;
        let costs = match (self.capture.verdict.place.is_some() || costs::any(self), self.measured()) {
            (true, None) => costs::lines(self, room.saturating_sub(reserved + 2)),
            _ => Vec::new(),
        };
        let taken = if costs.is_empty() { 0 } else { costs.len() + 1 };
        let tables = tables::lines(self, room.saturating_sub(taken + 1));
        let plain = |lines: Vec<Line>| lines.into_iter().map(|line| (None, line)).collect::<Vec<costs::Told>>();
        let (top, bottom) = (top.into_iter().map(plain), bottom.into_iter().map(plain));
        top.chain([costs, plain(tables)]).chain(bottom).collect()
    }

    fn width(&self) -> usize {
        self.look.columns()
    }

    fn get(&self, text: Text) -> &'static str {
        text.get(self.lang)
    }

    /// Whether the mean is that of one window in which nothing marks steps.
    fn is_window(&self) -> bool {
        self.capture.leading_rank().is_some_and(|rank| rank.anchor.kind == AnchorKind::WholeCapture)
    }

    /// What the device is called.
    fn device(&self) -> Text {
        match self.capture.vendor() {
            "ascend" | "cambricon" => Text::new("NPU", "NPU"),
            "google" => Text::new("TPU", "TPU"),
            "nvidia" | "amd" | "hygon" | "metax" | "mthreads" | "intel" => Text::new("GPU", "GPU"),
            _ => Text::new("device", "设备"),
        }
    }

    /// The operator with the most time, and its share of the steps; the kernel itself if its operator is unknown.
    fn operator(&self) -> Option<(String, f64)> {
        let rank = self.capture.leading_rank()?;
        let total = rank.main_class()?.total;
        let first = rank.operators.iter().find(|work| !work.name.is_empty() && !work.name.starts_with("comm"))?;
        if first.name == UNKNOWN {
            let tables = self.capture.tables().next()?;
            let row = tables.of(Kind::Kernel).find(|row| row.of == UNKNOWN)?;
            return Some((kernel_name::short(&row.name), tables.share(row.total)));
        }
        Some((first.name.clone(), first.busy as f64 / total.max(1) as f64))
    }

    /// What the device does in the runtime's share of the steps, the largest part first.
    fn runtime(&self) -> Vec<(Runtime, f64)> {
        let Some(class) = self.capture.leading_rank().and_then(|rank| rank.main_class()) else { return Vec::new() };
        let tables = self.capture.tables().next();
        let copies = tables.is_some_and(|tables| tables.of(Kind::Copy).next().is_some());
        let mut parts = Runtime::ALL.map(|kind| (kind, 0.0));
        for row in class.buckets.iter().filter(|row| row.layer == Layer::Runtime) {
            // Where no copy has a record, the time is that of the calls that ask for one.
            let kind = match Runtime::of(&row.name) {
                Runtime::Copies if !copies => Runtime::Host,
                kind => kind,
            };
            for (_, share) in parts.iter_mut().filter(|(known, _)| *known == kind) {
                *share += row.ns as f64 / class.total.max(1) as f64;
            }
        }
        // What a bucket calls silent may have a name on another line of the thread.
        let named = tables.map_or(0.0, |tables| {
            let rows = tables.of(Kind::Idle).filter(|row| !row.name.is_empty());
            rows.map(|row| tables.share(row.total)).sum::<f64>()
        });
        let of = |wanted: Runtime, parts: &[(Runtime, f64)]| {
            parts.iter().find(|(kind, _)| *kind == wanted).map_or(0.0, |(_, share)| *share)
        };
        let (host, silent) = (of(Runtime::Host, &parts), of(Runtime::Silent, &parts));
        let told = (named - host).clamp(0.0, silent);
        for (kind, share) in &mut parts {
            match kind {
                Runtime::Host => *share += told,
                Runtime::Silent => *share -= told,
                _ => {}
            }
        }
        parts.sort_by(|a, b| b.1.total_cmp(&a.1));
        parts.to_vec()
    }

    /// The headline of what was measured and has no steps: a load on a server, links under test.
    fn measured(&self) -> Option<String> {
        let page = Page { lang: self.lang, capture: self.capture, out: Document::new() };
        let headline = serving::headline(&page).or_else(|| link_test::headline(&page));
        headline.map(|headline| say::plain(&headline.words()))
    }
}

/// What the device does where the runtime takes the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Runtime {
    /// It waits for the host.
    Host,
    /// It copies.
    Copies,
    /// It goes from one queued operation to the next, or waits for another queue.
    Device,
    /// It does not begin what was launched.
    Unstarted,
    /// It is idle, and no record says what the host does.
    Silent,
}

impl Runtime {
    const ALL: [Self; 5] = [Self::Host, Self::Copies, Self::Device, Self::Unstarted, Self::Silent];

    /// By the name of a bucket.
    fn of(bucket: &str) -> Self {
        match bucket {
            "rt.host.unknown" => Self::Silent,
            "rt.unstarted" => Self::Unstarted,
            "rt.device_dep" | "rt.graph_internal" | "rt.dispatch" => Self::Device,
            name if name.starts_with("copy.") => Self::Copies,
            _ => Self::Host,
        }
    }
}

/// What a step of a stage is called before the word for it.
fn stage(stage: Stage) -> Text {
    match stage {
        Stage::Decode => Text::new("decode ", "解码"),
        Stage::Prefill => Text::new("prefill ", "预填充"),
        Stage::Mixed => Text::new("mixed ", "混合"),
        Stage::Train => Text::new("training ", "训练"),
        Stage::Unknown => Text::new("", ""),
    }
}

#[cfg(test)]
mod tests;
