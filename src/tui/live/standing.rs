//! The state of the machine in one sentence: what limits it now, or that nothing does. Thresholds are heuristics.

use model::{Ns, Reading};

use super::{
    model::{Event, Group},
    moment::Moment,
    state::{PAGE, Series},
};
use report::units;

/// Over how long a trend is taken, ns.
const TREND: Ns = 30_000_000_000;
/// Share of the KV cache from which it is full.
const FULL: f64 = 0.98;
/// Requests per second from which a queue grows.
const GROWS: f64 = 0.05;
/// Utilisation in percent below which a device is idle, and from which another one is busy.
const IDLE: f64 = 5.0;
const BUSY: f64 = 50.0;
/// Temperature from which a device that is slower than the others is too hot, °C.
const HOT: f64 = 85.0;
/// Part of the median clock of all devices below which one is slow.
const SLOW: f64 = 0.85;
/// Names of devices in a sentence.
const NAMED: usize = 3;

/// A device as the sentence needs it.
struct Device<'a> {
    name: &'a str,
    busy: Option<f64>,
    heat: Option<f64>,
    clock: Option<f64>,
    /// Why it says that it is throttled.
    throttled: Option<(&'static str, &'static str)>,
}

/// What is to be said; nothing where neither a server nor a device is known.
pub fn of(moment: &Moment<'_>) -> Option<Event> {
    let devices = devices(moment);
    let said = |warns: bool| move |(en, zh): (String, String)| Event { en, zh, warns };
    gone(moment)
        .or_else(|| full(moment))
        .or_else(|| throttled(&devices))
        .or_else(|| one_idle(&devices))
        .or_else(|| queue(moment))
        .map(said(true))
        .or_else(|| calm(moment, &devices).map(said(false)))
}

/// A counter of the server.
fn server<'a>(moment: &Moment<'a>, name: &str) -> Option<&'a Series> {
    moment.gauges().find(|(group, own, _)| matches!(group, Group::Server(_)) && *own == name).map(|(.., series)| series)
}

fn now(moment: &Moment<'_>, series: &Series) -> Option<f64> {
    series.value(moment.at).value().copied()
}

/// A time in whole seconds or minutes.
fn lasting(ns: Ns) -> String {
    match ns / 1_000_000_000 {
        s if s < 120 => format!("{s} s"),
        s => format!("{} min", s / 60),
    }
}

/// The server whose page is no longer read.
fn gone(moment: &Moment<'_>) -> Option<(String, String)> {
    let page = server(moment, PAGE)?;
    let Reading::Unavailable(reason) = page.value(moment.at) else { return None };
    let (newest, _) = page.until(moment.at).next_back()?;
    let read = page.until(moment.at).rev().find(|(_, value)| value.is_some());
    let (en, zh) = match read {
        Some((at, _)) => {
            let since = lasting(newest - at);
            (format!("The server has not answered for {since}"), format!("服务已 {since} 没有响应"))
        }
        None => ("The server does not answer".to_owned(), "服务没有响应".to_owned()),
    };
    Some((format!("{en}: {reason}."), format!("{zh}：{}。", super::said(&reason, diagnosis::i18n::Lang::Zh))))
}

/// By how much a counter grows per second.
fn slope(moment: &Moment<'_>, series: &Series) -> Option<f64> {
    let known = || series.until(moment.at).rev().filter_map(|(at, value)| Some((*at, (*value)?)));
    let (last, value) = known().next()?;
    let (first, before) = known().take_while(|(at, _)| last - at <= TREND).last()?;
    (last > first).then(|| (value - before) * 1e9 / (last - first) as f64)
}

/// How the queue of the server is, and whether it grows.
fn waiting(moment: &Moment<'_>) -> Option<(f64, f64)> {
    let series = server(moment, "requests_waiting")?;
    Some((now(moment, series)?, slope(moment, series).unwrap_or(0.0)))
}

/// The cache that has no room.
fn full(moment: &Moment<'_>) -> Option<(String, String)> {
    let cache = server(moment, "kv_cache_use")?;
    now(moment, cache).filter(|share| *share >= FULL)?;
    let until = || cache.until(moment.at).rev();
    let since = until().take_while(|(_, value)| value.is_some_and(|share| share >= FULL)).last()?.0;
    let newest = until().next()?.0;
    let for_time = lasting(newest - since);
    let (mut en, mut zh) = (format!("KV cache full for {for_time}"), format!("KV 缓存已满 {for_time}"));
    let preempted = server(moment, "preemptions").map_or(0.0, |series| preempted(moment, series, since));
    if preempted >= 0.5 {
        en += &format!(", {preempted:.0} preemption{}", if preempted < 1.5 { "" } else { "s" });
        zh += &format!("，抢占 {preempted:.0} 次");
    }
    if let Some((_, by)) = waiting(moment).filter(|(_, by)| *by >= GROWS) {
        en += &format!(", the queue grows by {by:.1}/s");
        zh += &format!("，队列每秒增加 {by:.1}");
    }
    Some((en + ": limited by load.", zh + "：受负载限制。"))
}

/// Preemptions since a time, from their rate.
fn preempted(moment: &Moment<'_>, rate: &Series, since: Ns) -> f64 {
    let mut before: Option<Ns> = None;
    let mut sum = 0.0;
    for (at, value) in rate.until(moment.at).filter(|(at, _)| *at >= since) {
        let seconds = before.map_or(1.0, |before| (at - before) as f64 / 1e9);
        sum += value.unwrap_or(0.0) * seconds;
        before = Some(*at);
    }
    sum
}

/// The queue that grows.
fn queue(moment: &Moment<'_>) -> Option<(String, String)> {
    let (count, by) = waiting(moment).filter(|(count, by)| *count >= 1.0 && *by >= GROWS)?;
    let cache = server(moment, "kv_cache_use").and_then(|cache| now(moment, cache)).map(units::whole_share);
    let [en, zh] = cache.map_or_else(Default::default, |cache| {
        [format!(", with {cache} of the KV cache in use"), format!("，KV 缓存占用 {cache}")]
    });
    Some((
        format!("{count:.0} requests wait, and the queue grows by {by:.1}/s{en}: more load than is served."),
        format!("{count:.0} 个请求在等待，队列每秒增加 {by:.1}{zh}：负载超过处理能力。"),
    ))
}

fn devices<'a>(moment: &Moment<'a>) -> Vec<Device<'a>> {
    const WHY: [(&str, (&str, &str)); 4] = [
        ("throttle_thermal", ("heat", "过热")),
        ("throttle_power", ("its power limit", "功耗上限")),
        ("throttle_hardware", ("its hardware", "硬件")),
        ("throttle_settings", ("its settings", "设置")),
    ];
    let mut out: Vec<Device<'a>> = Vec::new();
    for (group, name, series) in moment.gauges() {
        let Group::Device(own) = group else { continue };
        if out.last().is_none_or(|last| last.name != own) {
            out.push(Device { name: own, busy: None, heat: None, clock: None, throttled: None });
        }
        let (Some(last), Some(value)) = (out.last_mut(), now(moment, series)) else { continue };
        match name {
            "utilisation" => last.busy = Some(value),
            "temperature" => last.heat = Some(value),
            "clock" => last.clock = Some(value),
            _ => {
                let why = WHY.iter().find(|(known, _)| *known == name && value >= 1.0);
                last.throttled = last.throttled.or(why.map(|(_, why)| *why));
            }
        }
    }
    // What only says how long its tool takes is no device.
    out.retain(|device| device.busy.is_some() || (device.heat.is_some() && device.clock.is_some()));
    out
}

/// The name as the tool numbers it, without the product's.
fn short(name: &str) -> String {
    crate::tui::text::safe(name).split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// The device that is slowed down: by its own word, or hot and slower than the others.
fn throttled(devices: &[Device<'_>]) -> Option<(String, String)> {
    let usual = median(devices.iter().filter_map(|device| device.clock).collect());
    let slow = |device: &Device<'_>| device.clock.zip(usual).is_some_and(|(own, usual)| own < SLOW * usual);
    let hot = |device: &Device<'_>| device.heat.is_some_and(|heat| heat >= HOT) && slow(device);
    let heat = ("heat", "过热");
    let slowed = |device: &Device<'_>| device.throttled.or_else(|| hot(device).then_some(heat));
    let hit: Vec<_> = devices.iter().filter_map(|device| Some((device, slowed(device)?))).collect();
    let (device, why) = hit.iter().max_by_key(|(device, _)| slow(device))?;
    let heat = device.heat.map(|heat| format!("{heat:.0} °C"));
    let clock = device.clock.map(|clock| format!("{clock:.0} MHz"));
    let facts: Vec<String> = heat.into_iter().chain(clock).collect();
    let [mut en, mut zh] = [facts.join(", "), facts.join("，")];
    if let Some(usual) = usual.filter(|_| slow(device)) {
        en += &format!(", the others {usual:.0} MHz");
        zh += &format!("，其余为 {usual:.0} MHz");
    }
    let more = hit.len() - 1;
    let [en_more, zh_more] = match more {
        0 => Default::default(),
        n => [format!(" {n} more throttled."), format!("另有 {n} 个设备降频。")],
    };
    let name = short(device.name);
    Some((
        format!("{name} is throttled by {}: {en}.{en_more}", why.0),
        format!("{name} 因{}降频：{zh}。{zh_more}", why.1),
    ))
}

/// The device that does nothing while others work.
fn one_idle(devices: &[Device<'_>]) -> Option<(String, String)> {
    let known: Vec<(&Device<'_>, f64)> = devices.iter().filter_map(|device| Some((device, device.busy?))).collect();
    let idle: Vec<String> =
        known.iter().filter(|(_, busy)| *busy < IDLE).map(|(device, _)| short(device.name)).collect();
    let busy: Vec<f64> = known.iter().map(|(_, busy)| *busy).filter(|busy| *busy >= BUSY).collect();
    if idle.is_empty() || busy.len() < idle.len().max(1) {
        return None;
    }
    let usual = median(busy)?;
    let mut names = idle.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    if idle.len() > NAMED {
        names += ", …";
    }
    let (count, all, verb) = (idle.len(), known.len(), if idle.len() == 1 { "is" } else { "are" });
    Some((
        format!("{count} of {all} devices {verb} idle ({names}) while the others are at {usual:.0} %."),
        format!("{all} 个设备中有 {count} 个空闲（{names}），其余利用率为 {usual:.0} %。"),
    ))
}

/// What goes on where nothing limits.
fn calm(moment: &Moment<'_>, devices: &[Device<'_>]) -> Option<(String, String)> {
    let get = |name: &str| server(moment, name).and_then(|series| now(moment, series));
    let running = get("requests_running");
    let most = devices.iter().filter_map(|device| device.busy).max_by(f64::total_cmp);
    let usual = median(devices.iter().filter_map(|device| device.busy).collect());
    let idle = running.is_none_or(|running| running < 1.0) && most.is_none_or(|most| most < IDLE);
    match (running, usual) {
        (None, None) => None,
        (Some(_), _) if idle => Some(("Idle: no request runs.".to_owned(), "空闲：没有运行中的请求。".to_owned())),
        (None, Some(_)) if idle => {
            Some((format!("Idle: no device is above {IDLE:.0} %."), format!("空闲：设备利用率均低于 {IDLE:.0} %。")))
        }
        (running, usual) => {
            let (mut en, mut zh) = (Vec::new(), Vec::new());
            if let Some(running) = running {
                let waits = waiting(moment).map_or(0.0, |(count, _)| count);
                en.push(format!("{running:.0} requests run and {waits:.0} wait"));
                zh.push(format!("{running:.0} 个请求运行中，{waits:.0} 个等待"));
            }
            if let Some(cache) = get("kv_cache_use").map(units::whole_share) {
                en.push(format!("KV cache {cache} in use"));
                zh.push(format!("KV 缓存占用 {cache}"));
            }
            if let Some(usual) = usual {
                en.push(format!("devices at {usual:.0} %"));
                zh.push(format!("设备利用率 {usual:.0} %"));
            }
            Some((format!("{}. Nothing limits.", en.join(", ")), format!("{}。没有明显瓶颈。", zh.join("，"))))
        }
    }
}

#[cfg(test)]
mod tests;
