//! Words for the values of enumerations.

use model::Provenance;

use crate::{
    analysis::{AnchorKind, Confidence, Layer, Selection, steps::Shadow},
    diagnose::{Level, Severity, VerdictLayer},
    i18n::Text,
};

pub(super) fn severity(severity: Severity) -> Text {
    match severity {
        Severity::Info => Text::new("info", "提示"),
        Severity::Low => Text::new("low", "低"),
        Severity::Medium => Text::new("medium", "中"),
        Severity::High => Text::new("high", "高"),
        Severity::Critical => Text::new("critical", "严重"),
    }
}

pub(super) fn confidence(confidence: Confidence) -> Text {
    match confidence {
        Confidence::Low => Text::new("low", "低"),
        Confidence::Medium => Text::new("medium", "中"),
        Confidence::High => Text::new("high", "高"),
    }
}

pub(super) fn layer(layer: Layer) -> Text {
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
        None => Text::new("none: no work of a device was seen", "无：没有看到任何设备执行"),
        Some(Level::Run) => Text::new("run: the model ran on the device", "能运行：模型已在设备上运行"),
        Some(Level::Optimise) => {
            Text::new("optimise: the hot path is visible and can be moved", "能优化：热点路径可见且可改动")
        }
        Some(Level::Verify) => {
            Text::new("verify: a fair, repeatable comparison explains the gain", "能验证：公平且可重复的对比能解释收益")
        }
    }
}

pub(super) fn anchor(kind: AnchorKind) -> Text {
    match kind {
        AnchorKind::UserRange => Text::new("a range that the engine annotated", "引擎标注的区间"),
        AnchorKind::TokenReadback => {
            Text::new("the copy by which the host reads the sampled token back", "主机读回采样 token 的拷贝")
        }
        AnchorKind::GraphLaunch => Text::new("the launch of the decode graph", "解码图的下发"),
        AnchorKind::PeriodicOp => Text::new("a device operation that occurs once per step", "每步出现一次的设备操作"),
        AnchorKind::WholeCapture => {
            Text::new("nothing: the whole capture is taken as one window", "无：整段采集视为一个窗口")
        }
    }
}

pub(super) fn selection(selection: Selection) -> Text {
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

/// What a bucket means, from its name.
pub(super) fn bucket(name: &str) -> Text {
    match name {
        "rt.launch_api" => Text::new("device idle, host is inside a launch call", "设备空闲，主机正在下发调用中"),
        "rt.launch_latency" => {
            Text::new("launched, queue empty, work has not started yet", "已下发、队列为空、尚未开始执行")
        }
        "rt.dispatch" => Text::new("from one queued operation to the next", "两个已排队操作之间的间隔"),
        "rt.graph_launch" => Text::new("device idle, host is inside a graph launch", "设备空闲，主机正在下发图"),
        "rt.graph_internal" => Text::new("between two nodes of one graph replay", "一次图重放中两个节点之间"),
        "rt.graph_update" => Text::new("graph parameters are updated before the replay", "重放前更新图参数"),
        "rt.device_dep" => Text::new("waits for an event of another queue", "等待另一队列的事件"),
        "rt.sync_tail" => {
            Text::new("device is done, host still returns from its wait", "设备已完成，主机仍在从等待中返回")
        }
        "rt.sync_idle" => Text::new("host waits although the device is idle", "设备空闲时主机仍在等待"),
        "rt.compile" => Text::new("compilation, tuning, module load or graph capture", "编译、调优、模块加载或图捕获"),
        "rt.alloc" => Text::new("allocator calls", "内存分配调用"),
        "comm.transfer" => Text::new("data moves between devices, not hidden", "未被掩盖的设备间数据传输"),
        "comm.wait" => Text::new("waits for another rank", "等待其他 rank"),
        "prof" => Text::new("the profiler itself", "剖析器自身"),
        "graph.opaque" => {
            Text::new("a whole graph replay in one row: inside unknown", "整次图重放只有一行记录：内部未知")
        }
        "idle.undecided" => {
            Text::new("idle; no host calls recorded that could say why", "空闲；没有主机调用可说明原因")
        }
        "unattributed" => {
            Text::new("idle; what ended it has no usable launch call", "空闲；结束它的操作没有可用的下发调用")
        }
        "copy.p2p" => Text::new("a copy between devices runs alone", "设备间拷贝单独执行"),
        "copy.memset" => Text::new("a fill runs alone", "填充单独执行"),
        name if name.starts_with("copy.") => Text::new("a copy runs alone", "拷贝单独执行"),
        "compute.format" => {
            Text::new("casts, copies, transposes, concatenations, padding", "类型转换、拷贝、转置、拼接、填充")
        }
        name if name.starts_with("compute.") => Text::new("kernels of this operator", "该算子的内核"),
        "rt.host.unknown" => {
            Text::new("device idle, no record says what the host does", "设备空闲，没有记录说明主机在做什么")
        }
        "rt.host.blocked" => {
            Text::new("device idle, the host thread waits in a system call", "设备空闲，主机线程阻塞在系统调用中")
        }
        "rt.host.offcpu" => {
            Text::new("device idle, the host thread is off the processor", "设备空闲，主机线程不在处理器上运行")
        }
        "rt.host.gc" => Text::new("device idle, the host collects garbage", "设备空闲，主机在做垃圾回收"),
        "rt.host.framework" => Text::new("device idle, host runs framework operators", "设备空闲，主机在执行框架算子"),
        "rt.host.forward" => {
            Text::new("device idle, host runs the model's forward code", "设备空闲，主机在执行模型前向代码")
        }
        "rt.host.read_back" => Text::new("device idle, host reads a result back", "设备空闲，主机在读回结果"),
        "rt.host.runtime_call" => {
            Text::new("device idle, host is inside another runtime call", "设备空闲，主机正在其他运行时调用中")
        }
        name if name.starts_with("rt.host.") => Text::new("device idle, host does this", "设备空闲，主机在做此项工作"),
        _ => Text::new("", ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{Bucket, CopyDir, HostLabel};

    #[test]
    fn every_bucket_has_a_meaning_in_both_languages() {
        use Bucket::*;
        let buckets = [
            LaunchApi,
            LaunchLatency,
            Dispatch,
            GraphLaunch,
            GraphInternal,
            GraphUpdate,
            DeviceDep,
            SyncTail,
            SyncIdle,
            Compile,
            Alloc,
            CommTransfer,
            CommWait,
            Prof,
            GraphOpaque,
            IdleUndecided,
            Unattributed,
            Copy(CopyDir::HtoD),
            Copy(CopyDir::PtoP),
            Copy(CopyDir::Memset),
            Host(HostLabel(0)),
        ];
        for b in buckets {
            let text = bucket(&b.name(&[]));
            assert!(!text.en.is_empty() && !text.zh.is_empty(), "{b:?}");
        }
        assert!(bucket("compute.gemm").en.contains("kernels"));
    }
}
