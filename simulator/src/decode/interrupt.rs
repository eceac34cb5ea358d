//! What keeps a host from its work now and then: stalls of healthy ones, and faults that come rarely.

use super::place;
use crate::{config::Config, fault::FaultKind, machine::Machine, random::Of, record::HostKind, step::Step};

/// Whether something that happens every `n` steps, in the middle of them, happens in step `index`; never for 0.
pub(super) fn due(index: i64, n: i64) -> bool {
    n > 0 && index % n == n / 2
}

/// A stall of a healthy host; nothing says where it comes from.
pub(super) fn hiccup(machine: &Machine<'_>, step: Step) -> i64 {
    let (config, dice, key) = (machine.config, machine.seat.own, [step.index, 0, 0]);
    let share = config.serving.map_or(0, |serving| serving.hiccup_permille);
    let stalls = !config.steady_host && dice.chance(Of::Hiccup, key, share);
    if stalls { dice.uniform(Of::Hiccup, [step.index, 1, 0], 1_000_000, 5_000_000) } else { 0 }
}

/// Whether rare events happen within the range of a step, rather than before it.
pub(super) fn interrupts_forward(config: &Config) -> bool {
    config.serving.is_some() && config.seed % 2 == 1
}

/// What keeps the host from its work now and then, in the steady state.
pub(super) fn interrupt(machine: &mut Machine<'_>, step: Step) {
    let (config, measured) = (machine.config, step.index - machine.config.warmup_steps);
    if measured < 0 || !due(measured, config.serving.map_or(8, |serving| serving.event_every)) {
        return;
    }
    machine.at(place::FAULT);
    // Pauses this much longer than a step are five steps long even at the least magnitude.
    let pause = 16 * config.estimate();
    let compile = config.dose(FaultKind::Recompile, pause);
    if compile > 0 {
        machine.compile(compile);
    }
    let recapture = config.dose(FaultKind::Recapture, pause);
    if recapture > 0 {
        machine.recapture(recapture);
    }
    let collect = config.dose(FaultKind::Gc, pause);
    if collect > 0 {
        collect_garbage(machine, collect);
    }
}

/// The interpreter looks for garbage.
pub(super) fn collect_garbage(machine: &mut Machine<'_>, ns: i64) {
    let frames = machine.config.python_frames;
    machine.record_if(frames, HostKind::Gc, "<built-in function collect>", |machine| machine.pause(ns));
}
