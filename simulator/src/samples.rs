//! The captures that the repository carries as samples.

use std::{fmt::Write, fs, path::Path};

use crate::{
    config::{Annotation, Config, Mode, TokenReturn},
    fault::{Fault, FaultKind},
    kernel::Vendor,
    run::{WriteError, simulate},
};

/// A sample capture.
pub struct Sample {
    /// File name.
    pub file: &'static str,
    /// What it shows.
    pub shows: &'static str,
    /// The run.
    pub config: Config,
}

/// A small CUDA decode that samples are varied from.
fn base(seed: u64) -> Config {
    Config {
        vendor: Vendor::Cuda,
        layers: 4,
        batch: 8,
        mode: Mode::Full,
        steps: 24,
        warmup_steps: 2,
        prefill_every: 0,
        streams: 1,
        tensor_parallel: 1,
        quantized: false,
        async_scheduling: false,
        token_return: TokenReturn::EventSync,
        annotation: Annotation::Vllm,
        framework_ops: true,
        python_frames: false,
        allocate_every: 0,
        flush_every: 0,
        graph_level_trace: false,
        heat_permille: 0,
        host_noise_permille: 0,
        counters: false,
        record_shapes: false,
        ..Config::draw(seed)
    }
}

/// All samples.
pub fn all() -> Vec<Sample> {
    let faults = |kind| vec![Fault { kind, magnitude_permille: 1000 }];
    let eager = base(2);
    // Issued one by one, each operation costs the host more than the device.
    let launch_bound =
        Config { framework_ns: eager.mean_kernel() * 8 / 5, faults: faults(FaultKind::GraphOff), ..eager };
    vec![
        Sample {
            file: "healthy-full-graph.json.gz",
            shows: "asynchronous decode in one graph per step, nothing wrong with it (Kineto)",
            config: Config { async_scheduling: true, python_frames: true, flush_every: 16, ..base(1) },
        },
        Sample {
            file: "launch-bound-eager.json.gz",
            shows: "decode issued operation by operation although a graph would serve (Kineto)",
            config: launch_bound,
        },
        Sample {
            file: "tensor-parallel-rocm.json.gz",
            shows: "one rank of two, with a prefill step now and then and a side stream (Kineto, ROCm names)",
            config: Config {
                vendor: Vendor::Rocm,
                tensor_parallel: 2,
                streams: 2,
                prefill_every: 9,
                annotation: Annotation::Sglang,
                ..base(3)
            },
        },
        Sample {
            file: "sync-per-layer.sqlite",
            shows: "the host waits for the device in each layer (nsys)",
            config: Config {
                mode: Mode::Eager,
                steps: 10,
                framework_ops: false,
                faults: faults(FaultKind::LayerSync),
                ..base(4)
            },
        },
    ]
}

/// Writes all samples, their truths and a README that says where they come from into `directory`.
pub fn write(directory: &Path) -> Result<(), WriteError> {
    let io = |source| WriteError::Io { path: directory.display().to_string(), source };
    fs::create_dir_all(directory).map_err(io)?;
    let mut readme = String::from(
        "# Sample captures\n\n\
         Every capture here is **simulated**: no device was involved, and each file says so itself (`stratoSimulated`,\n\
         `strato_simulated`, device name `SIMULATED GPU`). They are made by\n\n    \
         cargo run -p stratoscope-simulator --bin make-samples\n\n\
         which writes the same captures each time; a test compares them. Beside each lies its truth\n\
         (`*.truth.json`): the configuration, what is wrong with the run, and the exact buckets of each step in integer\n\
         nanoseconds.\n\n| capture | seed | shows |\n| --- | --- | --- |\n",
    );
    for sample in all() {
        let run = simulate(&sample.config);
        let path = directory.join(sample.file);
        if sample.file.ends_with(".sqlite") {
            run.write_nsys(&path)?
        } else {
            run.write_kineto(&path)?
        }
        let stem = sample.file.split('.').next().unwrap_or(sample.file);
        run.write_truth(&directory.join(format!("{stem}.truth.json")))?;
        // Writing to a string cannot fail.
        let _ = writeln!(readme, "| `{}` | {} | {} |", sample.file, sample.config.seed, sample.shows);
    }
    fs::write(directory.join("README.md"), readme).map_err(io)
}
