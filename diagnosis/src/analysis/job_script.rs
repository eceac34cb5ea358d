//! Captures of several ranks written by hand, for tests: the same steps on every rank, each with its own pace and clock.

#![allow(clippy::unwrap_used)]

use model::{Category, Ns, Trace};

use super::{Analysis, script::Script};

const GEMM: &str = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64";
const NORM: &str = "void vllm::rms_norm_kernel<c10::BFloat16>(c10::BFloat16*, c10::BFloat16 const*)";

/// Transfer of every collective, ns.
pub const TRANSFER: Ns = 10_000;

/// A job of ranks that run the same steps: per step `layers` times host work, a GEMM, a norm and an all-reduce.
#[derive(Clone, Debug)]
pub struct Run {
    /// Per rank and collective: GEMM and host time, ns.
    pub work: Vec<Vec<(Ns, Ns)>>,
    /// Layers of a step, with a collective each.
    pub layers: usize,
    /// Clock of each rank against the true time, ns.
    pub clocks: Vec<Ns>,
    /// Whether the source numbers the collectives of a group.
    pub numbered: bool,
    /// Records of collectives that a rank lost.
    pub dropped: Vec<(usize, usize)>,
    /// Transfer of each collective, ns, where it is not [`TRANSFER`].
    pub transfers: Vec<(usize, Ns)>,
    /// How much the clock of each rank gains, parts per million, where it gains anything.
    pub rates: Vec<Ns>,
    /// Sequences that each rank decodes in a step, where they are not four.
    pub batches: Vec<u32>,
    /// Name of the matrix product.
    pub product: &'static str,
}

impl Run {
    /// A job on true clocks whose collectives are numbered.
    pub fn new(work: Vec<Vec<(Ns, Ns)>>, layers: usize) -> Self {
        let (clocks, rates, batches) = (vec![0; work.len()], Vec::new(), Vec::new());
        let (dropped, transfers) = (Vec::new(), Vec::new());
        Self { clocks, rates, batches, work, layers, numbered: true, dropped, transfers, product: GEMM }
    }

    fn write(&self) -> Script {
        let mut s = Script::default();
        let ranks = self.work.len();
        let mut ready = vec![0; ranks];
        let mut rows: Vec<Vec<[(Ns, Ns); 6]>> = vec![Vec::new(); ranks];
        for c in 0..self.work[0].len() {
            let mut here: Vec<[(Ns, Ns); 6]> = Vec::new();
            for (rank, t) in ready.iter().enumerate() {
                let (gemm, host) = self.work[rank][c];
                // The host waits for the end of the last collective, works, then launches three operations.
                let call = t + host;
                let at = call + 2_000;
                let after = (at + gemm + 500, at + gemm + 3_500);
                let start = after.1 + 500;
                let calls = [(call, call + 1_000), (call + 1_000, call + 1_500), (call + 1_500, call + 2_000)];
                here.push([calls[0], calls[1], calls[2], (at, at + gemm), after, (start, start)]);
            }
            let transfer = self.transfers.iter().find(|(i, _)| *i == c).map_or(TRANSFER, |(_, ns)| *ns);
            let all = here.iter().map(|h| h[5].0).max().unwrap() + transfer;
            for (rank, mut h) in here.into_iter().enumerate() {
                h[5].1 = all;
                rows[rank].push(h);
                ready[rank] = all;
            }
        }
        for (rank, rows) in rows.iter().enumerate() {
            s.rank(rank as u32);
            let (offset, batch) = (self.clocks[rank], self.batches.get(rank).copied().unwrap_or(4));
            let rate = self.rates.get(rank).copied().unwrap_or(0);
            let clock = |ns: Ns| ns + offset + ns * rate / 1_000_000;
            let label = format!("execute_context_0(0)_generation_{batch}({batch})");
            for (c, row) in rows.iter().enumerate() {
                let [a, b, d, gemm, norm, comm] = row.map(|(from, to)| (clock(from), clock(to)));
                if c % self.layers == 0 {
                    let end = clock(rows[(c + self.layers).min(rows.len()) - 1][5].1);
                    s.host(Category::UserRange, &label, (a.0 - 1, end));
                }
                s.launch(a, self.product, gemm);
                s.launch(b, NORM, norm);
                s.call("cudaStreamSynchronize", (d.1, comm.1));
                if !self.dropped.contains(&(rank, c)) {
                    s.collective(d, ("tp", self.work.len() as u32), self.numbered.then_some(c as i64), comm);
                }
            }
        }
        s
    }

    /// The capture and its analysis.
    pub fn analyze(&self) -> (Trace, Analysis) {
        self.write().analyze()
    }
}
