//! What a run says of itself, field by field. The table [`FIELDS`] is the comparability contract's list; a field that
//! nobody filled is *unknown*, which is different from any value.

use std::collections::BTreeMap;

/// How `precision.deviation` begins where a run's numbers are not those of its reference.
pub const DIVERGES: &str = "diverges";
/// How `precision.deviation` begins where the numbers do not diverge.
pub const PRECISE: [&str; 2] = ["equal bit for bit", "within precision"];
/// How `precision.deviation` begins where a run gave NaN or infinity.
pub const NOT_FINITE: &str = "not finite";
/// Fact that says whether the logits of a run are finite: it begins with `yes` or `no`.
pub const FINITE: &str = "precision.finite";

/// Whether a value of `precision.deviation` says that the numbers are wrong.
pub fn is_wrong(deviation: &str) -> bool {
    [DIVERGES, NOT_FINITE].iter().any(|begins| deviation.starts_with(begins))
}

/// How `warmup.change_point` begins where the step time is known to have settled before the steps that count.
pub const SETTLED: &str = "settled";

/// Independent repeats below which a comparison has a caveat.
pub const REPEATS: u64 = 5;

/// Group of manifest fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // the names are the groups
pub enum Group {
    Model,
    Precision,
    Workload,
    Service,
    Warmup,
    Parallel,
    Caps,
    Measurement,
    Software,
    Hardware,
    Tuning,
    Quality,
}

/// Whether two captures that differ in a field may still be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// A difference forbids the comparison.
    Hard,
    /// A difference is a caveat.
    Soft,
}

/// One field of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// `<group>.<name>`.
    pub key: &'static str,
    /// Its group.
    pub group: Group,
    /// What a difference means.
    pub control: Control,
    /// What it holds, and in which unit.
    pub what: &'static str,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provenance {
    /// Read from the capture.
    Observed,
    /// Said by a person.
    Declared,
    /// Written by the simulator about its own run.
    Simulated,
}

/// A value with its provenance.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Entry {
    /// Text form; lists are joined by `, `.
    pub value: String,
    /// Where it comes from.
    pub provenance: Provenance,
}

/// The manifest of one capture: field key to entry. Keys outside [`FIELDS`] are kept as further facts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    entries: BTreeMap<String, Entry>,
}

impl Manifest {
    /// A fact beside the fields: how many ranks the job has at least, where a rank named only those that it talked to.
    pub const RANKS_AT_LEAST: &str = "parallel.ranks_at_least";

    /// Prefix of facts beside the fields: the name of a communicator, by the number that other files know it by.
    pub const COMMUNICATOR: &str = "communicator.";

    /// Sets a field unless it already holds an observed value, which nothing overrides.
    pub fn set(&mut self, key: &str, value: impl Into<String>, provenance: Provenance) {
        let observed = self.entries.get(key).is_some_and(|e| e.provenance == Provenance::Observed);
        if !observed {
            self.entries.insert(key.to_owned(), Entry { value: value.into(), provenance });
        }
    }

    /// The entry of a field; `None` is *unknown*.
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// The value of a field as text.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.entries.get(key).map(|e| e.value.as_str())
    }

    /// The value of a field as a count, where it is one.
    pub fn count(&self, key: &str) -> Option<u64> {
        self.value(key)?.trim().parse().ok()
    }

    /// All entries in key order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.entries.iter().map(|(key, entry)| (key.as_str(), entry))
    }
}

macro_rules! fields {
    ($($group:ident { $($control:ident $key:literal $what:literal)* })*) => {
        /// Every field of the comparability contract, group by group.
        pub const FIELDS: &[Field] = &[
            $($(Field { key: $key, group: Group::$group, control: Control::$control, what: $what },)*)*
        ];
    };
}

fields! {
    Model {
        Hard "model.name" "model name"
        Hard "model.revision" "revision of the weights"
        Hard "model.weight_hash" "hash of the weights"
        Hard "model.config_hash" "hash of the architecture configuration"
        Hard "model.layers" "number of decoder layers"
        Hard "model.hidden" "hidden size"
        Hard "model.heads" "attention heads of queries and of keys, and their size"
        Hard "model.tokenizer_hash" "hash of the tokenizer"
        Hard "model.lora" "adapters applied"
        Hard "model.conversion" "chain of conversions from the published weights"
    }
    Precision {
        Hard "precision.weights" "dtype of the weights"
        Hard "precision.activations" "dtype of the activations"
        Hard "precision.kv" "dtype of the KV cache"
        Hard "precision.accumulation" "dtype of accumulation"
        Hard "precision.logits" "dtype of the logits"
        Hard "precision.quantization" "quantisation scheme and calibration set"
        Hard "precision.deviation" "measured deviation from the reference"
    }
    Workload {
        Hard "workload.dataset" "data set and its hash"
        Hard "workload.prompt_len" "prompt lengths (tokens)"
        Hard "workload.output_len" "output lengths (tokens)"
        Hard "workload.requests" "number of requests"
        Hard "workload.arrival" "arrival process, or a fixed batch"
        Hard "workload.concurrency" "requests in flight"
        Hard "workload.stop_rule" "when a sequence ends"
        Hard "workload.sampling" "sampling parameters"
        Hard "workload.seed" "seed"
        Hard "workload.prefix_cache_hit" "prefix-cache hit rate"
        Hard "workload.speculative" "speculative decoding settings and acceptance"
    }
    Service {
        Hard "service.scenario" "single stream, fixed batch, server or offline"
        Hard "service.slo" "TTFT and TPOT targets with their percentile"
    }
    Warmup {
        Hard "warmup.discarded" "requests or steps discarded before measuring"
        Hard "warmup.compile_done" "whether compilation and graph capture had ended"
        Hard "warmup.change_point" "evidence that the step time had settled"
    }
    Parallel {
        Hard "parallel.tp" "tensor-parallel size"
        Hard "parallel.pp" "pipeline-parallel size"
        Hard "parallel.dp" "data-parallel size"
        Hard "parallel.ep" "expert-parallel size"
        Hard "parallel.sp" "sequence-parallel size"
        Hard "parallel.cp" "context-parallel size"
        Hard "parallel.pd_separation" "whether prefill and decode run on separate instances"
        Hard "parallel.world_size" "ranks of the job"
        Hard "parallel.nodes" "nodes of the job"
    }
    Caps {
        Hard "caps.batch" "batch actually run (sequences)"
        Soft "caps.max_num_seqs" "largest batch allowed (sequences)"
        Soft "caps.max_tokens" "most tokens of a step"
        Soft "caps.kv_blocks" "KV blocks available"
        Soft "caps.memory_fraction" "fraction of device memory used"
        Soft "caps.graph_sizes" "batch sizes with a captured graph"
        Soft "caps.chunked_prefill" "chunked prefill"
    }
    Measurement {
        Hard "measurement.metric" "definition of the metric"
        Hard "measurement.traced" "whether the run was traced, and by what"
        Soft "measurement.timer" "timer used"
        Soft "measurement.inflation" "traced step over untraced step (ratio)"
        Soft "measurement.repeats" "independent repeats"
        Soft "measurement.window" "window measured"
        Soft "measurement.clock_lock" "whether device clocks were locked"
    }
    Software {
        Soft "software.profiler" "profiler and its version"
        Soft "software.driver" "driver version"
        Soft "software.firmware" "firmware version"
        Soft "software.toolkit" "CUDA, CANN, DTK or ROCm version"
        Soft "software.comm_library" "communication library and version"
        Soft "software.framework" "framework and version"
        Soft "software.engine" "serving engine and version"
        Soft "software.graph_mode" "eager, piecewise or full graph"
        Soft "software.container" "container digest"
        Soft "software.env" "environment variables of the allow list"
        Soft "software.patches" "plugins and patches"
    }
    Hardware {
        Soft "hardware.device" "device model"
        Soft "hardware.vendor" "vendor of the device"
        Soft "hardware.count" "devices used"
        Soft "hardware.memory_bytes" "device memory (bytes)"
        Soft "hardware.partition" "partition of the device (MIG, slice)"
        Soft "hardware.clocks" "device clocks (MHz)"
        Soft "hardware.power_cap" "power limit (W)"
        Soft "hardware.ecc" "ECC"
        Soft "hardware.cpu" "CPU model"
        Soft "hardware.numa" "NUMA placement"
        Soft "hardware.topology" "link topology"
        Soft "hardware.co_tenants" "other users of the device"
        Soft "hardware.host" "host name"
        Soft "hardware.price" "price of an hour of the devices used, with its currency"
    }
    Tuning {
        Hard "tuning.class" "base or tuned"
        Soft "tuning.knobs" "non-default settings"
        Soft "tuning.effort" "person-hours spent"
    }
    Quality {
        Hard "quality.accuracy" "accuracy on a fixed set"
        Hard "quality.token_agreement" "agreement of greedy tokens with the reference"
        Hard "quality.generated_tokens" "tokens generated"
    }
}

/// What a person thinks of the documentation and the community of the platform: `good`, `fair` or `poor`, and why. No capture
/// shows it and no contract asks for it, so it is no field of it.
pub const COMMUNITY: Field = Field {
    key: "platform.community",
    group: Group::Software,
    control: Control::Soft,
    what: "documentation and community of the platform: good, fair or poor, and why",
};

/// What a person may say of a capture: the field of the contract with this key, or a judgement that only a person has.
pub fn declarable(key: &str) -> Option<&'static Field> {
    if key == COMMUNITY.key { Some(&COMMUNITY) } else { field(key) }
}

/// The field with this key, if the contract has it.
pub fn field(key: &str) -> Option<&'static Field> {
    FIELDS.iter().find(|f| f.key == key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_unique_and_carry_their_group() {
        for f in FIELDS {
            assert_eq!(FIELDS.iter().filter(|g| g.key == f.key).count(), 1, "{}", f.key);
            let group = format!("{:?}", f.group).to_lowercase();
            assert!(f.key.starts_with(&format!("{group}.")), "{} is in {group}", f.key);
        }
    }

    #[test]
    fn an_observed_value_is_never_overridden() {
        let mut m = Manifest::default();
        m.set("caps.batch", "8", Provenance::Declared);
        m.set("caps.batch", "16", Provenance::Observed);
        m.set("caps.batch", "32", Provenance::Declared);
        assert_eq!(m.value("caps.batch"), Some("16"));
        assert_eq!(m.get("model.name"), None);
    }
}
