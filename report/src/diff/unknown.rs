//! What the two captures do not tell about their difference, and what would.

use diagnosis::{
    analysis::{AnchorKind, Confidence},
    compare::{Difference, align::Way, waterfall::Cause},
    i18n::{Message, Text, Value},
};

/// Share of the device time that should have a slot (method §6.1).
const COVERED: f64 = 0.95;
/// Steps of one class that a mean should be over (method §6.6 asks for 200; below this a mean is hardly one).
const FEW: usize = 20;

/// The sentences, in the order of how much they weigh.
pub fn sentences(difference: &Difference) -> Vec<Message> {
    let mut out = Vec::new();
    let mut say = |text: Text, args: &[(&'static str, Value)]| out.push(Message::new(text, args.iter().cloned()));
    let letter = |n: usize| Value::Text(if n == 0 { Text::new("A", "A") } else { Text::new("B", "B") });
    let waterfall = &difference.waterfall;
    let unprobed: Vec<usize> = [0, 1].into_iter().filter(|n| !difference.sides[*n].has_probes).collect();
    if !unprobed.is_empty() && !waterfall.setup.same_platform {
        let sides = match unprobed.as_slice() {
            [one] => letter(*one),
            _ => Value::Text(Text::new("A or B", "A 与 B")),
        };
        say(
            Text::new(
                "Environment and maturity are not separated: no probes of {sides}. Run `strato probe` on the machine and give its file with --probe-a or --probe-b.",
                "未区分环境与成熟度：{sides} 没有探针数据。请在该机器上运行 `strato probe`，再用 --probe-a 或 --probe-b 给出其文件。",
            ),
            &[("sides", sides)],
        );
    }
    let unexplained =
        waterfall.causes().iter().find(|(cause, _)| *cause == Cause::Unexplained).map_or(0, |(_, ns)| *ns);
    if unexplained != 0 {
        say(
            Text::new(
                "{ns} of the difference rest on no measured factor; they stand as unexplained and are not spread over the others.",
                "差异中的 {ns} 没有任何实测因素支撑，列为未解释，不摊入其他原因。",
            ),
            &[("ns", Value::Ns(unexplained))],
        );
    }
    if waterfall.setup.records_differ {
        say(
            Text::new(
                "Only one side records functions of the interpreter, or operators of the framework: what the host did while the device waited is compared as a whole (rt.host). Record both with the same options.",
                "仅一侧记录了解释器函数或框架算子：设备等待期间主机所做之事只能整体对比（rt.host）。请用相同选项采集两侧。",
            ),
            &[],
        );
    }
    for (n, side) in difference.sides.iter().enumerate() {
        if !side.has_host {
            say(
                Text::new(
                    "{side} records no host calls: why its device was idle is not known, and idle time of the two is not compared cause by cause.",
                    "{side} 没有记录主机调用：其设备空闲的原因未知，两侧的空闲时间不按原因比较。",
                ),
                &[("side", letter(n))],
            );
        }
        if side.anchor == AnchorKind::WholeCapture {
            say(
                Text::new(
                    "No steps were found in {side}: what stands for a step is its whole window of device work.",
                    "{side} 中未找到步：以其整个设备工作窗口代替一步。",
                ),
                &[("side", letter(n))],
            );
        } else if side.confidence == Confidence::Low {
            say(
                Text::new("Where the steps of {side} begin is known with low confidence.", "{side} 的步起点置信度低。"),
                &[("side", letter(n))],
            );
        }
        if side.steps < FEW {
            say(
                Text::new(
                    "The mean of {side} is over so few steps of one run ({n}): how much it varies from run to run is not known.",
                    "{side} 的均值仅来自一次运行的少数几步（{n}）：各次运行之间的波动未知。",
                ),
                &[("side", letter(n)), ("n", Value::Count(side.steps as u64))],
            );
        }
        // Layers of two or more types in turn are mined as one body.
        let found = difference.alignment.found[n].map(|layers| layers.repeats);
        let odd = side.layers.zip(found).filter(|(stated, found)| !stated.is_multiple_of(*found));
        if let Some((stated, found)) = odd {
            say(
                Text::new(
                    "{side} says that its model has {stated} layers; its step shows {found} alike.",
                    "{side} 声明模型有 {stated} 层，而其步中找到 {found} 个相同的层。",
                ),
                &[("side", letter(n)), ("stated", Value::Count(stated as u64)), ("found", Value::Count(found as u64))],
            );
        }
        let coverage = waterfall.coverage[n];
        if coverage.share().is_some_and(|share| share < COVERED) {
            say(
                Text::new(
                    "Only {share} of the device time of {side} lies in kernels whose operator is known; see the unmapped names of its own report.",
                    "{side} 的设备时间只有 {share} 落在算子已知的内核中，未映射名称见其单独报告。",
                ),
                &[("side", letter(n)), ("share", Value::Share(coverage.share().unwrap_or(0.0)))],
            );
        }
    }
    if !difference.sides.iter().all(|side| side.is_decode) {
        say(Text::new("The captures do not say that these steps are decode.", "采集没有说明这些步是解码步。"), &[]);
    }
    match difference.alignment.way {
        Way::Layers => {}
        Way::Whole => say(
            Text::new(
                "No layers were found on both sides; the steps are laid beside each other as a whole.",
                "没有在两侧都找到层；两侧的步按整体对齐。",
            ),
            &[],
        ),
        Way::Operators => say(
            Text::new(
                "No layers were found on both sides, and the steps are too long to be laid beside each other without: operations are brought together by their operator alone.",
                "没有在两侧都找到层，而步又过长，无法整体对齐：操作仅按算子归并。",
            ),
            &[],
        ),
    }
    if waterfall.setup.replays_hide {
        say(
            Text::new(
                "Only one side shows the operations inside its replays: operators, transfers and the gaps between them are set beside the other side's replays as one sum. Run both eagerly, or record the nodes of replays, to tell them apart.",
                "只有一侧显示了重放内部的操作：其算子、传输及间隔只能作为一个总和与另一侧的重放相比。两侧都以 eager 方式运行，或记录重放的各节点，才能区分。",
            ),
            &[],
        );
    }
    if waterfall.setup.gaps_differ {
        say(
            Text::new(
                "Only one of the sources counts the way from one operation to the next into the durations of its operations: operator time and `rt.dispatch` of the two are not the same quantity.",
                "只有一侧的数据源把操作之间的间隔计入操作时长：两侧的算子时间与 `rt.dispatch` 含义不同。",
            ),
            &[],
        );
    }
    if waterfall.rows.iter().any(|row| row.bucket == "comm.wait" && (row.a.ns != 0 || row.b.ns != 0)) {
        say(
            Text::new(
                "Waits in collectives whose late rank was not captured stand as `comm.wait`.",
                "集合通信中未采集到较慢 rank 的等待保留为 `comm.wait`。",
            ),
            &[],
        );
    }
    out
}
