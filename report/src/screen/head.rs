//! The head: what ran, on what, which rank and which steps, and the file. Its second line says what the file lacks.

use super::{
    Screen,
    canvas::{Line, Style, fit, wrap_at_most},
    say,
};
use crate::{phrase, text, units};
use diagnosis::{
    analysis::AnchorKind,
    diagnose,
    i18n::{Message, Text, Value},
    largest::Over,
    platform::Stage,
};
use model::{ImportStat, Severity};

/// Names of serving engines as their makers write them, by the name of their mark.
const ENGINES: [(&str, &str); 8] = [
    ("vllm", "vLLM"),
    ("sglang", "SGLang"),
    ("tensorrt-llm", "TensorRT-LLM"),
    ("trtllm", "TensorRT-LLM"),
    ("mindie", "MindIE"),
    ("lmdeploy", "LMDeploy"),
    ("pytorch", "PyTorch"),
    ("llama.cpp", "llama.cpp"),
];

/// The first lines of the screen.
pub(super) fn lines(screen: &Screen<'_>) -> Vec<Line> {
    let width = screen.width();
    let capture = screen.capture;
    let mark = if capture.simulated { screen.get(Text::new(" (simulated)", "（模拟数据）")) } else { "" };
    let file = format!("{}{mark}", text::visible(&capture.source));
    let line = Line::of(Style::Title, fit(&said(screen), width));
    let beside = line.clone().right(width, Style::Dim, &file);
    let mut out = match beside == line {
        false => vec![beside],
        true => vec![line, Line::of(Style::Dim, super::canvas::middle(&file, width))],
    };
    let others = screen.all.len().saturating_sub(1);
    if others > 0 {
        let grave = capture.findings.iter().any(|finding| finding.severity > diagnose::Severity::Info);
        let text = match grave {
            false => Text::new(
                "This is capture {id} of {all}, the one that tells the most; --full shows all.",
                "这是 {all} 个采集中的第 {id} 个，其内容最多；--full 显示全部。",
            ),
            true => Text::new(
                "This is capture {id} of {all}, the one with the gravest finding; --full shows all.",
                "这是 {all} 个采集中的第 {id} 个，其发现最严重；--full 显示全部。",
            ),
        };
        let args = [("id", Value::Count(capture.id as u64)), ("all", Value::Count(others as u64 + 1))];
        let said = say::message(&Message::new(text, args), "", screen.lang);
        out.extend(wrap_at_most(&said, width, 2).into_iter().map(|line| Line::of(Style::Plain, line)));
    }
    out.extend(losses(screen).into_iter().map(|line| Line::of(Style::Strong, line)));
    out
}

/// What ran, on what, and which steps.
pub(super) fn said(screen: &Screen<'_>) -> String {
    let said: Vec<String> = [engine(screen), device(screen), steps(screen)].into_iter().flatten().collect();
    if said.is_empty() { text::visible(&screen.capture.format) } else { said.join(" · ") }
}

/// What was lost or contradicts itself, before anything is said of the rest.
fn losses(screen: &Screen<'_>) -> Vec<String> {
    let capture = screen.capture;
    // Where the file holds no run at all, the sentence itself says so.
    let grave = |stat: &&ImportStat| stat.severity >= Severity::Error && stat.name != ImportStat::NOTHING_KEPT;
    let grave = capture.stats.iter().filter(grave);
    let mut lost: Vec<String> = grave
        .map(|stat| {
            let name = text::plain(&stat.name, text::NAME);
            match &stat.example {
                Some(example) => {
                    format!("{name} ({}×): {}", units::count(stat.count), text::plain(example, text::PHRASE))
                }
                None => format!("{name} ({}×)", units::count(stat.count)),
            }
        })
        .collect();
    if capture.contradicted {
        lost.push(
            screen
                .get(Text::new("the profiler's own totals contradict the rows", "profiler 的合计与记录不符"))
                .to_owned(),
        );
    }
    if lost.is_empty() {
        return Vec::new();
    }
    let begin = screen.get(Text::new("The file is damaged or incomplete: ", "文件损坏或不完整："));
    wrap_at_most(&format!("{begin}{}.", lost.join("; ")), screen.width(), 2)
}

fn engine(screen: &Screen<'_>) -> Option<String> {
    let capture = screen.capture;
    let fact = |key: &str| capture.facts.iter().find(|(known, ..)| known == key).map(|(_, value, _)| value.clone());
    let anchor = capture.leading_rank().map(|rank| &rank.anchor);
    let mark = anchor.filter(|anchor| anchor.kind == AnchorKind::UserRange).map(|anchor| anchor.name.clone());
    let known = |name: &str| {
        let lower = name.to_lowercase();
        ENGINES.iter().find(|(key, _)| lower.starts_with(key)).map(|(_, said)| (*said).to_owned())
    };
    let engine = fact("software.engine").map(|name| text::plain(&name, 30));
    let framework = || fact("software.framework").map(|name| text::plain(&name, 30));
    engine.or_else(|| mark.as_deref().and_then(known)).or_else(framework)
}

fn device(screen: &Screen<'_>) -> Option<String> {
    let capture = screen.capture;
    let group = capture.devices.iter().max_by_key(|group| group.count)?;
    let name = group.chip.as_ref().map(|chip| &chip.name).or(group.name.as_ref()).or(group.vendor.as_ref())?;
    let mut said = text::plain(name, 40);
    if let Some(rank) = capture.verdict.place.as_ref().map(|place| place.rank) {
        said += &match capture.world_size.filter(|size| *size > 1).map(u64::from) {
            Some(size) => format!(", rank {rank} / {size}"),
            None if capture.ranks.len() > 1 => format!(", rank {rank} / {}", capture.ranks.len()),
            None => String::new(),
        };
    }
    Some(said)
}

/// Which steps everything is about.
fn steps(screen: &Screen<'_>) -> Option<String> {
    let capture = screen.capture;
    let lang = screen.lang;
    let Some(place) = &capture.verdict.place else {
        let over = capture.tables().next()?;
        let text = match over.over {
            Over::Steps | Over::Window => return None,
            Over::Host => Text::new("host only", "仅主机侧"),
            Over::Sums => Text::new("totals, no timeline", "合计，无时间线"),
            Over::Alone => Text::new("kernels run one by one", "逐个单独执行的 kernel"),
        };
        return Some(screen.get(text).to_owned());
    };
    let rank = capture.leading_rank()?;
    if screen.is_window() {
        return Some(format!("{} {}", screen.get(Text::new("one window,", "单个窗口，")), units::brief(place.mean)));
    }
    let class = rank.main_class()?;
    let stage = super::stage(class.stage).get(lang);
    let count = units::count(place.steps as u64);
    let mut said = match lang {
        diagnosis::i18n::Lang::En => format!("{count} {stage}step{}", if place.steps == 1 { "" } else { "s" }),
        diagnosis::i18n::Lang::Zh => format!("{count} 个{stage}步"),
    };
    if let Some((least, most)) =
        rank.workload.as_ref().and_then(|workload| workload.sequences).filter(|(_, most)| *most > 1)
    {
        let batch = if least == most { least.to_string() } else { format!("{least}–{most}") };
        said += &format!(", {} {batch}", screen.get(Text::new("batch", "批大小")));
    }
    let graph = class.key.split_whitespace().find_map(|word| word.strip_prefix("graph="));
    let graph = graph.and_then(|graph| match graph {
        "full" => Some(Text::new("full graph", "整图")),
        "piecewise" => Some(Text::new("piecewise graphs", "分段图")),
        "eager" => Some(Text::new("no graphs", "无图")),
        _ => None,
    });
    if let Some(graph) = graph.filter(|_| class.stage != Stage::Train) {
        said += &format!(", {}", phrase::text(graph, lang).words());
    }
    Some(said)
}
