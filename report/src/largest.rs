//! Words for what takes the most time by name: every form of the report says a row the same way.

use super::{document::Inlines, inlines, kernel_name, phrase, sections::buckets, text, units};
use diagnosis::{
    analysis::owners::short,
    i18n::{Lang, Text},
    largest::{Kind, LongGap, Over, Row, Samples, Tables},
};

/// Share of a row's time from which it is said how much of it nothing hides; own value.
const WORTH: f64 = 0.005;

/// What a table is of, in one word.
pub fn kind(kind: Kind) -> Text {
    match kind {
        Kind::Kernel => Text::new("kernel", "kernel"),
        Kind::Call => Text::new("call", "调用"),
        Kind::Host => Text::new("host self", "主机自身"),
        Kind::Idle => Text::new("idle", "空闲"),
        Kind::Copy => Text::new("copy", "拷贝"),
        Kind::Collective => Text::new("collective", "集合通信"),
    }
}

/// What all time is.
pub fn over(tables: &Tables, lang: Lang) -> Inlines {
    let text = match tables.over {
        Over::Steps if tables.steps == 1 => Text::new("1 recorded step, {time}", "录到的 1 步，共 {time}"),
        Over::Steps => Text::new("all {n} recorded steps, {time}", "录到的全部 {n} 步，共 {time}"),
        Over::Window => Text::new("the whole window, {time}", "整个窗口，共 {time}"),
        Over::Host => Text::new("the busiest host thread, {time}", "最忙的主机线程，共 {time}"),
        Over::Sums => Text::new("totals of a profiler, {time}", "profiler 的合计，共 {time}"),
        Over::Alone => Text::new("kernels run one by one, {time}", "逐个单独执行的 kernel，共 {time}"),
    };
    let [n, time] = [units::count(tables.steps as u64), units::brief(tables.time)].map(Inlines::from);
    phrase::compose(text, lang, [("n", n), ("time", time)])
}

/// The name of a row, short enough to be read and with what tells it from others; idle time without an owner has the words of
/// its bucket.
pub fn name(row: &Row, lang: Lang) -> Inlines {
    match row.kind {
        Kind::Kernel => Inlines::name(&kernel_name::short(&row.name)),
        Kind::Idle if row.name.is_empty() => phrase::text(buckets::meaning(&row.of), lang),
        Kind::Idle | Kind::Host => Inlines::name(&short(&row.name)),
        Kind::Collective => match row.bytes {
            Some(bytes) => inlines![Inlines::name(&row.name), " ", units::bytes(bytes)],
            None => Inlines::name(&kernel_name::short(&row.name)),
        },
        Kind::Call | Kind::Copy => Inlines::name(&row.name),
    }
}

/// What is worth knowing beside a row's times: its operator, what nothing hides, how fast it moved, how far apart ranks came.
pub fn notes(tables: &Tables, row: &Row, lang: Lang) -> Vec<Inlines> {
    let get = |text: Text| phrase::text(text, lang);
    let mut out = Vec::new();
    match (row.kind, row.of.as_str()) {
        // An operator that nobody knows says nothing.
        (Kind::Kernel, "" | "other") | (Kind::Copy | Kind::Collective, _) => {}
        (Kind::Kernel, op) => out.push(Inlines::name(op)),
        (_, "python_frame") => out.push(get(Text::new("frame", "栈帧"))),
        (_, "framework_op") => out.push(get(Text::new("operator", "算子"))),
        (_, "user_range") => out.push(get(Text::new("range", "区间"))),
        (_, "library_api") => out.push(get(Text::new("library call", "库调用"))),
        (_, "os_api") => out.push(get(Text::new("operating system", "操作系统"))),
        (_, "overhead") => out.push(get(Text::new("profiler", "profiler"))),
        (_, "gc") => out.push(get(Text::new("garbage collection", "垃圾回收"))),
        _ => {}
    }
    if let Some(exposed) = row.exposed.filter(|_| row.total > 0) {
        let share = |text| phrase::compose(text, lang, [("share", units::whole_share(tables.share(exposed)).into())]);
        let none = (exposed as f64) < WORTH * row.total as f64;
        out.push(match row.kind {
            Kind::Call | Kind::Host if none => get(Text::new("device busy meanwhile", "其间设备一直在工作")),
            Kind::Call | Kind::Host => share(Text::new("device idle meanwhile: {share}", "其间设备空闲：{share}")),
            _ if none => get(Text::new("hidden", "已被掩盖")),
            _ => share(Text::new("exposed: {share}", "未掩盖：{share}")),
        });
    }
    if let Some(rate) = row.rate {
        out.push(units::probed(rate, model::ProbeUnit::BytesPerSecond).into());
    }
    if let Some((mean, most)) = row.skew {
        let unit = units::Scale::of([mean, most]);
        let parts =
            [("mean", unit.digits(mean).into()), ("most", unit.digits(most).into()), ("unit", unit.name().into())];
        let text =
            Text::new("ranks {mean} {unit} apart, {most} at most", "各 rank 到达相差 {mean} {unit}，最多 {most}");
        out.push(phrase::compose(text, lang, parts));
    }
    out
}

/// The sentence about a row that no finding names.
pub fn unnamed(tables: &Tables, row: &Row, lang: Lang) -> Inlines {
    let text = match row.kind {
        // A table of sums has no time of its own.
        Kind::Kernel | Kind::Collective | Kind::Copy if tables.over == Over::Sums => Text::new(
            "{name} takes {share} of the time that is summed here; nothing recorded says whether that is slow.",
            "{name} 占此处合计时间的 {share}；没有记录能判断它是否偏慢。",
        ),
        Kind::Kernel | Kind::Collective | Kind::Copy if tables.cost(row) > 1.0 => Text::new(
            "{name} takes {share} of all time, as several queues work at once; nothing recorded says whether that is slow.",
            "{name} 占全部时间的 {share}（多个队列同时工作）；没有记录能判断它是否偏慢。",
        ),
        Kind::Kernel | Kind::Collective | Kind::Copy => Text::new(
            "{name} takes {share} of all time; nothing recorded says whether that is slow.",
            "{name} 占全部时间的 {share}；没有记录能判断它是否偏慢。",
        ),
        Kind::Idle if row.name.is_empty() => Text::new("{share} of all time: {name}.", "全部时间的 {share}：{name}。"),
        Kind::Idle => Text::new(
            "For {share} of all time the device is idle while the host is in {name}.",
            "设备有 {share} 的时间空闲，其间主机处于 {name} 中。",
        ),
        Kind::Call | Kind::Host => Text::new(
            "During {name} the device is idle for {share} of all time.",
            "{name} 期间设备空闲，占全部时间的 {share}。",
        ),
    };
    phrase::compose(text, lang, [("name", name(row, lang)), ("share", units::whole_share(tables.cost(row)).into())])
}

/// The calls of the host outside of a window, where they take longer than half of it.
pub fn outside(tables: &Tables, lang: Lang) -> Option<Inlines> {
    let call = |row: &Row| {
        let text = match row.count {
            1 => Text::new("{name} {total} (one call)", "{name} {total}（一次）"),
            _ => Text::new("{name} {total} ({n} calls)", "{name} {total}（{n} 次）"),
        };
        let [total, n] = [units::brief(row.total), units::count(row.count)].map(Inlines::from);
        phrase::compose(text, lang, [("name", Inlines::name(&row.name)), ("total", total), ("n", n)])
    };
    let mut calls = tables.outside.iter().map(call);
    let first = calls.next()?;
    let text = match lang {
        Lang::En => "Outside of this window: ",
        Lang::Zh => "窗口之外：",
    };
    let mut line = inlines![text, first];
    for next in calls {
        line += inlines![", ", next];
    }
    Some(line)
}

/// What the device waited for in a gap.
pub fn gap_owner(gap: &LongGap, lang: Lang) -> Inlines {
    match &gap.owner {
        Some(owner) => Inlines::name(&short(owner)),
        None => phrase::text(buckets::meaning(&gap.of), lang),
    }
}

/// A counter of a device on one line: least, median and most, how many samples lie in the time of the tables, and when the extremes
/// were sampled.
pub fn sampled(samples: &Samples, lang: Lang) -> Inlines {
    let at = |ns: i64| format!("{:.1} ms", ns as f64 / 1e6).into();
    let of: Inlines = match (samples.rank, samples.device) {
        (Some(rank), _) => format!("rank {rank}").into(),
        (None, Some(device)) => {
            phrase::compose(Text::new("device {n}", "设备 {n}"), lang, [("n", device.to_string().into())])
        }
        (None, None) => phrase::text(Text::new("machine", "主机"), lang),
    };
    let [min, median, max] = [samples.min.0, samples.median, samples.max.0].map(|value| digits(value).into());
    let [inside, count] = [samples.inside, samples.count].map(|n| units::count(n as u64).into());
    let parts = [
        ("name", Inlines::name(&samples.name)),
        ("of", of),
        ("min", min),
        ("median", median),
        ("max", max),
        ("unit", text::plain(&samples.unit, text::NAME).into()),
        ("inside", inside),
        ("count", count),
        ("min_at", at(samples.min.1)),
        ("max_at", at(samples.max.1)),
    ];
    let text = match (samples.inside, samples.min.0 == samples.max.0) {
        (0, _) => Text::new(
            "{name} ({of}): {min} to {max} {unit}, median {median}; none of {count} samples lies in the steps",
            "{name}（{of}）：{min} 至 {max} {unit}，中位数 {median}；{count} 个采样均不在步内",
        ),
        (_, true) => Text::new(
            "{name} ({of}): {median} {unit} throughout, {inside} of {count} samples in the steps",
            "{name}（{of}）：始终为 {median} {unit}，步内 {inside} 个采样，共 {count} 个",
        ),
        (_, false) => Text::new(
            "{name} ({of}): {min} {unit} (at {min_at}) to {max} (at {max_at}), median {median}; {inside} of {count} samples in the steps",
            "{name}（{of}）：{min} {unit}（{min_at}）至 {max}（{max_at}），中位数 {median}；步内 {inside} 个采样，共 {count} 个",
        ),
    };
    phrase::compose(text, lang, parts)
}

/// A sampled value with three significant digits, whole from a hundred on.
fn digits(value: f64) -> String {
    let unit = match value.abs() {
        a if a >= 99.95 => 1.0,
        a if a >= 9.995 => 10.0,
        _ => 100.0,
    };
    units::number((value * unit).round() / unit)
}
