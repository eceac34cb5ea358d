//! The scores as tables for people.

use super::{
    deprive::Loss,
    score::{Group, Key, Rate, Score},
};
use diagnosis::i18n::{Lang, Message, Text, Value};
use report::{
    document::{Align, Document, Table},
    inlines, phrase, units,
};

/// Misses that are listed; the JSON form has all of them.
const LISTED: usize = 40;
/// Findings of a miss that are shown.
const SHOWN: usize = 4;

fn share(share: Option<f64>) -> String {
    share.map_or_else(|| "–".to_owned(), units::share)
}

fn rate(rate: Rate) -> String {
    share(rate.share())
}

fn table<const N: usize>(lang: Lang, columns: [(Text, Align); N]) -> Table {
    Table::new(columns.map(|(text, align)| (phrase::text(text, lang), align)))
}

/// The scores of runs that began at `seed`.
pub fn document(score: &Score, seed: u64, lang: Lang) -> Document {
    let get = |text: Text| phrase::text(text, lang);
    let mut out = Document::new();
    out.heading(1, get(Text::new("Self-test", "自检")));
    let intro = Text::new(
        "Simulated runs, each with a known fault or none, were written in a vendor's format, read back and diagnosed like a user's trace. Everything here is simulated: real captures are less regular.",
        "模拟若干已知故障（或无故障）的运行，写成厂商格式，再像用户的采集一样读回并诊断。以下全部为模拟结果：真实采集没有这么规整。",
    );
    let counts = match lang {
        Lang::En => format!("{} runs, first seed {seed}.", score.runs),
        Lang::Zh => format!("共 {} 次运行，首个种子 {seed}。", score.runs),
    };
    out.paragraph(inlines![get(intro), " ", counts]);
    out.heading(2, get(Text::new("Is the cause named?", "能否指出原因")));
    out.table(groups(score, lang, |key| !matches!(key, Key::Fault(_))));
    out.paragraph(get(Text::new(
        "layer, rule: what comes first, leaving out other things that a second simulation shows to be worth as much or more. Strict: the first of all. Gain error: middle of the interval against the difference to the same run without the fault, over the step. Largest, grown: what the layer of the largest bucket, or of the bucket that grew most over the run without the fault, would have said. Unheard: the rules that name the fault need evidence that the run does not hold (probes, counters), so only a layer that is blamed all the same is scored, right or wrong; an answer that leaves the layer open is not. Invisible: faults that cost less than 1 % of the step, not scored.",
        "层、规则：排在首位者，已除去第二次模拟证明同样值得或更值得处理的其他事项。严格：全部之中的首位。收益误差：区间中点与去掉故障后同一运行之差的偏差，相对步时。最大、增长：最大的桶，或相对无故障运行增长最多的桶所在的层会给出的答案。缺证据：能指出该故障的规则所需的证据（探针、计数器）不在采集中，仅当仍然归咎于某层时对层计分（无论对错），未下结论的不计分。不可见：代价不足步时 1% 的故障，不计分。",
    )));
    out.heading(2, get(Text::new("By fault", "按故障")));
    out.table(groups(score, lang, |key| matches!(key, Key::Fault(_))));
    out.heading(2, get(Text::new("What is said that is not so?", "误报")));
    out.paragraph(healthy(score, lang));
    out.table(rules(score, lang));
    out.heading(2, get(Text::new("How sure, and with how little?", "置信度与证据")));
    sureness(&mut out, score, lang);
    selective(&mut out, score, lang);
    out.heading(2, get(Text::new("Misses", "漏判")));
    misses(&mut out, score, lang);
    out
}

fn label(key: &Key, lang: Lang) -> String {
    let all = Text::new("all", "全部").get(lang);
    let size = |permille: i64| format!("{}×", permille as f64 / 1000.0);
    match key {
        Key::All => all.to_owned(),
        Key::Heard(true) => Text::new("with a rule that could speak", "有规则可判").get(lang).to_owned(),
        Key::Heard(false) => Text::new("with none", "无规则可判").get(lang).to_owned(),
        Key::Magnitude(permille) => format!("{all} {}", size(*permille)),
        Key::Family(layer) => (*layer).to_owned(),
        Key::FamilyMagnitude(layer, permille) => format!("{layer} {}", size(*permille)),
        Key::Fault(kind) => kind.clone(),
    }
}

fn groups(score: &Score, lang: Lang, wanted: impl Fn(&Key) -> bool) -> Table {
    use Align::{Left, Right};
    let mut table = table(
        lang,
        [
            (Text::new("faults", "故障"), Left),
            (Text::new("runs", "运行"), Right),
            (Text::new("layer", "层"), Right),
            (Text::new("rule", "规则"), Right),
            (Text::new("in three", "前三"), Right),
            (Text::new("strict layer", "严格层"), Right),
            (Text::new("strict rule", "严格规则"), Right),
            (Text::new("culprit", "元凶 rank"), Right),
            (Text::new("gain error p50", "收益误差 p50"), Right),
            (Text::new("p90", "p90"), Right),
            (Text::new("covered", "覆盖"), Right),
            (Text::new("largest", "最大"), Right),
            (Text::new("grown", "增长"), Right),
            (Text::new("unheard", "缺证据"), Right),
            (Text::new("invisible", "不可见"), Right),
        ],
    );
    for (key, group) in score.groups.iter().filter(|(key, _)| wanted(key)) {
        table.row(group_row(label(key, lang), group));
    }
    table
}

fn group_row(label: String, group: &Group) -> [String; 15] {
    [
        label,
        units::count(group.layer.of),
        rate(group.layer),
        rate(group.rule),
        rate(group.rule_in_three),
        rate(group.layer_strict),
        rate(group.rule_strict),
        rate(group.culprit),
        share(group.error(0.5)),
        share(group.error(0.9)),
        rate(group.covered),
        rate(group.largest_bucket),
        rate(group.grown_bucket),
        units::count(group.unheard),
        units::count(group.invisible),
    ]
}

fn healthy(score: &Score, lang: Lang) -> String {
    let last = score.headroom_errors.len().saturating_sub(1);
    let median = share(score.headroom_errors.get(last / 2).copied());
    let Rate { hits, of } = score.false_alarms;
    let (share, pairs) = (rate(score.false_alarms), rate(score.pairs));
    match lang {
        Lang::En => format!(
            "{hits} of {of} healthy runs ({share}) have a finding of medium severity or above that is not so. {} more findings on them are true headroom and no fault: the same run with that thing improved is really shorter by 3 % or more (median error of the gain {median} of the step). Two faults at once: both named first in {pairs} of {} runs.",
            score.headroom, score.pairs.of
        ),
        Lang::Zh => format!(
            "{of} 次健康运行中有 {hits} 次（{share}）出现不成立的中等及以上发现。另有 {} 条发现是真实的提升空间而非故障：改进该项后同一运行确实缩短 3% 以上（收益误差中位数为步时的 {median}）。两个故障同时存在：{} 次中有 {pairs} 将两者都排在最前。",
            score.headroom, score.pairs.of
        ),
    }
}

fn rules(score: &Score, lang: Lang) -> Table {
    use Align::{Left, Right};
    let mut table = table(
        lang,
        [
            (Text::new("rule", "规则"), Left),
            (Text::new("said", "发现"), Right),
            (Text::new("precision", "精确率"), Right),
            (Text::new("to name", "应指出"), Right),
            (Text::new("recall", "召回率"), Right),
            (Text::new("false on healthy runs", "健康运行误报"), Right),
        ],
    );
    for (rule, named) in &score.rules {
        table.row([
            (*rule).to_owned(),
            units::count(named.precision.of),
            rate(named.precision),
            units::count(named.recall.of),
            rate(named.recall),
            units::count(named.healthy_false),
        ]);
    }
    table.row([
        Text::new("mean", "平均").get(lang).to_owned(),
        String::new(),
        share(score.macro_mean(|named| named.precision)),
        String::new(),
        share(score.macro_mean(|named| named.recall)),
        String::new(),
    ]);
    table
}

fn sureness(out: &mut Document, score: &Score, lang: Lang) {
    use Align::{Left, Right};
    let mut table = table(
        lang,
        [
            (Text::new("confidence", "置信度"), Left),
            (Text::new("means", "含义"), Right),
            (Text::new("right", "正确"), Right),
            (Text::new("said", "发现"), Right),
        ],
    );
    for s in &score.sureness {
        let word = units::confidence_key(s.confidence).to_owned();
        table.row([word, units::share(s.stated), rate(s.right), units::count(s.right.of)]);
    }
    let (brier, error) = (score.brier(), score.calibration_error());
    let number = |n: Option<f64>| n.map_or_else(|| "–".to_owned(), units::number);
    out.table(table);
    out.paragraph(format!("Brier {}, ECE {}", number(brier), share(error)));
}

fn selective(out: &mut Document, score: &Score, lang: Lang) {
    use Align::{Left, Right};
    let mut table = table(
        lang,
        [
            (Text::new("taken away", "去掉的证据"), Left),
            (Text::new("answered", "作答"), Right),
            (Text::new("wrong layer", "层错误"), Right),
            (Text::new("runs", "运行"), Right),
        ],
    );
    for (loss, s) in &score.selective {
        let what = match loss {
            None => Text::new("nothing", "无"),
            Some(Loss::Shapes) => Text::new("shapes", "形状"),
            Some(Loss::Correlation) => Text::new("correlation", "关联"),
            Some(Loss::Host) => Text::new("host", "主机"),
            Some(Loss::Counters) => Text::new("counters of the engine", "引擎计数器"),
            Some(Loss::OtherRanks) => Text::new("other ranks", "其他 rank"),
        };
        table.row([what.get(lang).to_owned(), rate(s.answered), rate(s.wrong), units::count(s.answered.of)]);
    }
    out.table(table);
    if let Some((median, most)) = score.residuals.get(score.residuals.len() / 2).zip(score.residuals.last()) {
        let (median, most) = (units::exact_ns(*median), units::exact_ns(*most));
        out.paragraph(match lang {
                Lang::En => format!(
                    "Wait identity: the largest unexplained part of a wait on another rank is {median} in the median run, {most} in the worst of {}.",
                    score.residuals.len()
                ),
                Lang::Zh => format!(
                    "等待恒等式：对其他 rank 的等待中未解释的最大部分，中位运行为 {median}，{} 次运行中最差为 {most}。",
                    score.residuals.len()
                ),
        });
    }
}

fn misses(out: &mut Document, score: &Score, lang: Lang) {
    use Align::{Left, Right};
    if score.misses.is_empty() {
        return out.paragraph(phrase::text(Text::new("None.", "无。"), lang));
    }
    let mut table = table(
        lang,
        [
            (Text::new("fault", "故障"), Left),
            (Text::new("size", "大小"), Right),
            (Text::new("seed", "种子"), Right),
            (Text::new("mode", "模式"), Left),
            (Text::new("ranks", "rank 数"), Right),
            (Text::new("worth", "代价"), Right),
            (Text::new("expected", "应为"), Left),
            (Text::new("said (promised / true)", "实为（承诺 / 真实）"), Left),
        ],
    );
    for miss in score.misses.iter().take(LISTED) {
        let one = |(rule, promised, truth): &(&'static str, Option<f64>, Option<f64>)| {
            format!("{rule} ({} / {})", share(*promised), share(*truth))
        };
        table.row([
            miss.fault.clone(),
            format!("{}×", miss.magnitude_permille as f64 / 1000.0),
            miss.seed.to_string(),
            miss.mode.to_owned(),
            miss.ranks.to_string(),
            units::share(miss.gain),
            miss.expected.join(" "),
            miss.said.iter().take(SHOWN).map(one).collect::<Vec<_>>().join(", "),
        ]);
    }
    let rest = score.misses.len().saturating_sub(LISTED);
    out.table(table);
    let how = Text::new(
        "{rest} more are in the JSON form. `strato selftest --only FAULT --seed SEED --ranks N --rounds 1` repeats one.",
        "另有 {rest} 条见 JSON 形式。用 `strato selftest --only 故障 --seed 种子 --ranks N --rounds 1` 可重现。",
    );
    out.paragraph(phrase::inlines(&Message::new(how, [("rest", Value::Count(rest as u64))]), lang));
}
