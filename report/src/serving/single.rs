//! A serving result as a part of its report.

use super::{Loads, level, ms, tokens};
use crate::{
    cells,
    document::{Align, Inlines, Table},
    inlines,
    sections::Page,
    units,
};
use diagnosis::{
    i18n::{Text, Value},
    serving::{Load, Metric},
};

/// Loads listed; all are in the JSON report.
const LISTED: usize = 64;

/// The result in a sentence; `None` of a capture that is no serving result.
pub(crate) fn headline(page: &Page<'_>) -> Option<Inlines> {
    let Loads { loads, .. } = &page.capture.serving;
    let value = |load: &Load, metric| load.mean(metric).or_else(|| load.percentile(metric, 50.0)).map(ms);
    let text = |load: &Load| {
        let requests = |n: f64| Value::Count(n as u64);
        if load.is_void() {
            return page.tell(
                Text::new(
                    "No request was answered under {level}. The file holds no time of a request, and nothing follows from its zeros.",
                    "负载为{level}时没有任何请求得到回答。文件中没有任何请求时间，其中的零不说明任何问题。",
                ),
                [("level", Value::Raw(level(load.pressed(), page.lang)))],
            );
        }
        let failed = load.failed().map(|n| {
            page.tell(
                Text::new(
                    " Requests that failed: {n}; they are in none of these times.",
                    "另有 {n} 个请求失败，不在这些时间之内。",
                ),
                [("n", requests(n))],
            )
        });
        let unknown = || "–".to_owned();
        // A result that does not say its load, or a rate, is told without.
        let under = load.pressed().map_or_else(String::new, |pressed| {
            let under = Text::new("Under {level} a request", "负载为{level}时，请求").get(page.lang);
            under.replace("{level}", &level(Some(pressed), page.lang))
        });
        let subject = if under.is_empty() { Text::new("A request", "请求").get(page.lang).to_owned() } else { under };
        let gives = load.output_throughput().map_or_else(String::new, |rate| {
            let gives = Text::new("; the server gives {rate} tokens a second", "；服务端每秒输出 {rate} 个 token");
            gives.get(page.lang).replace("{rate}", &units::number(rate))
        });
        let said = page.tell(
            Text::new(
                "{subject} gets its first token after {ttft} and a further one every {tpot}{gives}.",
                "{subject}在 {ttft} 后得到首 token，此后每 {tpot} 得到一个 token{gives}。",
            ),
            [
                ("subject", Value::Phrase(subject)),
                ("ttft", Value::Raw(value(load, Metric::Ttft).unwrap_or_else(unknown))),
                (
                    "tpot",
                    Value::Raw(value(load, Metric::Tpot).or_else(|| value(load, Metric::Itl)).unwrap_or_else(unknown)),
                ),
                ("gives", Value::Phrase(gives)),
            ],
        );
        let waits = waiting(load).map(|share| {
            page.tell(
                Text::new(
                    " Most of a request, {share}, is the time to its first token.",
                    "请求时间的大部分（{share}）用于等待首 token。",
                ),
                [("share", Value::Share(share))],
            )
        });
        let number = |name: &str| load.number(name).map(|n| Value::Raw(units::number(n)));
        let queue = number("running").zip(number("waiting")).map(|(running, waiting)| {
            let says = Text::new(
                " {running} requests run and {waiting} wait as the page is read.",
                "读取该页时有 {running} 个请求在运行、{waiting} 个在排队。",
            );
            page.tell(says, [("running", running), ("waiting", waiting)])
        });
        inlines![said, waits.unwrap_or_default(), failed.unwrap_or_default(), queue.unwrap_or_default()]
    };
    let first = loads.first()?;
    let last = loads.last().filter(|_| loads.len() > 1);
    Some(last.map_or_else(|| text(first), |last| inlines![text(first), " ", text(last)]))
}

/// The share of a request that passes before its first token, where it is most of it.
fn waiting(load: &Load) -> Option<f64> {
    let (first, all) = load.mean(Metric::Ttft).zip(load.mean(Metric::E2e))?;
    (first < all && 2.0 * first > all).then(|| first / all)
}

/// Writes the loads of a serving result.
pub(crate) fn write(page: &mut Page<'_>) {
    let Loads { loads, slo } = page.capture.serving.clone();
    if loads.is_empty() {
        return;
    }
    page.heading(Text::new("Serving under load", "负载下的服务"));
    page.paragraph(page.get(Text::new(
        "These are times of requests as a client saw them: TTFT to the first token, TPOT the mean of a further token, ITL between two tokens, E2E to the last one. No step of the server is in them, so nothing here says where the time went; a capture of the server does.",
        "以下为客户端所见的请求时间：TTFT 为首 token 时间，TPOT 为后续每 token 平均时间，ITL 为相邻 token 间隔，E2E 为直至最后一个 token 的时间。其中没有服务端的步，因此不能说明时间花在哪里；这需要服务端的采集。",
    )));
    let mut titles = vec![
        (page.get(Text::new("load", "负载")), Align::Left),
        (page.get(Text::new("tokens", "token 数")), Align::Right),
        (page.get(Text::new("requests", "请求数")), Align::Right),
        (page.get(Text::new("requests/s", "请求/秒")), Align::Right),
        (page.get(Text::new("tokens/s", "token/秒")), Align::Right),
    ];
    let shown: Vec<Metric> =
        Metric::ALL.into_iter().filter(|m| loads.iter().any(|load| load.times.contains_key(m))).collect();
    let spread = page.get(Text::new("mean / p50 / p99", "均值 / p50 / p99"));
    titles.extend(shown.iter().map(|metric| (inlines![metric.name(), " ", spread.clone()], Align::Right)));
    if slo.is_some() {
        titles.push((page.get(Text::new("goodput, requests/s", "达标请求/秒")), Align::Right));
        titles.push((page.get(Text::new("holds", "是否达标")), Align::Left));
    }
    let mut table = Table::new(titles);
    for load in loads.iter().take(LISTED) {
        let number = |n: Option<f64>| n.map_or_else(|| "–".to_owned(), |n| units::number((n * 100.0).round() / 100.0));
        let mut row: Vec<Inlines> = cells![
            level(load.pressed(), page.lang),
            tokens(load),
            load.completed().map_or_else(|| "–".to_owned(), |n| units::count(n as u64)),
            number(load.request_throughput()),
            number(load.output_throughput()),
        ]
        .into();
        for metric in &shown {
            let of = |n: Option<f64>| n.map_or_else(|| "–".to_owned(), ms);
            let [mean, p50, p99] =
                [load.mean(*metric), load.percentile(*metric, 50.0), load.percentile(*metric, 99.0)].map(of);
            row.push(format!("{mean} / {p50} / {p99}").into());
        }
        if let Some(slo) = &slo {
            let good = slo.goodput(load).map_or_else(
                || number(load.number("goodput")),
                |good| match good.low == good.high {
                    true => number(Some(good.low)),
                    false => format!("{}–{}", number(Some(good.low)), number(Some(good.high))),
                },
            );
            row.push(good.into());
            row.push(page.get(match slo.holds(load) {
                Some(true) => Text::new("yes", "是"),
                Some(false) => Text::new("no", "否"),
                None => Text::new("cannot be told: that percentile was not recorded", "无法判断：未记录该百分位"),
            }));
        }
        table.row(row);
    }
    page.table(page.get(Text::new("Loads", "负载")), table);
    match &slo {
        Some(slo) => page.paragraph(page.tell(
            Text::new(
                "Targets: {slo}. Goodput counts requests that hold all of them: one by one where they were timed so, else bounded by the recorded percentiles.",
                "目标：{slo}。达标请求须同时满足全部目标：有逐请求时间时逐个计数，否则由记录的百分位给出上下界。",
            ),
            [("slo", Value::Raw(slo.text()))],
        )),
        None => page.paragraph(page.get(Text::new(
            "`--slo ttft=200ms,tpot=50ms` says which requests are good enough.",
            "`--slo ttft=200ms,tpot=50ms` 可给出达标要求。",
        ))),
    }
}
