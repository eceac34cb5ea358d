//! What the buckets mean, from their names.

use diagnosis::i18n::Text;

/// What `comm.transfer` means where the other ranks were not captured: the profiler does not say what a collective does meanwhile.
pub const TRANSFER_OF_ONE_RANK: Text = Text::new(
    "inside collectives, not hidden: data moves, or waits for ranks that were not captured",
    "在集合通信内且未被掩盖：传输数据，或等待未采集的 rank",
);
/// What `comm.wait` means there.
pub const WAIT_OF_ONE_RANK: Text = Text::new(
    "waits for another rank, as the profiler recorded it or as the fastest collectives of the kind suggest",
    "等待其他 rank：由剖析器记录，或按同类中最快的集合通信估计",
);

/// What `unseen` means of a rank of which only collectives were kept.
pub const UNSEEN_BETWEEN_COLLECTIVES: Text = Text::new(
    "between its collectives: what the rank computed and what its host did was not recorded",
    "集合通信之间：该 rank 的计算与主机活动未被记录",
);

/// What a bucket means, from its name.
pub fn meaning(name: &str) -> Text {
    match name {
        "rt.launch_api" => Text::new("device idle, host is inside a launch call", "设备空闲，主机正在下发调用中"),
        "rt.launch_latency" => {
            Text::new("launched, queue empty, work has not started yet", "已下发、队列为空、尚未开始执行")
        }
        "rt.unstarted" => Text::new("launched, and the idle device does not begin it", "已下发，空闲的设备却未开始"),
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
            Text::new("idle; no launch is recorded of what runs next", "空闲；没有记录到其后操作的下发调用")
        }
        "unseen" => {
            Text::new("what the log does not show: it times the whole step", "日志未显示的部分：只给出整步时间")
        }
        "copy.p2p" => Text::new("a copy between devices runs alone", "设备间拷贝单独执行"),
        "copy.staging" => Text::new(
            "a copy into or out of the memory that a collective works on runs alone",
            "拷入或拷出集合通信所用内存的拷贝单独执行",
        ),
        "copy.memset" => Text::new("a fill runs alone", "填充单独执行"),
        name if name.starts_with("copy.") => Text::new("a copy runs alone", "拷贝单独执行"),
        "compute.format" => {
            Text::new("casts, copies, transposes, concatenations, padding", "类型转换、拷贝、转置、拼接、填充")
        }
        name if name.starts_with("compute.") => compute(name),
        "rt.host.unknown" => Text::new(
            "device idle, no record that was kept says what the host does",
            "设备空闲，保留下来的记录没有说明主机在做什么",
        ),
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
        name if name.starts_with("rt.host.") => host(name),
        _ => Text::new("", ""),
    }
}

/// What the host does meanwhile, for labels of the platform packs and of categories without one.
fn host(name: &str) -> Text {
    match name.trim_start_matches("rt.host.") {
        "preprocess" => Text::new(
            "device idle, host decodes or scales images or sound for the model",
            "设备空闲，主机在为模型解码或缩放图像、声音",
        ),
        "prepare_inputs" => {
            Text::new("device idle, host prepares the inputs of the step", "设备空闲，主机在准备本步输入")
        }
        "sampler" => Text::new("device idle, host samples tokens", "设备空闲，主机在采样 token"),
        "scheduler" => Text::new("device idle, host schedules requests", "设备空闲，主机在调度请求"),
        "post_process" => Text::new("device idle, host updates its state after the step", "设备空闲，主机在做步后处理"),
        "draft" => Text::new("device idle, host works on speculative drafts", "设备空闲，主机在处理投机草稿"),
        "detokenize" => Text::new("device idle, host turns tokens into text", "设备空闲，主机在把 token 转为文本"),
        "tokenizer" => Text::new("device idle, host turns text into tokens", "设备空闲，主机在把文本转为 token"),
        "rpc" => Text::new("device idle, host exchanges messages between processes", "设备空闲，主机在进程间通信"),
        "enqueue" => Text::new(
            "device idle, host hands operators to the thread that launches them",
            "设备空闲，主机在把算子交给下发线程",
        ),
        "dequeue" => Text::new(
            "device idle, host prepares operators that were handed to the launching thread",
            "设备空闲，下发线程在准备收到的算子",
        ),
        "compiled_glue" => Text::new(
            "device idle, host runs guards and glue of compiled code",
            "设备空闲，主机在执行编译代码的守卫与胶水",
        ),
        "triton_launch" => {
            Text::new("device idle, host runs Triton's launcher", "设备空闲，主机在执行 Triton 的启动器")
        }
        "queue_full" => {
            Text::new("device idle, host waits for room in the launch queue", "设备空闲，主机在等待下发队列腾出空间")
        }
        "load_batch" => Text::new("device idle, host loads input samples", "设备空闲，主机在加载输入样本"),
        "optimizer" => Text::new("device idle, host runs the optimiser", "设备空闲，主机在执行优化器"),
        "python" => Text::new("device idle, host runs other Python code", "设备空闲，主机在执行其他 Python 代码"),
        "range" => {
            Text::new("device idle, host is inside a range of the program", "设备空闲，主机处于程序标注的区间内")
        }
        "library" => Text::new("device idle, host is inside a library call", "设备空闲，主机正在库调用中"),
        "collective_call" => Text::new("device idle, host issues a collective", "设备空闲，主机在发起集合通信"),
        _ => Text::new("device idle, host does this", "设备空闲，主机在做此项工作"),
    }
}

/// What kernels of an operator compute.
fn compute(name: &str) -> Text {
    match name.trim_start_matches("compute.") {
        "gemm" => Text::new("dense matrix products", "稠密矩阵乘"),
        "conv" => Text::new("convolutions", "卷积"),
        "ssm" => {
            Text::new("scan and state of state-space or linear-attention layers", "状态空间或线性注意力层的扫描与状态")
        }
        "permute" => Text::new("permutation of sparse features", "稀疏特征重排"),
        "optimizer" => Text::new("parameter updates of an optimizer", "优化器的参数更新"),
        "loss" => Text::new("loss of a training step", "训练步的损失计算"),
        "grouped_gemm" => Text::new("matrix products of several experts at once", "多个专家一起做的矩阵乘"),
        "attn" => Text::new("attention by a kernel of both stages", "两阶段通用内核的注意力"),
        "attn_combine" => Text::new("merge of split attention", "分块注意力的合并"),
        "attn_prefill" => Text::new("attention over whole prompts", "对整个提示的注意力"),
        "attn_decode" => Text::new("attention of one token per sequence", "每序列一个 token 的注意力"),
        "norm" => Text::new("normalisation", "归一化"),
        "add_norm" => Text::new("residual addition fused with normalisation", "残差加与归一化的融合"),
        "rope" => Text::new("rotary position embedding", "旋转位置编码"),
        "act" => Text::new("activation functions", "激活函数"),
        "elementwise" => Text::new("arithmetic element by element", "逐元素运算"),
        "reduce" => Text::new("sums, means, maxima", "求和、均值、最大值"),
        "softmax" => Text::new("softmax outside fused attention", "融合注意力之外的 softmax"),
        "index" => Text::new("gathers, scatters, masks, ranges", "索引读写、掩码、序号"),
        "fill" => Text::new("constants written", "写入常量"),
        "kv_write" => Text::new("new keys and values written to the cache", "把新的 KV 写入缓存"),
        "quant" => Text::new("quantisation", "量化"),
        "moe_route" => Text::new("routing of tokens to experts", "token 到专家的路由"),
        "embedding" => Text::new("token or position embedding", "词或位置嵌入"),
        "fused_attn_pre" => Text::new("everything before attention in one kernel", "注意力之前的融合内核"),
        "sample" => Text::new("next token chosen from the logits", "从 logits 选出下一个 token"),
        _ => Text::new("kernels of this operator", "该算子的内核"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diagnosis::analysis::{Bucket, CopyDir, HostLabel};

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
            Unseen,
            Copy(CopyDir::HtoD),
            Copy(CopyDir::PtoP),
            Copy(CopyDir::Staging),
            Copy(CopyDir::Memset),
            Host(HostLabel(0)),
        ];
        for b in buckets {
            let text = meaning(&b.name(&[]));
            assert!(!text.en.is_empty() && !text.zh.is_empty(), "{b:?}");
        }
        assert!(meaning("compute.gemm").en.contains("products"));
        assert_ne!(meaning("rt.host.rpc").en, meaning("rt.host.sampler").en);
    }
}
