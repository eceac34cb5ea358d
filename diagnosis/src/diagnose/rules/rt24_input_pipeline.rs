//! RT-24: the device waits for the input pipeline.

use model::EvidenceClass::{Correlation, Device, HostApi};

use super::{
    exposed::{Exposed, Saying},
    gate::Cost,
    owned::{self, Owned},
    reading,
};
use crate::{
    analysis::{Class, Confidence, Layer, Rank},
    diagnose::{
        Competing, Evidence, Finding, Intervention,
        relations::{Advice, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Text, Value},
};

/// Share of the step; own value.
const SHARE: f64 = 0.03;

/// The rule.
pub struct InputPipeline;

static DOC: Doc = Doc {
    id: "RT-24",
    title: Text::new("Input pipeline exposed", "输入流水线暴露"),
    layer: Layer::Runtime,
    needs: &[Device, HostApi, Correlation],
    advice: Advice::Host,
    relations: Relations { precedes: &["RT-12", "RT-16"], ..Relations::NONE },
    sees: Text::new(
        "The device is idle while the host loads data, tokenizes text, or decodes and scales images and sound for the model.",
        "主机在加载数据、对文本分词，或为模型解码、缩放图像与声音，期间设备空闲。",
    ),
    matters: Text::new(
        "The next input can be made ready while the device still works on the one before. Made on the thread that launches, its whole time is lost.",
        "设备还在处理上一批输入时，就可以准备下一批。若在下发线程上准备，其全部时间都会损失。",
    ),
    trigger: Text::new(
        "Idle time whose label or owner is data loading, tokenizing or preprocessing, at least 3 % of the mean step.",
        "标签或归属者为数据加载、分词或预处理的空闲至少占平均步时的 3%。",
    ),
    source: Text::new(
        "3 %: own value. What counts as input pipeline: names of DataLoader, tokenizers and image processors in the packs.",
        "3%：自定值。何为输入流水线：知识包中 DataLoader、分词器与图像处理器的名称。",
    ),
    guards: Text::new(
        "Preparation that runs while the device works costs nothing. The building of a step's tensors by a serving engine is RT-08. Nothing need mark the steps: the whole capture is judged then.",
        "与设备工作重叠的准备没有代价。推理引擎构建每步张量归 RT-08。无需步标记：此时判断整个采集。",
    ),
    verify: Text::new(
        "Prepare inputs in worker processes or one batch ahead: the idle time before the first copy to the device shrinks.",
        "在工作进程中或提前一批准备输入：首次拷贝到设备之前的空闲缩短。",
    ),
};

impl Rule for InputPipeline {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        cx.main_classes().filter_map(|(rank, class)| fed_late(cx, rank, class)).collect()
    }
}

fn fed_late(cx: &Context<'_>, rank: &Rank, class: &Class) -> Option<Finding> {
    let input = Owned::of(rank, rank.steady_steps(class), |_, owner, bucket, part| {
        owned::is_input(cx, owner, bucket).then_some(part)
    });
    let per_step = input.per_step(class);
    let share = input.total as f64 / class.total.max(1) as f64;
    if share < SHARE {
        return None;
    }
    let most = if input.pauses.len() < reading::LEAST_STEPS { Confidence::Medium } else { Confidence::High };
    let cost = Cost { per_step, share, most };
    let spoken = input.spoken(cx, rank);
    let place = spoken.as_ref().map_or_else(String::new, |spoken| spoken.place.clone());
    let claim = if place.is_empty() {
        Text::new(
            "In {class} the device waits {idle} of {mean} ({share}) for the input pipeline.",
            "{class} 中设备等待输入流水线 {idle}，平均步时 {mean}（{share}）。",
        )
    } else {
        Text::new(
            "In {class} the device waits {idle} of {mean} ({share}) for the input pipeline: {owner}.",
            "{class} 中设备等待输入流水线 {idle}，平均步时 {mean}（{share}）：{owner}。",
        )
    };
    let saying = Saying {
        formula: Text::new("idle time of the input pipeline / mean step", "输入流水线造成的空闲 / 平均步时"),
        claim,
        more: vec![("owner", Value::Raw(place)), ("mean", Value::Ns(class.total / class.steady.max(1) as i64))],
        change: Intervention { removes: per_step, layer: Layer::Runtime, edits: input.gone() },
    };
    Exposed { cx, doc: &DOC, rank, class }
        .finding(SHARE, &cost, saying)
        .with(Evidence::new(
            Text::new("idle per step for the input pipeline", "每步为输入流水线空闲"),
            Value::Ns(per_step),
            reading::sample(input.rows.iter().copied()),
        ))
        .with(Evidence::new(
            Text::new("such pauses in the steps that count", "计入统计的步中的此类停顿数"),
            Value::Count(input.pauses.len() as u64),
            Vec::new(),
        ))
        .with(Evidence::new(Text::new("the longest of them", "其中最长者"), Value::Ns(input.longest()), Vec::new()))
        .against(Competing::open(
            Text::new("the storage or the network is slow, not the processor", "慢的是存储或网络，而非处理器"),
            Text::new(
                "the loader's own profile, or a run on data in memory, decides",
                "加载器自身的剖析，或用内存中的数据再跑一次，可以判定",
            ),
        ))
        .gated(cost.most)
}
