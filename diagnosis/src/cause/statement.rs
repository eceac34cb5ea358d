//! What is said of a cost that no rule names: one sentence from its selection, the figure first.

mod parts;

use model::{Ns, StringId, Trace};

use self::parts::{CALLS, GAPS, NAMES, ONE_CALL, ONE_GAP, at, longest, names, rank, times, units, words};
use super::{Cost, Kind, Occurs};
use crate::{
    analysis::owners,
    i18n::{Message, Text, Value},
};

/// The id under which what no other statement covers is told.
pub const REST: &str = "CO-14";

/// The sentence about a cost, and the rule id under which it is told.
pub fn of(trace: &Trace, cost: &Cost, mean: Ns) -> (&'static str, Message) {
    let (id, what) = what(trace, cost);
    const SAYS: Text =
        Text::new("{cost} of {mean} per step ({share}): {what}", "每步 {mean} 中的 {cost}（{share}）：{what}");
    const APART: Text = Text::new(
        "{cost} of {mean} per step ({share}), without {apart} that happens once: {what}",
        "每步 {mean} 中的 {cost}（{share}，不含仅发生一次的 {apart}）：{what}",
    );
    let args = [
        ("cost", Value::Ns(cost.per_step())),
        ("mean", Value::Ns(mean)),
        ("share", Value::Share(cost.share())),
        ("what", what.within()),
        ("apart", Value::Ns(cost.apart)),
    ];
    const ONCE: Text = Text::new(
        "{cost} of {mean} per step ({share}), most of it in one or two events that do not come again: {what}",
        "每步 {mean} 中的 {cost}（{share}），大部分为一两次不再重复的事件：{what}",
    );
    const ONE: Text = Text::new(
        "{cost} of {mean} per step ({share}), in one event that does not come again: {what}",
        "每步 {mean} 中的 {cost}（{share}），为一次不再重复的事件：{what}",
    );
    // Of a single step, or of a window, nobody knows what comes again.
    const HERE: Text = Text::new(
        "{cost} of {mean} per step ({share}), in one event: {what}",
        "每步 {mean} 中的 {cost}（{share}），为一次事件：{what}",
    );
    const FEW: Text = Text::new(
        "{cost} of {mean} per step ({share}), most of it in one or two events: {what}",
        "每步 {mean} 中的 {cost}（{share}），大部分为一两次事件：{what}",
    );
    const EARLY: Text = Text::new(
        "{cost} of {mean} per step ({share}), all in the first quarter of the run: {what}",
        "每步 {mean} 中的 {cost}（{share}），全部在运行的前四分之一：{what}",
    );
    let says = match cost.occurs {
        Occurs::Once if cost.steps < 2 && cost.count == 1 => HERE,
        Occurs::Once if cost.steps < 2 => FEW,
        Occurs::Once if cost.count == 1 => ONE,
        Occurs::Once => ONCE,
        Occurs::AtStart => EARLY,
        Occurs::Throughout if cost.apart > 0 => APART,
        Occurs::Throughout => SAYS,
    };
    (id, Message::new(says, args))
}

/// A small cost as a part of the sentence about the rest.
pub fn part(trace: &Trace, cost: &Cost) -> Message {
    const PART: Text = Text::new("{share}: {what}", "{share}：{what}");
    let what = what(trace, cost).1.within();
    Message::new(PART, [("share", Value::Share(cost.share())), ("what", what)])
}

/// The sentence about what no other statement covers: `ns` of `mean` per step, in so many stretches, with its largest parts.
pub fn rest((ns, mean): (Ns, Ns), count: usize, parts: Vec<Message>) -> (&'static str, Message) {
    const SAYS: Text = Text::new(
        "{cost} of {mean} per step ({share}): the device is idle or waits in {count} more gaps{parts}",
        "每步 {mean} 中的 {cost}（{share}）：设备在另外 {count} 个间隙中空闲或等待{parts}",
    );
    const PARTS: Text = Text::new(", among them {part}", "，其中 {part}");
    const MORE: Text = Text::new("{a}; {b}", "{a}；{b}");
    let joined =
        parts.into_iter().rev().reduce(|rest, a| Message::new(MORE, [("a", a.within()), ("b", rest.within())]));
    let parts = match joined {
        Some(part) => Message::new(PARTS, [("part", part.within())]).within(),
        None => Value::Text(Text::new("", "")),
    };
    let args = [
        ("cost", Value::Ns(ns)),
        ("mean", Value::Ns(mean)),
        ("share", Value::Share(ns as f64 / mean.max(1) as f64)),
        ("count", Value::Count(count as u64)),
        ("parts", parts),
    ];
    (REST, Message::new(SAYS, args))
}

fn what(trace: &Trace, cost: &Cost) -> (&'static str, Message) {
    let kernel = |name: &StringId| Value::Kernel(trace.strings.get(*name).to_owned());
    let raw = |name: &StringId| Value::Raw(owners::short(trace.strings.get(*name)));
    let count = ("count", Value::Count(cost.count as u64));
    let longest = ("longest", longest(cost));
    let gaps = ("gaps", times(cost, [ONE_GAP, GAPS]));
    let calls = ("calls", times(cost, [ONE_CALL, CALLS]));
    match &cost.kind {
        Kind::Owner(site) => {
            const SAYS: Text =
                Text::new("the device waits while the host runs {site}{gaps}", "设备等待，主机正在执行 {site}{gaps}");
            ("CO-01", Message::new(SAYS, [("site", at(trace, site)), gaps]))
        }
        Kind::Turnaround { sync, then } => {
            const SAYS: Text = Text::new(
                "the device waits after {sync} until the host launches again; until then the host runs {site}{gaps}",
                "{sync} 返回后到主机再次下发前，设备等待；期间主机执行 {site}{gaps}",
            );
            ("CO-02", Message::new(SAYS, [("sync", raw(sync)), ("site", at(trace, then)), gaps]))
        }
        Kind::Chain(site) => {
            const SAYS: Text = Text::new(
                "the device waits for one kernel launch after the other{under}{gaps}",
                "设备等待逐个 kernel 下发{under}{gaps}",
            );
            const UNDER: Text = Text::new(", most of the time in {site}", "，多数时间位于 {site}");
            let under = match site.record {
                Some(_) => Message::new(UNDER, [("site", at(trace, site))]).within(),
                None => Value::Text(Text::new("", "")),
            };
            ("CO-03", Message::new(SAYS, [("under", under), gaps]))
        }
        Kind::Nodes => {
            const SAYS: Text = Text::new(
                "the device pauses between the nodes of replayed graphs{gaps}, half of which counts as avoidable",
                "设备在回放图的节点之间停顿{gaps}，其中一半视为可避免",
            );
            ("CO-04", Message::new(SAYS, [gaps]))
        }
        Kind::Unstarted => {
            const SAYS: Text = Text::new(
                "the work was launched, and the idle device did not begin it{gaps}: another process or context has the device, or it waits for what was not recorded",
                "工作已下发，空闲的设备却没有开始{gaps}：设备被其他进程或上下文占用，或在等待未记录的内容",
            );
            ("CO-15", Message::new(SAYS, [gaps]))
        }
        Kind::Queue => {
            const SAYS: Text = Text::new(
                "the device is idle although its work is queued: from one operation to the next, or until another queue is done{gaps}",
                "工作已在队列中而设备空闲：算子之间的间隔，或等待其他队列{gaps}",
            );
            (REST, Message::new(SAYS, [gaps]))
        }
        Kind::Scattered => {
            const SAYS: Text = Text::new(
                "the device waits for the host at many places, none of which is 0.5 % of the time{gaps}",
                "设备在许多处等待主机，每一处都不足 0.5%{gaps}",
            );
            (REST, Message::new(SAYS, [gaps]))
        }
        Kind::Copies { direction, memory, part, moved } => {
            const SAYS: Text = Text::new(
                "copies and fills with nothing beside them ({count}), {part} of their time {direction}{memory}{rate}; the longest takes {longest}",
                "{count} 次拷贝与填充期间没有其他工作，其时间的 {part} 为{direction}{memory}{rate}；最长 {longest}",
            );
            const MEMORY: Text = Text::new(" with {kind} memory", "（{kind} 内存）");
            const RATE: Text = Text::new(" ({bytes} at {rate})", "（{bytes}，速率 {rate}）");
            let empty = || Value::Text(Text::new("", ""));
            let memory =
                memory.as_ref().map_or_else(empty, |kind| Message::new(MEMORY, [("kind", raw(kind))]).within());
            let rate = moved.map_or_else(empty, |(bytes, ns)| {
                let per_second = bytes as f64 / (ns.max(1) as f64 / 1e9);
                let rate = [("bytes", Value::Bytes(bytes)), ("rate", Value::BytesPerSecond(per_second))];
                Message::new(RATE, rate).within()
            });
            let part = ("part", Value::Share(*part));
            let direction = Value::Text(words(*direction));
            (
                "CO-05",
                Message::new(
                    SAYS,
                    [("direction", direction), ("memory", memory), ("rate", rate), part, count, longest],
                ),
            )
        }
        Kind::Class { ops, kernels } => {
            const SAYS: Text = Text::new(
                "{count} separate {classes} kernels, which fusion would save; the largest are {kernels}",
                "{count} 个单独的 {classes} kernel，融合后不再需要；主要是 {kernels}",
            );
            let classes: Vec<&str> = ops.iter().take(NAMES).map(|op| op.name()).collect();
            let args = [("classes", Value::Raw(classes.join(", "))), ("kernels", names(trace, kernels)), count];
            ("CO-06", Message::new(SAYS, args))
        }
        Kind::Plain { ops, kernels } => {
            const SAYS: Text = Text::new(
                "{count} {classes} kernels of {longest} at most, the largest {kernels}. Whether they could be fused or faster is not known",
                "{count} 个 {classes} kernel，最长 {longest}；主要是 {kernels}。能否融合或更快尚不可知",
            );
            let classes: Vec<&str> = ops.iter().take(NAMES).map(|op| op.name()).collect();
            let args =
                [("classes", Value::Raw(classes.join(", "))), ("kernels", names(trace, kernels)), count, longest];
            ("CO-06", Message::new(SAYS, args))
        }
        Kind::Unpacking(name) => {
            const SAYS: Text = Text::new(
                "{count} kernels unpack quantized weights before the GEMMs (dequantization), most of it {kernel}",
                "{count} 个 kernel 在 GEMM 前解包量化权重（反量化），主要是 {kernel}",
            );
            ("CO-06", Message::new(SAYS, [("kernel", kernel(name)), count]))
        }
        Kind::OnCpu(name) => {
            const SAYS: Text = Text::new(
                "{count} operators run on the AI CPU, most of it {kernel}",
                "{count} 个算子在 AI CPU 上执行，主要是 {kernel}",
            );
            ("CO-06", Message::new(SAYS, [("kernel", kernel(name)), count]))
        }
        Kind::Underfilled { kernel: name, blocks, cores, gemm } => {
            const SAYS: Text = Text::new(
                "{kernel}{gemm} has {blocks} blocks for {cores} {units} and leaves the others idle{calls}",
                "{kernel}{gemm} 只有 {blocks} 个 block，而设备有 {cores} 个{units}，其余空闲{calls}",
            );
            const ONE: Text = Text::new(
                "{kernel}{gemm} has one block for {cores} {units} and leaves the others idle{calls}",
                "{kernel}{gemm} 只有一个 block，而设备有 {cores} 个{units}，其余空闲{calls}",
            );
            let gemm = if *gemm { Text::new(" (GEMM)", "（GEMM）") } else { Text::new("", "") };
            let sizes = [("blocks", Value::Count(*blocks)), ("cores", Value::Count(*cores))];
            let units = ("units", Value::Text(units(trace, cost)));
            let args = [("kernel", kernel(name)), ("gemm", Value::Text(gemm)), units, calls];
            let says = if *blocks == 1 { ONE } else { SAYS };
            ("CO-07", Message::new(says, args.into_iter().chain(sizes)))
        }
        Kind::SmallBlocks { kernel: name, threads, warp } => {
            const SAYS: Text = Text::new(
                "{kernel} has blocks of {threads} threads and leaves {share} of each warp of {warp} empty{calls}",
                "{kernel} 的 block 只有 {threads} 个线程，每个 {warp} 线程的 warp 有 {share} 空闲{calls}",
            );
            let share = Value::Share(1.0 - *threads as f64 / (*warp).max(1) as f64);
            let sizes = [("threads", Value::Count(*threads)), ("warp", Value::Count(*warp)), ("share", share)];
            ("CO-07", Message::new(SAYS, [("kernel", kernel(name)), calls].into_iter().chain(sizes)))
        }
        Kind::PerThread { kernel: name, ratio } => {
            const SAYS: Text = Text::new(
                "{kernel} takes {ratio} as long per thread as the capture's other kernels do{calls}",
                "{kernel} 每线程耗时是采集中其他 kernel 的 {ratio}{calls}",
            );
            ("CO-07", Message::new(SAYS, [("kernel", kernel(name)), ("ratio", Value::Ratio(*ratio)), calls]))
        }
        Kind::Drift { ratio } => {
            const SAYS: Text = Text::new(
                "the kernels became slower during the run, all alike ({ratio} late against early): the clock fell",
                "运行期间所有 kernel 一致变慢（后段为前段的 {ratio}）：时钟降低",
            );
            ("CO-08", Message::new(SAYS, [("ratio", Value::Ratio(*ratio))]))
        }
        Kind::SlowRank { ratio } => {
            const SAYS: Text = Text::new(
                "every kernel of rank {rank} takes {ratio} as long as the same kernel of the other ranks: a slow device, for which they wait",
                "rank {rank} 的每个 kernel 耗时都是其他 rank 相同 kernel 的 {ratio}：慢卡，其他 rank 在等它",
            );
            ("CO-08", Message::new(SAYS, [("rank", rank(cost)), ("ratio", Value::Ratio(*ratio))]))
        }
        Kind::Sporadic { kernel: name, kinds } => {
            const SAYS: Text = Text::new(
                "{count} kernels of {kinds} kinds take longer than the same kernel at the same position, now and then, most of it {kernel}: something else shares the device",
                "{kinds} 种共 {count} 个 kernel 偶发地比同一位置的同一 kernel 更慢，主要是 {kernel}：设备被其他工作共享",
            );
            const ONE: Text = Text::new(
                "{count} calls of {kernel} take longer than its others at the same position, now and then: something else shares the device",
                "{kernel} 有 {count} 次偶发地比同一位置的其他调用更慢：设备被其他工作共享",
            );
            let says = if *kinds == 1 { ONE } else { SAYS };
            ("CO-08", Message::new(says, [("kernel", kernel(name)), ("kinds", Value::Count(*kinds as u64)), count]))
        }
        Kind::Collective { kernel: name, called, median, usual } => {
            const SAYS: Text = Text::new(
                "{count} {called} transfers take {median} in the median, a small one takes {usual} (latency of this collective; most of it {kernel})",
                "{count} 次 {called} 传输的中位数为 {median}，小消息通常为 {usual}（该集合通信的延迟；主要是 {kernel}）",
            );
            let times = [("median", Value::Ns(*median)), ("usual", Value::Ns(*usual))];
            let args = [("called", Value::Raw((*called).to_owned())), ("kernel", kernel(name)), count];
            ("CO-09", Message::new(SAYS, args.into_iter().chain(times)))
        }
        Kind::Link { ends, reaches, best } => {
            const SAYS: Text = Text::new(
                "the pipeline link between rank {a} and rank {b} sends at {reaches}; the best link reaches {best}",
                "rank {a} 与 rank {b} 之间的流水线链路发送速率为 {reaches}；最好的链路可达 {best}",
            );
            let ends = [("a", Value::Count(ends.0.into())), ("b", Value::Count(ends.1.into()))];
            let rates = [("reaches", Value::BytesPerSecond(*reaches)), ("best", Value::BytesPerSecond(*best))];
            ("CO-09", Message::new(SAYS, ends.into_iter().chain(rates)))
        }
        Kind::Waiting { part } => {
            const SAYS: Text = Text::new(
                "the other ranks wait in collectives, {part} of it for rank {rank}, which comes late",
                "其他 rank 在集合通信中等待，其中 {part} 是等 rank {rank}（慢卡）",
            );
            ("CO-10", Message::new(SAYS, [("part", Value::Share(*part)), ("rank", rank(cost))]))
        }
        Kind::Bubble => {
            const SAYS: Text = Text::new(
                "the other stages of the pipeline wait for the stage of rank {rank}",
                "流水线的其他阶段在等待 rank {rank} 所在阶段（气泡）",
            );
            ("CO-10", Message::new(SAYS, [("rank", rank(cost))]))
        }
        Kind::Padding { rows, needed } => {
            const SAYS: Text = Text::new(
                "the kernels compute {rows} rows for {needed} that are needed: the rest is padding of the replayed graph",
                "kernel 计算 {rows} 行，只需 {needed} 行：其余是图回放的填充",
            );
            ("CO-11", Message::new(SAYS, [("rows", Value::Count(*rows)), ("needed", Value::Count(*needed))]))
        }
        Kind::Experts { turns } => {
            const SAYS: Text = Text::new(
                "experts are computed one by one: GEMMs and gathers take turns {turns} times, where one grouped GEMM per layer would do",
                "专家逐个计算：GEMM 与收集交替 {turns} 次，每层用一个 grouped GEMM 即可",
            );
            ("CO-06", Message::new(SAYS, [("turns", Value::Count(*turns as u64))]))
        }
        Kind::Logits { kernel: name, usual } => {
            const SAYS: Text = Text::new(
                "{count} times the last GEMM of a step (logits, lm_head) computes all rows of a prompt: {kernel} takes up to {longest}, in a decode step {usual}",
                "{count} 次步末的 GEMM（logits，lm_head）计算了 prompt 的所有行：{kernel} 最长 {longest}，在解码步中为 {usual}",
            );
            ("CO-06", Message::new(SAYS, [("kernel", kernel(name)), ("usual", Value::Ns(*usual)), count, longest]))
        }
        Kind::Prompts { steps, tokens, usual } => {
            const SAYS: Text = Text::new(
                "prompts (prefill){tokens} are read in {steps} of the steps, which take up to {longest} instead of {usual}: decoding requests wait meanwhile",
                "{steps} 个步中读取 prompt（prefill）{tokens}，步时最长 {longest}，而纯解码步为 {usual}：期间解码请求在等待",
            );
            const TOKENS: Text = Text::new(" in chunks of up to {tokens} tokens", "，每块最多 {tokens} 个 token");
            let tokens = match tokens {
                Some(tokens) => Message::new(TOKENS, [("tokens", Value::Count(*tokens))]).within(),
                None => Value::Text(Text::new("", "")),
            };
            let args =
                [("tokens", tokens), ("steps", Value::Count(*steps as u64)), ("usual", Value::Ns(*usual)), longest];
            ("CO-13", Message::new(SAYS, args))
        }
        Kind::Exposed { kernel: name } => {
            const SAYS: Text = Text::new(
                "{count} collectives run with no overlap: nothing else runs beside them, most of it {kernel}",
                "{count} 次集合通信没有重叠：期间没有其他工作，主要是 {kernel}",
            );
            const ONE: Text = Text::new(
                "one collective runs with nothing else beside it: {kernel}",
                "一次集合通信没有重叠：期间没有其他工作（{kernel}）",
            );
            ("CO-12", Message::new(if cost.count == 1 { ONE } else { SAYS }, [("kernel", kernel(name)), count]))
        }
    }
}
