//! Managed memory that the driver moved by itself: kernels and the host wait for it at page faults, and no call asked for it.

use model::{Category, CopyDetail, Detail, ImportStat, Ns, Span, slice::MANAGED};

use super::{Case, Unjudged};
use crate::{
    analysis::OpKind,
    diagnose::signals::reading::{merged, overlap},
    i18n::{Message, Text, Value},
};

/// What it says.
const SENTENCE: Text = Text::new(
    "how much of the kernels' time is page faults: managed (unified) memory migrates {n} times, {bytes} in {time}{faults}{after}, while kernels or the host wait for it; {advice}",
    "内核时间中有多少是缺页：托管（统一）内存迁移 {n} 次，共 {bytes}、{time}{faults}{after}，其间内核或主机在等待；{advice}",
);
/// Time of migrations over that of the step from which the layer to blame hangs on them: kernels are as long as their page faults
/// make them; own value.
const DECIDES: f64 = 0.10;
/// The same where migrations run beside kernels.
const BESIDE: Text = Text::new(
    "how fast the kernels would be without page faults: for {beside} of their {kernels} managed (unified) memory migrates beside them ({n} times, {bytes} in {time}{faults}{after}); {advice}",
    "没有缺页时内核有多快：其 {kernels} 中有 {beside} 伴随托管（统一）内存迁移（{n} 次，共 {bytes}、{time}{faults}{after}）；{advice}",
);
const PREFETCH: Text = Text::new(
    "prefetch it with cudaMemPrefetchAsync, or use cudaMalloc with explicit copies",
    "请用 cudaMemPrefetchAsync 预取，或改用 cudaMalloc 与显式拷贝",
);
/// The same of a run that prefetches.
const PREFETCHED: Text = Text::new(
    "the run prefetches some of it already: prefetch all that is touched, or use cudaMalloc with explicit copies",
    "该运行已预取其中一部分：请预取全部会访问的内存，或改用 cudaMalloc 与显式拷贝",
);
const AFTER: Text = Text::new(
    ", {time} of that before the first kernel or after the last",
    "，其中 {time} 在首个内核之前或最后一个之后",
);
/// What the first sentence says where that is the most of all.
const FIRST: Text = Text::new(
    "Before and after the kernels the driver moves {bytes} of managed (unified) memory for {time}: longer than all that is counted here.",
    "kernel 前后驱动迁移托管（统一）内存 {bytes}，耗时 {time}：比此处统计的全部时间更长。",
);
/// What the call that moves managed memory ahead is called.
const CALL: &str = "MemPrefetchAsync";
const FAULTS: Text = Text::new(" ({n} page faults)", "（缺页 {n} 次）");

pub(super) fn ask(case: &Case<'_>) -> Option<Unjudged> {
    let trace = case.cx.trace;
    let found = Migrations::of(case)?;
    let lasts = case.longest.map_or(0, |(_, class)| class.total);
    let faults = match trace.stat(ImportStat::PAGE_FAULTS) {
        0 => Value::Text(Text::new("", "")),
        faults => Message::new(FAULTS, [("n", Value::Count(faults))]).within(),
    };
    let after = match found.outside {
        0 => Value::Text(Text::new("", "")),
        time => Message::new(AFTER, [("time", Value::Ns(time))]).within(),
    };
    let prefetched = trace.strings.iter().any(|(_, name)| name.contains(CALL));
    let args = [
        ("n", Value::Count(found.n)),
        ("bytes", Value::Bytes(found.bytes)),
        ("time", Value::Ns(found.time)),
        ("faults", faults),
        ("after", after),
        ("advice", Value::Text(if prefetched { PREFETCHED } else { PREFETCH })),
        ("beside", Value::Ns(found.beside)),
        ("kernels", Value::Ns(found.kernels)),
    ];
    let says = if found.beside > 0 { BESIDE } else { SENTENCE };
    let share = (found.time as f64 / lasts.max(1) as f64).min(1.0);
    Some(Unjudged { share, sentence: Message::new(says, args), because: Vec::new(), decides: share >= DECIDES })
}

/// What the first sentence has to say of it: the device moves memory for longer outside of the kernels than all lasts that counts.
pub(in super::super) fn first(case: &Case<'_>) -> Option<Message> {
    let (_, class) = case.longest?;
    let found = Migrations::of(case).filter(|found| found.outside > class.total)?;
    Some(Message::new(FIRST, [("time", Value::Ns(found.outside)), ("bytes", Value::Bytes(found.bytes))]))
}

/// Managed memory that migrated. Times are ns.
struct Migrations {
    n: u64,
    bytes: i64,
    time: Ns,
    /// Of that before the first kernel or after the last.
    outside: Ns,
    /// Of the kernels' time with migrations beside it, and that time.
    beside: Ns,
    kernels: Ns,
}

impl Migrations {
    fn of(case: &Case<'_>) -> Option<Self> {
        let trace = case.cx.trace;
        let (mut n, mut bytes, mut time): (u64, i64, Ns) = (0, 0, 0);
        let mut moves: Vec<Span> = Vec::new();
        for lane in trace.lanes.iter() {
            for row in (0..lane.len()).filter(|row| lane.category[*row] == Category::DeviceOther) {
                let Some(Detail::Copy(CopyDetail { bytes: moved, src: Some(src), .. })) = trace.detail(lane, row)
                else {
                    continue;
                };
                if trace.strings.get(*src) != MANAGED {
                    continue;
                }
                n += 1;
                bytes = bytes.saturating_add(moved.unwrap_or(0));
                time = time.saturating_add(lane.dur[row]);
                moves.push(Span::new(lane.start[row], lane.end(row)));
            }
        }
        let ops = case.longest.map_or(&[][..], |(rank, _)| rank.timeline.ops.as_slice());
        let kernels = ops.iter().filter(|op| op.kind == OpKind::Compute).map(|op| Span::new(op.start, op.end));
        let kernels = merged(kernels.collect());
        let around = kernels.first().zip(kernels.last()).map(|(first, last)| (first.start, last.end));
        let is_outside = |span: &&Span| around.is_some_and(|(first, last)| span.end <= first || span.start >= last);
        let outside: Ns = moves.iter().filter(is_outside).map(|span| span.len()).sum();
        let beside = overlap(&kernels, &merged(moves));
        let kernels = kernels.iter().map(|span| span.len()).sum();
        (n > 0).then_some(Self { n, bytes, time, outside, beside, kernels })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use model::{Category, CopyDetail, Detail, ImportStat, Severity, TraceSink};

    use crate::{analysis::script::Script, diagnose::diagnose, i18n::Lang, platform::Packs};

    fn doubts(migrates: bool) -> String {
        let mut s = Script::default();
        s.host(Category::HostApi, "cudaLaunchKernel", (0, 9));
        s.kernel(1, "gemm_kernel", (1_000, 9_000), None, None);
        if migrates {
            let src = Some(s.builder.intern(model::slice::MANAGED));
            let moved = Detail::Copy(CopyDetail { bytes: Some(4096), src, ..CopyDetail::default() });
            s.inside(9, Category::DeviceOther, "[CUDA memcpy Unified Host-to-Device]", (2_000, 5_000), Some(moved));
            s.builder.stat(ImportStat::PAGE_FAULTS, Severity::Info, 12, None);
        }
        let (trace, analysis) = s.analyze();
        let found = diagnose(&trace, &analysis, &Packs::embedded().unwrap());
        let first = found.verdict.unjudged.first().map(|doubt| doubt.sentence.render(Lang::En, |v| format!("{v:?}")));
        first.unwrap_or_default()
    }

    /// Migrations were copies that the program had asked for, and the kernels that waited for them were slow kernels.
    #[test]
    fn managed_memory_that_migrates_is_told_first() {
        let said = doubts(true);
        assert!(said.contains("Count(1) times, Bytes(4096) in Ns(3000)") && said.contains("Count(12)"), "{said}");
        assert!(!doubts(false).contains("managed"));
    }
}
