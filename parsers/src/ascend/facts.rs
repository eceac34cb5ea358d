//! What the files beside the timeline and the database say of the run. Small JSON, read by allow list.

use std::path::Path;

use model::{Ns, Provenance, Severity, TraceSink};
use serde_json::Value;

use super::layout::{Layout, name};
use crate::{environment::Environment, simulated};

/// Largest file of facts that is read, bytes; real ones have some kilobytes, with many process groups some hundred.
const MAX_BYTES: u64 = 16 << 20;

/// The facts of one rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    pub rank: Option<u32>,
    pub world: Option<i64>,
    pub level: Option<String>,
    pub framework: Option<String>,
    pub toolkit: Option<String>,
    pub host: Option<String>,
    pub cpu: Option<String>,
    pub pid: Option<i64>,
    /// Whether the files say that no device was measured.
    pub simulated: bool,
    /// What, added to times of a clock that is not that of Unix, gives Unix time.
    pub unix_offset: Option<Ns>,
    pub environment: Environment,
    pub parallel: Vec<(&'static str, i64)>,
}

impl Facts {
    /// Reads the files of a layout.
    pub fn read(layout: &Layout, sink: &mut dyn TraceSink) -> Self {
        let mut facts = Self::default();
        for path in &layout.facts {
            match object(path) {
                Ok(object) => {
                    facts.take(&name(path), &object);
                    sink.ledger(&name(path), 1, 1, 0, "manifest, environment redacted");
                }
                Err(why) => {
                    let example = format!("{}: {why}", name(path));
                    sink.stat("ascend.unreadable_file", Severity::DataLoss, 1, Some(&example));
                }
            }
        }
        facts.rank = facts.rank.or_else(|| rank_said(layout));
        facts
    }

    fn take(&mut self, file: &str, value: &Value) {
        let text = |path: &str| value.pointer(path).and_then(Value::as_str).map(str::to_owned);
        let number = |path: &str| {
            let value = value.pointer(path)?;
            value.as_i64().or_else(|| value.as_str()?.trim().parse().ok())
        };
        self.simulated |= value.get(simulated::LABEL).and_then(Value::as_bool) == Some(true);
        let rank = number("/rank_id").and_then(|rank| u32::try_from(rank).ok());
        self.rank = self.rank.or(rank);
        self.level = self.level.take().or(text("/config/experimental_config/_profiler_level"));
        self.framework = self.framework.take().or(text("/torch_npu_version").map(|v| format!("torch_npu {v}")));
        self.framework = self.framework.take().or(text("/ms_version").map(|v| format!("MindSpore {v}")));
        self.toolkit = self.toolkit.take().or(text("/cann_version").map(|v| format!("CANN {v}")));
        self.world = self.world.or(number("/distributed_args/world_size"));
        self.world = self.world.or(value.get("parallel_group_info").and_then(ranks_of_all));
        const SIZES: [(&str, &str); 5] = [
            ("/distributed_args/tensor_model_parallel_size", "parallel.tp"),
            ("/distributed_args/pipeline_model_parallel_size", "parallel.pp"),
            ("/distributed_args/data_parallel_size", "parallel.dp"),
            ("/distributed_args/expert_model_parallel_size", "parallel.ep"),
            ("/distributed_args/context_parallel_size", "parallel.cp"),
        ];
        self.parallel.extend(SIZES.iter().filter_map(|(path, key)| Some((*key, number(path)?))));
        for (name, value) in value.pointer("/ENV_VARIABLES").and_then(Value::as_object).into_iter().flatten() {
            if let Some(value) = value.as_str().filter(|value| !value.is_empty()) {
                self.environment.take(&format!("{name}={value}"));
            }
        }
        if file.starts_with("info.json") {
            self.host = self.host.take().or(text("/hostname"));
            self.cpu = self.cpu.take().or(text("/CPU/0/Type"));
            self.pid = self.pid.or(number("/pid"));
        }
        if file.starts_with("start_info") {
            // Microseconds of Unix time, and nanoseconds of the host's monotonic clock.
            let began = number("/collectionTimeBegin").and_then(|us| us.checked_mul(1000));
            self.unix_offset = began.zip(number("/clockMonotonicRaw")).and_then(|(unix, own)| unix.checked_sub(own));
        }
    }

    /// Tells the manifest.
    pub fn tell(&self, sink: &mut dyn TraceSink) {
        let observed = Provenance::Observed;
        let entries = [
            ("measurement.traced", Some("ascend".to_owned())),
            ("software.profiler", Some("Ascend profiler (msprof)".to_owned())),
            ("software.framework", self.framework.clone()),
            ("software.toolkit", self.toolkit.clone()),
            ("software.env", self.environment.text()),
            ("hardware.host", self.host.clone()),
            ("hardware.cpu", self.cpu.clone()),
            ("ascend.profiler_level", self.level.clone()),
        ];
        for (key, value) in entries {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                sink.manifest(key, &value, observed);
            }
        }
        for (key, size) in &self.parallel {
            sink.manifest(key, &size.to_string(), observed);
        }
        if self.simulated {
            simulated::tell(sink);
        }
        if self.environment.redacted > 0 {
            sink.stat("ascend.redacted_environment", Severity::Info, self.environment.redacted, None);
        }
    }
}

/// Ranks of the group that holds every rank of the job, in what torch_npu notes of the process groups.
pub(super) fn ranks_of_all(groups: &Value) -> Option<i64> {
    let all = groups
        .as_object()?
        .values()
        .find(|group| group.get("group_name").and_then(Value::as_str) == Some("default_group"))?;
    i64::try_from(all.get("global_ranks")?.as_array()?.len()).ok().filter(|ranks| *ranks > 0)
}

/// A process group that a rank is in, as torch_npu notes it.
pub(super) struct ProcessGroup {
    pub name: String,
    /// The rank's own number in it.
    pub own: u32,
    /// Its ranks of the job in the order of their numbers.
    pub ranks: Vec<u32>,
}

/// A rank and the process groups that it is in.
pub(super) struct Groups {
    pub rank: Option<u32>,
    pub groups: Vec<ProcessGroup>,
}

impl Groups {
    /// Those of a capture; files that cannot be read were told of with the facts.
    pub fn of(layout: &Layout) -> Self {
        let files = layout.facts.iter().filter_map(|path| object(path).ok());
        let mut found = Self { rank: None, groups: Vec::new() };
        for file in files {
            let rank = ["/rank_id", "/distributed_args/rank"].iter().find_map(|path| file.pointer(path)?.as_u64());
            found.rank = found.rank.or(rank.and_then(|rank| u32::try_from(rank).ok()));
            let groups = file.get("parallel_group_info").and_then(Value::as_object);
            found.groups.extend(groups.into_iter().flatten().filter_map(|(_, group)| process_group(group)));
        }
        found.rank = found.rank.or_else(|| rank_said(layout));
        found
    }
}

fn process_group(group: &Value) -> Option<ProcessGroup> {
    let number = |value: &Value| u32::try_from(value.as_u64()?).ok();
    let ranks = group.get("global_ranks")?.as_array()?.iter().map(number).collect::<Option<Vec<u32>>>()?;
    let name = group.get("group_name").and_then(Value::as_str).unwrap_or_default().to_owned();
    Some(ProcessGroup { name, own: number(group.get("group_rank")?)?, ranks })
}

/// The rank that the names of a capture's files and directories say.
fn rank_said(layout: &Layout) -> Option<u32> {
    let named = layout.facts.iter().chain(&layout.database).find_map(|path| rank_of(&name(path)));
    // A directory that someone renamed to `rank_3` says it where no file does.
    let mut folders = layout.root.ancestors().take(3).map(name);
    named.or_else(|| folders.find_map(|folder| rank_in(&folder)))
}

fn object(path: &Path) -> Result<Value, String> {
    let text = input::bytes(path, MAX_BYTES).map_err(|error| error.to_string())?;
    serde_json::from_slice(&text).map_err(|error| error.to_string())
}

/// The rank that a file's own name or the names of the directories around it say.
pub(super) fn rank_around(path: &Path) -> Option<u32> {
    rank_of(&name(path)).or_else(|| path.ancestors().skip(1).take(3).find_map(|folder| rank_in(&name(folder))))
}

/// The rank in `profiler_info_3.json` or `ascend_pytorch_profiler_3.db`.
fn rank_of(name: &str) -> Option<u32> {
    let prefixes = ["profiler_info_", "ascend_pytorch_profiler_", "ascend_mindspore_profiler_"];
    let rest = prefixes.iter().find_map(|prefix| name.strip_prefix(prefix))?;
    rest.split('.').next()?.parse().ok()
}

/// The rank in `rank_3` or `rank3_ascend_pt`.
fn rank_in(folder: &str) -> Option<u32> {
    let rest = folder.strip_prefix("rank")?.trim_start_matches(['_', '-']);
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest.get(..digits)?.parse().ok()
}
