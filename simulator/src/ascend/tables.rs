//! The tables of the text form, and the facts of the run beside either form. Times of tables are cells that end with a
//! tab, so that no spreadsheet rounds them.

use std::{fmt::Write as _, fs, io, path::Path};

use serde_json::{Value, json};

use super::{
    Form, Recorded,
    device::{GROUP_NAME, What},
    overlap::{Overlap, length},
};
use crate::clock::{EPOCH, micros};

const KERNELS: &str = "Device_id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),\
Duration(us),Wait Time(us),Block Num,Mix Block Num,HF32 Eligible,Input Shapes,Input Data Types,Input Formats,\
Output Shapes,Output Data Types,Output Formats,Context ID\n";
const STEPS: &str = "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,\
Communication(Not Overlapped and Exclude Receive),Preparing\n";

impl Recorded {
    /// Writes `kernel_details.csv` and `step_trace_time.csv`.
    pub(super) fn tables(&self, output: &Path) -> io::Result<()> {
        fs::write(output.join("kernel_details.csv"), self.kernels())?;
        fs::write(output.join("step_trace_time.csv"), self.steps())
    }

    /// A row per operator and collective in the order of time. What a kernel waited is the time since the row before.
    fn kernels(&self) -> String {
        let device = self.run.device();
        let mut rows: Vec<(i64, i64, String, String)> = Vec::new();
        for (number, task) in self.device.tasks.iter().enumerate() {
            if let What::Kernel { name, blocks, .. } = task.what {
                let kind = name.rsplit('_').next().unwrap_or(name);
                let head = format!(
                    "{device},{},{},{},{name},{kind},dynamic,{}",
                    task.model,
                    number % 65_536,
                    task.stream,
                    task.kind()
                );
                rows.push((task.start, task.end, head, format!("{blocks},0,NO")));
            }
        }
        for collective in &self.device.collectives {
            let head = format!(
                "{device},{},N/A,N/A,{},{},N/A,COMMUNICATION",
                collective.model, collective.name, collective.op
            );
            rows.push((collective.start, collective.end, head, "0,0,N/A".to_owned()));
        }
        rows.sort_unstable_by_key(|row| (row.0, row.1));
        let (mut out, mut last) = (KERNELS.to_owned(), None);
        for (start, end, head, tail) in rows {
            let wait = last.replace(end).map_or(0, |last| (start - last).max(0));
            let (at, duration, wait) = (micros(EPOCH + start), micros(end - start), micros(wait));
            // Writing to text does not fail.
            let _ = writeln!(out, "{head},{at}\t,{duration},{wait},{tail},N/A,N/A,N/A,N/A,N/A,N/A,N/A");
        }
        out
    }

    /// One row: nothing marked the steps, so all is one of them without a name.
    fn steps(&self) -> String {
        let overlap = Overlap::of(&self.device);
        let [computing, communication, exposed, free] =
            [&overlap.computing, &overlap.communication, &overlap.exposed, &overlap.free].map(|time| length(time));
        let stage = computing + exposed + free;
        let cells =
            [computing, exposed, communication - exposed, communication, free, stage, 0, exposed, 0].map(micros);
        format!("{STEPS}{},,{}\n", self.run.device(), cells.join(","))
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
                    "_profiler_level": "Level1", "_aic_metrics": "ACL_AICORE_NONE",
                    "_export_type": [if form == Form::Text { "text" } else { "db" }], "_gc_detect_threshold": 0,
                },
            },
            "start_info": {"syscnt_enable": true, "freq": 100, "start_cnt": start / 10, "start_monotonic": start},
            "end_info": {"collectionTimeEnd": EPOCH + end, "MonotonicTimeEnd": end},
            "torch_npu_version": "2.7.1", "cann_version": "8.3.RC1", "rank_id": self.run.rank,
        });
        let ranks: Vec<i64> = (0..self.world).collect();
        let metadata = json!({
            "ENV_VARIABLES": {},
            "distributed_args": {
                "tensor_model_parallel_size": self.world, "world_size": self.world, "rank": self.run.rank,
            },
            "parallel_group_info": {GROUP_NAME: {"group_name": "tp", "group_rank": self.run.rank, "global_ranks": ranks}},
        });
        fs::write(root.join(format!("profiler_info_{}.json", self.run.rank)), pretty(&info)?)?;
        fs::write(root.join("profiler_metadata.json"), pretty(&metadata)?)
    }
}

fn pretty(value: &Value) -> io::Result<String> {
    Ok(serde_json::to_string_pretty(value)?)
}
