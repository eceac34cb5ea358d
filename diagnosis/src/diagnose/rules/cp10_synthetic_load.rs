//! CP-10: prompts that repeat, or experts that are chosen by force.

use super::measurement::about;
use crate::{
    analysis::Layer,
    diagnose::{
        Evidence, Finding, Trigger,
        relations::{Advice, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
};

/// Prefix-cache hit rate from which the prompts repeat; own value.
const HITS: f64 = 0.5;
/// Fact of the manifest that says how tokens choose experts.
const ROUTING: &str = "workload.routing";
/// Spellings of a routing that does not come from the model.
const FORCED: &[&str] = &["forced", "balanced", "uniform", "random", "round_robin", "simulated"];

/// The rule.
pub struct SyntheticLoad;

static DOC: Doc = Doc {
    id: "CP-10",
    title: Text::new("Repeated prompts or forced routing", "重复提示或强制路由"),
    layer: Layer::Measurement,
    needs: &[],
    advice: Advice::Host,
    relations: Relations::NONE,
    sees: Text::new(
        "The run says that its prompts mostly hit the prefix cache, or that experts were not chosen by the model's router.",
        "运行声明其提示大多命中前缀缓存，或专家并非由模型路由选择。",
    ),
    matters: Text::new(
        "Cached prompts skip the prefill, and balanced experts hide the imbalance of real text: neither speaks for the load that is served.",
        "命中缓存的提示跳过了预填充，均衡的专家掩盖了真实文本的不均衡：两者都不代表线上负载。",
    ),
    trigger: Text::new(
        "workload.prefix_cache_hit of at least 50 %, or workload.routing forced, balanced, uniform, random, round_robin or simulated.",
        "workload.prefix_cache_hit 不低于 50%，或 workload.routing 为 forced、balanced、uniform、random、round_robin 或 simulated。",
    ),
    source: Text::new(
        "50 %: own value. afd-plugin #156 reports measured against forced balance.",
        "50%：自定值。afd-plugin #156 对比了实测与强制均衡。",
    ),
    guards: Text::new(
        "Only what the run declares counts; a capture alone does not show either, and the rule abstains. A high hit rate may be what is served.",
        "只看运行的声明；仅凭采集看不出来，因此不作判断。高命中率也可能就是线上的实际情况。",
    ),
    verify: Text::new(
        "Repeat the run with prompts of the served data set, the prefix cache empty, and the model's own router.",
        "用线上数据集的提示、清空前缀缓存、使用模型自身路由重复运行。",
    ),
};

impl Rule for SyntheticLoad {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let says = |key: &str| cx.trace.manifest.value(key);
        let hits = says("workload.prefix_cache_hit").and_then(rate);
        let routing = says(ROUTING).map(|v| v.trim().to_ascii_lowercase());
        if hits.is_none() && routing.is_none() {
            return Outcome::Abstain(Message::plain(Text::new(
                "the capture does not say how its prompts and the routing of its tokens were chosen",
                "采集没有说明提示的来源与 token 的路由方式",
            )));
        }
        let forced = routing.filter(|r| FORCED.contains(&r.as_str()));
        let repeated = hits.filter(|rate| *rate >= HITS);
        if forced.is_none() && repeated.is_none() {
            return Outcome::Quiet;
        }
        // It holds for the run: one finding, with the first rank.
        cx.main_classes().take(1).map(|(rank, class)| {
            let said = [
                repeated.map(|rate| (Text::new("prefix-cache hit rate", "前缀缓存命中率"), Value::Share(rate))),
                forced.clone().map(|r| (Text::new("routing of tokens to experts", "token 到专家的路由方式"), Value::Raw(r))),
            ];
            let claim = Message::plain(Text::new(
                "The load of this run is not the one that is served: prompts that hit the cache or forced routing make its steps cheaper than real ones.",
                "本次运行的负载与线上不同：命中缓存的提示或强制路由使其步比真实的更便宜。",
            ));
            let formula = Text::new("prefix-cache hit rate, or 1 where routing is forced", "前缀缓存命中率；路由被强制时为 1");
            let trigger = Trigger { formula, value: repeated.unwrap_or(1.0), threshold: HITS };
            let finding: Finding = about(cx, &DOC, rank, class, claim, trigger);
            said.into_iter().flatten().fold(finding, |f, (what, value)| f.with(Evidence::new(what, value, Vec::new())))
        }).collect()
    }
}

/// A rate as a share of one, from a share or a percentage.
fn rate(text: &str) -> Option<f64> {
    let (number, scale) = match text.trim().strip_suffix('%') {
        Some(percent) => (percent.trim(), 100.0),
        None => (text.trim(), 1.0),
    };
    let rate = number.parse::<f64>().ok()? / scale;
    (0.0..=1.0).contains(&rate).then_some(rate)
}

#[cfg(test)]
mod tests {
    use super::rate;

    #[test]
    fn a_rate_is_a_share_or_a_percentage() {
        assert_eq!((rate("0.9"), rate("90 %"), rate("90%")), (Some(0.9), Some(0.9), Some(0.9)));
        assert_eq!((rate("90"), rate("NaN"), rate("")), (None, None, None));
    }
}
