//! OP-23: quantised weights are expanded by a kernel of their own before each product of a decode step.

use model::EvidenceClass::Device;

use super::{
    reading,
    share_of_step::{self, Kind},
};
use crate::{
    analysis::{Confidence, DeviceOp, Layer},
    diagnose::{
        relations::{Advice, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::Text,
    platform::{CanonicalOp, OpClass, Stage},
};

/// Fragments of names of kernels that expand weights, in lower case: bitsandbytes (`kDequantizeBlockwise`), AWQ
/// (`dequantize_weights`), GPTQ (`reconstruct_exllama_8bit_kernel`, `reconstruct_gptq_kernel`), llama.cpp
/// (`dequantize_block_q4_K`), CANN (`AscendAntiQuant`).
const EXPAND: &[&str] = &["dequant", "antiquant", "reconstruct_exllama", "reconstruct_gptq"];
/// Fragments of those that expand something else: the sums of a product of integers (bitsandbytes' `kdequant_mm_int32_fp16`,
/// CTranslate2's `dequantize_gemm_output_kernel`, CANN's `AscendDequant`) or a cache.
const OTHERS: &[&str] = &["dequant_mm", "gemm_output", "ascenddequant", "i32", "int32", "cache", "kv"];

/// The rule.
pub struct ExpandedWeights;

static DOC: Doc = Doc {
    id: "OP-23",
    title: Text::new("Weights expanded before their product", "权重在矩阵乘之前反量化"),
    layer: Layer::Operator,
    needs: &[Device],
    advice: Advice::Device,
    relations: Relations::NONE,
    sees: Text::new(
        "Quantised weights are written out in the type of the activations, and the product reads that copy.",
        "量化权重先被展开为激活的数据类型写回内存，矩阵乘再读取这份副本。",
    ),
    matters: Text::new(
        "A decode step is paced by the bytes of its weights. Expanding them first reads the narrow weights, writes the wide ones and reads these again: more bytes than without any quantisation.",
        "解码步的快慢取决于权重字节数。先展开意味着读窄权重、写宽权重、再读宽权重：比完全不量化搬运的字节还多。",
    ),
    trigger: Text::new(
        "Exclusive time of kernels that expand weights directly before a matrix product of their queue, at least 2 % of the mean step.",
        "同一队列上紧接矩阵乘之前的权重展开内核，其独占时间至少占平均步时的 2%。",
    ),
    source: Text::new(
        "2 %: own value, above run-to-run noise. Names: sources of bitsandbytes, AutoAWQ, vLLM, llama.cpp and CANN.",
        "2%：自定值，高于重复运行噪声。名称来自 bitsandbytes、AutoAWQ、vLLM、llama.cpp 与 CANN 的源码。",
    ),
    guards: Text::new(
        "Only decode steps are judged: with many rows one expansion serves much arithmetic, and libraries do so on purpose. A kernel that expands inside its product is a product and does not count. The estimate takes the expansion away and keeps the product; a kernel that reads the narrow weights may be faster still.",
        "只评判解码步：行数多时一次展开服务于大量计算，各库有意如此。在乘法内部展开的内核属于矩阵乘，不计入。估计只去掉展开、保留矩阵乘；直接读窄权重的内核还可能更快。",
    ),
    verify: Text::new(
        "Run with a kernel that reads the quantised weights: the expanding kernels are gone, and the products are no slower.",
        "换用直接读取量化权重的内核：展开内核消失，且矩阵乘没有变慢。",
    ),
};

static KIND: Kind = Kind {
    doc: &DOC,
    share: 0.02,
    per_layer: None,
    formula: Text::new("time of kernels that expand weights / mean step", "权重展开内核的时间 / 平均步时"),
    claim: Text::new(
        "Kernels that expand quantised weights before their product take {time} of {step} in {class} ({share}), {count} per step.",
        "{class} 中在矩阵乘之前展开量化权重的内核耗时 {time}，步时 {step}（{share}），每步 {count} 个。",
    ),
    what: Text::new("time of expanding kernels per step", "每步权重展开内核耗时"),
    rivals: &[(
        Text::new("what is expanded is the activation, or a cache", "被展开的是激活或缓存"),
        Text::new("the code that launches the kernel decides", "启动该内核的代码可以判定"),
    )],
    most: Confidence::High,
};

impl Rule for ExpandedWeights {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn needs_steps(&self) -> bool {
        true
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let names = reading::named(cx, |name| {
            let name = name.to_ascii_lowercase();
            let has = |of: &[&str]| of.iter().any(|fragment| name.contains(fragment));
            has(EXPAND) && !has(OTHERS)
        });
        if names.is_empty() {
            return Outcome::Quiet;
        }
        share_of_step::check(cx, &KIND, |rank, class, step| match class.stage {
            Stage::Decode => {
                let expands = |op: &DeviceOp| names.contains(&op.name) && op.op == CanonicalOp::Quant;
                share_of_step::before(rank, step, expands, |op| op.op.class() == OpClass::Matrix)
            }
            _ => Vec::new(),
        })
        .into_iter()
        .collect()
    }
}
