//! How fast a capture goes into its file and back: 1 M slices on a host thread and a device queue, best of three.
#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use model::{Category, Detail, KernelDetail, Slice, Trace, TraceBuilder, TraceSink, TrackKey, TrackKind};

const SLICES: i64 = 1_000_000;

fn trace() -> Trace {
    let mut b = TraceBuilder::new("bench", "bench");
    let process = b.process(0);
    let host = b.track(TrackKey { kind: TrackKind::HostThread, process, device: None, context: None, id: 1 });
    let queue = b.track(TrackKey { kind: TrackKind::DeviceQueue, process, device: Some(0), context: None, id: 7 });
    let names: Vec<_> =
        (0..2000).map(|i| b.intern(&format!("void cutlass::Kernel2<gemm_bf16_{i}_tn_align8>(Params)"))).collect();
    for i in 0..SLICES / 2 {
        let (start, name) = (i * 4000, names[(i * 7 % 2000) as usize]);
        let detail = Detail::Kernel(KernelDetail { grid: Some([(i % 500) as u32, 1, 1]), ..KernelDetail::default() });
        let base = Slice {
            track: host,
            start,
            dur: 1500,
            name: names[0],
            category: Category::HostApi,
            correlation: Some(i),
            detail: None,
        };
        b.slice(base);
        let kernel = Slice {
            track: queue,
            start: start + 3000,
            name,
            category: Category::Kernel,
            detail: Some(&detail),
            ..base
        };
        b.slice(kernel);
    }
    b.finish()
}

fn best(mut work: impl FnMut()) -> Duration {
    let time = |_| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    (0..3).map(time).min().unwrap()
}

struct Count(u64);

impl store::Sink for Count {
    fn columns(&mut self, _: &[&str]) -> std::io::Result<()> {
        Ok(())
    }

    fn row(&mut self, _: Vec<store::Value>) -> std::io::Result<()> {
        self.0 += 1;
        Ok(())
    }
}

fn main() {
    let trace = trace();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bench.strato");
    let rate = |t: Duration| SLICES as u128 * 1_000_000 / t.as_micros().max(1);
    let saved = best(|| store::save(&path, std::slice::from_ref(&trace)).unwrap());
    println!("save  {saved:>10.1?}  {:>10} slices/s  {} bytes", rate(saved), path.metadata().unwrap().len());
    let loaded = best(|| assert_eq!(store::load(&path).unwrap()[0].slice_count() as i64, SLICES));
    println!("load  {loaded:>10.1?}  {:>10} slices/s", rate(loaded));
    for sql in [
        "SELECT count(*), sum(dur_ns), sum(launch_ns) FROM kernels",
        "SELECT name, count(*), sum(dur_ns) FROM kernels GROUP BY name",
        "SELECT sum(dur_ns), sum(work) FROM launches",
        "SELECT count(*), sum(dur_ns) FROM copies",
        "SELECT count(*), sum(dur_ns) FROM syncs",
        "SELECT count(*), sum(dur_ns) FROM ranges",
        "SELECT count(*), sum(dur_ns) FROM collectives",
    ] {
        let mut rows = Count(0);
        let asked = best(|| store::query(&path, sql, None, &mut rows).unwrap());
        println!("query {asked:>10.1?}  {sql}");
    }
}
