//! The figures of serving as tables for people, and as JSON.

use diagnosis::i18n::{Lang, Text};
use report::{
    document::{Align, Document, Table},
    phrase, units,
};
use serde_json::{Value, json};

use super::score::{Group, Key, Score, Share, Withheld};

/// Misses that are listed; the JSON form has all of them.
const LISTED: usize = 30;

fn table<const N: usize>(lang: Lang, columns: [(Text, Align); N]) -> Table {
    Table::new(columns.map(|(text, align)| (phrase::text(text, lang), align)))
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "–".to_owned(), units::share)
}

fn rate(share: Share) -> String {
    percent(share.value())
}

/// The figures of serving and nothing else, of runs that began at `seed`.
pub fn alone(score: &Score, seed: u64, lang: Lang) -> Document {
    let mut out = Document::new();
    out.heading(1, phrase::text(Text::new("Self-test", "自检"), lang));
    out.paragraph(match lang {
        Lang::En => format!("{} simulated runs, first seed {seed}.", score.runs),
        Lang::Zh => format!("共 {} 次模拟运行，首个种子 {seed}。", score.runs),
    });
    write(&mut out, score, lang);
    out
}

/// Adds the section.
pub fn write(out: &mut Document, score: &Score, lang: Lang) {
    let get = |text: Text| phrase::text(text, lang);
    out.heading(2, get(Text::new("On serving, with churn and without", "在真实服务负载上（批次变化 / 不变）")));
    out.paragraph(get(Text::new(
        "Churn: requests join and leave, so that the batch changes every few steps. Layer, first: what comes first blames the layer of the fault, or names it. Inside: what the fault costs, the difference to the same run without it, lies in the interval given; error: from its middle, in shares of the step. Weak faults cost 3 to 8 % of the step, medium ones 10 to 20 %, strong ones 30 to 40 %.",
        "批次变化：请求不断加入和离开，批次每隔几步就变。层、首位：排在首位者指向故障所在的层，或直接指出故障。区间内：故障的真实代价（与去掉故障的同一运行之差）落在给出的区间内；误差：区间中点与真实代价之差，相对步时。弱故障代价为步时的 3–8%，中等 10–20%，强 30–40%。",
    )));
    out.table(faults(score, lang));
    out.paragraph(healthy(score, lang));
    out.table(loads(score, lang));
    out.paragraph(withheld(score, lang));
    misses(out, score, lang);
}

fn label(key: Key, lang: Lang) -> String {
    let churn =
        |on: bool| if on { Text::new("churn", "批次变化") } else { Text::new("fixed batch", "批次不变") };
    let strength = |strength: simulator::Strength| match strength {
        simulator::Strength::Weak => Text::new("weak", "弱"),
        simulator::Strength::Medium => Text::new("medium", "中"),
        simulator::Strength::Strong => Text::new("strong", "强"),
    };
    match key {
        Key::Plain(on) => format!("{}, {}", churn(on).get(lang), Text::new("medium and strong", "中和强").get(lang)),
        Key::Strength(on, size) => format!("{}, {}", churn(on).get(lang), strength(size).get(lang)),
        Key::Fault(kind, on) => format!("{}, {}", kind.key(), churn(on).get(lang)),
    }
}

fn faults(score: &Score, lang: Lang) -> Table {
    use Align::{Left, Right};
    let mut table = table(
        lang,
        [
            (Text::new("faults", "故障"), Left),
            (Text::new("runs", "运行"), Right),
            (Text::new("layer", "层"), Right),
            (Text::new("first", "首位"), Right),
            (Text::new("named", "指出"), Right),
            (Text::new("inside", "区间内"), Right),
            (Text::new("error p50", "误差 p50"), Right),
            (Text::new("p90", "p90"), Right),
        ],
    );
    for (key, group) in &score.groups {
        let Group { layer, first, named, inside, .. } = group;
        table.row([
            label(*key, lang),
            units::count(layer.of),
            rate(*layer),
            rate(*first),
            rate(*named),
            rate(*inside),
            percent(group.error(0.5)),
            percent(group.error(0.9)),
        ]);
    }
    table
}

fn healthy(score: &Score, lang: Lang) -> String {
    let part = |churn: bool| {
        let (healthy, pairs) = (score.healthy.get(&churn), score.pairs.get(&churn).copied().unwrap_or_default());
        let (accused, of) = healthy.map_or((0, 0), |healthy| (healthy.accused.hits, healthy.accused.of));
        let share = rate(healthy.map(|healthy| healthy.accused).unwrap_or_default());
        let any = healthy.map_or(0, |healthy| healthy.spoken_of.hits);
        (accused, of, share, any, rate(pairs), pairs.of)
    };
    let ((a, b, c, any, d, e), (f, g, h, other, i, j)) = (part(true), part(false));
    let rules: Vec<String> = score.rules.iter().map(|(rule, runs)| format!("{rule} {runs}")).collect();
    let rules = if rules.is_empty() { "–".to_owned() } else { rules.join(", ") };
    match lang {
        Lang::En => format!(
            "Healthy runs accused (a finding of medium severity or above that improving the thing does not bear out): {a} of {b} with churn ({c}), {f} of {g} without ({h}); with any finding of that severity: {any} and {other}. By rule: {rules}. Both faults of a pair among the first three: {d} of {e} with churn, {i} of {j} without."
        ),
        Lang::Zh => format!(
            "健康运行被误报（出现中等及以上、但改进该项并不见效的发现）：批次变化时 {b} 次中 {a} 次（{c}），批次不变时 {g} 次中 {f} 次（{h}）；出现任何此级发现的：{any} 次与 {other} 次。按规则：{rules}。两个故障同时存在时均排进前三：批次变化 {e} 次中 {d}，批次不变 {j} 次中 {i}。"
        ),
    }
}

fn loads(score: &Score, lang: Lang) -> Table {
    use Align::{Left, Right};
    let columns = [
        (Text::new("healthy serving", "健康负载"), Left),
        (Text::new("runs", "运行"), Right),
        (Text::new("accused", "误报"), Right),
        (Text::new("any finding", "有发现"), Right),
    ];
    let mut table = table(lang, columns);
    for (load, healthy) in score.loads.iter().filter(|(_, healthy)| healthy.spoken_of.hits > 0) {
        table.row([
            load.key(),
            units::count(healthy.accused.of),
            units::count(healthy.accused.hits),
            units::count(healthy.spoken_of.hits),
        ]);
    }
    table
}

/// What was to be said that cannot be.
fn withheld(score: &Score, lang: Lang) -> String {
    let broken = |b: &Withheld| format!("{} {:?} ({})", b.rule.unwrap_or("–"), b.law, b.run);
    let listed: Vec<String> = score.breaches.iter().take(LISTED).map(broken).collect();
    let (n, runs, listed) = (score.breaches.len(), score.runs, listed.join(", "));
    match (lang, n) {
        (Lang::En, 0) => {
            format!("Statements that cannot be (a gain above the time it concerns, …): none in {runs} runs.")
        }
        (Lang::Zh, 0) => format!("不可能成立的陈述（收益超过所涉时间等）：{runs} 次运行中没有。"),
        (Lang::En, _) => format!("Statements that cannot be, and were withheld, in {runs} runs: {n}: {listed}."),
        (Lang::Zh, _) => format!("不可能成立、已被扣下的陈述：{runs} 次运行中 {n} 处：{listed}。"),
    }
}

fn misses(out: &mut Document, score: &Score, lang: Lang) {
    use Align::{Left, Right};
    if score.misses.is_empty() {
        return;
    }
    let columns = [
        (Text::new("run", "运行"), Left),
        (Text::new("worth", "代价"), Right),
        (Text::new("promised", "承诺"), Right),
        (Text::new("said", "所报"), Left),
    ];
    let mut table = table(lang, columns);
    for miss in score.misses.iter().take(LISTED) {
        let range = |range: &Option<(f64, f64)>| {
            range.map_or_else(|| "–".to_owned(), |(lo, hi)| format!("{}…{}", units::share(lo), units::share(hi)))
        };
        table.row([
            miss.run.clone(),
            miss.shares.iter().map(|share| units::share(*share)).collect::<Vec<_>>().join(" "),
            miss.promised.iter().map(range).collect::<Vec<_>>().join(" "),
            miss.said.iter().take(4).copied().collect::<Vec<_>>().join(" "),
        ]);
    }
    out.table(table);
}

/// The figures as JSON.
pub fn json(score: &Score) -> Value {
    let group = |(key, group): (&Key, &Group)| {
        let mut value = json!(group);
        value["error"] = json!({ "median": group.error(0.5), "p90": group.error(0.9), "of": group.errors.len() });
        (key.word(), value)
    };
    let word = |churn: &bool| if *churn { "churn" } else { "fixed" };
    let by_churn = |values: Vec<(&bool, Value)>| -> Value {
        values
            .into_iter()
            .map(|(churn, value)| (word(churn).to_owned(), value))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    json!({
        "runs": score.runs,
        "groups": score.groups.iter().map(group).collect::<serde_json::Map<String, Value>>(),
        "pairs": by_churn(score.pairs.iter().map(|(churn, share)| (churn, json!(share))).collect()),
        "healthy": by_churn(score.healthy.iter().map(|(churn, healthy)| (churn, json!(healthy))).collect()),
        "loads": score.loads.iter().map(|(load, healthy)| (load.key(), json!(healthy))).collect::<serde_json::Map<String, Value>>(),
        "accusing_rules": score.rules,
        "withheld": score.breaches,
        "misses": score.misses,
    })
}
