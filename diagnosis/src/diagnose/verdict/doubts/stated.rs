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

/// How far apart the two times are, ns, and the two counts.
fn distance(of: &Contradiction) -> (u64, u64) {
    (of.stated.abs_diff(of.read), of.counts.map_or(0, |(a, b)| a.abs_diff(b)))
}

pub(super) fn ask(case: &Case<'_>) -> Option<Unjudged> {
    let all = contradictions(case.cx.trace, &case.cx.analysis.ranks);
    // The device's time comes first, and the rank that the verdict speaks of.
    let spoken = |of: &Contradiction| case.longest.is_some_and(|(rank, _)| rank.rank == of.rank);
    let of_device = |of: &Contradiction| of.what != Stated::HostCalls;
    let worst = all.iter().max_by(|a, b| {
        let key = |of: &Contradiction| (of_device(of), spoken(of), distance(of), std::cmp::Reverse(of.rank));
        key(a).cmp(&key(b))
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
