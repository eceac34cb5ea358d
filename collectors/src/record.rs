//! A vendor's profiler around a command: which there are, what each is asked for, and how the command in it ended.
//!
//! | module | owns |
//! | --- | --- |
//! | [`command`] | the command itself, started inside the profiler by this program, so that its end is known |
//! | [`signals`] | what ends a program, on its way to the command |
//! | one per profiler | its flags, each with where it is documented |

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use model::Ns;

pub mod command;
mod msprof;
mod nsys;
mod rocprofv3;
pub mod signals;

/// A profiler that runs a command.
#[derive(Debug)]
pub struct Profiler {
    /// Name, which is also the program.
    pub id: &'static str,
    /// Vendor key of the platform packs.
    pub vendor: &'static str,
    /// What it is asked for, so that all that it writes lies in the directory that it is given.
    flags: fn(&Path) -> Vec<OsString>,
    /// Words before its flags, and between them and the command.
    around: [&'static [&'static str]; 2],
    /// Which clock its stamps are of.
    pub stamps: Stamps,
    /// How its files number devices.
    pub devices: Numbering,
    /// What brings it to a machine that has none.
    pub remedy: &'static str,
}

/// The clock of a profiler's stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamps {
    /// The files say how their times relate to the wall clock.
    Told,
    /// Nanoseconds since the machine was started, which the files do not say.
    SinceBoot,
}

/// How a profiler numbers devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbering {
    /// As the processes see them.
    Ordinals,
    /// As the machine does, together with its processors: only their order tells which is which.
    Agents,
}

/// Every profiler, one line each.
pub const REGISTRY: &[Profiler] = &[nsys::PROFILER, msprof::PROFILER, rocprofv3::PROFILER];

/// The profiler of this name.
pub fn profiler(id: &str) -> Option<&'static Profiler> {
    REGISTRY.iter().find(|profiler| profiler.id == id)
}

impl Profiler {
    /// Where it lies in one of the directories of `path`, a value of the variable `PATH`.
    pub fn find(&self, path: &OsStr) -> Option<PathBuf> {
        crate::program::find(self.id, path)
    }

    /// Its arguments: what it is asked for, `asked` in place of flags of the same name and beside them, and `command`.
    pub fn arguments(&self, directory: &Path, asked: &[OsString], command: &[OsString]) -> Vec<OsString> {
        let [before, between] = self.around.map(|words| words.iter().map(OsString::from));
        let own = (self.flags)(directory).into_iter().filter(|flag| !asked.iter().any(|other| same(flag, other)));
        before.chain(own).chain(asked.iter().cloned()).chain(between).chain(command.iter().cloned()).collect()
    }
}

/// Whether two flags `--name=value` have one name.
fn same(a: &OsStr, b: &OsStr) -> bool {
    let name = |flag: &OsStr| flag.to_string_lossy().split('=').next().map(str::to_owned);
    name(a) == name(b)
}

/// `--name=` with a path behind it, which need not be text.
fn with_path(flag: &str, path: &Path) -> OsString {
    let mut whole = OsString::from(flag);
    whole.push(path);
    whole
}

impl Stamps {
    /// What is to be added to a stamp to have Unix nanoseconds; `None` where the files say it.
    pub fn unix_offset(self) -> Option<Ns> {
        match self {
            Self::Told => None,
            Self::SinceBoot => since_boot(),
        }
    }
}

/// Unix time of the machine's start, ns, by both clocks now.
#[cfg(target_os = "linux")]
fn since_boot() -> Option<Ns> {
    use rustix::time::{ClockId, Timespec, clock_gettime};
    let ns = |time: Timespec| time.tv_sec.checked_mul(1_000_000_000)?.checked_add(time.tv_nsec);
    let [unix, boot] = [ClockId::Realtime, ClockId::Boottime].map(|clock| ns(clock_gettime(clock)));
    unix?.checked_sub(boot?)
}

#[cfg(not(target_os = "linux"))]
fn since_boot() -> Option<Ns> {
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn line(id: &str, asked: &[&str]) -> String {
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let command = words(&["python", "x.py", "--sample=none"]);
        let line = profiler(id).unwrap().arguments(Path::new("/d"), &words(asked), &command);
        line.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn every_profiler_writes_into_its_directory_and_runs_the_command_as_it_is() {
        let nsys = line("nsys", &[]);
        assert!(nsys.starts_with("profile --trace=cuda,nvtx,osrt --sample=none"), "{nsys}");
        assert!(nsys.contains(" --cuda-graph-trace=node ") && nsys.contains("--output=/d/report"), "{nsys}");
        let msprof = line("msprof", &[]);
        assert!(msprof.contains("--output=/d --ascendcl=on --runtime-api=on --task-time=on"), "{msprof}");
        let rocprofv3 = line("rocprofv3", &[]);
        assert!(rocprofv3.contains("--kernel-trace --hip-trace --memory-copy-trace"), "{rocprofv3}");
        assert!(rocprofv3.contains("--output-format=csv --output-directory=/d -- python"), "{rocprofv3}");
        for line in [nsys, msprof, rocprofv3] {
            assert!(line.ends_with(" python x.py --sample=none"), "{line}");
        }
    }

    #[test]
    fn a_flag_that_is_asked_for_takes_the_place_of_ours_of_that_name() {
        let nsys = line("nsys", &["--cuda-graph-trace=graph", "--delay=30"]);
        assert_eq!(nsys.matches("--cuda-graph-trace").count(), 1, "{nsys}");
        assert!(nsys.contains("--cuda-graph-trace=graph --delay=30 python"), "{nsys}");
        let rocprofv3 = line("rocprofv3", &["--sys-trace", "--output-format=json"]);
        assert!(rocprofv3.contains("--sys-trace --output-format=json -- python"), "{rocprofv3}");
        assert!(!rocprofv3.contains("csv"), "{rocprofv3}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_start_of_the_machine_lies_in_the_past_and_stays_where_it_is() {
        let first = Stamps::SinceBoot.unix_offset().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(5));
        let second = Stamps::SinceBoot.unix_offset().unwrap();
        // Both clocks went on by the same time; a clock that is being set may move by a little.
        assert!((second - first).abs() < 2_000_000, "{first} {second}");
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
        assert!(first > 0 && u128::try_from(first).unwrap() < now);
        assert_eq!(Stamps::Told.unix_offset(), None);
    }
}
