//! The engine's scheduler as it counts itself: requests, cache, drafts, tokens of the experts.

use crate::{
    counter::{
        ACCEPTED, CACHE, CONTEXT, DRAFTED, EXPERT_ROWS, EXPERT_TOKENS, PADDED, PREEMPTIONS, RUNNING, SCHEDULED, WAITING,
    },
    fault::FaultKind,
    forward,
    machine::Machine,
    random::Of,
    step::Step,
};

/// Counters are small, so that a float holds them exactly.
#[allow(clippy::cast_precision_loss)]
fn value(count: i64) -> f64 {
    count as f64
}

/// Counts a step that is scheduled now.
pub(crate) fn count(machine: &mut Machine<'_>, step: Step) {
    let config = machine.config;
    if !config.counters {
        return;
    }
    let common = machine.seat.common;
    let preempting = config.has(FaultKind::Preemption);
    let (least, most) = if preempting { (965, 998) } else { (300, 700) };
    let used = common.uniform(Of::Cache, [step.index, 0, 0], least, most);
    let waiting = if preempting { 4 } else { common.uniform(Of::Arrival, [step.index, 1, 0], 0, 2) };
    machine.count(RUNNING, value(step.batch));
    machine.count(WAITING, value(if config.has(FaultKind::LoadLimited) { 0 } else { waiting }));
    machine.count(CACHE, value(used) / 1000.0);
    machine.preemptions += i64::from(step.recompute);
    machine.count(PREEMPTIONS, value(machine.preemptions));
    machine.count(SCHEDULED, value(if step.prefill { step.rows } else { step.batch }));
    machine.count(PADDED, value(step.rows));
    machine.count(CONTEXT, value(config.context_tokens));
    if config.experts > 0 {
        let tokens = forward::expert_tokens(machine.seat, step);
        machine.count(EXPERT_TOKENS, value(tokens));
        // A tile's last rows are empty, more of them the larger the tile.
        let padded = tokens * (1_100 + config.dose(FaultKind::MoePadding, 900)) / 1000;
        machine.count(EXPERT_ROWS, value(padded));
    }
}

/// Counts the tokens that the draft model proposes and that the step before accepted.
pub(crate) fn count_drafts(machine: &mut Machine<'_>, step: Step, drafted: i64) {
    let batch = step.batch.min(64);
    let accepted = |request: i64| i64::from(machine.seat.common.chance(Of::Accepted, [step.index, request, 0], 80));
    machine.accepted += (0..batch).map(accepted).sum::<i64>();
    machine.drafted += batch * drafted;
    machine.count(DRAFTED, value(machine.drafted));
    machine.count(ACCEPTED, value(machine.accepted));
}

/// Waits for requests while there are none.
pub(crate) fn await_requests(machine: &mut Machine<'_>, step: Step) {
    let config = machine.config;
    let common = machine.seat.common;
    let key = [step.index, 0, 0];
    let idle = config.dose(FaultKind::LoadLimited, 2 * config.estimate());
    if idle == 0 || step.index < config.warmup_steps || !common.chance(Of::Arrival, key, 500) {
        return;
    }
    machine.count(RUNNING, 0.0);
    machine.count(WAITING, 0.0);
    machine.pause(common.around(Of::Arrival, key, idle, 800));
    machine.count(WAITING, value(step.batch));
}
