//! What a run of the engine says of itself: what follows from what is asked for, and what only the run tells.

use engine::{
    Config, Target,
    record::{Kind, Log, Observer},
    run::{Engine, Mode, RunOptions},
};
use model::{Provenance, Reading, TraceSink};

use super::{Facts, Model};

/// What was put into a run on purpose. It stands beside the capture to score a diagnosis, which must not read it.
pub const TRUTH: &str = "truth.injected";

/// The fields that follow from what is asked for; a run that ends early has less output than that.
pub fn asked(config: &Config, options: &RunOptions, ranks: usize, model: Model<'_>) -> Vec<(&'static str, String)> {
    let (revision, hash) = match model.weights_seed {
        Some(0) => ("synthetic, from tensor names".to_owned(), Some(0)),
        Some(seed) => (format!("synthetic, seed {seed}"), Some(seed)),
        None => ("checkpoint".to_owned(), None),
    };
    let conversion = match config.published {
        Some(published) if published != options.dtype => format!("{} to {}", published.name(), options.dtype.name()),
        _ if hash.is_some() => "none".to_owned(),
        _ => "read as published".to_owned(),
    };
    let graphs = options.mode != Mode::Eager;
    let fingerprint = format!("{:016x}", config.fingerprint());
    // Weights that are made follow from what they are made from.
    let made = hash.map(|seed| ("model.weight_hash", format!("synthetic-{fingerprint}-{seed}")));
    let activations = options.target.activations(options.dtype).name().to_owned();
    let fields = [
        ("model.name", model.name.to_owned()),
        ("model.revision", revision),
        ("model.config_hash", fingerprint),
        ("model.layers", config.layers.to_string()),
        ("model.hidden", config.hidden.to_string()),
        ("model.heads", format!("{} of {}, {} of keys", config.heads, config.head_dim, config.kv_heads)),
        // Tokens are given and told as numbers.
        ("model.tokenizer_hash", "none".to_owned()),
        ("model.conversion", conversion),
        ("model.lora", "none".to_owned()),
        ("precision.weights", options.dtype.name().to_owned()),
        ("precision.activations", activations.clone()),
        ("precision.kv", activations.clone()),
        ("precision.accumulation", "f32".to_owned()),
        ("precision.logits", activations),
        ("precision.quantization", if options.dtype.name() == "q8" { "blocks of weights" } else { "none" }.to_owned()),
        ("workload.dataset", prompts(options)),
        ("workload.prompt_len", options.prompt.to_string()),
        ("workload.output_len", options.steps.to_string()),
        ("workload.requests", options.batch.to_string()),
        ("workload.arrival", "fixed batch".to_owned()),
        ("workload.concurrency", options.batch.to_string()),
        ("workload.stop_rule", "number of tokens".to_owned()),
        ("workload.sampling", "greedy".to_owned()),
        ("workload.seed", options.seed.to_string()),
        // No prompt was seen before, and every token goes where the model sends it.
        ("workload.prefix_cache_hit", "0 %".to_owned()),
        ("workload.routing", "model".to_owned()),
        ("workload.speculative", "none".to_owned()),
        ("service.scenario", if options.batch == 1 { "single stream" } else { "fixed batch" }.to_owned()),
        ("service.slo", "none".to_owned()),
        // Nothing is compiled while a run goes on, and everything from its first step on is recorded.
        ("warmup.compile_done", "yes".to_owned()),
        ("warmup.discarded", "0".to_owned()),
        ("parallel.tp", ranks.to_string()),
        ("parallel.world_size", ranks.to_string()),
        // Ranks divide the model's tensors and nothing else.
        ("parallel.pp", "1".to_owned()),
        ("parallel.dp", "1".to_owned()),
        ("parallel.ep", "1".to_owned()),
        ("parallel.sp", "1".to_owned()),
        ("parallel.cp", "1".to_owned()),
        ("parallel.nodes", "1".to_owned()),
        ("parallel.pd_separation", "no".to_owned()),
        ("caps.batch", options.batch.to_string()),
        ("caps.max_num_seqs", options.batch.to_string()),
        ("caps.max_tokens", (options.batch * options.prompt).to_string()),
        ("caps.chunked_prefill", "no".to_owned()),
        ("caps.graph_sizes", if graphs { options.batch.to_string() } else { "none".to_owned() }),
        ("measurement.traced", traced(options.observer).to_owned()),
        ("measurement.observer", options.observer.name().to_owned()),
        ("measurement.window", "every decode step".to_owned()),
        ("software.engine", concat!("stratoscope ", env!("CARGO_PKG_VERSION")).to_owned()),
        ("software.profiler", concat!("stratoscope ", env!("CARGO_PKG_VERSION"), ", record of the engine").to_owned()),
        ("software.framework", "none".to_owned()),
        ("software.patches", "none".to_owned()),
        ("software.python", "none".to_owned()),
        // The engine asks the environment for nothing.
        ("software.env", "none".to_owned()),
        ("software.graph_mode", graph_mode(options.mode).to_owned()),
        ("hardware.vendor", options.target.vendor().to_owned()),
        ("hardware.count", "1".to_owned()),
        // Whatever can be asked of the engine its help describes; it knows nothing that would suit one machine alone.
        ("tuning.class", "base".to_owned()),
        ("quality.generated_tokens", (options.batch * (options.steps + 1)).to_string()),
    ];
    fields.into_iter().chain(made).collect()
}

/// How a decode step is started, in the words of the field.
fn graph_mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Eager => "eager",
        Mode::Piecewise => "piecewise graphs",
        Mode::Graph => "full graph",
    }
}

/// What of a run is recorded, and by what.
fn traced(observer: Observer) -> &'static str {
    match observer {
        Observer::Off => "steps only, by the engine itself",
        Observer::Host => "host only, by the engine itself",
        Observer::Device => "by the engine itself",
        Observer::Graph | Observer::Node => "by the engine itself and CUPTI",
    }
}

/// Writes what is known of a run.
pub(super) fn manifest(engine: &Engine, log: &Log, facts: Facts<'_>, sink: &mut dyn TraceSink) {
    let options = engine.options();
    // The prompt is a step too. A run may end before all steps that were asked for.
    let decoded = log.records().iter().filter(|r| r.kind == Kind::Step && r.step > 0).count();
    let faults = &options.faults.asked;
    if !faults.is_empty() {
        sink.manifest(TRUTH, &faults.join(" "), Provenance::Observed);
    }
    let device = engine.device();
    let host_clock = "monotonic clock of the host";
    let timer = match log.uncertainty {
        Some(ns) => format!("stamps of the device, put on the {host_clock} to within {ns} ns"),
        None => host_clock.to_owned(),
    };
    let (built_for, level) = (&device.kernels, options.level);
    let knobs = match options.target {
        Target::Cpu => format!("{} threads, {built_for}, {level:?}", options.threads),
        Target::OpenCl(_) | Target::Cuda(_) | Target::Ascend(_) => format!("{built_for}, {level:?}"),
    };
    let ranks = engine.shard().of;
    let library = match options.target {
        _ if ranks < 2 => "none".to_owned(),
        Target::Ascend(_) => format!("HCCL between {}", facts.ranks),
        Target::Cuda(_) => format!("NCCL between {}", facts.ranks),
        _ => format!("stratoscope shared memory between {}", facts.ranks),
    };
    let early = (decoded < options.steps).then(|| {
        let tokens = options.batch * (decoded + 1);
        [
            ("workload.output_len", decoded.to_string()),
            ("workload.stop_rule", "time".to_owned()),
            ("quality.generated_tokens", tokens.to_string()),
        ]
    });
    let told =
        [("measurement.timer", timer), ("software.comm_library", library), ("tuning.knobs", knobs.to_lowercase())];
    let stamps = device.facts.iter().find(|(key, _)| *key == "cuda.stamps").map_or("", |(_, stamps)| stamps);
    let of_device = facts.cupti.fields(stamps);
    // Of a field that is said twice the first counts.
    let fields = of_device
        .into_iter()
        .chain(early.into_iter().flatten())
        .chain(asked(engine.config(), options, ranks, facts.model))
        .chain(told);
    for (key, value) in fields.chain(device.facts.iter().cloned()) {
        sink.manifest(key, &value, Provenance::Observed);
    }
    let mut read = |key: &str, reading: Option<String>| {
        if let Some(value) = reading {
            sink.manifest(key, &value, Provenance::Observed);
        }
    };
    let text = |reading: &Reading<String>| reading.value().cloned();
    read("hardware.device", device.name.clone().or_else(|| text(&facts.host.cpu)));
    read("hardware.cpu", text(&facts.host.cpu));
    let memory = device.memory_bytes.or(facts.host.memory_bytes.value().copied());
    read("hardware.memory_bytes", memory.map(|bytes| bytes.to_string()));
    read("software.driver", device.driver.clone().or_else(|| text(&facts.host.system)));
}

/// What sequences are fed, without the seed, which has a field of its own: given prompts by a number that equal ones share.
fn prompts(options: &RunOptions) -> String {
    if options.ids.is_empty() {
        return "prompts made from the seed".to_owned();
    }
    // FNV-1a over the prompts' lengths and ids.
    let one = |ids: &Vec<u32>| std::iter::once(ids.len() as u64).chain(ids.iter().map(|id| (*id).into())).collect();
    let numbers = options.ids.iter().flat_map::<Vec<u64>, _>(one);
    let hash = numbers.fold(0xcbf2_9ce4_8422_2325, |hash: u64, n| (hash ^ n).wrapping_mul(0x0100_0000_01b3));
    format!("given prompts, {hash:016x}")
}
