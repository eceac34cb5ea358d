//! The JSON of hipprof, the profiler of Hygon's DTK: a lane per kind of activity and the process among the arguments, as
//! roctracer writes them. Of the host there are the calls of HIP and nothing else.
//!
//! What differs from other profilers: a kernel that was queued begins where its predecessor ended, so that the time of its
//! dispatch lies in its duration. Which operation waits for which other stream is not recorded.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::Path,
};

use serde_json::{Value, json};

use crate::{
    clock::micros,
    job::Job,
    kernel::Vendor,
    record::{Bound, DeviceOp, Direction, Work},
    run::{Run, WriteError},
};

/// Lanes of copies and of calls; those of the devices follow from [`DEVICES`] on.
const COPIES: i64 = 1;
const CALLS: i64 = 2;
const DEVICES: i64 = 6;

impl Job {
    /// Writes one file with a lane per rank's device. The profiler of a host sees all its processes by one clock, so the
    /// times are true ones.
    pub fn write_hipprof(&self, path: &Path) -> Result<(), WriteError> {
        for run in &self.ranks {
            run.expect_vendor("hipprof", &[Vendor::Rocm], path)?;
        }
        let write = || {
            let mut out = BufWriter::new(File::create(path)?);
            let about = json!({"tool": "hipprof", "stratoSimulated": "true"});
            write!(out, "{{\"otherData\": {about},\n\"traceEvents\": [{{}}")?;
            name(&mut out, COPIES, "COPY")?;
            name(&mut out, CALLS, "CPU HIP API")?;
            for run in &self.ranks {
                name(&mut out, DEVICES + run.device(), &format!("GPU{}", run.device()))?;
                run.hipprof(&mut out)?;
            }
            writeln!(out, "\n]}}")?;
            out.flush()
        };
        write().map_err(|source| WriteError::Io { path: path.display().to_string(), source })
    }
}

fn name(out: &mut impl Write, lane: i64, name: &str) -> io::Result<()> {
    write!(out, ",\n{}", json!({"ph": "M", "name": "process_name", "pid": lane, "args": {"name": name}}))
}

fn span(out: &mut impl Write, name: &str, at: (i64, i64), time: (i64, i64), args: &Value) -> io::Result<()> {
    let (name, (pid, tid), ts, dur) = (json!(name), at, micros(time.0), micros(time.1 - time.0));
    write!(
        out,
        ",\n{{\"ph\": \"X\", \"name\": {name}, \"pid\": {pid}, \"tid\": {tid}, \"ts\": \"{ts}\", \"dur\": \"{dur}\", \"args\": {args}}}"
    )
}

impl Run {
    fn hipprof(&self, out: &mut impl Write) -> io::Result<()> {
        let (process, thread) = (self.pid().to_string(), self.pid());
        for event in self.host.iter().filter(|event| event.kind.is_api()) {
            let args = json!({"pid": process, "tid": process, "Index": event.correlation});
            span(out, &event.name, (CALLS, thread), (event.start, event.end), &args)?;
        }
        let begins = self.begins();
        for op in self.kept() {
            let args = json!({
                "pid": process, "tid": process, "Index": self.host[op.call].correlation, "dev-id": self.rank,
                "queue-id": if matches!(op.work, Work::Copy { .. }) { 0 } else { op.stream + 1 }, "stream-id": op.stream + 9,
            });
            let begin = begins(op);
            let (lane, name) = match op.work {
                Work::Copy { direction, .. } => (COPIES, copy(direction)),
                Work::Memset => (DEVICES + self.device(), "FillBuffer"),
                Work::Compute(_) | Work::Collective { .. } => {
                    let name = op.kernel(self.config.vendor);
                    (DEVICES + self.device(), name)
                }
            };
            span(out, name, (lane, i64::try_from(op.stream).unwrap_or(0)), (begin, op.end), &args)?;
        }
        Ok(())
    }

    /// When each operation begins as the profiler sees it: a kernel that had been issued before the operation before it
    /// ended (on its stream or on one that it waits for) where that one ended; all else when it really began.
    fn begins(&self) -> impl Fn(&DeviceOp) -> i64 + '_ {
        let mut ends: Vec<i64> = self.ops.iter().map(|op| op.end).collect();
        ends.sort_unstable();
        move |op| {
            let kernel = matches!(op.work, Work::Compute(_) | Work::Collective { .. });
            let queued = kernel && matches!(op.bound, Bound::Stream | Bound::Node);
            let before = ends.partition_point(|end| *end <= op.start).checked_sub(1).map(|at| ends[at]);
            before.filter(|end| queued && self.host[op.call].end <= *end).unwrap_or(op.start)
        }
    }
}

/// What a copy is called.
fn copy(direction: Direction) -> &'static str {
    match direction {
        Direction::HostToDevice => "CopyHostToDevice",
        Direction::DeviceToHost => "CopyDeviceToHost",
        Direction::DeviceToDevice | Direction::PeerToPeer => "CopyDeviceToDevice",
    }
}
