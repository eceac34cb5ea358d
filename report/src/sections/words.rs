//! Words for the values of enumerations.

use model::Provenance;

use diagnosis::{
    analysis::{AnchorKind, Confidence, Layer, Selection, steps::Shadow},
    diagnose::{Level, Severity, VerdictLayer},
    i18n::Text,
};

/// The word of a severity.
pub fn severity(severity: Severity) -> Text {
    match severity {
        Severity::Info => Text::new("info", "提示"),
        Severity::Low => Text::new("low", "低"),
        Severity::Medium => Text::new("medium", "中"),
        Severity::High => Text::new("high", "高"),
        Severity::Critical => Text::new("critical", "严重"),
    }
}

pub(crate) fn confidence(confidence: Confidence) -> Text {
    match confidence {
        Confidence::Low => Text::new("low", "低"),
        Confidence::Medium => Text::new("medium", "中"),
        Confidence::High => Text::new("high", "高"),
    }
}

/// The name of a layer.
pub fn layer(layer: Layer) -> Text {
    match layer {
        Layer::Operator => Text::new("operator", "算子"),
        Layer::Runtime => Text::new("runtime", "运行时"),
        Layer::Communication => Text::new("communication", "通信"),
        Layer::Measurement => Text::new("measurement", "测量"),
    }
}

pub(super) fn layer_meaning(layer: Layer) -> Text {
    match layer {
        Layer::Operator => Text::new("kernels compute", "内核在计算"),
        Layer::Runtime => {
            Text::new("launches, graphs, waits for the host, staging copies", "下发、图、等待主机、中转拷贝")
        }
        Layer::Communication => {
            Text::new("transfers between devices, waits for late ranks", "设备间传输、等待较慢的 rank")
        }
        Layer::Measurement => {
            Text::new("the profiler itself, and what it could not tell apart", "剖析器自身，以及无法区分的部分")
        }
    }
}

pub(super) fn verdict_layer(layer: VerdictLayer) -> Text {
    match layer {
        VerdictLayer::Operator => Text::new("operator", "算子"),
        VerdictLayer::Runtime => Text::new("runtime", "运行时"),
        VerdictLayer::Communication => Text::new("communication", "通信"),
        VerdictLayer::Load => Text::new("none: load-limited", "无：负载不足"),
        VerdictLayer::Undecided => Text::new("undecided", "无法判定"),
        VerdictLayer::None => Text::new("none stands out", "无突出瓶颈层"),
    }
}

pub(super) fn level(level: Option<Level>) -> Text {
    match level {
        None => Text::new("none: no run with work of a device was recorded", "无：没有记录到带有设备工作的运行"),
        Some(Level::Run) => Text::new("run: what was recorded ran on the device", "能运行：所记录的工作已在设备上运行"),
        Some(Level::Optimise) => {
            Text::new("optimise: the hot path is visible and can be moved", "能优化：热点路径可见且可改动")
        }
        Some(Level::Verify) => {
            Text::new("verify: a fair, repeatable comparison explains the gain", "能验证：公平且可重复的对比能解释收益")
        }
    }
}

/// What marks a step; `by` is who draws the mark.
pub(super) fn anchor(kind: AnchorKind, by: &str) -> Text {
    match kind {
        AnchorKind::UserRange if by == "torch_optimizer" => {
            Text::new("the steps of an optimizer, `Optimizer.step`", "优化器的步 `Optimizer.step`")
        }
        AnchorKind::UserRange if by == "torch" => {
            Text::new("the mark of the profiler's own schedule, `ProfilerStep`", "剖析器自身调度的标记 `ProfilerStep`")
        }
        AnchorKind::UserRange if by == "generic" => {
            Text::new("a range that the program drew around each step", "程序在每步外绘制的区间")
        }
        AnchorKind::UserRange => Text::new("a range that the engine annotated", "引擎标注的区间"),
        AnchorKind::Asked => Text::new("the ranges that `--step-mark` names", "`--step-mark` 指定的区间"),
        AnchorKind::TokenReadback => {
            Text::new("the copy by which the host reads the sampled token back", "主机读回采样 token 的拷贝")
        }
        AnchorKind::GraphLaunch => Text::new("the launch of the decode graph", "解码图的下发"),
        AnchorKind::Passes => Text::new(
            "a sequence of device operations that repeats: equal passes, each from its first operation to that of the next",
            "重复出现的设备操作序列：相同的各次执行，每次从首个操作到下一次的首个操作",
        ),
        AnchorKind::PeriodicOp => Text::new("a device operation that occurs once per step", "每步出现一次的设备操作"),
        AnchorKind::WholeCapture => Text::new(
            "nothing; one window from the first device operation to the end of the last",
            "无；以首个设备操作开始到最后一个设备操作结束为一个窗口",
        ),
        AnchorKind::Log => Text::new("a line of the log for each", "日志中每步一行"),
    }
}

/// Whether a step counts, and why not.
pub fn selection(selection: Selection) -> Text {
    match selection {
        Selection::Steady => Text::new("used", "已采用"),
        Selection::WarmUp => {
            Text::new("not used: warm-up, the step time had not settled", "未采用：预热，步时间尚未稳定")
        }
        Selection::Compiling => Text::new(
            "not used: compilation or graph capture at the start of the run",
            "未采用：运行初期的编译或图捕获",
        ),
        Selection::Unfinished => Text::new("not used: the capture ends inside the step", "未采用：采集在该步内结束"),
        Selection::NotAsked => {
            Text::new("not used: outside the steps that were asked for", "未采用：不在所要求的步范围内")
        }
    }
}

pub(super) fn shadow(shadow: Shadow) -> Text {
    match shadow {
        Shadow::ComputeTransfer => Text::new("transfer under compute", "被计算掩盖的传输"),
        Shadow::ComputeCopy => Text::new("copy under compute", "被计算掩盖的拷贝"),
        Shadow::ComputeWait => Text::new("wait of a collective under compute", "被计算掩盖的集合通信等待"),
        Shadow::TransferCopy => Text::new("copy under a transfer", "被传输掩盖的拷贝"),
        Shadow::ComputeCompute => Text::new("several kernels at once", "多个内核同时执行"),
    }
}

pub(super) fn provenance(provenance: Provenance) -> Text {
    match provenance {
        Provenance::Observed => Text::new("observed", "观测"),
        Provenance::Declared => Text::new("declared", "声明"),
        Provenance::Simulated => Text::new("simulated", "模拟"),
    }
}

pub(super) fn stat_severity(severity: model::Severity) -> Text {
    match severity {
        model::Severity::Info => Text::new("info", "信息"),
        model::Severity::Notice => Text::new("notice", "注意"),
        model::Severity::DataLoss => Text::new("data loss", "数据丢失"),
        model::Severity::Error => Text::new("error", "错误"),
    }
}
