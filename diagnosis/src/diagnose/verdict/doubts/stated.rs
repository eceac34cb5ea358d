//! What the profiler itself summed contradicts the rows: they are not whole, or not of the run that was summed.

use model::Stated;

use super::{Case, Unjudged};
use crate::{
    analysis::stated::{Contradiction, contradictions},
    i18n::{Message, Text, Value},
};

/// What it says of times.
const TIMES: Text = Text::new(
    "`{source}` beside the tables says that rank {rank} has {stated} of {what}, the rows that were read add up to {read}: rows are missing or are of another run, so export the profile again whole",
    "表旁的 `{source}` 称 rank {rank} 的{what}为 {stated}，而读到的行合计为 {read}：表中缺行或属于另一次运行，请重新完整导出",
);
/// What it says of counts.
const COUNTS: Text = Text::new(
    "`{source}` beside the tables counts {stated} of the {what} of rank {rank}, {read} rows were read: rows are missing or are of another run, so export the profile again whole",
    "表旁的 `{source}` 称 rank {rank} 的{what}共 {stated} 个，而读到 {read} 行：表中缺行或属于另一次运行，请重新完整导出",
);

fn words(what: Stated) -> Text {
    match what {
        Stated::Computing => Text::new("computing", "计算时间"),
        Stated::Communication => Text::new("communication", "通信时间"),
        Stated::ExposedCommunication => Text::new("communication that no computing hides", "未被计算掩盖的通信时间"),
        Stated::Kernels => Text::new("kernels", "内核"),
        Stated::HostCalls => Text::new("calls of the host", "主机调用"),
    }
}

/// How far apart the two sums are, as a share of the larger.
fn distance(of: &Contradiction) -> f64 {
    let far = |a: f64, b: f64| (a - b).abs() / a.max(b).max(1.0);
    let counts = of.counts.map_or(0.0, |(a, b)| far(a as f64, b as f64));
    counts.max(far(of.stated as f64, of.read as f64))
}

pub(super) fn ask(case: &Case<'_>) -> Option<Unjudged> {
    let all = contradictions(case.cx.trace, &case.cx.analysis.ranks);
    // The device's time comes first: it is what the verdict speaks of.
    let of_device = |of: &Contradiction| of.what != Stated::HostCalls;
    let worst = all.iter().max_by(|a, b| {
        of_device(a).cmp(&of_device(b)).then(distance(a).total_cmp(&distance(b))).then(b.rank.cmp(&a.rank))
    })?;
    let by_count = worst.counts.filter(|(a, b)| a != b && matches!(worst.what, Stated::Kernels | Stated::HostCalls));
    let (text, stated, read) = match by_count {
        Some((stated, read)) => (COUNTS, Value::Count(stated), Value::Count(read)),
        None => (TIMES, Value::Ns(worst.stated), Value::Ns(worst.read)),
    };
    let args = [
        ("source", Value::Raw(worst.source.clone())),
        ("rank", Value::Count(u64::from(worst.rank))),
        ("what", Value::Text(words(worst.what))),
        ("stated", stated),
        ("read", read),
    ];
    // Nobody can tell what the missing rows are: all of the step stands in doubt.
    Some(Unjudged { share: 1.0, sentence: Message::new(text, args), because: Vec::new(), decides: of_device(worst) })
}
