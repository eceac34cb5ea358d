//! Clocks that were sampled where no work of a device was recorded: a device that works runs at another clock than an idle one.

use std::collections::BTreeMap;

use model::{StringId, Trace};

use crate::i18n::{Message, Text, Value};

/// Ratio of two median clocks above which one device worked and the other did not. Heuristic: idle clocks are a tenth of busy ones.
const APART: f64 = 2.0;

/// What it says of devices that differ.
const DIFFER: Text = Text::new(
    " Only sampled clocks tell of them: `{name}` was {most} MHz in the median on device {device}, and {least} to {next} MHz on {others} others.",
    "只有采样到的时钟能说明设备的情况：`{name}` 在设备 {device} 上的中位数为 {most} MHz，另外 {others} 个设备上为 {least} 至 {next} MHz。",
);
/// What it says of one device, or of several that are alike.
const ALIKE: Text = Text::new(
    " Only sampled clocks tell of them: `{name}` was {least} to {most} MHz in the median on {devices} devices.",
    "只有采样到的时钟能说明设备的情况：`{name}` 在 {devices} 个设备上的中位数为 {least} 至 {most} MHz。",
);

/// The sentence about the clock that differs most between devices; `None` where no clock was sampled.
pub(super) fn told(trace: &Trace) -> Option<Message> {
    let mut clocks: BTreeMap<StringId, Vec<(f64, i32)>> = BTreeMap::new();
    for counter in trace.counters.iter().filter(|counter| counter.unit == "MHz") {
        let mut values: Vec<f64> = counter.value.iter().copied().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let median = values.get(values.len().saturating_sub(1) / 2);
        if let Some((device, median)) = counter.device.zip(median) {
            clocks.entry(counter.name).or_default().push((*median, device));
        }
    }
    let of = |(name, mut medians): (StringId, Vec<(f64, i32)>)| {
        medians.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let (least, most) = (medians.first()?.0, *medians.last()?);
        Some((most.0 / least.max(1.0), name, medians))
    };
    let (_, name, medians) = clocks.into_iter().filter_map(of).max_by(|(a, ..), (b, ..)| a.total_cmp(b))?;
    let ((least, _), (most, device)) = (*medians.first()?, *medians.last()?);
    let number = |value: f64| Value::Number(value.round());
    let args =
        [("name", Value::Raw(trace.strings.get(name).to_owned())), ("least", number(least)), ("most", number(most))];
    let next = medians.len().checked_sub(2).and_then(|at| medians.get(at));
    Some(match next.filter(|(next, _)| most >= APART * next.max(1.0)) {
        Some((next, _)) => {
            let others = Value::Count(medians.len() as u64 - 1);
            let more =
                [("device", Value::Count(device.unsigned_abs().into())), ("next", number(*next)), ("others", others)];
            Message::new(DIFFER, args.into_iter().chain(more))
        }
        None => {
            let devices = ("devices", Value::Count(medians.len() as u64));
            Message::new(ALIKE, args.into_iter().chain([devices]))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{analysis::script::Script, i18n::Lang};
    use model::CounterTrack;

    /// A capture without device rows said nothing of the one device whose clock showed that it worked.
    #[test]
    fn the_device_whose_clock_differs_is_named() {
        let mut trace = Script::default().trace();
        assert!(told(&trace).is_none());
        let name = trace.strings.intern("sclk");
        for (device, mhz) in [(0, 157.0), (1, 154.0), (3, 1_960.0)] {
            let (process, unit) = (model::ProcessId(0), "MHz".to_owned());
            trace.counters.push(CounterTrack {
                process,
                device: Some(device),
                name,
                unit,
                t: vec![0, 1, 2],
                value: vec![132.0, mhz, 2_000.0],
            });
        }
        let said = |trace: &Trace| {
            told(trace).map(|said| said.render(Lang::En, |value| format!("{value:?}"))).unwrap_or_default()
        };
        let shown = said(&trace);
        assert!(shown.contains("Number(1960.0) MHz in the median on device Count(3)"), "{shown}");
        assert!(shown.contains("Number(154.0) to Number(157.0) MHz on Count(2) others"), "{shown}");
        trace.counters.pop();
        assert!(said(&trace).contains("Number(154.0) to Number(157.0) MHz in the median on Count(2) devices"));
    }
}
