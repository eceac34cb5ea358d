//! Two serving results for people.

use super::{ServingReport, least, level, ms, tokens};
use crate::{
    cells,
    document::{Align, Document, Inlines, Table},
    inlines,
    sections::Page,
    text, units,
};
use diagnosis::{
    i18n::{Lang, Text, Value},
    serving::{
        Load, Metric,
        beside::{Pair, Quantity, Reading, Reason, Row},
    },
};

type ServingPage<'a> = Page<'a, ServingReport>;

/// The whole comparison.
pub(super) fn report(report: &ServingReport, lang: Lang) -> Document {
    let mut page = Page { lang, capture: report, out: Document::new() };
    page.out.heading(1, page.get(Text::new("B beside A: serving under load", "B 与 A 的对比：负载下的服务")));
    let line = |(letter, head): (&str, &crate::diff::Head)| {
        inlines![Inlines::strong(letter), page.colon(), Inlines::quoted(&head.name, text::PHRASE)]
    };
    let engine = |engine: &Option<String>| match engine {
        Some(name) => page.aside(inlines![
            page.get(Text::new("engine", "引擎")),
            page.colon(),
            Inlines::quoted(name, text::PHRASE)
        ]),
        None => Inlines::new(),
    };
    let lines: Vec<Inlines> = ["A", "B"]
        .into_iter()
        .zip(&report.heads)
        .zip(&report.engines)
        .map(|(own, of)| line(own) + engine(of))
        .collect();
    page.list(lines);
    page.heading(Text::new("The answer", "结论"));
    if report.beside.refused.is_empty() {
        report.beside.pairs.iter().for_each(|pair| answer(&mut page, pair));
        crossings(&mut page);
    } else {
        page.title(page.get(Text::new(
            "The two may not be compared: nothing here sets one beside the other.",
            "两者不可比：本页不将其并列。",
        )));
    }
    reasons(&mut page);
    report.beside.pairs.iter().for_each(|pair| table(&mut page, pair));
    if !report.beside.pairs.is_empty() {
        page.paragraph(page.tell(
            Text::new(
                "Intervals hold 95 % and are of the ratio of two means, from the standard deviation over the requests of one run (normal, requests independent). What runs of one command differ by is in none of them: below {least} two values count as equal.",
                "区间为两均值之比的 95 % 区间，由单次运行内各请求的标准差得出（正态近似，假定请求相互独立），不含同一命令多次运行之间的波动：相差不足 {least} 视为相同。",
            ),
            [("least", Value::Raw(least()))],
        ));
    }
    curves(&mut page);
    alone(&mut page);
    page.out
}

/// Where the curves of both sides over the load cross.
fn crossings(page: &mut ServingPage<'_>) {
    let about = |at: f64| if at >= 10.0 { format!("{at:.0}") } else { format!("{at:.1}") };
    let told = |(metric, from, to, at): &(Metric, f64, f64, f64)| {
        page.tell(
            Text::new(
                "{metric}: which side is quicker changes between {from} and {to}, at about {at}",
                "{metric}：较快的一侧在 {from} 与 {to} 之间交替，约在 {at}",
            ),
            [
                ("metric", Value::Raw(metric.name().to_owned())),
                ("from", Value::Number(*from)),
                ("to", Value::Number(*to)),
                ("at", Value::Raw(about(*at))),
            ],
        )
    };
    let lines: Vec<Inlines> = page.capture.beside.crossings.iter().map(told).collect();
    if !lines.is_empty() {
        page.list(lines);
    }
}

/// What is said of one load.
fn answer(page: &mut ServingPage<'_>, pair: &Pair) {
    let main = |metric| pair.row(Quantity::Mean(metric)).or_else(|| pair.row(Quantity::Percentile(metric, 50.0)));
    let after = main(Metric::Tpot).or_else(|| main(Metric::Itl));
    let first = main(Metric::Ttft);
    let load = inlines![level(pair.level, page.lang), ", ", tokens(&pair.loads[0])];
    let differs = |row: Option<&Row>| row.is_some_and(|row| matches!(row.reading, Reading::More | Reading::Less));
    let equal = |row: Option<&Row>| row.is_some_and(|row| row.reading == Reading::Equal);
    let word = match () {
        () if differs(first) && equal(after) => {
            Text::new("TTFT is the only gap; time per token is equal", "唯一差距是 TTFT；每 token 时间相同")
        }
        () if equal(first) && differs(after) => {
            Text::new("time per token is the only gap; TTFT is equal", "唯一差距是每 token 时间；TTFT 相同")
        }
        () if equal(first) && equal(after) => Text::new("no difference is shown", "未见差异"),
        () if differs(first) && differs(after) => {
            Text::new("TTFT and time per token differ", "TTFT 与每 token 时间均不同")
        }
        () => Text::new("what was measured leaves it open", "测量结果不足以判断"),
    };
    page.title(inlines![load, page.colon(), page.get(word), page.stop()]);
    let shown = [first, after, pair.row(Quantity::Tokens), pair.row(Quantity::Goodput)];
    let mut lines: Vec<Inlines> = shown.into_iter().flatten().map(|row| sentence(page, row)).collect();
    if let Some((whole, part)) = pair.split().filter(|(whole, _)| whole.abs() > 0.0) {
        let text = match whole > 0.0 {
            true => Text::new(
                "A request takes {whole} longer on B to its last token: {part} to the first one, {rest} after it",
                "请求在 B 上到最后一个 token 多用 {whole}：首 token {part}，之后 {rest}",
            ),
            false => Text::new(
                "A request takes {whole} less on B to its last token: {part} to the first one, {rest} after it",
                "请求在 B 上到最后一个 token 少用 {whole}：首 token {part}，之后 {rest}",
            ),
        };
        lines.push(page.tell(
            text,
            [
                ("whole", Value::Raw(ms(whole.abs()))),
                ("part", Value::Raw(signed(part))),
                ("rest", Value::Raw(signed(whole - part))),
            ],
        ));
    }
    page.list(lines);
}

fn signed(ms: f64) -> String {
    format!("{ms:+.1} ms")
}

fn sentence(page: &ServingPage<'_>, row: &Row) -> Inlines {
    let [a, b] = row.values.map(|value| shown(row.what, value));
    let interval = row
        .interval
        .map_or_else(Inlines::new, |(low, high)| page.aside(format!("{}–{}", units::ratio(low), units::ratio(high))));
    inlines![
        what(page, row.what),
        page.colon(),
        "A ",
        a,
        ", B ",
        b,
        ", ",
        units::ratio(row.ratio()),
        interval,
        ", ",
        page.get(reading(row.reading))
    ]
}

fn shown(what: Quantity, value: f64) -> String {
    match what {
        Quantity::Mean(_) | Quantity::Percentile(..) => ms(value),
        _ => units::number((value * 100.0).round() / 100.0),
    }
}

fn what(page: &ServingPage<'_>, what: Quantity) -> Inlines {
    match what {
        Quantity::Mean(metric) => inlines![metric.name(), " ", page.get(Text::new("mean", "均值"))],
        Quantity::Percentile(metric, percent) => format!("{} p{percent}", metric.name()).into(),
        Quantity::Requests => page.get(Text::new("requests/s", "请求/秒")),
        Quantity::Tokens => page.get(Text::new("tokens/s", "token/秒")),
        Quantity::Goodput => page.get(Text::new("goodput, requests/s", "达标请求/秒")),
    }
}

fn reading(reading: Reading) -> Text {
    match reading {
        Reading::More => Text::new("B has more", "B 更多"),
        Reading::Less => Text::new("B has less", "B 更少"),
        Reading::Equal => Text::new("equal", "相同"),
        Reading::Open => Text::new("open: the interval holds 1", "未定：区间包含 1"),
    }
}

fn table(page: &mut ServingPage<'_>, pair: &Pair) {
    let mut table = Table::new([
        (page.get(Text::new("what", "指标")), Align::Left),
        ("A".into(), Align::Right),
        ("B".into(), Align::Right),
        ("B/A".into(), Align::Right),
        (page.get(Text::new("interval", "区间")), Align::Right),
        (page.get(Text::new("reading", "判断")), Align::Left),
    ]);
    for row in &pair.rows {
        let [a, b] = row.values.map(|value| shown(row.what, value));
        let interval = row.interval.map_or_else(|| "–".to_owned(), |(low, high)| format!("{low:.3}–{high:.3}"));
        table.row(cells![
            what(page, row.what),
            a,
            b,
            units::ratio(row.ratio()),
            interval,
            page.get(reading(row.reading))
        ]);
    }
    let title = inlines![level(pair.level, page.lang), ", ", tokens(&pair.loads[0])];
    page.table(title, table);
    if let Some([a, b]) = pair.goodput {
        let of = |good: diagnosis::serving::slo::Goodput| format!("{:.2}–{:.2}", good.low, good.high);
        page.paragraph(page.tell(
            Text::new(
                "Requests per second that hold every target: A {a}, B {b}",
                "每秒满足全部目标的请求：A {a}，B {b}",
            ),
            [("a", Value::Raw(of(a))), ("b", Value::Raw(of(b)))],
        ));
    }
}

/// Why not, or what had to be taken for equal.
fn reasons(page: &mut ServingPage<'_>) {
    let one = |reason: &Reason| {
        match reason {
        Reason::Differs(key @ "workload.arrival", a, b) => page.fill(
            Text::new(
                "{key} differs (A {a}, B {b}); neither server kept up with it, so that the limit of requests at a time was the load of both",
                "{key} 不同（A {a}，B {b}）；两侧均未跟上该速率，实际负载由并发上限决定",
            ),
            [("key", Value::Raw((*key).to_owned())), ("a", Value::Raw(a.clone())), ("b", Value::Raw(b.clone()))],
        ),
        Reason::Differs(key, a, b) => page.fill(
            Text::new("{key} differs: {a}, {b}", "{key} 不同：{a}、{b}"),
            [("key", Value::Raw((*key).to_owned())), ("a", Value::Raw(a.clone())), ("b", Value::Raw(b.clone()))],
        ),
        Reason::Unknown(key, sides) => {
            let [a, b] = sides.clone().map(|side| Value::Raw(side.unwrap_or_else(|| "?".to_owned())));
            page.fill(
                Text::new(
                    "{key} is not said by both (A {a}, B {b}) and was taken for equal; say it with `--declare`",
                    "{key} 未由两侧同时给出（A {a}，B {b}），按相同处理；可用 `--declare` 说明",
                ),
                [("key", Value::Raw((*key).to_owned())), ("a", a), ("b", b)],
            )
        }
        Reason::NoLoad => page.get(Text::new(
            "no load is the same on both sides: requests, tokens of prompts and answers, concurrency and rate have to be equal; run one side again with the load of the other",
            "没有相同的负载：请求数、提示与输出 token 数、并发与速率须相同；请按另一侧的负载重跑一侧",
        )),
    }
    };
    let report = page.capture;
    let refused: Vec<Inlines> = report.beside.refused.iter().map(one).collect();
    let caveats: Vec<Inlines> = report.beside.caveats.iter().map(one).collect();
    if !refused.is_empty() {
        page.title(page.get(Text::new("Why not", "原因")));
        page.list(refused);
    }
    if !caveats.is_empty() {
        page.title(page.get(Text::new("With caveats", "保留")));
        page.list(caveats);
    }
}

/// Knees.
fn curves(page: &mut ServingPage<'_>) {
    let beside = &page.capture.beside;
    let mut lines = Vec::new();
    for (letter, knee) in ["A", "B"].into_iter().zip(&beside.knees) {
        let Some(load) = knee else { continue };
        lines.push(page.tell(
            Text::new(
                "{side} does most for how long its users wait at {level} (largest throughput over time in the system)",
                "{side} 在 {level} 处吞吐与等待的折中最佳（吞吐除以请求时间最大）",
            ),
            [("side", Value::Raw(letter.to_owned())), ("level", Value::Raw(level(load.level(), page.lang)))],
        ));
    }
    if !lines.is_empty() {
        page.heading(Text::new("Over the load", "随负载的变化"));
        page.list(lines);
    }
}

/// Loads that only one side has.
fn alone(page: &mut ServingPage<'_>) {
    let report = page.capture;
    let [a, b] = &report.beside.alone;
    let line = |letter: &'static str| {
        let lang = page.lang;
        move |load: &Load| -> Inlines {
            let name = Inlines::name(&load.source);
            inlines![
                letter,
                ": ",
                name,
                " ",
                level(load.level(), lang),
                ", ",
                tokens(load),
                ", n = ",
                load.completed().map_or_else(|| "?".to_owned(), units::number)
            ]
        }
    };
    let lines: Vec<Inlines> = a.iter().map(line("A")).chain(b.iter().map(line("B"))).collect();
    if !lines.is_empty() {
        page.heading(Text::new("Loads that only one side has", "仅一侧有的负载"));
        page.list(lines);
    }
}
