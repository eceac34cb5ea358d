//! What counters are called, and how their values are written. A counter without a word of its own keeps its name.

use diagnosis::i18n::Text;
use report::units;

const WORDS: &[(&str, Text)] = &[
    ("cpu_busy", Text::new("cores busy", "核心占用")),
    ("cpu_own", Text::new("by this process", "本进程占用")),
    ("cpu_steal", Text::new("taken by the host", "被宿主占用")),
    ("cpu_frequency", Text::new("core clock", "核心频率")),
    ("cpu_power", Text::new("package power", "封装功耗")),
    ("cpu_temperature", Text::new("temperature", "温度")),
    ("cpu_throttled", Text::new("thermal throttles", "过热降频")),
    ("memory_resident", Text::new("resident memory", "常驻内存")),
    ("memory_used", Text::new("memory in use", "内存占用")),
    ("memory_total", Text::new("memory", "内存总量")),
    ("page_faults_minor", Text::new("minor page faults", "次要缺页")),
    ("page_faults_major", Text::new("major page faults", "主要缺页")),
    ("host_switches_voluntary", Text::new("waits of launcher", "下发线程等待")),
    ("host_switches_involuntary", Text::new("preempted launcher", "下发线程被抢占")),
    ("requests_running", Text::new("running", "运行中请求")),
    ("requests_waiting", Text::new("waiting", "等待中请求")),
    ("kv_cache_use", Text::new("KV cache in use", "KV 缓存占用")),
    ("preemptions", Text::new("preemptions", "抢占")),
    ("prompt_tokens", Text::new("prompt tokens", "提示词 token")),
    ("generated_tokens", Text::new("generated tokens", "生成 token")),
    ("ttft_p50", Text::new("first token p50", "首 token p50")),
    ("ttft_p99", Text::new("first token p99", "首 token p99")),
    ("tpot_p50", Text::new("per token p50", "每 token p50")),
    ("tpot_p99", Text::new("per token p99", "每 token p99")),
    ("scrape_time", Text::new("page read in", "页面读取用时")),
    ("scrape_bad_lines", Text::new("bad lines of page", "页面坏行")),
    ("utilisation", Text::new("utilisation", "利用率")),
    ("memory_utilisation", Text::new("memory in use", "显存占用率")),
    ("memory_bandwidth", Text::new("memory bandwidth", "显存带宽")),
    ("power", Text::new("power", "功耗")),
    ("power_cap", Text::new("power allowed", "功耗上限")),
    ("temperature", Text::new("temperature", "温度")),
    ("clock", Text::new("clock", "频率")),
    ("memory_clock", Text::new("memory clock", "显存频率")),
    ("memory_busy", Text::new("memory busy", "显存忙")),
    ("memory_own", Text::new("memory of this run", "本进程显存")),
    ("power_mean", Text::new("mean power", "平均功耗")),
    ("energy", Text::new("energy", "能耗")),
    ("clock_most", Text::new("greatest clock", "最高频率")),
    ("throttle_power", Text::new("throttled: power", "降频：功耗")),
    ("throttle_thermal", Text::new("throttled: heat", "降频：过热")),
    ("throttle_hardware", Text::new("throttled: hardware", "降频：硬件")),
    ("throttle_settings", Text::new("throttled: settings", "降频：设置")),
    ("pcie_sent", Text::new("PCIe sent", "PCIe 发送")),
    ("pcie_received", Text::new("PCIe received", "PCIe 接收")),
    ("pcie_unit_sent", Text::new("PCIe sent, mean", "PCIe 平均发送")),
    ("pcie_unit_received", Text::new("PCIe received, mean", "PCIe 平均接收")),
    ("pcie_generation", Text::new("PCIe generation", "PCIe 代")),
    ("pcie_width", Text::new("PCIe lanes", "PCIe 通道数")),
    ("pcie_replays", Text::new("PCIe replays", "PCIe 重传")),
    ("nvlinks", Text::new("NVLinks up", "可用 NVLink")),
    ("nvlink_sent", Text::new("NVLink sent", "NVLink 发送")),
    ("nvlink_received", Text::new("NVLink received", "NVLink 接收")),
    ("processes", Text::new("processes", "进程数")),
    ("sm_active", Text::new("SMs active", "SM 活跃")),
    ("sm_occupancy", Text::new("SM occupancy", "SM 占用率")),
    ("tensor_active", Text::new("tensor cores active", "张量核心活跃")),
    ("fp32_active", Text::new("FP32 units active", "FP32 单元活跃")),
    ("tool_answer", Text::new("tool answered in", "工具回答用时")),
    ("throttle", Text::new("throttled by", "降频原因")),
    ("dashboard", Text::new("this dashboard", "本仪表盘")),
    ("sampler", Text::new("sampling", "采样")),
];

/// What a counter is called, where it has a word.
pub fn label(name: &str) -> Option<Text> {
    WORDS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// A value in its unit: shares in percent, bytes in powers of 1024, times as times.
pub fn value(value: f64, name: &str, unit: &str) -> String {
    match unit {
        "share" => units::share(value),
        // Telemetry writes shares of one without a unit.
        "" if name.starts_with("cpu_") && name != "cpu_throttled" => units::share(value),
        "B" => units::bytes(value as i64),
        "B/s" => format!("{}/s", units::bytes(value as i64)),
        "ns" => units::time(value as i64),
        "" => units::number(value),
        "1/s" => format!("{}/s", units::tenths((value * 10.0).round() as i64)),
        unit => format!("{} {unit}", units::tenths((value * 10.0).round() as i64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_carry_their_unit() {
        assert_eq!(value(0.5, "cpu_busy", ""), "50.0 %");
        assert_eq!(value(0.25, "kv_cache_use", "share"), "25.0 %");
        assert_eq!(value(3.0, "requests_running", ""), "3");
        assert_eq!(value(2048.0, "memory_resident", "B"), "2.0 KiB");
        assert_eq!(value(3e6, "pcie_received", "B/s"), "2.9 MiB/s");
        assert_eq!(value(1.5e6, "ttft_p50", "ns"), "1\u{202f}500.0 µs");
        assert_eq!((value(12.34, "x", "1/s"), value(70.0, "power", "W")), ("12.3/s".into(), "70.0 W".into()));
        assert!(label("ttft_p50").is_some() && label("x").is_none());
    }
}
