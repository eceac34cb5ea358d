//! The headline of totals: what the host and the device took in all, and the largest names of every kind.

use std::collections::BTreeMap;

use model::{Conditions, Ns, Severity, Trace};

use super::{
    by_operator,
    largest::{self, Total},
};
use crate::{
    diagnose::signals::matrix_units::{self, is_without_units},
    i18n::{Message, Text, Value},
    platform::{CanonicalOp, HostCall, Packs, is_runtime_call, moves_memory},
};

/// Facts with which a source states what the host and the device took in all, ns: its rows may be the largest ones only.
const HOST: &str = "totals.host_ns";
const DEVICE: &str = "totals.device_ns";
/// The time of a step by a clock, and how many steps the totals are of.
const STEP: &str = "totals.step_ns";
const STEPS: &str = "totals.steps";

/// Calls of the runtime come first where they take so many times what the device does; heuristic.
const HOST_FIRST: i64 = 2;
/// Kernels of ordinary arithmetic units, and conversions, from this share of all on are told; heuristic.
const ORDINARY: f64 = 0.1;
/// Copies and fills below this share of the device's time are no sentence; heuristic.
const FEW: f64 = 0.01;
/// Share of a stated total by which the rows may exceed it, because each is rounded.
const ROUNDED: f64 = 1.02;
/// Share of the host's time from which the device is busy rather than idle; heuristic.
const BUSY: f64 = 0.5;

const IDLE: Text = Text::new(
    "The device works for {device} while the host's operators and calls take {host} over all threads: it is idle for about {idle} of that.",
    "主机各线程的算子与调用共 {host}，设备只工作 {device}：设备约 {idle} 的时间空闲。",
);
const BOTH: Text = Text::new(
    "The device works for {device}; the host's operators and calls take {host} over all threads.",
    "设备工作 {device}；主机各线程的算子与调用共 {host}。",
);
const WALL: Text = Text::new("A step takes {step}, as the file says{share}.", "文件给出的步时为 {step}{share}。");
const OF_WALL: Text = Text::new("; the device works for {share} of it", "；设备工作时间占其 {share}");
const CALLS: Text = Text::new(
    "Calls of the runtime take {host}, work of the device {device}. Largest calls: {largest}.",
    "运行时调用共 {host}，设备工作 {device}。最大的调用：{largest}。",
);
const CLASS: Text = Text::new("Kernels take {all}, {op} {share} of that.", "内核共 {all}，其中 {op} 占 {share}。");
const PLAIN: Text = Text::new(
    "{share} of that is 32-bit GEMMs without tensor cores, most of it {name}: TF32 or 16 bits would use them.",
    "其中 {share} 是不使用张量核心的 32 位矩阵乘，最多的是 {name}：改用 TF32 或 16 位即可使用张量核心。",
);
const FORMAT: Text = Text::new(
    "{share} of that is layout conversions, casts and concatenations, most of it {name}.",
    "其中 {share} 是布局转换、类型转换与拼接，最多的是 {name}。",
);
const OTHER_RUNS: Text = Text::new(
    "The file also quotes {n} tables of other runs; this is the longest run.",
    "文件还引用了其他运行的 {n} 个表；此处为耗时最长的一次运行。",
);
const LOST: Text = Text::new(
    "Rows of the file could not be read, so no share of its totals is known.",
    "文件中有行无法读取，因此各项占比未知。",
);
const OPERATORS: Text =
    Text::new("Largest operators, of {all} of device time: {largest}.", "设备总时间 {all} 中最大的算子：{largest}。");
const KERNELS: Text = Text::new("Largest kernels, of {all}: {largest}.", "内核总时间 {all} 中最大的：{largest}。");
const MEMORY: Text =
    Text::new("Copies and fills of memory, {all} in all: {largest}.", "内存拷贝与填充共 {all}：{largest}。");
const ON_HOST: Text =
    Text::new("Largest on the host, of {all}: {largest}.", "主机侧总时间 {all} 中最大的：{largest}。");
const CLASSES: Text = Text::new("By class of record: {largest}.", "按记录类别：{largest}。");
const NO_GAIN: Text = Text::new(
    "Of what lies in the step the capture holds only totals: no gain follows from them.",
    "对步内部采集仅含总和：不能给出收益。",
);
const END: Text = Text::new(
    "The capture holds only totals: no wall time, step or gain follows from them.",
    "采集仅含总和：不能说明墙钟时间与步，也不能给出收益。",
);

/// Totals by name.
type Totals<'t> = BTreeMap<&'t str, Total>;

fn sum(totals: &Totals<'_>) -> Ns {
    totals.values().fold(0, |all: Ns, total| all.saturating_add(total.time))
}

fn fact(trace: &Trace, key: &str) -> Option<Ns> {
    trace.manifest.value(key)?.parse().ok().filter(|ns| *ns > 0)
}

/// What the source says that all rows take; what they add up to where it says nothing, or where that is more.
fn whole(stated: Option<Ns>, rows: Ns) -> Ns {
    stated.filter(|stated| rows as f64 <= *stated as f64 * ROUNDED).unwrap_or(rows)
}

/// The headline; `None` of a capture without totals.
pub(super) fn headline(trace: &Trace, packs: &Packs) -> Option<Message> {
    let run = largest::by_name(trace, Conditions::Run);
    let (memory, kernels): (Totals<'_>, Totals<'_>) = run.into_iter().partition(|(name, _)| moves_memory(name));
    let operators = largest::by_name(trace, Conditions::Operators);
    let host = largest::by_name(trace, Conditions::Host);
    let (runtime, others): (Totals<'_>, Totals<'_>) =
        host.into_iter().partition(|(name, _)| packs.host_call(name) != HostCall::Other || is_runtime_call(name));
    let (stated_host, stated) = (fact(trace, HOST), fact(trace, DEVICE));
    let lost = trace.stats.iter().any(|stat| stat.severity >= Severity::DataLoss);
    // One base for all shares of the device's time, whichever of its rows were printed.
    let moved = sum(&memory).saturating_add(sum(&kernels));
    let device = whole(stated, moved.max(sum(&operators)));
    let base = |rows: Ns, stated: Option<Ns>| stated.is_some().then_some(device).or((!lost).then_some(rows));
    let list = |text: Text, totals: &Totals<'_>, all: Ns, base: Option<Ns>| {
        let largest = largest::listed(totals, base)?;
        Some(Message::new(text, [("all", Value::Ns(all)), ("largest", largest.within())]))
    };
    let calls = sum(&runtime);
    let host_first = stated_host.is_none() && device > 0 && calls >= device.saturating_mul(HOST_FIRST);
    let pace = match stated_host {
        Some(host) if device > 0 => Some(beside(device, whole(Some(host), calls.saturating_add(sum(&others))))),
        _ if host_first => largest::listed(&runtime, Some(calls).filter(|_| !lost)).map(|largest| {
            let args = [("host", Value::Ns(calls)), ("device", Value::Ns(device)), ("largest", largest.within())];
            Message::new(CALLS, args)
        }),
        _ => None,
    };
    let wall = fact(trace, STEP).map(|step| wall(step, device, fact(trace, STEPS)));
    let class = (sum(&kernels) >= sum(&operators)).then(|| class(trace, packs, base(sum(&kernels), stated))).flatten();
    let plain = class.as_ref().and_then(|_| without_units(&kernels, base(sum(&kernels), stated)?));
    let format = class.as_ref().and_then(|_| format(trace, packs, base(sum(&kernels), stated)?));
    let of_operators = list(OPERATORS, &operators, device, base(sum(&operators), stated));
    let of_kernels =
        list(KERNELS, &kernels, if stated.is_some() { device } else { sum(&kernels) }, base(sum(&kernels), stated));
    let few = (sum(&memory) as f64) < FEW * device as f64;
    let of_memory = if few { None } else { list(MEMORY, &memory, sum(&memory), base(sum(&memory), stated)) };
    // Waits of many threads in the operating system say nothing beside the calls of the runtime.
    let of_host = match stated_host {
        _ if host_first => None,
        None if !runtime.is_empty() => list(ON_HOST, &runtime, calls, (!lost).then_some(calls)),
        stated => {
            let all: Totals<'_> = runtime.into_iter().chain(others).collect();
            let time = whole(stated, sum(&all));
            list(ON_HOST, &all, time, (stated.is_some() || !lost).then_some(time))
        }
    };
    let classes = largest::by_name(trace, Conditions::Classes);
    let classes = list(CLASSES, &classes, 0, (!lost).then_some(sum(&classes)));
    let end = Message::plain(if wall.is_some() { NO_GAIN } else { END });
    let lost = (lost && stated.is_none() && stated_host.is_none()).then(|| Message::plain(LOST));
    // Where the device mostly idles the host's rows are the answer.
    let idles = stated_host.is_some_and(|host| (device as f64) < BUSY * host as f64);
    let (first, of_host) = if idles { (of_host, None) } else { (None, of_host) };
    let lists = [first, of_operators, of_kernels, of_memory, of_host, classes];
    if lists.iter().all(Option::is_none) && pace.is_none() {
        return None;
    }
    const JOINED: Text = Text::new("{before} {next}", "{before}{next}");
    let others = trace.stat("torch-table.other_runs");
    let others = (others > 0).then(|| Message::new(OTHER_RUNS, [("n", Value::Count(others))]));
    let said = [wall, pace, others, lost, class, plain, format].into_iter().chain(lists).chain([Some(end)]);
    said.flatten().reduce(|before, next| Message::new(JOINED, [("before", before.within()), ("next", next.within())]))
}

/// What the device took beside what the host took, ns.
fn beside(device: Ns, host: Ns) -> Message {
    let busy = device as f64 / host.max(1) as f64;
    let args = [("device", Value::Ns(device)), ("host", Value::Ns(host))];
    match busy < BUSY {
        true => Message::new(IDLE, args.into_iter().chain([("idle", Value::Share(1.0 - busy))])),
        false => Message::new(BOTH, args),
    }
}

/// The time of a step that a clock took, and the share of it in which the device worked.
fn wall(step: Ns, device: Ns, steps: Option<Ns>) -> Message {
    let share = steps.map(|steps| device as f64 / steps as f64 / step as f64);
    let share = share.filter(|share| (0.0..=ROUNDED).contains(share) && *share > 0.0);
    let share = share.map_or(Value::Text(Text::new("", "")), |share| {
        Message::new(OF_WALL, [("share", Value::Share(share.min(1.0)))]).within()
    });
    Message::new(WALL, [("step", Value::Ns(step)), ("share", share)])
}

/// The operator whose kernels take the most, where `all` that they take is known.
fn class(trace: &Trace, packs: &Packs, all: Option<Ns>) -> Option<Message> {
    let sums = by_operator(trace, packs);
    let (largest, all) = (sums.first().filter(|largest| largest.op != CanonicalOp::Other)?, all?);
    let share = Value::Share(largest.total as f64 / all.max(1) as f64);
    let op = Value::Raw(largest.op.name().to_owned());
    Some(Message::new(CLASS, [("all", Value::Ns(all)), ("op", op), ("share", share)]))
}

/// The share of GEMMs by ordinary arithmetic units in `all` that the kernels take, on a device that has better ones.
fn without_units(kernels: &Totals<'_>, all: Ns) -> Option<Message> {
    kernels.keys().find(|name| matrix_units::tells_units(name))?;
    let slow: Totals<'_> = kernels.iter().filter(|(name, _)| is_without_units(name)).map(|(n, t)| (*n, *t)).collect();
    let share = sum(&slow) as f64 / all.max(1) as f64;
    let (name, _) = slow.iter().max_by_key(|(_, total)| total.time).filter(|_| share >= ORDINARY)?;
    Some(Message::new(PLAIN, [("share", Value::Share(share)), ("name", Value::Kernel((*name).to_owned()))]))
}

/// The share of conversions in `all` that the kernels take, where it is no small part and not the largest operator itself.
fn format(trace: &Trace, packs: &Packs, all: Ns) -> Option<Message> {
    let sums = by_operator(trace, packs);
    let own = sums.iter().skip(1).find(|sum| sum.op == CanonicalOp::Format)?;
    let share = own.total as f64 / all.max(1) as f64;
    let args = [("share", Value::Share(share)), ("name", Value::Kernel(own.kernel.clone()))];
    (share >= ORDINARY).then(|| Message::new(FORMAT, args))
}
