//! From two sides to the page on which one of them is chosen.

use std::collections::HashSet;

use diagnosis::{
    analysis::{Analysis, Options},
    compare::contract::{self, MAIN},
    decide::price::Prices,
    diagnose::{Diagnosis, Method},
    i18n::{Message, Text, Value},
    platform::Stage,
    serving::{self, beside::Reason, contract::SPECULATIVE},
};
use model::Trace;
use report::{
    decide::{Decision, Gap, Given},
    diff::{DiffReport, words},
    serving::ServingReport,
};

mod devices;

use crate::{Error, Pair, Session, Terms, pair, serving as results};

/// Reasons that are told one by one; `strato diff` tells all.
const REASONS: usize = 6;

/// Why nothing is weighed of one and the same.
const SAME: Text = Text::new(
    "A and B are the same; name the results or captures of two platforms",
    "A 与 B 相同；请给出两个平台的结果或采集",
);

/// Weighs two sides, each of serving results, captures or both.
///
/// # Errors
/// Those of [`Pair::of`], and sides that have nothing of one kind.
pub fn decide(sessions: [Session; 2], options: &Options, terms: &Terms) -> Result<Decision, Error> {
    let [a, b] = sessions;
    let ((mut results_a, a), (mut results_b, b)) = (a.split_serving(), b.split_serving());
    let served = !results_a.is_empty() && !results_b.is_empty();
    let captured = !a.captures().is_empty() && !b.captures().is_empty();
    if !served && !captured {
        return Err(Error::request(
            "the two sides have nothing of one kind; give a serving result, or a capture with decode steps, of both",
        ));
    }
    let serving = served.then(|| results::compare([&mut results_a, &mut results_b], terms)).transpose()?;
    let (mut given, mut refused, mut banners, mut gap) =
        ([Given::default(), Given::default()], Vec::new(), Vec::new(), None);
    let same = if served { say_the_same(&results_a, &results_b) } else { are_same(a.captures(), b.captures()) };
    refused.extend(same.then(|| Message::plain(SAME)));
    if captured {
        let pair = Pair::of([a, b], options, terms)?;
        let report = pair.compare(terms)?;
        refused.extend(refusal(&report));
        banners.extend(report.banners());
        gap = report.difference.as_ref().map(|difference| {
            let waterfall = &difference.waterfall;
            let repeated = report.statistics.as_ref().and_then(|told| told.repeated.as_ref());
            // A share of the ratio: that of the launches, which are compared by their medians, is another one.
            let spread = repeated.map(|own| own.logarithm).map(|own| (own.low - own.value, own.high - own.value));
            let spread = spread.map(|(low, high)| (low.exp(), high.exp()));
            Gap { causes: waterfall.causes(), steps: [waterfall.from, waterfall.to], spread }
        });
        let (captures, places) = pair.diagnose();
        for (own, place) in given.iter_mut().zip(places) {
            if let Some((trace, analysis, diagnosis)) = captures.get(place) {
                *own = of_capture(trace, analysis, diagnosis);
            }
        }
    }
    if let Some(serving) = &serving {
        refused.extend(unequal(serving));
        banners.extend(caveat(serving));
        let sides = [&results_a, &results_b];
        for ((own, traces), head) in given.iter_mut().zip(sides).zip(&serving.heads) {
            own.loads = traces.iter().flat_map(serving::of).collect();
            own.head = head.clone();
            own.devices = own.devices.or_else(|| traces.iter().find_map(|trace| devices::of(trace, 0)));
        }
    }
    let prices: Option<Prices> = terms.declared.prices.clone();
    if let Some(prices) = &prices {
        let declared = [("a", prices.a.devices), ("b", prices.b.devices)];
        given.iter().zip(declared).try_for_each(|(own, (side, declared))| devices::declare(own, side, declared))?;
    }
    Ok(Decision::build(given, prices, terms.slo.clone(), refused, banners, gap, terms.force))
}

/// Why captures may not be compared.
fn refusal(report: &DiffReport) -> Vec<Message> {
    if report.difference.is_some() {
        return Vec::new();
    }
    let contract = &report.contract;
    let mut seen = HashSet::new();
    let reasons = contract.refusals(MAIN).filter(|reason| seen.insert((reason.text(), reason.side)));
    let mut told: Vec<Message> = reasons.map(|reason| words::reason(contract, reason)).collect();
    let more = told.len().saturating_sub(REASONS);
    told.truncate(REASONS);
    told.extend((more > 0).then(|| {
        Message::new(Text::new("and {n} further reasons", "及另外 {n} 个原因"), [("n", Value::Count(more as u64))])
    }));
    told.push(Message::plain(Text::new(
        "`strato diff A B` says what would have to change; `--force` shows the numbers all the same",
        "`strato diff A B` 说明须改变什么；`--force` 仍给出数字",
    )));
    told
}

/// Whether the captures of both sides are the same ones.
fn are_same(a: &[Trace], b: &[Trace]) -> bool {
    let digests = |side: &[Trace]| side.iter().map(contract::digest).collect::<HashSet<_>>();
    digests(a) == digests(b)
}

/// Whether two sides of results say the same, whatever their files are called. A result holds no operations that a digest could be of.
fn say_the_same(a: &[Trace], b: &[Trace]) -> bool {
    let loads = |side: &[Trace]| {
        let all = side.iter().flat_map(serving::of);
        all.map(|load| serving::Load { source: String::new(), ..load }).collect::<Vec<_>>()
    };
    let (a, b) = (loads(a), loads(b));
    a.len() == b.len() && a.iter().all(|load| b.contains(load)) && b.iter().all(|load| a.contains(load))
}

/// Why serving results may not be weighed. Which of their loads may be set against each other the decision itself says, and of
/// tensor parallelism nothing has to be equal: every number is of one device.
fn unequal(report: &ServingReport) -> Option<Message> {
    let matters = |reason: &&Reason| !matches!(reason, Reason::NoLoad | Reason::Differs("parallel.tp", ..));
    report.beside.refused.iter().find(matters).map(|_| {
        Message::plain(Text::new(
            "the serving results are of other work; `strato diff A B` says in what, `--force` shows the numbers all the same",
            "服务压测结果的工作不同；`strato diff A B` 说明何处不同，`--force` 仍给出数字",
        ))
    })
}

/// What else one side does, where it is not known of the other.
fn caveat(report: &ServingReport) -> Option<Message> {
    let speculates = |reason: &&Reason| matches!(reason, Reason::Unknown(SPECULATIVE, _));
    report.beside.caveats.iter().find(speculates).map(|_| {
        Message::plain(Text::new(
            "one side accepts several tokens at a time (speculative decoding) and the other does not say whether it does; declare `workload.speculative`",
            "一侧一次接受多个 token（投机解码），另一侧未说明；请声明 `workload.speculative`",
        ))
    })
}

/// What a capture shows of prefill, decode and power.
fn of_capture(trace: &Trace, analysis: &Analysis, diagnosis: &Diagnosis) -> Given {
    let manifest = &trace.manifest;
    let said = |key: &str| manifest.count(key).filter(|n| *n > 0);
    let batch = |own: Option<u32>| own.or_else(|| said("caps.batch").and_then(|n| u32::try_from(n).ok()));
    let prompt = said("workload.prompt_len").map(|n| n as f64);
    let classes = || analysis.ranks.first().into_iter().flat_map(|rank| &rank.classes);
    let of = |stage: Stage| classes().filter(move |class| class.stage == stage && class.p50 > 0);
    let decode = of(Stage::Decode).filter(|class| class.steady > 0);
    let prefill = of(Stage::Prefill).filter_map(|class| {
        let tokens = prompt? * f64::from(batch(class.batch).unwrap_or(1));
        Some((tokens, class.p50 as f64 / 1e6))
    });
    let estimates = diagnosis.findings.iter().filter(|finding| finding.estimate.method != Method::None);
    let best = estimates.max_by_key(|finding| finding.estimate.from.saturating_sub(finding.estimate.to_low));
    Given {
        head: pair::head(trace),
        loads: Vec::new(),
        devices: devices::of(trace, analysis.ranks.len()),
        groups: said("parallel.dp").map_or(1.0, |n| n as f64),
        prefills: prefill.collect(),
        steps: decode.filter_map(|class| Some((batch(class.batch)?, class.p50))).collect(),
        lengths: [prompt, said("workload.output_len").map(|n| n as f64)],
        power_w: power(trace),
        winnable: best.map(|finding| (finding.rule, finding.estimate.from, finding.estimate.to_low)),
    }
}

/// Mean power of a device over the capture, W: from counters of devices in W.
fn power(trace: &Trace) -> Option<f64> {
    let counters = trace.counters.iter().filter(|counter| counter.unit == "W" && counter.device.is_some());
    let means: Vec<f64> = counters
        .filter_map(|counter| {
            let good: Vec<f64> =
                counter.value.iter().copied().filter(|watts| watts.is_finite() && *watts > 0.0).collect();
            (!good.is_empty()).then(|| good.iter().sum::<f64>() / good.len() as f64)
        })
        .collect();
    (!means.is_empty()).then(|| means.iter().sum::<f64>() / means.len() as f64)
}
