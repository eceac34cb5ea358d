//! Captures, and how rows, bytes and ranks are taken out of them.

use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::Value;

use super::super::{
    sweep::{execute, is_full},
    *,
};

/// How rows are taken out of a capture.
pub enum Kind {
    /// Events of JSON.
    Events,
    /// Rows of tables: those of devices, those of the host.
    Tables(&'static [&'static str], &'static [&'static str]),
    /// Lines of a table of device rows.
    Lines,
    /// Directories of ranks.
    Ranks,
    /// Nothing but bytes.
    Bytes,
}

/// What is done to a capture.
#[derive(Clone, Copy, PartialEq)]
pub enum Damage {
    Device(u32),
    Host(u32),
    Rank(usize),
    Cut(usize),
    /// The file once more behind itself.
    Twice,
    /// Another capture of the format behind it.
    Joined,
}

impl Damage {
    pub fn all(kind: &Kind, joined: bool) -> Vec<Self> {
        let (shares, cuts): (&[u32], &[usize]) = match is_full() {
            true => (&[1, 5, 25, 50], &[1, 3, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99]),
            false => (&[5, 50], &[50]),
        };
        if matches!(kind, Kind::Ranks) {
            return vec![Self::Rank(0), Self::Rank(1)];
        }
        let device = shares.iter().copied().map(Self::Device).filter(|_| !matches!(kind, Kind::Bytes));
        let host = shares.iter().copied().map(Self::Host).filter(|_| matches!(kind, Kind::Events | Kind::Tables(..)));
        let behind = [Some(Self::Twice), joined.then_some(Self::Joined)];
        device.chain(host).chain(cuts.iter().copied().map(Self::Cut)).chain(behind.into_iter().flatten()).collect()
    }

    pub fn name(self) -> String {
        match self {
            Self::Device(share) => format!("{share} % of the device's rows"),
            Self::Host(share) => format!("{share} % of the host's rows"),
            Self::Rank(rank) => format!("rank {rank}"),
            Self::Cut(at) => format!("cut at {at} %"),
            Self::Twice => "twice in one file".to_owned(),
            Self::Joined => "another behind it".to_owned(),
        }
    }
}

/// A capture, and how to take from it.
pub struct Whole {
    pub bytes: Vec<u8>,
    pub name: String,
    events: Option<Value>,
    other: Vec<u8>,
}

impl Whole {
    pub fn of(path: &Path, kind: &Kind, other: Option<&Path>) -> Self {
        let name = path.file_name().unwrap().to_str().unwrap();
        let bytes = if path.is_file() { unpacked(path) } else { Vec::new() };
        let events = matches!(kind, Kind::Events).then(|| serde_json::from_slice(&bytes).unwrap());
        let other = other.map(unpacked).unwrap_or_default();
        Self { bytes, name: name.trim_end_matches(".gz").to_owned(), events, other }
    }

    /// Whether a cut leaves whole rows: the next byte ends one.
    pub fn ends_with_a_row(&self, at: usize) -> bool {
        let end = self.bytes.len() * at / 100;
        self.bytes.get(end.saturating_sub(1)..=end).is_some_and(|around| around.contains(&b'\n'))
    }

    /// Writes what is left, and says how many rows of how many are gone.
    pub fn damaged(&self, path: &Path, kind: &Kind, damage: Damage) -> (u64, u64) {
        let write = |bytes: &[u8]| std::fs::write(path, bytes).unwrap();
        let (share, device) = match damage {
            Damage::Rank(rank) => {
                let gone = format!("rank{rank}_ascend_pt");
                std::fs::remove_dir_all(path.join(gone)).unwrap();
                return (1, 2);
            }
            Damage::Cut(at) => {
                write(&self.bytes[..self.bytes.len() * at / 100]);
                return (100 - at as u64, 100);
            }
            Damage::Twice | Damage::Joined => {
                let other = if damage == Damage::Twice { &self.bytes } else { &self.other };
                write(&[&*self.bytes, &**other].concat());
                return (0, 0);
            }
            Damage::Device(share) => (share, true),
            Damage::Host(share) => (share, false),
        };
        let mut random = StdRng::seed_from_u64(43);
        let (mut gone, mut all) = (0, 0);
        let mut keep = |is_of: bool| {
            all += u64::from(is_of);
            let out = is_of && random.random_range(0..100) < share;
            gone += u64::from(out);
            !out
        };
        match kind {
            Kind::Events => {
                let cats: &[&str] = match device {
                    true => &["kernel", "gpu_memcpy", "gpu_memset"],
                    false => &["cuda_runtime", "cuda_driver", "cpu_op"],
                };
                let mut document = self.events.clone().unwrap();
                let events = match &mut document {
                    Value::Array(events) => events,
                    document => document["traceEvents"].as_array_mut().unwrap(),
                };
                events.retain(|event| {
                    keep(event["ph"] == "X" && event["cat"].as_str().is_some_and(|cat| cats.contains(&cat)))
                });
                write(&serde_json::to_vec(&document).unwrap());
            }
            Kind::Lines => {
                let text = std::str::from_utf8(&self.bytes).unwrap();
                let mut lines = text.split_inclusive('\n');
                let head = lines.next().unwrap();
                let rest: String = lines.filter(|_| keep(true)).collect();
                write((head.to_owned() + &rest).as_bytes());
            }
            Kind::Tables(of_device, of_host) => {
                write(&self.bytes);
                for table in *(if device { of_device } else { of_host }) {
                    let drawn = format!("(rowid * 2654435761 >> 7) % 100 < {share}");
                    execute(path, &format!("DELETE FROM {table} WHERE {drawn}"));
                }
                (gone, all) = (u64::from(share), 100);
            }
            Kind::Ranks | Kind::Bytes => unreachable!(),
        }
        (gone, all)
    }
}

/// The content of a file.
fn unpacked(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap();
    if path.extension().is_none_or(|end| end != "gz") {
        return bytes;
    }
    let mut text = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::MultiGzDecoder::new(&*bytes), &mut text).unwrap();
    text
}
