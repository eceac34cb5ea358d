//! The plan of an experiment on one page, and what captures lack of it.

use super::{
    document::{Align, Document, Inlines, Table},
    inlines, phrase,
};
use diagnosis::{
    compare::plan::{Plan, Unmet},
    i18n::{Lang, Message, Text, Value},
};

/// Characters of a value.
const VALUE: usize = 60;

/// What a probe tells.
fn why(probe: &str) -> Text {
    match probe {
        "read" => Text::new(
            "bandwidth: what the part that reads weights and caches costs at best",
            "带宽：读取权重与缓存部分的下限",
        ),
        "gemm" => Text::new("arithmetic: what the matrix products cost at best", "算力：矩阵乘部分的下限"),
        "launch" => Text::new(
            "the cost of a launch: what driver and processor take before any kernel runs",
            "下发成本：内核运行前驱动与处理器所需时间",
        ),
        "replay" => Text::new("the cost of a node of a graph replay", "图重放每个节点的成本"),
        "sync" => Text::new("how soon the host learns that the device is done", "主机得知设备完成所需时间"),
        "collective" => Text::new("the link: what transfers of these sizes cost at best", "链路：该大小传输的下限"),
        _ => Text::new("what that part of the step costs at best", "该部分的下限"),
    }
}

/// The plan for people.
pub fn document(plan: &Plan, lang: Lang) -> Document {
    let get = |text: Text| phrase::text(text, lang);
    let fill =
        |text: Text, args: &[(&'static str, Value)]| phrase::inlines(&Message::new(text, args.iter().cloned()), lang);
    let quoted = |value: &str| Inlines::quoted(value, VALUE);
    let mut out = Document::new();
    out.heading(1, get(Text::new("Plan of an experiment", "实验计划")));
    let device = |(letter, name): (&str, &String)| inlines![Inlines::strong(letter), ": ", quoted(name)];
    out.list(["A", "B"].into_iter().zip(&plan.devices).map(device));
    out.paragraph(get(Text::new(
        "**That it runs does not mean that it is finished.** Tokens that come out show neither that the two did the same work, nor that another launch would be as fast, nor how much of the step hardware asks for and how much the software adds. Finished is when the controls below hold on both sides, launches have been repeated, and the probes say what the hardware can do.",
        "**跑通不等于完成。**有 token 输出既不说明两侧做了同样的工作，也不说明再次启动同样快，更不说明一步之中多少是硬件所需、多少是软件所加。两侧满足下列控制条件、完成重复启动、并有探针给出硬件能力，才算完成。",
    )));
    out.heading(2, get(Text::new("Launches", "启动次数")));
    let sought = [
        ("effect", Value::Share(plan.sought.effect)),
        ("noise", Value::Share(plan.sought.noise)),
        ("n", Value::Count(plan.launches.unwrap_or_default() as u64)),
    ];
    let launches = match plan.launches {
        Some(_) => Text::new(
            "{n} of each side, in the order A B B A …, each a process of its own: so many show a difference of {effect} nine times in ten where launches of one side differ by {noise}.",
            "每侧 {n} 次，按 A B B A … 交替，每次为独立进程：当同侧各次启动相差 {noise} 时，这样的次数以九成把握显示 {effect} 的差异。",
        ),
        None => Text::new(
            "No number of launches up to a hundred shows a difference of {effect} where launches of one side differ by {noise}: lower the noise first (lock clocks, pin threads, leave the machine alone).",
            "当同侧各次启动相差 {noise} 时，一百次以内的启动无法显示 {effect} 的差异：请先降低波动（锁频、绑核、独占机器）。",
        ),
    };
    out.paragraph(fill(launches, &sought));
    controls(&mut out, plan, lang);
    out.heading(2, get(Text::new("Probes", "探针")));
    out.list(plan.asks.iter().map(|ask| {
        let told = fill(
            Text::new(
                "bounds {share} of the step and tells {bits} bits of where a difference lies",
                "约束一步的 {share}，可提供关于差异所在的 {bits} 比特信息",
            ),
            &[("share", Value::Share(ask.share)), ("bits", Value::Number(ask.bits))],
        );
        let probe = Inlines::code(format!("strato probe --only {}", ask.probe));
        inlines![probe, ": ", get(why(ask.probe)), "; ", told]
    }));
    if plan.asks.is_empty() {
        out.paragraph(get(Text::new("Both sides have those that matter.", "两侧已具备所需探针。")));
    }
    out.paragraph(get(Text::new(
        "Then hold the captures against the plan with `strato plan check PLAN.toml CAPTURES…`, and compare them with `strato diff A1,A2,… B1,B2,…`.",
        "随后用 `strato plan check PLAN.toml CAPTURES…` 对照计划，并用 `strato diff A1,A2,… B1,B2,…` 比较。",
    )));
    out
}

/// What both sides have to have.
fn controls(out: &mut Document, plan: &Plan, lang: Lang) {
    let get = |text: Text| phrase::text(text, lang);
    out.heading(2, get(Text::new("Controls", "控制条件")));
    let mut table = Table::new([
        (get(Text::new("field", "字段")), Align::Left),
        (get(Text::new("both have", "两侧取值")), Align::Left),
        (get(Text::new("so far", "目前")), Align::Left),
    ]);
    for term in plan.terms.iter().filter(|term| term.value.is_some()) {
        let met = if term.met { Text::new("met", "满足") } else { Text::new("not met", "未满足") };
        let value = term.value.as_deref().map(|value| Inlines::quoted(value, VALUE));
        table.row([Inlines::name(term.field.key), value.unwrap_or_default(), get(met)]);
    }
    out.table(table);
    let open: Vec<Inlines> =
        plan.terms.iter().filter(|t| t.value.is_none()).map(|t| Inlines::name(t.field.key)).collect();
    if !open.is_empty() {
        let agree = Text::new(
            "Nobody has stated these; agree on them before the first run",
            "以下尚无人说明，请在首次运行前商定",
        );
        out.paragraph(inlines![Inlines::strong(get(agree)), ": ", Inlines::joined(open, ", ")]);
    }
}

/// A line for something that captures lack.
pub fn unmet(unmet: &Unmet, lang: Lang) -> String {
    let raw = |text: &str| Value::Raw(text.to_owned());
    let message = match unmet {
        Unmet::Control { source, field, wanted, found: Some(found) } => Message::new(
            Text::new(
                "{source}: {field} is {found}, and has to be {wanted}",
                "{source}：{field} 为 {found}，应为 {wanted}",
            ),
            [("source", raw(source)), ("field", raw(field.key)), ("found", raw(found)), ("wanted", raw(wanted))],
        ),
        Unmet::Control { source, field, wanted, found: None } => Message::new(
            Text::new(
                "{source}: {field} is not known, and has to be {wanted}",
                "{source}：{field} 未知，应为 {wanted}",
            ),
            [("source", raw(source)), ("field", raw(field.key)), ("wanted", raw(wanted))],
        ),
        Unmet::Launches { device, wanted, found } => Message::new(
            Text::new("{device}: {found} launches of {wanted}", "{device}：{wanted} 次启动中完成 {found} 次"),
            [("device", raw(device)), ("found", Value::Count(*found as u64)), ("wanted", Value::Count(*wanted as u64))],
        ),
        Unmet::Probe { device, probe } => Message::new(
            Text::new("{device}: no rows of the probe {probe}", "{device}：缺少探针 {probe} 的结果"),
            [("device", raw(device)), ("probe", raw(probe))],
        ),
        Unmet::Open { field } => Message::new(
            Text::new(
                "{field}: nobody has stated it; move it from 'open' to [controls] with its value",
                "{field}：尚无人说明；请把它从 open 移到 [controls] 并给出取值",
            ),
            [("field", raw(field))],
        ),
        Unmet::Device { source, device } => Message::new(
            Text::new("{source}: of {device}, which the plan does not have", "{source}：设备 {device} 不在计划之内"),
            [("source", raw(source)), ("device", raw(device))],
        ),
    };
    phrase::plain(&message, lang)
}
