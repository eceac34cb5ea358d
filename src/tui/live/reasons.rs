//! Why a value is absent, in Chinese. What looks at a machine says it in English, which is what captures keep; here each of its
//! sentences stands beside the Chinese one. A sentence that is not here is shown as it was said.

use std::borrow::Cow;

use diagnosis::i18n::Lang;

/// Longest reason that is put into Chinese, bytes; a longer one holds what some server sent.
const LONGEST: usize = 1000;

/// Sentences with `{}` for what differs, the more telling before the less.
const SENTENCES: &[(&str, &str)] = &[
    ("needs two looks", "需要两次采样"),
    ("needs two pages", "需要两次读取页面"),
    ("no look", "未采样"),
    ("the value is no number", "该值不是数"),
    ("the device is not watched: --observer {}", "未观测设备：--observer {}"),
    ("CUPTI records the device: its times are in the capture", "由 CUPTI 记录设备：其时间见采集"),
    ("the device tells nothing of the parts of a replay", "设备不提供图重放内部各部分的时间"),
    ("the record is full: {} operators of the step are missing", "记录已满：该步缺少 {} 个算子"),
    ("no request since the page before", "自上次读取页面以来没有请求"),
    ("the counter began anew", "计数器已重新开始"),
    ("{} has no metric for it", "{} 没有对应的指标"),
    ("the page was cut before {}", "页面在 {} 之前被截断"),
    ("the page holds no {}", "页面中没有 {}"),
    ("the page gives {} for {}", "页面对 {1} 给出 {0}"),
    ("{} holds no metric of a known engine ({})", "{} 中没有已知引擎（{}）的指标"),
    ("{} holds no metric", "{} 中没有指标"),
    ("{}; is the engine running, and does it serve metrics there?", "{}；引擎是否在运行，并在该地址提供指标？"),
    (
        "{}: no whole answer within {} s; the engine may be busy or the address wrong",
        "{}：{} 秒内没有完整回答；引擎可能繁忙，或地址有误",
    ),
    ("{}: it answered {}; metrics may be switched off or lie elsewhere", "{}：回答 {}；指标可能未开启，或在别处"),
    ("{}: it answered {}; it wants a key", "{}：回答 {}；需要密钥"),
    ("{}: it answered {}; name the address that it redirects to", "{}：回答 {}；请填写其重定向的地址"),
    ("{}: it answered {}", "{}：回答 {}"),
    ("{}: it closed the connection without an answer", "{}：未回答即关闭了连接"),
    ("{}: the answer is no HTTP", "{}：回答不是 HTTP"),
    ("{}: the answer ended within a chunk", "{}：回答在分块中途结束"),
    ("{}: the answer ended after {} of {} bytes", "{}：回答在第 {} 字节处结束，应有 {} 字节"),
    ("{}: a head of more than 64 KiB; this is no metrics page", "{}：响应头超过 64 KiB；这不是指标页面"),
    ("{}: the host has no address", "{}：主机没有地址"),
    ("{}; the kernel has no frequency driver for it", "{}；内核没有相应的频率驱动"),
    ("scaling_cur_freq holds no number", "scaling_cur_freq 中没有数"),
    ("{} of package {} is no number", "封装 {1} 的 {0} 不是数"),
    ("{} does not say it", "{} 中没有该项"),
    ("{} does not begin with a number", "{} 不以数开头"),
    ("the sampler had no time to run", "采样线程没有得到运行时间"),
    ("{} is not in PATH", "PATH 中没有 {}"),
    ("{} gave no answer within {} s", "{} 在 {} 秒内没有回答"),
    ("{} ended with exit status: {}: {}", "{} 以退出码 {} 结束：{}"),
    ("{} ended with exit status: {}", "{} 以退出码 {} 结束"),
    ("{} ended with signal: {}: {}", "{} 被信号 {} 结束：{}"),
    ("{} ended with signal: {}", "{} 被信号 {} 结束"),
    ("{} shows {} devices, none of them the run's", "{} 显示 {} 个设备，其中没有本次运行所用的"),
    ("the run ended before {} answered", "运行在 {} 回答之前已结束"),
    ("{} names devices by {}, which the tool does not show", "{} 以 {} 指定设备，而工具不显示该标识"),
    ("{} printed no device that is understood", "{} 的输出中没有可识别的设备"),
    ("{} could not be started: {}", "{} 无法启动：{}"),
    ("the tool shows {}", "工具显示 {}"),
    ("{} does not show it any more", "{} 不再显示该项"),
    ("the device does not support it", "设备不支持"),
    ("the driver denies it to this user", "驱动不允许当前用户读取"),
    ("the device is lost: it fell off the bus, or its driver failed", "设备丢失：已从总线脱落，或驱动故障"),
    ("the driver is too old for it", "驱动版本过旧，不支持"),
    (
        "{} devices are named {}, and the run does not say which is its own",
        "有 {} 个名为 {} 的设备，无法确定本次运行使用哪一个",
    ),
    ("device {}: {}", "设备 {}：{}"),
    ("no NVML: {}", "没有 NVML：{}"),
    (
        "no DCMI: '{}' stands for CANN, and STRATO_DCMI names no library of it",
        "没有 DCMI：'{}' 代替了 CANN，而 STRATO_DCMI 没有给出与之配套的库",
    ),
    ("no DCMI: {}", "没有 DCMI：{}"),
    ("DCMI knows no device {}", "DCMI 没有设备 {}"),
    (
        "DCMI does not begin (status {}); 'npu-smi info' says whether the driver runs",
        "DCMI 无法初始化（状态 {}）；用 'npu-smi info' 查看驱动是否运行",
    ),
    ("DCMI: status {}", "DCMI：状态 {}"),
    (
        "'{}' has no dcmi_init and is no DCMI; name another with STRATO_DCMI",
        "'{}' 没有 dcmi_init，不是 DCMI；请用 STRATO_DCMI 指定另一个",
    ),
    ("ASCEND_RT_VISIBLE_DEVICES does not say which device it is", "ASCEND_RT_VISIBLE_DEVICES 没有说明是哪个设备"),
    ("the cell is empty", "单元格为空"),
    ("0 of 0: no such memory", "0 / 0：没有这种显存"),
    ("{}: No such file or directory (os error 2)", "{}：没有该文件或目录"),
    ("{}: no such file", "{}：没有该文件"),
    ("{}: Permission denied (os error 13)", "{}：没有权限"),
    ("{}: Connection refused (os error 111)", "{}：连接被拒绝"),
    ("{}: Connection reset by peer (os error 104)", "{}：连接被对方重置"),
    ("{} or {}", "{} 或 {}"),
];

/// A reason in a language.
pub fn said(reason: &str, lang: Lang) -> Cow<'_, str> {
    if lang == Lang::En || reason.len() > LONGEST {
        return Cow::Borrowed(reason);
    }
    let found = SENTENCES.iter().find_map(|(en, zh)| Some((parts(reason, en)?, *zh)));
    found.map_or(Cow::Borrowed(reason), |(parts, zh)| Cow::Owned(filled(zh, &parts, lang)))
}

/// What stands in `reason` where a sentence has `{}`.
fn parts<'r>(reason: &'r str, sentence: &str) -> Option<Vec<&'r str>> {
    let mut pieces = sentence.split("{}");
    let mut rest = reason.strip_prefix(pieces.next()?)?;
    let mut found = Vec::new();
    let mut pieces = pieces.peekable();
    while let Some(piece) = pieces.next() {
        let (part, after) = match (pieces.peek(), piece) {
            (None, "") => (rest, ""),
            (None, last) => (rest.strip_suffix(last)?, ""),
            (Some(_), piece) => rest.split_once(piece)?,
        };
        if part.is_empty() {
            return None;
        }
        found.push(part);
        rest = after;
    }
    rest.is_empty().then_some(found)
}

/// A sentence with its parts, which may be reasons themselves: in their order, or where their numbers stand.
fn filled(sentence: &str, parts: &[&str], lang: Lang) -> String {
    let mut out = String::new();
    let mut next = parts.iter();
    let mut rest = sentence;
    while let Some((before, after)) = rest.split_once('{') {
        let (number, after) = after.split_once('}').unwrap_or((after, ""));
        out.push_str(before);
        let part = number.parse().map_or_else(|_| next.next(), |at: usize| parts.get(at));
        out.push_str(&said(part.copied().unwrap_or(""), lang));
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_said_in_both_languages() {
        for (en, zh) in [
            ("needs two looks", "需要两次采样"),
            ("the page holds no a:b or a:c", "页面中没有 a:b 或 a:c"),
            ("the page gives NaN for vllm:x", "页面对 vllm:x 给出 NaN"),
            ("/sys/x: No such file or directory (os error 2)", "/sys/x：没有该文件或目录"),
            (
                "/sys/x: No such file or directory (os error 2); the kernel has no frequency driver for it",
                "/sys/x：没有该文件或目录；内核没有相应的频率驱动",
            ),
            (
                "http://h:1/m: Connection refused (os error 111); is the engine running, and does it serve metrics there?",
                "http://h:1/m：连接被拒绝；引擎是否在运行，并在该地址提供指标？",
            ),
            ("energy_uj of package 3 is no number", "封装 3 的 energy_uj 不是数"),
            ("the answer of the stars", "the answer of the stars"),
        ] {
            assert_eq!(said(en, Lang::Zh), zh);
            assert_eq!(said(en, Lang::En), en);
        }
    }

    #[test]
    fn every_sentence_keeps_what_differs() {
        for (en, zh) in SENTENCES {
            let count = en.matches("{}").count();
            let own: Vec<String> = (0..count).map(|i| format!("<{i}>")).collect();
            let reason = own.iter().fold((*en).to_owned(), |text, part| text.replacen("{}", part, 1));
            let shown = said(&reason, Lang::Zh);
            assert_ne!(shown, reason, "{en}");
            assert!(own.iter().all(|part| shown.contains(part.as_str())), "{zh}: {shown}");
        }
    }

    #[test]
    fn braces_of_a_name_are_no_sentence() {
        assert_eq!(said("{0}{} has no metric for it", Lang::Zh), "{0}{} 没有对应的指标");
        let long = "x: ".repeat(1 << 18) + "no such file";
        assert_eq!(said(&long, Lang::Zh), long);
    }
}
