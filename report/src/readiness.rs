//! Words for how ready a platform is: lights, areas, the facts behind them, and the next step.

use model::{Area, Light, Maturity};

use super::{grade, sections::words};
use diagnosis::{
    diagnose::readiness::{Cell, Fact, Next, Readiness},
    i18n::{Message, Text, Value},
};

/// Title of the board.
pub const BOARD: Text = Text::new("Readiness board", "就绪度看板");
/// Title of the matrix.
pub const MATRIX: Text = Text::new("Maturity matrix", "成熟度矩阵");

/// A light in a word, which says what its colour does.
pub fn light(light: Light) -> Text {
    match light {
        Light::Red => Text::new("red", "红"),
        Light::Amber => Text::new("amber", "黄"),
        Light::Green => Text::new("green", "绿"),
        Light::Unknown => Text::new("not known", "未知"),
    }
}

/// An area of the board.
pub fn area(area: Area) -> Text {
    match area {
        Area::Run => Text::new("run", "运行"),
        Area::Graph => Text::new("graph", "图"),
        Area::CompileStability => Text::new("compile stability", "编译稳定性"),
        Area::Communication => Text::new("communication", "通信"),
        Area::Observability => Text::new("observability", "可观测性"),
        Area::Verify => Text::new("verify", "验证"),
    }
}

/// A row of the maturity matrix.
pub fn maturity(maturity: Maturity) -> Text {
    match maturity {
        Maturity::OperatorCoverage => Text::new("operator coverage", "算子覆盖"),
        Maturity::Efficiency => Text::new("efficiency", "效率"),
        Maturity::Ecosystem => Text::new("ecosystem", "生态"),
        Maturity::Community => Text::new("documentation and community", "文档与社区"),
    }
}

/// What a cell of either is about, in words: board and matrix are laid out alike.
pub fn rows(readiness: &Readiness) -> [Vec<(Text, Row<'_>)>; 2] {
    [
        readiness.board.iter().map(|cell| (area(cell.of), Row::of(cell, &readiness.vendor))).collect(),
        readiness.matrix.iter().map(|cell| (maturity(cell.of), Row::of(cell, &readiness.vendor))).collect(),
    ]
}

/// A cell without what it is about.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// What is said of it.
    pub light: Light,
    /// What that rests on.
    pub facts: &'a [Fact],
    /// What to do next.
    pub next: Option<&'a Next>,
    /// Vendor of the devices.
    pub vendor: &'a str,
}

impl<'a> Row<'a> {
    fn of<K>(cell: &'a Cell<K>, vendor: &'a str) -> Self {
        Self { light: cell.light, facts: &cell.facts, next: cell.next.as_ref(), vendor }
    }
}

/// What a fact says.
pub fn fact(fact: &Fact) -> Message {
    let count = Value::Count;
    let raw = |text: &str| Value::Raw(text.to_owned());
    match fact {
        Fact::Ran { operations, steps } => Message::new(
            Text::new("device operations: {n}; steps that count: {steps}", "设备操作 {n} 个，被采用的步 {steps} 个"),
            [("n", count(*operations)), ("steps", count(*steps))],
        ),
        Fact::NothingRan => Message::plain(Text::new("no work of a device was recorded", "没有设备执行记录")),
        Fact::Reference { field, value } => Message::new(
            Text::new("held against a reference: {field} is {value}", "已与参考对照：{field} 为 {value}"),
            [("field", raw(field)), ("value", Value::Phrase(value.clone()))],
        ),
        Fact::NoReference => {
            Message::plain(Text::new("its numbers were held against no reference", "数值未与参考对照"))
        }
        Fact::Finding { rule, severity } => Message::new(
            Text::new("finding {rule} of severity {severity}", "发现 {rule}，严重度{severity}"),
            [("rule", raw(rule)), ("severity", Value::Text(words::severity(*severity)))],
        ),
        Fact::Graphs { full, piecewise, eager } => Message::new(
            Text::new(
                "steps that count: {full} replayed from one graph, {piecewise} from pieces, {eager} launched one by one",
                "被采用的步：{full} 步由单个图重放，{piecewise} 步分段重放，{eager} 步逐个下发",
            ),
            [("full", count(*full)), ("piecewise", count(*piecewise)), ("eager", count(*eager))],
        ),
        Fact::Compiled { steps, compiling } => Message::new(
            Text::new(
                "steps that count: {steps}, of which hold compilation, tuning or graph capture: {compiling}",
                "{steps} 个被采用的步中有 {compiling} 个含编译、调优或图捕获",
            ),
            [("compiling", count(*compiling)), ("steps", count(*steps))],
        ),
        Fact::Ranks { captured, world: Some(world) } => Message::new(
            Text::new("ranks captured: {captured} of {world}", "已采集 {world} 个 rank 中的 {captured} 个"),
            [("captured", count(*captured)), ("world", count(*world))],
        ),
        Fact::Ranks { captured, world: None } => Message::new(
            Text::new(
                "ranks captured: {captured}; the size of the job is not known",
                "已采集 {captured} 个 rank，作业规模未知",
            ),
            [("captured", count(*captured))],
        ),
        Fact::Collectives { seen, estimated } => Message::new(
            Text::new(
                "collectives: {seen}, of which the transfer is only estimated: {estimated}",
                "{seen} 次集合通信，其中 {estimated} 次的传输时间仅为估计",
            ),
            [("seen", count(*seen)), ("estimated", count(*estimated))],
        ),
        Fact::Evidence { held, of } => Message::new(
            Text::new("{held} of {of} classes of evidence", "{of} 类证据中有 {held} 类"),
            [("held", count(*held)), ("of", count(*of))],
        ),
        Fact::Lacks(class) => {
            Message::new(Text::new("without {what}", "缺少{what}"), [("what", Value::Text(grade::name(*class)))])
        }
        Fact::Named(share) => Message::new(
            Text::new("operators are named for {share} of the device time", "{share} 设备时间的算子可识别"),
            [("share", Value::Share(*share))],
        ),
        Fact::Lost(n) => Message::new(
            Text::new("records lost or wrong in the import: {n}", "导入时有 {n} 条记录丢失或有误"),
            [("n", count(*n))],
        ),
        Fact::Broken => Message::plain(Text::new(
            "launches without their work, or work without its launch",
            "有下发无执行，或有执行无下发",
        )),
        Fact::Fields { known, of } => Message::new(
            Text::new(
                "{known} of {of} hard fields of the contract are known",
                "可比契约的 {of} 个硬字段中已知 {known} 个",
            ),
            [("known", count(*known)), ("of", count(*of))],
        ),
        Fact::Repeats(Some(n)) => {
            Message::new(Text::new("independent repeats: {n}", "{n} 次独立重复"), [("n", count(*n))])
        }
        Fact::Repeats(None) => Message::plain(Text::new("the number of repeats is not known", "重复次数未知")),
        Fact::Noise { steps, least } => Message::new(
            Text::new(
                "steps of one class that count: {steps}, where the noise of a step needs {least}",
                "同一类别被采用的步有 {steps} 个；获知步的噪声需要 {least} 个",
            ),
            [("steps", count(*steps)), ("least", count(*least))],
        ),
        Fact::Realised { native, composite, fallback } => Message::new(
            Text::new(
                "operators of a step: {native} by a kernel of their own, {composite} made up of several, {fallback} on a CPU",
                "一步的算子：{native} 个由自有内核实现，{composite} 个由多个内核拼成，{fallback} 个回退到 CPU",
            ),
            [("native", count(*native)), ("composite", count(*composite)), ("fallback", count(*fallback))],
        ),
        Fact::Bandwidth(share) => Message::new(
            Text::new(
                "its matrix products read at {share} of the measured read bandwidth (MBU of the products)",
                "矩阵乘以实测读取带宽的 {share} 读取操作数（矩阵乘的 MBU）",
            ),
            [("share", Value::Share(*share))],
        ),
        Fact::Step(share) => Message::new(
            Text::new(
                "the least time of its matrix products, by measured ceilings, is {share} of the step",
                "按实测上限，矩阵乘所需的最短时间为步时的 {share}",
            ),
            [("share", Value::Share(*share))],
        ),
        Fact::NoCeiling => Message::plain(Text::new(
            "no measured ceiling to hold the products of the step against",
            "没有可与步内矩阵乘对照的实测上限",
        )),
        Fact::Judged(said) => {
            Message::new(Text::new("a person said: {said}", "人工声明：{said}"), [("said", raw(said))])
        }
        Fact::NotJudged => {
            Message::plain(Text::new("no capture shows it, and nobody said", "采集无法显示，也没有人工声明"))
        }
    }
}

/// What to do next, with the tools of the vendor of the devices.
pub fn next(next: &Next, vendor: &str) -> Message {
    let text = match next {
        Next::Collect(class) => grade::how_to_collect(*class, vendor),
        Next::Remedy(rule) => {
            return Message::new(
                Text::new(
                    "do what the finding {rule} says (`strato explain` tells more)",
                    "按发现 {rule} 的建议处理（详见 `strato explain`）",
                ),
                [("rule", Value::Raw((*rule).to_owned()))],
            );
        }
        Next::Explain(rule) => {
            return Message::new(
                Text::new("read what `strato explain` says of {rule}", "阅读 `strato explain` 对 {rule} 的说明"),
                [("rule", Value::Raw((*rule).to_owned()))],
            );
        }
        Next::Reference => Text::new(
            "hold its numbers against a reference: `strato run --numerics`, or the greedy tokens of a few prompts",
            "将数值与参考对照：`strato run --numerics`，或对比若干提示的贪心 token",
        ),
        Next::Diverges => Text::new(
            "find the first operator whose numbers diverge: `strato numdiff`",
            "找出数值首先出现分歧的算子：`strato numdiff`",
        ),
        Next::Graphs => Text::new(
            "run the same steps from graphs and compare: `strato diff`",
            "以图重放运行相同的步并对比：`strato diff`",
        ),
        Next::Steps => Text::new("record more steps after the warm-up", "预热之后记录更多的步"),
        Next::WarmUp => Text::new(
            "warm up until nothing is compiled or captured any more, and keep the caches",
            "预热至不再编译或捕获图，并保留缓存",
        ),
        Next::Distribute => {
            Text::new("run on two ranks or more, and record all of them", "在两个或更多 rank 上运行，并全部采集")
        }
        Next::Patterns => Text::new(
            "add patterns for the unmapped kernel names of this report to a platform pack (`--pack DIR`)",
            "在平台包中为本报告未映射的内核名添加模式（`--pack DIR`）",
        ),
        Next::Losses => Text::new(
            "see what the import lost, and record again without it",
            "查看导入丢失的内容，避免该情况后重新采集",
        ),
        Next::Declare => Text::new(
            "state the missing fields: `strato manifest show`, then a declaration file",
            "补全缺失字段：`strato manifest show`，再写声明文件",
        ),
        Next::Repeat => {
            Text::new("repeat the run as processes of their own, five times or more", "以独立进程重复运行五次或更多")
        }
        Next::Probe => Text::new(
            "measure the machine and record shapes: `strato probe --save FILE`, then `--probe FILE`",
            "实测该机器并记录形状：`strato probe --save FILE`，再用 `--probe FILE`",
        ),
        Next::Roofline => Text::new(
            "see which operators are far from their ceilings, in the findings of the operator layer",
            "在算子层的发现中查看哪些算子远离其上限",
        ),
        Next::Judge => Text::new(
            "declare `platform.community` as `good`, `fair` or `poor`, and why",
            "声明 `platform.community` 为 `good`、`fair` 或 `poor`，并说明理由",
        ),
    };
    Message::plain(text)
}
