//! What `strato top` saw, in a file: a line of JSON for each look at a counter. A file that was cut shows what it still holds.

use std::{
    fs::File,
    io::{BufRead, BufReader, BufWriter, Read, Write},
    path::Path,
    time::Instant,
};

use anyhow::Context;
use model::{Ns, Reading};
use serde::{Deserialize, Serialize};

use super::exit::Usage;
use crate::tui::live::{Gauge, Group, Source, Update, What};

/// Looks that are read of a file at most, a day of a hundred counters once a second, and the bytes that they may take.
const MOST: usize = 10_000_000;
const LARGEST: u64 = 2 << 30;
/// Longest line that can be a look, bytes.
const LINE: u64 = 16 << 10;

/// A look as it stands in the file.
#[derive(Serialize, Deserialize)]
struct Look {
    /// ns since the recording began.
    at: Ns,
    /// server, device, host, process or watching.
    of: String,
    /// Name of the server or device.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    whose: String,
    name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    unit: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<f64>,
    /// Why there is no value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    why: String,
}

impl Look {
    fn of(at: Ns, Gauge { group, name, unit, value }: &Gauge) -> Self {
        let (of, whose) = match group {
            Group::Server(name) => ("server", name.as_str()),
            Group::Device(name) => ("device", name.as_str()),
            Group::Host => ("host", ""),
            Group::Process => ("process", ""),
            Group::Watching => ("watching", ""),
        };
        let (value, why) = match value {
            Reading::Value(value) if value.is_finite() => (Some(*value), String::new()),
            Reading::Value(_) => (None, "the value is no number".to_owned()),
            Reading::Unavailable(why) => (None, why.clone()),
        };
        let (name, unit) = (name.clone(), unit.clone());
        Self { at, of: of.to_owned(), whose: whose.to_owned(), name, unit, value, why }
    }

    fn gauge(self) -> Option<Gauge> {
        let group = match self.of.as_str() {
            "server" => Group::Server(self.whose),
            "device" => Group::Device(self.whose),
            "host" => Group::Host,
            "process" => Group::Process,
            "watching" => Group::Watching,
            _ => return None,
        };
        let value = self.value.map_or(Reading::Unavailable(self.why), Reading::Value);
        Some(Gauge { group, name: self.name, unit: self.unit, value })
    }
}

/// A source whose updates are written down as they are given.
pub(super) struct Recorded<S> {
    source: S,
    file: Option<BufWriter<File>>,
}

impl<S> Recorded<S> {
    /// The source, written to a file if one is named.
    ///
    /// # Errors
    /// Where the file cannot be made.
    pub(super) fn new(source: S, path: Option<&Path>) -> anyhow::Result<Self> {
        let file =
            path.map(|path| File::create_new(path).with_context(|| format!("cannot write '{}'", path.display())));
        Ok(Self { source, file: file.transpose()?.map(BufWriter::new) })
    }
}

impl<S: Source> Source for Recorded<S> {
    fn poll(&mut self, give: &mut dyn FnMut(Update)) {
        let Self { source, file } = self;
        let mut failed = false;
        source.poll(&mut |update| {
            if let (Some(file), What::Gauges(gauges)) = (file.as_mut(), &update.what) {
                for gauge in gauges {
                    let line = serde_json::to_string(&Look::of(update.at, gauge)).unwrap_or_default();
                    failed |= writeln!(file, "{line}").is_err();
                }
            }
            give(update);
        });
        // What was seen is in the file, however the program ends.
        failed |= file.as_mut().is_some_and(|file| file.flush().is_err());
        if failed {
            self.file = None;
            let event = crate::tui::live::Event {
                en: "the recording cannot be written any more".to_owned(),
                zh: "录制文件已无法写入".to_owned(),
                warns: true,
            };
            give(Update { at: self.source.now(), what: What::Event(event) });
        }
    }

    fn now(&self) -> Ns {
        self.source.now()
    }

    fn lost(&self) -> u64 {
        self.source.lost()
    }
}

/// A recording that goes by as it did, or so many times as fast.
pub(super) struct Replay {
    looks: std::iter::Peekable<std::vec::IntoIter<Update>>,
    began: Instant,
    speed: f64,
    /// Lines that a recording does not have, and those beyond the limit.
    unread: u64,
}

impl Replay {
    /// Reads a recording.
    ///
    /// # Errors
    /// Where the file cannot be read or holds no look.
    pub(super) fn open(path: &Path, speed: f64) -> anyhow::Result<Self> {
        let file = input::open(path).with_context(|| format!("cannot read '{}'", path.display()))?.take(LARGEST);
        let (mut looks, mut unread, mut line, mut file) = (Vec::new(), 0, Vec::new(), BufReader::new(file));
        // A line that is longer is read in pieces, none of which is a look.
        while {
            line.clear();
            let read = file.by_ref().take(LINE).read_until(b'\n', &mut line);
            read.with_context(|| format!("cannot read '{}'", path.display()))? > 0
        } {
            let look = serde_json::from_slice::<Look>(&line).ok().filter(|_| looks.len() < MOST);
            match look.and_then(|look| Some((look.at, look.gauge()?))) {
                Some((at, gauge)) => looks.push(Update { at, what: What::Gauges(vec![gauge]) }),
                None => unread += 1,
            }
        }
        looks.sort_by_key(|update| update.at);
        match looks.is_empty() {
            true => {
                Err(Usage(format!("'{}' is no recording; name a file of 'strato top --record'", path.display())).into())
            }
            false => Ok(Self { looks: looks.into_iter().peekable(), began: Instant::now(), speed, unread }),
        }
    }
}

impl Source for Replay {
    fn poll(&mut self, give: &mut dyn FnMut(Update)) {
        let now = self.now();
        while let Some(update) = self.looks.next_if(|update| update.at <= now) {
            give(update);
        }
    }

    fn now(&self) -> Ns {
        (self.began.elapsed().as_nanos() as f64 * self.speed) as Ns
    }

    fn lost(&self) -> u64 {
        self.unread
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    struct Given(Vec<Update>);

    impl Source for Given {
        fn poll(&mut self, give: &mut dyn FnMut(Update)) {
            self.0.drain(..).for_each(give);
        }

        fn now(&self) -> Ns {
            0
        }

        fn lost(&self) -> u64 {
            0
        }
    }

    #[test]
    fn what_was_recorded_is_seen_once_more_and_a_cut_line_is_counted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("top.jsonl");
        let gauge = |group, value| Gauge { group, name: "power".into(), unit: "W".into(), value };
        let gauges = vec![
            gauge(Group::Device("gpu 0".into()), Reading::Value(640.5)),
            gauge(Group::Host, Reading::Unavailable("no rights".into())),
        ];
        let update = |gauge: &Gauge| Update { at: 5, what: What::Gauges(vec![gauge.clone()]) };
        let given = Given(vec![Update { at: 5, what: What::Gauges(gauges.clone()) }]);
        Recorded::new(given, Some(&path)).unwrap().poll(&mut |_| {});
        assert!(Recorded::new(Given(Vec::new()), Some(&path)).is_err(), "nothing is overwritten");
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str("{\"at\":9,\"of\":\"dev");
        std::fs::write(&path, text).unwrap();
        let mut replay = Replay::open(&path, 1e9).unwrap();
        let mut seen = Vec::new();
        replay.poll(&mut |update| seen.push(update));
        assert_eq!(seen, gauges.iter().map(update).collect::<Vec<_>>());
        assert_eq!(replay.lost(), 1);
        std::fs::write(&path, "hello\n").unwrap();
        assert!(Replay::open(&path, 1.0).is_err_and(|error| error.to_string().contains("no recording")));
    }
}
