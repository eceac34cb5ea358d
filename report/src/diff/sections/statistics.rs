//! Whether the difference is more than the noise of repeating either side.

use super::{DiffPage, micros, signed};
use crate::{
    cells,
    document::{Align, Inlines, Table},
    inlines, units,
};
use diagnosis::{
    compare::statistics::{FALSE_SHARE, Interval, Outcome, Repeated, Statistics},
    i18n::{Text, Value},
};

/// Buckets listed.
const BUCKETS: usize = 16;

/// Writes what repeated launches say; nothing where both sides are one launch, which the caveats say already.
pub(super) fn write(page: &mut DiffPage<'_>, statistics: &Statistics) {
    let alone = statistics.repeats.iter().all(|side| side.len() < 2) && statistics.absent == [0, 0];
    if alone && statistics.repeated.is_none() {
        return;
    }
    page.heading(Text::new("Is it more than noise?", "差异是否超出波动？"));
    let sentence = match statistics.outcome() {
        Outcome::Significant => Text::new(
            "Yes: the difference is above what launches of one side differ by among themselves.",
            "是：差异超过同一侧各次启动之间的波动。",
        ),
        Outcome::NotSignificant => Text::new(
            "Not shown: launches of one side differ among themselves by as much.",
            "未能显示：同一侧各次启动之间的波动与之相当。",
        ),
        Outcome::Unknown => Text::new(
            "Not known: one launch of a side does not tell what others would be. Give several, with commas between them.",
            "未知：单次启动不能说明其他启动的情况。请给出多次运行，以逗号分隔。",
        ),
    };
    page.title(page.get(sentence));
    launches(page, statistics);
    if let Some(repeated) = &statistics.repeated {
        tests(page, repeated, statistics.outcome());
        buckets(page, repeated);
    }
}

/// The launches of each side.
fn launches(page: &mut DiffPage<'_>, statistics: &Statistics) {
    let mut lines = Vec::new();
    for (n, letter) in ["A", "B"].into_iter().enumerate() {
        let times = &statistics.repeats[n];
        let ends = times.first().zip(times.last());
        let Some((least, most)) = ends.map(|(least, most)| (least.round() as i64, most.round() as i64)) else {
            continue;
        };
        let mut line = page.fill(
            Text::new(
                "{n} launches with {steps} steps, whose median steps take {least} to {most}",
                "{n} 次启动，共 {steps} 步，各次中位步时间为 {least} 至 {most}",
            ),
            [
                ("n", Value::Count(times.len() as u64)),
                ("steps", Value::Count(statistics.steps[n] as u64)),
                ("least", Value::Ns(least)),
                ("most", Value::Ns(most)),
            ],
        );
        if statistics.absent[n] > 0 {
            line += page.aside(page.fill(
                Text::new(
                    "{n} captures have no step of the class that is compared and are left out",
                    "另有 {n} 个采集没有所比较类别的步，未计入",
                ),
                [("n", Value::Count(statistics.absent[n] as u64))],
            ));
        }
        lines.push(inlines![Inlines::strong(letter), page.colon(), line]);
    }
    page.list(lines);
}

fn tests(page: &mut DiffPage<'_>, repeated: &Repeated, outcome: Outcome) {
    let ns = |value: f64| value.round() as i64;
    let between = |interval: &Interval, show: &dyn Fn(f64) -> String| {
        let text = Text::new("{value}, 95 % interval {low} to {high}", "{value}，95 % 区间 {low} 至 {high}");
        let [value, low, high] = [interval.value, interval.low, interval.high].map(|value| show(value).into());
        page.compose(text, [("value", value), ("low", low), ("high", high)])
    };
    let mut lines = vec![page.labelled(
        Text::new("B − A over all launches, µs", "全部启动的 B − A，µs"),
        between(&repeated.difference, &|value| signed(ns(value))),
    )];
    // A ratio of what is not shown would be a ratio of noise.
    if outcome == Outcome::Significant {
        let ratio = between(&repeated.logarithm, &|value| units::ratio(value.exp()));
        lines.push(page.labelled(Text::new("B over A", "B 与 A 之比"), ratio));
    }
    let time = |logarithm: f64| units::time(ns(repeated.time(logarithm)));
    lines.push(page.labelled(
        Text::new("Noise floor, below which nothing is shown", "波动下限，低于此值不视为差异"),
        time(repeated.noise.floor),
    ));
    if repeated.noise.assumed {
        lines.push(
            page.get(Text::new(
                "The launches are closer to each other than so few can tell; the floor is that of launches in general. More launches, or an A/A run of each side (`strato run --repeats`), say what their noise is",
                "各次启动彼此的接近程度超出了如此少的次数所能说明的范围；下限取启动的一般波动。更多启动或每侧的 A/A 运行（`strato run --repeats`）可说明其波动",
            )),
        );
    }
    for (letter, floor) in ["A", "B"].into_iter().zip(repeated.noise.earlier) {
        let Some(floor) = floor else { continue };
        let told = Text::new(
            "{share} (standard deviation) between {n} launches of an earlier A/A run",
            "先前 A/A 运行的 {n} 次启动之间为 {share}（标准差）",
        );
        let told =
            page.fill(told, [("share", Value::Share(floor.deviation)), ("n", Value::Count(floor.repeats as u64))]);
        let title = page.compose(Text::new("Noise of {side}", "{side} 的波动"), [("side", letter.into())]);
        lines.push(inlines![title, page.colon(), told]);
    }
    lines.push(page.labelled(
        Text::new(
            "Smallest difference that so many launches find nine times in ten",
            "这些启动次数以九成把握可发现的最小差异",
        ),
        time(repeated.noise.detectable),
    ));
    lines.push(page.labelled(
        Text::new("Mann–Whitney on the launches", "各次启动的 Mann–Whitney 检验"),
        format!(
            "U = {}, p = {:.4}, Cliff δ = {}",
            units::number(repeated.test.u),
            repeated.test.p,
            units::number(repeated.test.delta)
        ),
    ));
    page.list(lines);
}

/// Buckets that differ though many were asked.
fn buckets(page: &mut DiffPage<'_>, repeated: &Repeated) {
    let differing: Vec<_> = repeated.buckets.iter().filter(|bucket| bucket.differs()).collect();
    let count = [("n", Value::Count(repeated.buckets.len() as u64)), ("share", Value::Share(FALSE_SHARE))];
    if differing.is_empty() {
        let none = Text::new(
            "Of {n} buckets none differs by its launches, where {share} of those that did might be false.",
            "在 {n} 个时间桶中，没有一个的各次启动显示差异（允许其中 {share} 为误报）。",
        );
        return page.paragraph(page.fill(none, count));
    }
    let mut table = Table::new([
        (page.get(Text::new("bucket", "时间桶")), Align::Left),
        ("A, µs".into(), Align::Right),
        ("B, µs".into(), Align::Right),
        (page.get(Text::new("B − A, µs", "B − A，µs")), Align::Right),
        ("p".into(), Align::Right),
        (page.get(Text::new("share of false ones", "误报比例")), Align::Right),
    ]);
    for bucket in differing.iter().take(BUCKETS) {
        let [a, b] = bucket.ns.map(|value| value.round() as i64);
        table.row(cells![
            Inlines::name(&bucket.name),
            micros(a),
            micros(b),
            signed(b - a),
            format!("{:.4}", bucket.test.p),
            units::share(bucket.false_share),
        ]);
    }
    let title = Text::new(
        "Buckets whose launches differ, the median launch of each side; of {n} that were asked at most {share} of these are false",
        "各次启动显示差异的时间桶（各侧取中位启动）；共检验 {n} 个，其中误报至多 {share}",
    );
    page.table(page.fill(title, count), table);
}
