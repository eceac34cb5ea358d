//! NM-01: logits that are NaN or infinite.

use model::{
    Area,
    manifest::{FINITE, NOT_FINITE},
};

use super::measurement::about;
use crate::{
    analysis::{Confidence, Layer},
    diagnose::{
        Competing, Evidence, Finding, Severity, Trigger,
        relations::{Advice, Feeds, Relations, Role},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
};

/// The rule.
pub struct NotFinite;

static DOC: Doc = Doc {
    id: "NM-01",
    title: Text::new("Numbers that are not finite", "数值出现 NaN 或无穷"),
    layer: Layer::Operator,
    needs: &[],
    advice: Advice::Host,
    relations: Relations { board: &[Feeds::Area(Area::Run)], role: Some(Role::Numbers), ..Relations::NONE },
    sees: Text::new(
        "Logits of the run are NaN or infinite; where the run was repeated operator by operator, the first operator that gives such a value.",
        "运行的 logits 为 NaN 或无穷；若已逐算子重放，还给出最先产生此类值的算子。",
    ),
    matters: Text::new(
        "A NaN spreads through everything after it and through the cache to every later step: the tokens mean nothing, however fast they come. What the step costs is no measure of a run that is right.",
        "NaN 会扩散到其后的一切计算，并经由缓存进入之后每一步：无论多快，生成的 token 都没有意义，其步时也不代表正确的运行。",
    ),
    trigger: Text::new(
        "The capture says that logits of at least one step are not finite (precision.finite, precision.deviation).",
        "采集声明至少一步的 logits 非有限（precision.finite、precision.deviation）。",
    ),
    source: Text::new(
        "IEEE 754: no operation on a NaN gives a number again. One is enough.",
        "IEEE 754：对 NaN 的任何运算都不会再得到数值。出现一个即成立。",
    ),
    guards: Text::new(
        "Quiet where the capture does not say whether its numbers are finite, as captures of profilers do not. The first operator is that of a repetition on the CPU: where only another device gives such values, that one is at fault and the operator stays unnamed.",
        "采集未说明数值是否有限时（分析器的采集均如此）不作判断。最先出错的算子来自 CPU 上的重放；若仅其他设备产生此类值，则问题在该设备，算子不予指明。",
    ),
    verify: Text::new(
        "Repeat the run: its capture says that all logits are finite. 'strato numdiff' names the operator on two sides.",
        "重新运行：采集应说明全部 logits 有限。可用 'strato numdiff' 在两侧分别定位算子。",
    ),
};

impl Rule for NotFinite {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let says = |key: &str| cx.trace.manifest.value(key);
        let deviation = says("precision.deviation").filter(|said| said.starts_with(NOT_FINITE));
        let finite = says(FINITE).filter(|said| said.starts_with("no"));
        let Some(said) = deviation.or(finite) else { return Outcome::Quiet };
        // It holds for the run: one finding, with the first rank.
        let found = cx.main_classes().take(1).map(|(rank, class)| {
            let claim = Message::new(
                Text::new("The numbers of this run are {what}", "本次运行的数值不可用：{what}"),
                [("what", Value::Phrase(said.to_owned()))],
            );
            let formula = Text::new("1 where logits are not finite", "logits 非有限时为 1");
            let mut finding = about(cx, &DOC, rank, class, claim, Trigger { formula, value: 1.0, threshold: 1.0 });
            finding.severity = Severity::Critical;
            finding.confidence = Confidence::High;
            let shown = finite.map(|said| {
                let what = Text::new("whether the logits are finite", "logits 是否有限");
                Evidence::new(what, Value::Phrase(said.to_owned()), Vec::new())
            });
            let finding = shown.into_iter().fold(finding, Finding::with);
            finding.against(Competing::open(
                Text::new("the weights themselves hold such a value", "权重本身含有此类值"),
                Text::new(
                    "'strato numdiff f32 f32' with the same checkpoint gives it as well if so",
                    "若如此，对同一检查点运行 'strato numdiff f32 f32' 也会出现",
                ),
            ))
        });
        found.collect()
    }
}
