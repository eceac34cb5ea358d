//! OP-07: an operator runs on a CPU in the middle of the forward pass.

use model::{Area, EvidenceClass::Device, Maturity};

use super::{fallback::Fallbacks, gate::recurring, host_op::SHORTEST, reading};
use crate::{
    analysis::{Layer, Step},
    diagnose::{
        Competing, Evidence, Intervention, Trigger,
        estimate::LEAST_GAIN,
        relations::{Advice, Feeds, Relations, Role},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
};

/// The rule.
pub struct CpuFallback;

static DOC: Doc = Doc {
    id: "OP-07",
    title: Text::new("CPU fallback in the forward pass", "前向中的 CPU 回退"),
    layer: Layer::Operator,
    needs: &[Device],
    advice: Advice::Device,
    relations: Relations {
        board: &[Feeds::Area(Area::Run), Feeds::Maturity(Maturity::Ecosystem)],
        role: Some(Role::CpuFallback),
        ..Relations::NONE
    },
    sees: Text::new(
        "An operator runs on the device's auxiliary CPU (AI CPU), a tensor goes to the host and comes back in the middle of the forward pass, or the host waits for the device there and computes an operator itself.",
        "算子在设备的辅助 CPU（AI CPU）上运行，或张量在前向中途被搬到主机再搬回，或主机在前向中途等待设备后自行计算算子。",
    ),
    matters: Text::new(
        "Such an operator is tens of times slower than on the compute cores, and everything after it waits.",
        "这样的算子比在计算核心上慢几十倍，且其后的一切都要等待。",
    ),
    trigger: Text::new(
        "An AI CPU operator longer than 20 µs in a step, or a device-to-host copy followed directly by a host-to-device copy, or an operator that the host computes after a blocking call, launching nothing, while the device idles; both with matrix work before and after, and longer than 20 µs with all that the device waits.",
        "步内有超过 20 µs 的 AI CPU 算子；或一次设备到主机拷贝后紧跟主机到设备拷贝；或主机在阻塞调用之后自行计算算子且不下发任何工作，期间设备空闲。后两者前后均有矩阵计算，连同设备的等待合计超过 20 µs。",
    ),
    source: Text::new("20 µs: limit of the Ascend advisor.", "20 µs：昇腾 advisor 的限值。"),
    guards: Text::new(
        "Collectives that the AI CPU expands are not fallbacks. The readback of the token is not in the middle of the forward pass. Of the host's operators only matrix products, attention, norms, rotary embeddings, activations and routing count: small work on elements and indices is the host's own.",
        "由 AI CPU 展开的集合通信不算回退。token 读回不在前向中途。主机算子只计矩阵乘、注意力、归一化、旋转位置编码、激活与路由：零碎的逐元素与索引操作本属主机。",
    ),
    verify: Text::new(
        "Change the dtype or the API so that the operator has a device kernel: no such operator or round trip is left in the step.",
        "更换数据类型或接口使算子有设备内核：步内不再有此类算子或往返。",
    ),
};

impl Rule for CpuFallback {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let mut found = Vec::new();
        for (rank, class) in cx.main_classes() {
            let fallbacks = Fallbacks::of(cx, rank, class);
            let time = |s: &Step| fallbacks.of_step(s).iter().map(|(_, ns)| ns).sum();
            let Some(cost) = recurring(rank, class, LEAST_GAIN, time) else { continue };
            let all: Vec<_> = rank.steady_steps(class).flat_map(|s| fallbacks.of_step(s)).collect();
            let longest = all.iter().map(|(_, ns)| *ns).max().unwrap_or(0);
            let trigger = Trigger {
                formula: Text::new(
                    "longest AI CPU operator, round trip through the host or wait for an operator of the host, ns",
                    "最长的 AI CPU 算子、经主机往返或对主机算子的等待，ns",
                ),
                value: longest as f64,
                threshold: SHORTEST as f64,
            };
            let claim = Message::new(
                Text::new(
                    "Work that falls back to a CPU inside the forward pass takes {time} of {step} in {class} ({share}), the longest {longest}.",
                    "{class} 前向中回退到 CPU 的工作耗时 {time}，步时 {step}（{share}），最长 {longest}。",
                ),
                [
                    ("class", Value::Raw(class.key.clone())),
                    ("time", Value::Ns(cost.per_step)),
                    ("step", Value::Ns(class.mean())),
                    ("share", Value::Share(cost.share)),
                    ("longest", Value::Ns(longest)),
                ],
            );
            let change =
                Intervention { removes: cost.per_step, layer: Layer::Operator, edits: fallbacks.on_device(class) };
            let finding = cx
                .finding(&DOC, rank, class, claim, trigger, change)
                .with(Evidence::new(
                    Text::new("fallbacks in the steps that count", "计入统计的步中的回退次数"),
                    Value::Count(all.len() as u64),
                    reading::sample(all.iter().map(|(row, _)| *row)),
                ))
                .against(Competing::open(
                    Text::new("the host needs the value to decide what to run next", "主机需要该值来决定后续执行"),
                    Text::new("the code between the two copies decides", "两次拷贝之间的代码可以判定"),
                ));
            found.extend(finding.gated(cost.most));
        }
        found.into_iter().collect()
    }
}
