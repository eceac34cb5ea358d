//! How far the evidence of a capture reaches, in four grades, and what each class of evidence is in words.

use model::{Evidence, EvidenceClass};

use diagnosis::{analysis::Integrity, i18n::Text};

/// Grade of a capture's evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub enum Grade {
    /// Device work, host calls, the links between them, and graph or shape detail.
    A,
    /// Device work, host calls and the links between them.
    B,
    /// Device work; host calls or links are missing.
    C,
    /// Sums or measurements of kernels, ranks or links, and no device work with times.
    Totals,
    /// No device work with times.
    D,
}

/// What stands in place of a grade's text where the profiler's own sums contradict the rows.
pub(crate) const CONTRADICTED: Text = Text::new(
    "one step lower than what was recorded would allow: the profiler's own sums contradict the rows or each other, so that no share of the time is certain",
    "比所记录内容应有的等级低一级：分析器自身的汇总与表中的行矛盾或彼此矛盾，任何时间占比都不确定",
);

/// What stands in place of a grade's text where so much is lost that no share of the time is known.
pub(crate) const LOST: Text = Text::new(
    "too much of what ran could not be read: no share of the time is known",
    "未能读取的内容过多：任何时间占比都未知",
);

impl Grade {
    /// The grade that evidence and integrity allow; `nodes` says whether nodes of graph replays were recorded. That no graph
    /// was launched is evidence, but no detail.
    pub fn of(evidence: Evidence, integrity: &Integrity, nodes: bool) -> Self {
        use EvidenceClass::{Correlation, Device, HostApi, Shapes};
        let unlinked = integrity.judged_without_launch() > Integrity::LOST;
        match () {
            () if !evidence.has(Device) => Self::D,
            () if unlinked || !(evidence.has(HostApi) && evidence.has(Correlation)) => Self::C,
            () if nodes || evidence.has(Shapes) => Self::A,
            () => Self::B,
        }
    }

    /// The grade of a capture that holds sums or measurements (`sums`) beside what else it holds.
    pub fn or_sums(self, sums: bool) -> Self {
        if self == Self::D && sums { Self::Totals } else { self }
    }

    /// The grade of a capture whose rows the profiler's own sums contradict: one step lower.
    pub fn contradicted(self, contradicted: bool) -> Self {
        match self {
            Self::A if contradicted => Self::B,
            Self::B if contradicted => Self::C,
            Self::C if contradicted => Self::D,
            grade => grade,
        }
    }

    /// The grade of a capture that lacks so much that no share of its time is known.
    pub fn incomplete(self, incomplete: bool) -> Self {
        if incomplete { Self::D } else { self }
    }

    /// What the grade allows to say.
    pub fn text(self) -> Text {
        match self {
            Self::A => Text::new(
                "device work, host calls, the links between them, and graph or shape detail: where the time went, why the device waited, and which part of the model it belongs to",
                "含设备执行、主机调用、两者的关联，以及图或张量形状信息：能说明时间花在哪里、设备为何等待、属于模型的哪一部分",
            ),
            Self::B => Text::new(
                "device work, host calls and the links between them: where the time went and why the device waited",
                "含设备执行、主机调用及两者的关联：能说明时间花在哪里、设备为何等待",
            ),
            Self::C => Text::new(
                "device work without usable host calls or links: where the time went, but not always why the device waited",
                "含设备执行，但缺少可用的主机调用或关联：能说明时间花在哪里，但不一定能说明设备为何等待",
            ),
            Self::Totals => Text::new(
                "sums or measurements without a timeline: which kernels, ranks or links take long, but not when or why",
                "仅有总和或测量值，没有时间线：能说明哪些内核、rank 或链路耗时长，但不能说明何时发生及其原因",
            ),
            Self::D => {
                Text::new("no device work with times: nothing can be attributed", "没有带时间的设备执行记录：无法归因")
            }
        }
    }
}

/// Name of a class of evidence.
pub fn name(class: EvidenceClass) -> Text {
    match class {
        EvidenceClass::Device => Text::new("device operations with times", "带时间的设备操作"),
        EvidenceClass::HostApi => Text::new("host calls with times", "带时间的主机调用"),
        EvidenceClass::Correlation => Text::new("links from host calls to device work", "主机调用到设备操作的关联"),
        EvidenceClass::Graph => {
            Text::new("which work graph replays caused, or that none did", "哪些操作来自图重放（或确认没有图重放）")
        }
        EvidenceClass::Shapes => Text::new("tensor shapes and dtypes", "张量形状与数据类型"),
        EvidenceClass::Probes => Text::new("measured ceilings of the platform", "平台实测上限"),
        EvidenceClass::MultiRank => Text::new("more than one rank of the job", "同一作业的多个 rank"),
        EvidenceClass::Logs => Text::new("scheduler or engine logs", "调度器或引擎日志"),
        EvidenceClass::Counters => Text::new("device counters, clocks or power", "设备计数器、频率或功耗"),
        EvidenceClass::PairDetail => Text::new("wait and pair detail of collectives", "集合通信的等待与点对明细"),
        EvidenceClass::SecondRun => Text::new("a second run to compare with", "可供对比的第二次运行"),
    }
}

/// How to collect a class of evidence on the devices of a vendor, with the tools of that vendor.
pub fn how_to_collect(class: EvidenceClass, vendor: &str) -> Text {
    let own = match vendor {
        "ascend" => on_ascend(class),
        "amd" => on_amd(class),
        "" | "nvidia" => None,
        _ => elsewhere(class),
    };
    own.unwrap_or_else(|| anywhere(class))
}

/// The same with CANN's tools: msprof's user guide and torch_npu's profiler, 2026-10.
fn on_ascend(class: EvidenceClass) -> Option<Text> {
    Some(match class {
        EvidenceClass::Device => Text::new(
            "record device activity (`torch_npu.profiler` with the NPU activity on, or `msprof`), and export it",
            "记录设备活动（`torch_npu.profiler` 打开 NPU activity，或使用 `msprof`）并导出",
        ),
        EvidenceClass::HostApi => Text::new(
            "record the host as well (`torch_npu.profiler` with CPU activity at level 1 or above, `msprof --ascendcl=on --runtime-api=on`), and give the timeline or the database, not a table alone",
            "同时记录主机侧（`torch_npu.profiler` 打开 CPU activity 且级别不低于 level 1，或 `msprof --ascendcl=on --runtime-api=on`），并给出时间线或数据库，而不只是表",
        ),
        EvidenceClass::Graph => Text::new(
            "record a run that uses graphs with `torch_npu.profiler` or `msprof`: tasks of a graph carry its model id",
            "用 `torch_npu.profiler` 或 `msprof` 记录使用图的运行：图中的任务带有模型 id",
        ),
        EvidenceClass::Shapes => Text::new(
            "record shapes (`record_shapes=True` in `torch_npu.profiler`, level 1 or above), or keep kernel_details.csv beside the timeline",
            "记录形状（`torch_npu.profiler` 的 `record_shapes=True`，级别不低于 level 1），或在时间线旁保留 kernel_details.csv",
        ),
        EvidenceClass::Counters => Text::new(
            "counters of the cores beside the kernels (`aic_metrics` in `torch_npu.profiler`, `msprof --aic-metrics`), or measurements of its kernels (msprof op) given with --kernel-metrics",
            "内核旁的核计数器（`torch_npu.profiler` 的 `aic_metrics` 或 `msprof --aic-metrics`），或用 --kernel-metrics 提供的内核测量值（msprof op）",
        ),
        _ => return None,
    })
}

/// The same with ROCm's tools: rocprofv3's user guide, 2026-10.
fn on_amd(class: EvidenceClass) -> Option<Text> {
    Some(match class {
        EvidenceClass::Device => Text::new(
            "record device activity (torch profiler with the device activity on, `rocprofv3 --kernel-trace --memory-copy-trace`)",
            "记录设备活动（torch profiler 打开设备 activity，或 `rocprofv3 --kernel-trace --memory-copy-trace`）",
        ),
        EvidenceClass::HostApi => Text::new(
            "record the runtime calls of the host as well (torch profiler with CPU activity, `rocprofv3 --hip-trace --kernel-trace`)",
            "同时记录主机侧运行时调用（torch profiler 打开 CPU activity，或 `rocprofv3 --hip-trace --kernel-trace`）",
        ),
        EvidenceClass::Graph => Text::new(
            "record calls and kernels together (`rocprofv3 --hip-trace --kernel-trace`), in a run that uses graphs",
            "在使用图的运行中同时记录调用与内核（`rocprofv3 --hip-trace --kernel-trace`）",
        ),
        EvidenceClass::Counters => Text::new(
            "device telemetry recorded next to the trace, or counters of its kernels (`rocprofv3 --pmc`, rocprof-compute) given with --kernel-metrics",
            "与采集同时采集的设备遥测，或用 --kernel-metrics 提供的内核计数器（`rocprofv3 --pmc`、rocprof-compute）",
        ),
        _ => return None,
    })
}

/// The same on devices whose profilers are not named here.
fn elsewhere(class: EvidenceClass) -> Option<Text> {
    Some(match class {
        EvidenceClass::Device => Text::new(
            "record device activity (torch profiler with the device activity on, or the vendor's profiler)",
            "记录设备活动（torch profiler 打开设备 activity，或使用厂商的分析器）",
        ),
        EvidenceClass::HostApi => Text::new(
            "record the runtime calls of the host as well (torch profiler with CPU activity, or the vendor's profiler)",
            "同时记录主机侧运行时调用（torch profiler 打开 CPU activity，或使用厂商的分析器）",
        ),
        EvidenceClass::Graph => Text::new(
            "record the nodes of graphs with the vendor's profiler, in a run that uses graphs",
            "在使用图的运行中用厂商的分析器记录图节点",
        ),
        EvidenceClass::Counters => Text::new(
            "device telemetry recorded next to the trace, or measurements of its kernels given with --kernel-metrics",
            "与采集同时采集的设备遥测，或用 --kernel-metrics 提供的内核测量值",
        ),
        _ => return None,
    })
}

/// The same where the vendor has no tool of its own for it, or is NVIDIA or unknown.
fn anywhere(class: EvidenceClass) -> Text {
    match class {
        EvidenceClass::Device => Text::new(
            "record device activity (torch profiler with the device activity on, `nsys profile -t cuda`, or the vendor's equivalent)",
            "记录设备活动（torch profiler 打开设备 activity、`nsys profile -t cuda` 或厂商的同类工具）",
        ),
        EvidenceClass::HostApi => Text::new(
            "record the runtime calls of the host as well (torch profiler with CPU activity, `nsys profile -t cuda`)",
            "同时记录主机侧运行时调用（torch profiler 打开 CPU activity、`nsys profile -t cuda`）",
        ),
        EvidenceClass::Correlation => Text::new(
            "record host and device in one session, and start recording before the steps of interest",
            "在同一次采集中记录主机与设备，并在目标步之前开始记录",
        ),
        EvidenceClass::Graph => Text::new(
            "record graph nodes (`nsys profile --cuda-graph-trace=node`), in a run that uses graphs",
            "在使用图的运行中记录图节点（`nsys profile --cuda-graph-trace=node`）",
        ),
        EvidenceClass::Shapes => Text::new(
            "record shapes (`record_shapes=True` in the torch profiler)",
            "记录形状（torch profiler 的 `record_shapes=True`）",
        ),
        EvidenceClass::Probes => Text::new(
            "ceilings measured on the machine of the run, so far CPUs: `strato probe --save FILE` there, then `--probe FILE` here",
            "在运行所在机器上实测的上限（目前仅 CPU）：在那里执行 `strato probe --save FILE`，再在此使用 `--probe FILE`",
        ),
        EvidenceClass::MultiRank => {
            Text::new("record every rank of the job over the same steps", "在相同的步上记录作业的所有 rank")
        }
        EvidenceClass::Logs => Text::new(
            "the engine's counters in the trace (queue lengths, batch and tokens per step)",
            "采集中的引擎计数器（队列长度、每步 batch 与 token 数）",
        ),
        EvidenceClass::Counters => Text::new(
            "device telemetry recorded next to the trace, or measurements of its kernels (Nsight Compute, msprof op) given with --kernel-metrics",
            "与采集同时采集的设备遥测，或用 --kernel-metrics 提供的内核测量值（Nsight Compute、msprof op）",
        ),
        EvidenceClass::PairDetail => Text::new(
            "a source that records waits and peers inside collectives",
            "能记录集合通信内部等待与对端的数据源",
        ),
        EvidenceClass::SecondRun => Text::new(
            "the same run again, unchanged or with the one change to be judged",
            "重复同一次运行：保持不变，或只改动待评估的一项",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// D13: reports on Ascend and AMD said `nsys profile`.
    #[test]
    fn advice_names_the_tools_of_the_vendor() {
        use diagnosis::i18n::Lang;
        for class in EvidenceClass::ALL {
            for lang in [Lang::En, Lang::Zh] {
                let text = |vendor| how_to_collect(class, vendor).get(lang);
                for vendor in ["ascend", "amd", "metax"] {
                    let said = text(vendor);
                    assert!(!["nsys", "cuda", "Nsight"].iter().any(|word| said.contains(word)), "{vendor}: {said}");
                }
                assert!(!text("amd").contains("msprof") && !text("nvidia").contains("rocprof"));
            }
        }
        assert!(how_to_collect(EvidenceClass::Graph, "nvidia").get(Lang::En).contains("--cuda-graph-trace=node"));
    }

    #[test]
    fn a_contradicted_grade_is_one_step_lower() {
        assert_eq!([Grade::A, Grade::B, Grade::C].map(|g| g.contradicted(true)), [Grade::B, Grade::C, Grade::D]);
        assert_eq!([Grade::A, Grade::Totals].map(|g| g.contradicted(false)), [Grade::A, Grade::Totals]);
    }

    #[test]
    fn a_run_without_graphs_and_shapes_has_no_detail() {
        use EvidenceClass::{Correlation, Device, Graph, HostApi};
        let evidence: Evidence = [Device, HostApi, Correlation, Graph].into_iter().collect();
        assert_eq!(Grade::of(evidence, &Integrity::default(), false), Grade::B);
        assert_eq!(Grade::of(evidence, &Integrity::default(), true), Grade::A);
    }

    /// What ran before the first step that counts, launched before the recording began, takes nothing from the grade.
    #[test]
    fn only_the_steps_that_count_are_graded() {
        use EvidenceClass::{Correlation, Device, HostApi, Shapes};
        let evidence: Evidence = [Device, HostApi, Correlation, Shapes].into_iter().collect();
        let integrity = Integrity { device_ops: 100, unlinked: 30, judged: 70, ..Integrity::default() };
        assert_eq!(Grade::of(evidence, &integrity, false), Grade::A);
    }

    #[test]
    fn each_missing_class_lowers_the_grade() {
        use EvidenceClass::{Correlation, Device, HostApi, Shapes};
        let grade = |classes: &[EvidenceClass], unlinked| {
            let integrity = Integrity { judged: 100, judged_unlinked: unlinked, ..Integrity::default() };
            Grade::of(classes.iter().copied().collect(), &integrity, false)
        };
        assert_eq!(grade(&[Device, HostApi, Correlation, Shapes], 2), Grade::A);
        assert_eq!(grade(&[Device, HostApi, Correlation], 2), Grade::B);
        assert_eq!(grade(&[Device, HostApi, Correlation, Shapes], 3), Grade::C);
        assert_eq!(grade(&[Device, HostApi], 0), Grade::C);
        assert_eq!(grade(&[HostApi, Correlation], 0), Grade::D);
    }
}
