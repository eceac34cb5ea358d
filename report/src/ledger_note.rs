//! What the import ledger says became of a category, in the language of the report. The readers write English; the notes
//! of our own readers are known here, and a note of another origin is shown as it is.

use diagnosis::i18n::Lang;

/// A note in the language of the report.
pub fn in_language(note: &str, lang: Lang) -> &str {
    match lang {
        Lang::En => note,
        Lang::Zh => NOTES.iter().find(|(en, _)| *en == note).map_or(note, |(_, zh)| zh),
    }
}

/// Notes of the readers, English and Chinese.
const NOTES: &[(&str, &str)] = &[
    ("device work", "设备执行"),
    ("kept beside the queue; not device work", "保留在队列旁，不算设备执行"),
    ("waits and event records; not device work", "等待与事件记录，不算设备执行"),
    ("capture window", "采集窗口"),
    ("host slices", "主机切片"),
    ("allocator totals, kept as counters", "分配器总量，作为计数器保留"),
    ("not kept: instants mark no work", "未保留：瞬时事件不代表任何工作"),
    ("counters", "计数器"),
    ("counters of the machine and of the process", "机器与进程的计数器"),
    ("names of processes and threads; sort orders and labels are not kept", "进程与线程名称；排序与标签不保留"),
    (
        "not kept: correlation ids in the arguments say the same, one to one",
        "未保留：参数中的关联 id 一一对应地给出同样信息",
    ),
    (
        "not kept: each complete pair repeats a correlation id of the arguments",
        "未保留：每对完整的流重复参数中的关联 id",
    ),
    ("kept as flows, two events each", "作为流保留，每条含两个事件"),
    ("not kept: the phase is none that Kineto writes", "未保留：不是 Kineto 会写的事件类型"),
    ("empty", "空表"),
    ("names", "名称"),
    ("labels", "标签"),
    ("manifest", "运行清单"),
    ("manifest, environment redacted", "运行清单，环境变量已脱敏"),
    ("clock", "时钟"),
    ("window", "采集窗口"),
    ("devices", "设备"),
    ("devices of contexts", "上下文所属设备"),
    ("track names", "轨道名称"),
    ("processes", "进程"),
    ("statistics", "统计"),
    ("host_api", "主机接口调用"),
    ("kernel", "内核"),
    ("memcpy", "拷贝"),
    ("memset", "填充"),
    ("graph_exec", "整图执行"),
    ("device_sync", "设备侧同步"),
    ("device_event, where they have a time", "设备事件（仅保留有时间的）"),
    ("overhead", "剖析开销"),
    ("library_api", "库调用"),
    ("os_api", "操作系统调用"),
    ("os_api: times off the processor", "操作系统：不在处理器上的时间"),
    ("counter names", "计数器名称"),
    ("user_range, framework_op, collective_call", "用户区间、框架算子、集合通信调用"),
    ("ranges", "区间"),
    ("samples of the processor, not intervals", "处理器采样，不是时间区间"),
    ("call chains of samples", "采样的调用链"),
    ("call chains of calls", "调用的调用链"),
    ("creation of graphs", "图的创建"),
    ("creation of graph nodes", "图节点的创建"),
    ("output of the program, which can hold secrets", "程序输出，可能含敏感信息"),
    ("files of the profiler's own", "剖析器自身的文件"),
    ("operator, shapes and module from the capture of their graph", "算子、形状与模块，来自其图的捕获阶段"),
    ("a sum that the profiler made, for comparison", "剖析器给出的合计，供对照"),
    (
        "sums over the tasks inside collectives, compared with the collectives",
        "集合通信内部任务的合计，已与集合通信核对",
    ),
    (
        "sums over the tasks inside collectives, placed in them: the wait first, then the transfer",
        "集合通信内部任务的合计，按先等待、后传输置于其中",
    ),
    ("kernel: a collective with its waits", "内核：含等待的集合通信"),
    ("wait for an event; not device work", "等待事件，不算设备执行"),
    ("wait for another device; not device work", "等待其他设备，不算设备执行"),
    ("event or notify record; not device work", "事件或通知记录，不算设备执行"),
    (
        "pseudo task, or part of a collective that is kept as a whole; not device work",
        "伪任务，或已整体保留的集合通信的一部分，不算设备执行",
    ),
    ("wait inside a collective; not device work", "集合通信内部的等待，不算设备执行"),
    ("transfer inside a collective; not device work", "集合通信内部的传输，不算设备执行"),
    ("inside a collective; not device work", "集合通信内部，不算设备执行"),
    ("facts of tasks", "任务的属性"),
    ("measurements of kernels", "内核的测量值"),
    ("not read: the raw page holds the same", "未读取：raw 页含同样的内容"),
    (
        "values of counters; kept as means by kernel, launch shape and counter",
        "计数器的数值；按内核、启动形状与计数器保留均值",
    ),
    ("cores of the timeline's kernels", "时间线中内核所用的核数"),
    ("not read: the timeline holds the same tasks", "未读取：时间线含同样的任务"),
    ("not read: memory over time", "未读取：内存随时间的变化"),
    ("not read: sizes of allocations", "未读取：分配的大小"),
    ("not kept: derived from the other layers", "未保留：由其他层推导得出"),
    ("not kept: levels and latencies of buses", "未保留：总线的电平与时延"),
    ("not read: unknown to this version", "未读取：本版本不认识"),
    ("sums of the parts of steps", "各步各部分的总和"),
    (
        "not kept: the largest part of any rank of the stage; its ranks are kept",
        "未保留：该流水级各 rank 的最大值；保留其 rank",
    ),
    (
        "sums of the times in collectives of each rank; a group's own sum counts once",
        "各 rank 在集合通信中的时间总和；通信组自身的合计只计一次",
    ),
    (
        "sums over the transfers of each pair of ranks; a group's own sum counts once",
        "每对 rank 之间传输的总和；通信组自身的合计只计一次",
    ),
    ("steps, where no range of the program marks them", "步，仅当程序自身的区间未标出时采用"),
    ("not read: the ranks of each communication group", "未读取：各通信组的 rank"),
    ("not read: other results of the analysis", "未读取：分析的其他结果"),
    ("not read: the database holds the same", "未读取：数据库含同样的内容"),
    ("not read: communication.json holds the same", "未读取：communication.json 含同样的内容"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_notes_are_translated_and_others_are_left_alone() {
        assert_eq!(in_language("device work", Lang::Zh), "设备执行");
        assert_eq!(in_language("device work", Lang::En), "device work");
        assert_eq!(in_language("something else", Lang::Zh), "something else");
        for (i, (en, zh)) in NOTES.iter().enumerate() {
            assert!(zh.chars().any(|c| c as u32 > 0x2e80), "{en}");
            assert!(NOTES[..i].iter().all(|(other, _)| other != en), "{en} stands twice");
        }
    }
}
