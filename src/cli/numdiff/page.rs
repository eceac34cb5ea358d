//! The comparison for people: the verdict, the operator that is at fault and why, then where the errors come into being.

use std::collections::BTreeMap;

use engine::numdiff::{Cause, Comparison, Measure, Row, Verdict};

use super::{Done, described};
use diagnosis::i18n::{Lang, Message, Text, Value};
use report::{
    cells,
    document::{Align, Document, Inlines, Table},
    inlines, phrase, text, units,
};

/// The whole page; `all` lists every operator.
pub(super) fn document(done: &Done, lang: Lang, all: bool) -> Document {
    let mut page = Page { lang, out: Document::new() };
    let [a, b] = done.sides.each_ref().map(|side| Inlines::quoted(&described(side), text::PHRASE));
    let c = &done.comparison;
    page.out.heading(1, page.get(Text::new("Numeric difference of two runs", "两次运行的数值差异")));
    page.out.paragraph(Inlines::strong(verdict(&page, c)));
    let mut facts = vec![
        inlines!["A", page.colon(), a],
        inlines!["B", page.colon(), b],
        page.fill(Message::new(
            Text::new(
                "{model}, seed {seed}: {sequences} sequence(s) of {prompt} prompt tokens and {steps} decode steps; both sides get A's tokens",
                "{model}，种子 {seed}：{sequences} 条序列，各 {prompt} 个提示 token，{steps} 个解码步；两侧均输入 A 的 token",
            ),
            [
                ("model", Value::Raw(done.model.clone())),
                ("seed", Value::Raw(done.seed.to_string())),
                ("sequences", Value::Count(done.sides[0].batch as u64)),
                ("prompt", Value::Count(done.sides[0].prompt as u64)),
                ("steps", Value::Count(u64::from(c.steps))),
            ],
        )),
        logits(&page, c),
        tokens(&page, c),
    ];
    facts.extend(["A", "B"].into_iter().zip(c.unrepeated).filter_map(|(side, step)| {
        let text = Text::new(
            "{side} gives other logits when it starts a whole step than one operator at a time, first in step {step}: look at how its steps start (graph, threads)",
            "{side} 整步启动与逐算子启动得到的 logits 不同，首次出现在第 {step} 步：请检查其步的启动方式（图、线程）",
        );
        let args = [("side", Value::Raw(side.to_owned())), ("step", Value::Count(u64::from(step?)))];
        Some(page.fill(Message::new(text, args)))
    }));
    page.out.list(facts);
    if let Some(row) = c.first.and_then(|at| c.rows.get(at)) {
        fault(&mut page, c, row);
    } else if c.verdict() == Verdict::Grown
        && let Some(row) = c.amplified().and_then(|at| c.rows.get(at))
    {
        let text = Text::new(
            "The first operator whose error grows much more than that of the same operator in other layers",
            "误差增长明显高于其他层同名算子的第一个算子",
        );
        page.out.paragraph(inlines![page.get(text), page.colon(), place(&page, row)]);
    }
    by_layer(&mut page, c);
    if all {
        every(&mut page, c);
    }
    page.out
}

struct Page {
    lang: Lang,
    out: Document,
}

impl Page {
    fn get(&self, text: Text) -> Inlines {
        phrase::text(text, self.lang)
    }

    fn fill(&self, message: Message) -> Inlines {
        phrase::inlines(&message, self.lang)
    }

    fn colon(&self) -> &'static str {
        phrase::colon(self.lang)
    }

    fn table(&mut self, title: Text, table: Table) {
        self.out.paragraph(Inlines::strong(self.get(title)));
        self.out.table(table);
    }
}

/// A number as small and large as errors are.
fn error(value: f64) -> String {
    if value == 0.0 { "0".to_owned() } else { format!("{value:.1e}") }
}

/// The relative L2 of a comparison, or that values are NaN or infinite, of which there is none.
fn relative(measure: &Measure) -> String {
    if measure.not_finite > 0 { "NaN, inf".to_owned() } else { error(measure.relative_l2()) }
}

fn raw(text: String) -> Value {
    Value::Raw(text)
}

/// Where an operator stands.
fn place(page: &Page, row: &Row) -> Inlines {
    let text = match row.layer {
        Some(_) => Text::new("layer {layer}, operator {op}", "第 {layer} 层，算子 {op}"),
        None => Text::new("operator {op}, outside the layers", "层外算子 {op}"),
    };
    let layer = Value::Count(row.layer.map_or(0, u64::from));
    page.fill(Message::new(text, [("layer", layer), ("op", raw(row.name()))]))
}

fn verdict(page: &Page, c: &Comparison) -> Inlines {
    let precision = ("dtype", raw(c.precision.name().to_owned()));
    match (c.verdict(), c.first.and_then(|at| c.rows.get(at))) {
        (Verdict::NotFinite, _) => not_finite(page, c),
        (Verdict::Equal, _) => page.get(Text::new("Equal bit for bit.", "逐位相等。")),
        (Verdict::WithinPrecision, _) => {
            page.fill(Message::new(Text::new("Within precision of {dtype}.", "在 {dtype} 的精度范围内。"), [precision]))
        }
        (Verdict::Grown, _) => page.fill(Message::new(
            Text::new(
                "No operator is at fault, but the errors of the run have grown beyond the precision of {dtype}.",
                "没有算子出错，但整次运行的误差已超出 {dtype} 的精度。",
            ),
            [precision],
        )),
        (Verdict::Faulty, Some(row)) => {
            let at = page.get(Text::new("Diverges at ", "分歧始于："));
            inlines![at, place(page, row), page.get(Text::new(".", "。"))]
        }
        (Verdict::Faulty, None) => page.get(Text::new(
            "Operators agree one by one, but a whole step gives other numbers.",
            "逐算子一致，但整步启动的数值不同。",
        )),
    }
}

/// Where each side first gives NaN or infinity.
fn not_finite(page: &Page, c: &Comparison) -> Inlines {
    let row = |side: usize| c.not_finite[side].and_then(|at| Some((at.step, c.rows.get(at.row)?)));
    let begins = page.get(Text::new("NaN or infinity: ", "出现 NaN 或无穷："));
    let stop = page.get(Text::new(".", "。"));
    let at = |(step, row): (u32, &Row)| {
        let text = Text::new(" from step {step} on", "，始于第 {step} 步");
        let step = page.fill(Message::new(text, [("step", Value::Count(u64::from(step)))]));
        inlines![place(page, row), step]
    };
    let same = |a: (u32, &Row), b: (u32, &Row)| (a.0, a.1.layer, a.1.name()) == (b.0, b.1.layer, b.1.name());
    match (row(0), row(1)) {
        (Some(a), Some(b)) if same(a, b) => {
            inlines![begins, page.get(Text::new("both sides at ", "两侧均为")), at(b), stop]
        }
        (Some(a), Some(b)) => inlines![begins, "A", page.colon(), at(a), "; B", page.colon(), at(b), stop],
        (Some(a), None) => {
            inlines![begins, "A", page.colon(), at(a), page.get(Text::new(", and B nowhere", "，B 没有")), stop]
        }
        (None, Some(b)) => {
            inlines![begins, "B", page.colon(), at(b), page.get(Text::new(", and A nowhere", "，A 没有")), stop]
        }
        (None, None) => begins,
    }
}

fn logits(page: &Page, c: &Comparison) -> Inlines {
    let text = Text::new(
        "logits: relative L2 {error} (within precision up to {tolerance}), cosine {cosine}, largest difference {most}",
        "logits：相对 L2 {error}（精度范围 {tolerance}），余弦 {cosine}，最大差 {most}",
    );
    let cosine = c.logits.cosine().map_or_else(|| "–".to_owned(), |cosine| format!("{cosine:.9}"));
    let args = [
        ("error", raw(relative(&c.logits))),
        ("tolerance", raw(error(c.tolerance))),
        ("cosine", raw(cosine)),
        ("most", raw(error(c.logits.max_abs))),
    ];
    page.fill(Message::new(text, args))
}

fn tokens(page: &Page, c: &Comparison) -> Inlines {
    let [all, equal] = c.tokens.map(Value::Count);
    let text = Text::new("{equal} of {all} chosen tokens are the same", "所选 {all} 个 token 中 {equal} 个相同");
    let counted = page.fill(Message::new(text, [("equal", equal), ("all", all)]));
    let Some(split) = c.split else { return counted };
    let text = if split.is_benign() {
        Text::new(
            "the first other one in step {step}, benign: A preferred its own by {margin} standard deviations of its logits",
            "首次不同在第 {step} 步，属良性：A 对自己所选仅领先其 logits 标准差的 {margin} 倍",
        )
    } else {
        Text::new(
            "the first other one in step {step}, where A preferred its own by {margin} standard deviations of its logits",
            "首次不同在第 {step} 步，A 对自己所选领先其 logits 标准差的 {margin} 倍",
        )
    };
    let args = [("step", Value::Count(u64::from(split.step))), ("margin", raw(error(split.margin)))];
    let joint = page.get(Text::new("; ", "；"));
    inlines![counted, joint, page.fill(Message::new(text, args))]
}

/// Why an operator is at fault.
fn why(page: &Page, cause: Cause) -> Inlines {
    let (text, args) = match cause {
        Cause::NotFinite { a, b } => (
            Text::new(
                "given the same input, A gives {a} and B {b} values that are NaN or infinite where the other gives numbers",
                "输入相同时，A 有 {a} 个、B 有 {b} 个值为 NaN 或无穷，而另一侧为数值",
            ),
            vec![("a", Value::Count(a)), ("b", Value::Count(b))],
        ),
        Cause::Moved { different, of } => (
            Text::new(
                "it only moves numbers, and {n} of {all} are others afterwards",
                "该算子只搬运数值，但之后 {all} 个中有 {n} 个不同",
            ),
            vec![("n", Value::Count(different)), ("all", Value::Count(of))],
        ),
        Cause::Arithmetic { error: e, tolerance } => (
            Text::new(
                "given the same input and weights, the two differ by {error} (relative L2); precision explains {tolerance}",
                "输入与权重相同时，两侧相差 {error}（相对 L2）；精度只能解释 {tolerance}",
            ),
            vec![("error", raw(error(e))), ("tolerance", raw(error(tolerance)))],
        ),
        Cause::Weights { error: e, tolerance } => (
            Text::new(
                "given the same input, the weights of the two make a difference of {error} (relative L2); their types explain {tolerance}",
                "输入相同时，两侧权重造成 {error} 的差异（相对 L2）；数据类型只能解释 {tolerance}",
            ),
            vec![("error", raw(error(e))), ("tolerance", raw(error(tolerance)))],
        ),
    };
    page.fill(Message::new(text, args))
}

/// The first operator at fault, and the others by name.
fn fault(page: &mut Page, c: &Comparison, row: &Row) {
    page.out.heading(2, page.get(Text::new("What diverges", "分歧所在")));
    if let Some((step, cause)) = row.fault {
        let step = page.fill(Message::new(
            if row.prefill {
                Text::new("in the pass of the prompt", "提示阶段")
            } else {
                Text::new("first in decode step {step}", "首次在解码第 {step} 步")
            },
            [("step", Value::Count(u64::from(step)))],
        ));
        let comma = page.get(Text::new(", ", "，"));
        let stop = page.get(Text::new(".", "。"));
        let line = inlines![place(page, row), comma, step, page.colon(), why(page, cause), stop];
        page.out.paragraph(line);
        let (input, own, local) = (error(row.input), relative(&row.own), relative(&row.local));
        let text = Text::new(
            "Of the two runs as they are, its input differs by {input} and its output by {own}; on the same input it makes {local} (relative L2 over all steps of the phase).",
            "两次运行中其输入相差 {input}，输出相差 {own}；输入相同时自身造成 {local}（该阶段所有步的相对 L2）。",
        );
        let args = [("input", raw(input)), ("own", raw(own)), ("local", raw(local))];
        page.out.paragraph(page.fill(Message::new(text, args)));
    }
    let mut by_name: BTreeMap<(bool, String), Vec<&Row>> = BTreeMap::new();
    for row in c.rows.iter().filter(|row| row.fault.is_some()) {
        by_name.entry((!row.prefill, row.name())).or_default().push(row);
    }
    let mut table = Table::new([
        (page.get(Text::new("operator", "算子")), Align::Left),
        (page.get(Text::new("phase", "阶段")), Align::Left),
        (page.get(Text::new("at fault", "出错")), Align::Right),
        (page.get(Text::new("layers", "层")), Align::Left),
        (page.get(Text::new("worst on the same input", "同输入下最差")), Align::Right),
    ]);
    for ((_, name), rows) in &by_name {
        let Some(prefill) = rows.first().map(|row| row.prefill) else { continue };
        let all = c.rows.iter().filter(|row| row.prefill == prefill && row.name() == *name).count();
        let worst = rows.iter().map(|row| row.local.relative_l2()).fold(0.0, f64::max);
        let layers: Vec<String> = rows.iter().filter_map(|row| row.layer).map(|layer| layer.to_string()).collect();
        table.row(cells![
            Inlines::name(name),
            phase(page, prefill),
            format!("{} / {all}", rows.len()),
            text::cut(&layers.join(" "), text::NAME),
            error(worst),
        ]);
    }
    page.table(Text::new("Operators whose difference is not explained", "差异无法解释的算子"), table);
}

fn phase(page: &Page, prefill: bool) -> Inlines {
    page.get(if prefill { Text::new("prompt", "提示") } else { Text::new("decode", "解码") })
}

fn percent(measure: &Measure) -> String {
    measure.close().map_or_else(|| "–".to_owned(), |[thousandth, _]| units::share(thousandth))
}

/// How the errors grow from layer to layer, and what each layer adds of its own.
fn by_layer(page: &mut Page, c: &Comparison) {
    let mut table = Table::new([
        (page.get(Text::new("phase", "阶段")), Align::Left),
        (page.get(Text::new("layer", "层")), Align::Right),
        (page.get(Text::new("error at its end", "层末误差")), Align::Right),
        (page.get(Text::new("within 1e-3", "1e-3 以内")), Align::Right),
        (page.get(Text::new("worst operator on the same input", "同输入下最差算子")), Align::Left),
        (page.get(Text::new("its error", "其误差")), Align::Right),
        (page.get(Text::new("worst of the weights", "权重造成的最大误差")), Align::Right),
    ]);
    let mut rest = &c.rows[..];
    while let Some(first) = rest.first() {
        let same = |row: &&Row| (row.prefill, row.layer) == (first.prefill, first.layer);
        let (layer, after) = rest.split_at(rest.iter().take_while(same).count());
        rest = after;
        let compared = || layer.iter().filter(|row| row.own.count > 0);
        let local = |row: &&Row| row.local.relative_l2();
        let (Some(last), Some(worst)) =
            (compared().next_back(), compared().max_by(|a, b| local(a).total_cmp(&local(b))))
        else {
            continue;
        };
        let weights = compared().filter_map(|row| row.weights).map(|weights| weights.relative_l2());
        table.row(cells![
            phase(page, first.prefill),
            first.layer.map_or_else(|| "–".to_owned(), |layer| layer.to_string()),
            relative(&last.own),
            percent(&last.own),
            if local(&worst) > 0.0 { Inlines::name(&worst.name()) } else { "–".into() },
            error(local(&worst)),
            error(weights.fold(0.0, f64::max)),
        ]);
    }
    page.table(Text::new("Errors by layer (relative L2)", "各层误差（相对 L2）"), table);
}

/// Every operator of every layer.
fn every(page: &mut Page, c: &Comparison) {
    let columns = [
        (Text::new("phase", "阶段"), Align::Left),
        (Text::new("layer", "层"), Align::Right),
        (Text::new("operator", "算子"), Align::Left),
        (Text::new("input", "输入误差"), Align::Right),
        (Text::new("output", "输出误差"), Align::Right),
        (Text::new("same input", "同输入"), Align::Right),
        (Text::new("of the weights", "权重造成"), Align::Right),
        (Text::new("cosine", "余弦"), Align::Right),
        (Text::new("max abs", "最大绝对"), Align::Right),
        (Text::new("max rel", "最大相对"), Align::Right),
        (Text::new("within 1e-3", "1e-3 以内"), Align::Right),
        (Text::new("NaN, inf A / B", "NaN、inf A / B"), Align::Right),
    ];
    let mut table = Table::new(columns.map(|(name, align)| (page.get(name), align)));
    for row in c.rows.iter().filter(|row| row.own.count > 0) {
        table.row(cells![
            phase(page, row.prefill),
            row.layer.map_or_else(|| "–".to_owned(), |layer| layer.to_string()),
            Inlines::name(&row.name()),
            error(row.input),
            relative(&row.own),
            relative(&row.local),
            row.weights.map_or_else(|| "–".to_owned(), |weights| error(weights.relative_l2())),
            row.own.cosine().map_or_else(|| "–".to_owned(), |cosine| format!("{cosine:.6}")),
            error(row.own.max_abs),
            error(row.own.max_rel),
            percent(&row.own),
            format!("{} / {}", row.own.a.nan + row.own.a.inf, row.own.b.nan + row.own.b.inf),
        ]);
    }
    page.table(Text::new("Operators in the order of the step", "按步内顺序的算子"), table);
}
