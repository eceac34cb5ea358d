//! The tables of the text form, and the facts of the run beside either form. Times of tables are cells that end with a
//! tab, so that no spreadsheet rounds them.

use std::{fmt::Write as _, fs, io, path::Path};

use serde_json::{Value, json};

use super::{
    Form, Recorded,
    device::{Collective, Group, What},
    overlap::{Overlap, length},
};
use crate::clock::{EPOCH, micros};

const KERNELS: &str = "Device_id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),\
Duration(us),Wait Time(us),Block Num,Mix Block Num,HF32 Eligible,Input Shapes,Input Data Types,Input Formats,\
Output Shapes,Output Data Types,Output Formats,Context ID\n";
/// The columns of level 0.
const FEW: &str = "Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Dim\n";
/// Shapes, types and formats of inputs and outputs, and the context.
const UNTOLD: &str = ",N/A,N/A,N/A,N/A,N/A,N/A,N/A";
const STEPS: &str = "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,\
Communication(Not Overlapped and Exclude Receive),Preparing\n";

impl Recorded {
    /// Writes `kernel_details.csv`.
    pub(super) fn operators(&self, output: &Path) -> io::Result<()> {
        fs::write(output.join("kernel_details.csv"), self.kernels())
    }

    /// Writes `step_trace_time.csv`.
    pub(super) fn parts(&self, output: &Path) -> io::Result<()> {
        fs::write(output.join("step_trace_time.csv"), self.steps())
    }

    /// A row per operator and collective in the order of time. What a kernel waited is the time since the row before.
    fn kernels(&self) -> String {
        let (device, detailed) = (self.run.device(), self.is_detailed());
        let mut rows: Vec<(i64, i64, String, String)> = Vec::new();
        for (number, task) in self.device.tasks.iter().enumerate() {
            if let What::Kernel { name, blocks, .. } = task.what {
                let kind = name.rsplit('_').next().unwrap_or(name);
                let (head, tail) = if detailed {
                    let (task_id, stream, core) = (number % 65_536, task.stream, task.kind());
                    let head = format!("{device},{},{task_id},{stream},{name},{kind},dynamic,{core}", task.model);
                    (head, format!("{blocks},0,NO{UNTOLD}"))
                } else {
                    (format!("{name},N/A,N/A"), "0".to_owned())
                };
                rows.push((task.start, task.end, head, tail));
            }
        }
        for Collective { name, op, model, start, end, .. } in &self.device.collectives {
            let (head, tail) = if detailed {
                let head = format!("{device},{model},N/A,N/A,{name},{op},N/A,COMMUNICATION");
                (head, format!("0,0,N/A{UNTOLD}"))
            } else {
                (format!("{name},N/A,COMMUNICATION"), "0".to_owned())
            };
            rows.push((*start, *end, head, tail));
        }
        rows.sort_unstable_by_key(|row| (row.0, row.1));
        let (mut out, mut last) = (if detailed { KERNELS } else { FEW }.to_owned(), None);
        for (start, end, head, tail) in rows {
            let wait = last.replace(end).map_or(0, |last| (start - last).max(0));
            let (at, duration, wait) = (micros(EPOCH + start), micros(end - start), micros(wait));
            // Writing to text does not fail.
            let _ = writeln!(out, "{head},{at}\t,{duration},{wait},{tail}");
        }
        out
    }

    /// One row: nothing marked the steps, so all is one of them without a name.
    fn steps(&self) -> String {
        format!("{STEPS}{},,{}\n", self.run.device(), self.step_parts().map(micros).join(","))
    }

    /// Parts of the only step in the order of their columns. The bubble is what the rank receives for.
    pub(super) fn step_parts(&self) -> [i64; 9] {
        let overlap = Overlap::of(&self.device);
        let [computing, communication, exposed, free] =
            [&overlap.computing, &overlap.communication, &overlap.exposed, &overlap.free].map(|time| length(time));
        let receives = self.device.collectives.iter().filter(|one| one.op == "hcom_receive_");
        let bubble: i64 = receives.map(|one| one.end - one.start).sum();
        let stage = computing + exposed + free - bubble;
        let rest = (exposed - bubble).max(0);
        [computing, exposed, communication - exposed, communication, free, stage, bubble, rest, 0]
    }

    /// Writes `profiler_info_<rank>.json` and `profiler_metadata.json`.
    pub(super) fn facts(&self, root: &Path, form: Form) -> io::Result<()> {
        let (start, end) = self.run.extent();
        let info = json!({
            "strato_simulated": true,
            "config": {
                "common_config": {
                    "activities": ["ProfilerActivity.CPU", "ProfilerActivity.NPU"],
                    "record_shapes": self.run.config.record_shapes, "with_stack": self.run.config.python_frames,
                    "profile_memory": false, "with_flops": false, "with_modules": false,
                },
                "experimental_config": {
                    "_profiler_level": if self.is_detailed() { "Level1" } else { "Level0" }, "_aic_metrics": "ACL_AICORE_NONE",
                    "_export_type": [if form == Form::Text { "text" } else { "db" }], "_gc_detect_threshold": 0,
                },
            },
            "start_info": {"syscnt_enable": true, "freq": 100, "start_cnt": start / 10, "start_monotonic": start},
            "end_info": {"collectionTimeEnd": EPOCH + end, "MonotonicTimeEnd": end},
            "torch_npu_version": "2.7.1", "cann_version": "8.3.RC1", "rank_id": self.run.rank,
        });
        let mut metadata = json!({"ENV_VARIABLES": {}});
        if self.is_detailed() {
            metadata["distributed_args"] = self.parallel();
            metadata["parallel_group_info"] = self.groups();
        }
        fs::write(root.join(format!("profiler_info_{}.json", self.run.rank)), pretty(&info)?)?;
        fs::write(root.join("profiler_metadata.json"), pretty(&metadata)?)
    }
}

impl Recorded {
    /// How the job is divided.
    pub(super) fn parallel(&self) -> Value {
        let tensor = self.run.config.tensor_parallel;
        json!({
            "tensor_model_parallel_size": tensor, "pipeline_model_parallel_size": self.world / tensor.max(1),
            "world_size": self.world, "rank": self.run.rank,
        })
    }

    /// The groups of ranks that this one is in, but for those that the library makes for two.
    fn groups(&self) -> Value {
        let group = Group::of(&self.run, None);
        let name = if self.run.config.tensor_parallel > 1 { "tp" } else { "pp" };
        let ranks: Vec<i64> = (0..self.world).collect();
        json!({group.name(): {"group_name": name, "group_rank": self.run.rank, "global_ranks": ranks}})
    }
}

fn pretty(value: &Value) -> io::Result<String> {
    Ok(serde_json::to_string_pretty(value)?)
}
