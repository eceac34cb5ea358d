//! Words for what a comparison says.

use model::{EvidenceClass, Ns, manifest::Field};

use crate::grade;
use diagnosis::{
    compare::{
        Side,
        align::{self, Move},
        contract::{About, Claim, Code, Contract, Reason, Verdict},
        path::{Feature, Reading},
        terms::How,
        waterfall::{Basis, Cause, Unit},
        work::Part,
    },
    i18n::{Message, Text, Value},
};

/// The word of a verdict.
pub fn verdict(verdict: Verdict) -> Text {
    match verdict {
        Verdict::Comparable => Text::new("comparable", "可比"),
        Verdict::Caveats => Text::new("comparable with caveats", "有保留地可比"),
        Verdict::NotComparable => Text::new("not comparable", "不可比"),
    }
}

/// What a claim is about.
pub fn claim(claim: Claim) -> Text {
    match claim {
        Claim::Op => Text::new("single operators", "单个算子"),
        Claim::Step => Text::new("steps: time per output token at this batch", "步：该批大小下每输出 token 的时间"),
        Claim::E2e => Text::new("requests: first token, throughput under a load", "请求：首 token、负载下的吞吐"),
        Claim::Cost => Text::new("cost per token", "每 token 成本"),
        Claim::Energy => Text::new("energy per token", "每 token 能耗"),
    }
}

/// The name of a side.
pub fn side(side: Side) -> Text {
    match side {
        Side::A => Text::new("A", "A"),
        Side::B => Text::new("B", "B"),
    }
}

/// What a part of the step is called.
pub fn part(part: align::Part) -> Text {
    use align::Part;
    match part {
        Part::Before => Text::new("before the layers", "各层之前"),
        Part::Layer => Text::new("in the layers", "各层内"),
        Part::After => Text::new("after the layers", "各层之后"),
        Part::Whole => Text::new("in the step", "步内"),
        Part::Anywhere => Text::new("anywhere in the step", "步内各处"),
        Part::Step => Text::new("the step itself", "步本身"),
    }
}

/// What one side has inside replays that were recorded as one.
pub const REPLAYED: Text = Text::new("operators and gaps of a replay recorded as one", "整体记录的重放内的算子与间隔");

/// The word of a cause.
pub fn cause(cause: Cause) -> Text {
    match cause {
        Cause::Work => Text::new("another amount of work", "工作量不同"),
        Cause::Environment => Text::new("environment", "环境"),
        Cause::Maturity => Text::new("maturity", "成熟度"),
        Cause::Mechanism => Text::new("mechanism", "机制"),
        Cause::Configuration => Text::new("configuration", "配置"),
        Cause::Slower => Text::new("other speed", "快慢不同"),
        Cause::Unexplained => Text::new("unexplained", "未解释"),
    }
}

/// The word of a cause by which B takes so much longer, ns.
pub fn caused(own: Cause, ns: Ns) -> Text {
    match own {
        Cause::Work if ns > 0 => Text::new("more work", "工作量更多"),
        Cause::Work => Text::new("less work", "工作量更少"),
        _ => cause(own),
    }
}

/// What a cause means; `published` where ceilings are those of data sheets.
pub fn cause_meaning(cause: Cause, published: bool) -> Text {
    match cause {
        Cause::Environment if published => Text::new(
            "what the hardware can do, by the data sheets of the two devices (published, not measured)",
            "硬件能力，依据两种设备的数据手册（公布值，非实测）",
        ),
        Cause::Work => Text::new(
            "more or less of the same work, counted by calls and by the shapes of what they are given",
            "同类工作的多少不同，按调用次数与输入形状计",
        ),
        Cause::Environment => Text::new("what the hardware can do, by probes of both sides", "硬件能力，依据两侧探针"),
        Cause::Maturity => Text::new(
            "how good the software is: efficiency of kernels, fusion that is missing though possible",
            "软件成熟度：内核效率、可做而未做的融合",
        ),
        Cause::Mechanism => Text::new(
            "another path: other operations or another number of them, other pauses of the device or another number of them",
            "另一条路径：操作不同或次数不同，设备停顿不同或次数不同",
        ),
        Cause::Configuration => Text::new(
            "a setting that differs, stated by both or seen in how they use graphs",
            "不同的设置：两侧均声明，或从图的使用方式看出",
        ),
        Cause::Slower => Text::new(
            "the same kernel, or the same code of the host, as often, takes longer or less long",
            "相同的内核或相同的主机代码，次数相同，耗时不同",
        ),
        Cause::Unexplained => Text::new("no measured factor covers it", "没有实测因素覆盖"),
    }
}

/// How an operation moved.
pub fn moved(by: Option<Move>) -> Text {
    match by {
        Some(Move::Match) => Text::new("same", "相同"),
        Some(Move::Substitute) => Text::new("other operator of the family", "同族其他算子"),
        Some(Move::Group) => Text::new("split otherwise", "切分不同"),
        Some(Move::Gap) => Text::new("on one side only", "仅一侧有"),
        None => Text::new("by operator", "按算子"),
    }
}

/// How two sides differ in a term.
pub fn how(how: How) -> Text {
    match how {
        How::SameKernel => Text::new("the same kernel as often", "相同内核、相同次数"),
        How::OtherCalls => Text::new("the same kernel, another number of calls", "相同内核、次数不同"),
        How::OtherOverlap => Text::new(
            "the same kernel as often and as long, but another part of it runs beside other work",
            "相同内核、次数与时长，但与其他工作重叠的部分不同",
        ),
        How::OtherKernel => Text::new("another kernel for the same slot", "同一槽位的不同内核"),
        How::Fused => Text::new("fused on one side and not on the other", "一侧融合，另一侧未融合"),
        How::OnlyA => Text::new("only A has it", "仅 A 有"),
        How::OnlyB => Text::new("only B has it", "仅 B 有"),
        How::SameOwner => Text::new("the device waits for the same", "设备等待的对象相同"),
        How::OtherOwner => Text::new("the device waits for something else", "设备等待的对象不同"),
        How::Unseen => Text::new("one side does not show what it is", "一侧没有显示其内容"),
    }
}

/// The name of a feature of the path.
pub fn feature(feature: Feature) -> Text {
    match feature {
        Feature::Fusion => {
            Text::new("slots of a layer that the two carry out by other kernels", "层内由不同内核实现的槽位")
        }
        Feature::KernelsPerLayer => Text::new("device operations of a layer", "每层设备操作数"),
        Feature::Graph => Text::new("graph replay", "图重放"),
        Feature::GraphLaunches => Text::new("graph launches per step", "每步图下发次数"),
        Feature::Launches => Text::new("launch calls per step", "每步下发调用次数"),
        Feature::Waits => Text::new("calls per step in which the host blocks", "每步主机阻塞调用次数"),
        Feature::HostCopies => Text::new("copies between host and device per step", "每步主机与设备间拷贝次数"),
        Feature::Collectives => Text::new("collectives and peer transfers per step", "每步集合通信与点对点传输次数"),
        Feature::Compilation => Text::new("compilations and module loads per step", "每步编译与模块加载次数"),
        Feature::Allocation => Text::new("allocator calls per step", "每步内存分配调用次数"),
    }
}

/// How a feature was read; `one_device` where both sides ran on one kind of device.
pub fn reading(reading: Reading, one_device: bool) -> Text {
    match reading {
        Reading::Platform if one_device => Text::new(
            "Path, settings and kind of device are the same as far as both sides show them: what differs is how fast the same things ran, or how good the kernels are.",
            "就两侧可见部分而言，路径、设置与设备型号相同：差异来自相同内容的快慢或内核质量。",
        ),
        Reading::Path if one_device => Text::new(
            "The settings are the same as far as both sides state them, the path is another one: part of the difference is mechanism or maturity. The kind of device is the same.",
            "就两侧声明而言设置相同，但路径不同：部分差异来自机制或成熟度。设备型号相同。",
        ),
        Reading::Platform => Text::new(
            "Path and settings are the same as far as both sides show them: what differs is the hardware, or how good the kernels are.",
            "就两侧可见部分而言，路径与设置相同：差异来自硬件或内核质量。",
        ),
        Reading::Path => Text::new(
            "The settings are the same as far as both sides state them, the path is another one: part of the difference is mechanism or maturity, not hardware.",
            "就两侧声明而言设置相同，但路径不同：部分差异来自机制或成熟度，而非硬件。",
        ),
        Reading::Settings => Text::new(
            "The path is the same and the settings differ: run one side with the other's settings before saying anything of the platforms.",
            "路径相同而设置不同：在对平台下结论之前，先让一侧采用另一侧的设置再运行。",
        ),
        Reading::Both => Text::new(
            "Path and settings both differ: which of the two makes the difference only a run with the other side's settings can tell.",
            "路径与设置都不同：只有采用另一侧的设置再运行一次，才能分辨差异来自哪一个。",
        ),
    }
}

/// What a reason of a contract says, with the values that it is about.
pub fn reason(contract: &Contract, reason: &Reason) -> Message {
    let values = match reason.about {
        About::Field(field) => contract.control(field.key).map(|control| {
            Side::BOTH.map(|side| control.entry(side).map(|entry| entry.value.clone()).unwrap_or_default())
        }),
        About::Work(part) => contract
            .work
            .as_ref()
            .and_then(|work| work.part(part))
            .map(|own| [&own.a, &own.b].map(|side| side.clone().unwrap_or_else(|| "–".to_owned()))),
        _ => None,
    };
    let field = |field: &Field| Value::Raw(field.key.to_owned());
    let [a, b] = values.unwrap_or_default().map(Value::Raw);
    let of = Value::Text(reason.side.map_or(Text::new("A and B", "A 与 B"), side));
    match (reason.about, reason.code) {
        (About::Field(f), Code::Unknown) => Message::new(
            Text::new("{field} is not known of {side}", "{side} 的 {field} 未知"),
            [("field", field(f)), ("side", of)],
        ),
        (About::Field(f), Code::Studied) => Message::new(
            Text::new("{field} differs on purpose: A has {a}, B has {b}", "{field} 有意不同：A 为 {a}，B 为 {b}"),
            [("field", field(f)), ("a", a), ("b", b)],
        ),
        (About::Field(f), _) => Message::new(
            Text::new("{field} differs: A has {a}, B has {b}", "{field} 不同：A 为 {a}，B 为 {b}"),
            [("field", field(f)), ("a", a), ("b", b)],
        ),
        (About::Work(part), _) => Message::new(
            Text::new(
                "the traces show other work: {what}: A {a}, B {b}",
                "采集显示所做的工作不同：{what}：A 为 {a}，B 为 {b}",
            ),
            [("what", Value::Text(work(part))), ("a", a), ("b", b)],
        ),
        (About::Losses(n), _) => Message::new(
            Text::new("{n} records of {side} were lost or wrong", "{side} 有 {n} 条记录丢失或错误"),
            [("n", Value::Count(n)), ("side", of)],
        ),
        (About::Inflation(ratio), _) => Message::new(
            Text::new("tracing made the step of {side} {ratio} as long", "采集使 {side} 的步变为 {ratio} 长"),
            [("ratio", Value::Number(ratio)), ("side", of)],
        ),
        (About::Repeats(Some(n)), _) => Message::new(
            Text::new("independent runs of {side}: {n}; five are needed", "{side} 的独立运行次数：{n}，需要五次"),
            [("n", Value::Count(n)), ("side", of)],
        ),
        (About::Lacks(class), _) => Message::new(
            Text::new("{side} has no {what}, which the other side has", "{side} 缺少另一侧具有的{what}"),
            [("what", Value::Text(evidence(class))), ("side", of)],
        ),
        (about, _) => Message::new(plain(about), [("side", of)]),
    }
}

fn evidence(class: EvidenceClass) -> Text {
    grade::name(class)
}

/// Said of numbers that the contract refuses.
pub const FORCED: Text = Text::new(
    "FORCED: the two may not be compared ({codes}), and these numbers were asked for all the same: they compare different things or things that nobody knows to be equal, and are no result.",
    "强制对比：两者不可比（{codes}），这些数字仍按要求给出：所比对象不同，或无人知道其相同，不构成结论。",
);
/// Said of numbers of unequal work.
pub const UNEQUAL: Text = Text::new(
    "UNEQUAL WORK: the two do different amounts of work; where both say that they decode other numbers of sequences, every time is that of a token of a sequence, else that of a step of each side's own size.",
    "工作量不同：两者的工作量不同；若两侧都说明每步解码的序列数且不同，则各时间均为每序列一个 token 的时间，否则为各自规模的一步。",
);

/// What the times of unequal work are of, said on every line.
pub fn each(basis: Basis) -> Text {
    match basis {
        Basis::Step => Text::new("per step of its own size", "按各自规模的一步"),
        Basis::Token => Text::new("per token", "按每 token"),
    }
}

/// What a unit of work is called.
pub fn unit(unit: Unit) -> Text {
    match unit {
        Unit::Token => Text::new("per token of a sequence", "每序列每 token"),
        Unit::Layer => Text::new("per layer of the model", "每层"),
        Unit::Gflop => Text::new("per 10⁹ operations of products", "每 10⁹ 次矩阵乘运算"),
    }
}

/// What a part of the work is called.
pub fn work(part: Part) -> Text {
    match part {
        Part::Stage => Text::new("what the steps are for", "步的用途"),
        Part::Sequences => Text::new("sequences of a step", "每步序列数"),
        Part::Tokens => Text::new("tokens of a step", "每步 token 数"),
        Part::Layers => Text::new("layers", "层数"),
        Part::Attention => Text::new("attentions of a step", "每步注意力次数"),
        Part::Width => Text::new("the widest matrix product", "最宽的矩阵乘"),
        Part::Weights => Text::new("weights that products read, in million elements", "矩阵乘读取的权重（百万元素）"),
        Part::Images => Text::new("elements of the largest input of a convolution", "卷积最大输入的元素数"),
        Part::CacheWidth => Text::new("elements of a token in the cache", "缓存中每 token 的元素数"),
        Part::Experts => Text::new("products of experts", "专家矩阵乘"),
        Part::Sampling => Text::new("choice of the next token", "下一个 token 的选取"),
        Part::Formats => Text::new("number formats of the products", "矩阵乘的数值格式"),
        Part::Cache => Text::new("number format of the cache", "缓存的数值格式"),
        Part::Context => {
            Text::new("context of a sequence (blocks of its table, or keys)", "每序列上下文（块表长度或键数）")
        }
        Part::Grids => Text::new("blocks that the same kernels were launched with", "相同内核下发的块数"),
        Part::Exchange => Text::new("exchange with other ranks", "与其他 rank 的通信"),
        Part::Adapters => Text::new("adapters beside the weights", "权重之外的适配器"),
        Part::Operations => Text::new("products and attentions of a step", "每步矩阵乘与注意力次数"),
        Part::Mix => Text::new("what the kernels' time goes to", "内核时间的构成"),
        Part::Requests => Text::new("share of the time in which the host waits for requests", "主机等待请求的时间占比"),
        Part::Recording => Text::new("what else was recorded, which slows the host", "同时记录且拖慢主机的内容"),
    }
}

/// Reasons that need no value but their side.
pub fn plain(about: About) -> Text {
    match about {
        About::Vendors => {
            Text::new("devices of several vendors work in one group of {side}", "{side} 的一个组内有多家厂商的设备")
        }
        About::Links => Text::new(
            "the trace of {side} cannot be taken at face value: launches without work, or work without launches",
            "{side} 的采集不可直接采信：有下发无执行，或有执行无下发",
        ),
        About::Repeats(_) => Text::new(
            "the number of independent runs of {side} is not known; five are needed",
            "{side} 的独立运行次数未知，需要五次",
        ),
        About::Clocks => Text::new("the clocks of {side} were not locked", "{side} 的频率未锁定"),
        About::Simulated => {
            Text::new("numbers that were simulated and not measured: {side}", "模拟数据而非实测：{side}")
        }
        About::Probes => Text::new("no measured ceilings of {side}", "{side} 没有实测上限"),
        About::Noise => Text::new("the noise of {side} against itself is not known", "{side} 自身的波动未知"),
        About::Steps => Text::new("no step of {side} counts", "{side} 没有可采用的步"),
        About::Device => Text::new("no work of a device is seen in {side}", "{side} 没有设备执行记录"),
        About::Power => Text::new("the power that {side} drew was not sampled", "未采样 {side} 的功耗"),
        About::Shared => Text::new(
            "other processes had so much of the machine of {side} that its run says little of itself; run it again on a quiet one",
            "{side} 的机器被其他进程大量占用，其运行说明不了自身；请在空闲机器上重跑",
        ),
        About::Idle => Text::new(
            "{side} was limited by its requests: its steps show when these came",
            "{side} 受请求限制：其步时反映的是请求到达",
        ),
        About::Unseen => Text::new(
            "the traces show nothing in common of how much work the two do",
            "采集未显示两者工作量的任何共同信息",
        ),
        About::Work(_) => Text::new("the two did different work", "两者所做的工作不同"),
        About::Field(_) | About::Losses(_) | About::Inflation(_) | About::Lacks(_) => Text::new("", ""),
    }
}

#[cfg(test)]
mod tests {
    use diagnosis::i18n::Lang;

    use super::*;

    /// K17: "what differs is the hardware" was said of two devices of one kind, and "by probes" of what data sheets say.
    #[test]
    fn k17_words_are_those_of_the_pair() {
        let told = |alike| reading(Reading::Platform, alike).get(Lang::En);
        assert!(told(false).contains("is the hardware") && !told(true).contains("is the hardware"));
        assert!(cause_meaning(Cause::Environment, true).get(Lang::En).contains("not measured"));
        assert!(cause_meaning(Cause::Environment, false).get(Lang::En).contains("by probes"));
        assert_eq!(caused(Cause::Work, -1).get(Lang::En), "less work");
    }
}
