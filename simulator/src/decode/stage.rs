//! What the stages of a pipeline hand to each other: the activations to the next stage, the tokens from the last to the
//! first. Both ends come to a transfer when their streams do, and wait in it for the other.

use crate::{forward, kernel::Slot, machine::Machine, step::Step};

/// Tells the tokens of a step from its activations.
const TOKENS: i64 = 1;

fn pass(machine: &mut Machine<'_>, step: Step, slot: Slot, peer: usize, nth: i64) {
    for task in forward::pass(machine.seat, step, slot, peer, nth) {
        machine.launch(&task);
    }
}

/// Before its layers a stage receives from the one before; it asks for that early and waits.
pub(super) fn receive(machine: &mut Machine<'_>, step: Step) {
    if let Some(before) = machine.seat.rank.checked_sub(1).filter(|_| !machine.seat.is_first()) {
        pass(machine, step, Slot::Recv, before, 0);
    }
}

/// After its layers a stage sends to the next; the first then asks for the tokens, which the last sends.
pub(super) fn send(machine: &mut Machine<'_>, step: Step) {
    let (seat, last) = (machine.seat, machine.seat.stages().saturating_sub(1));
    if !seat.is_last() {
        pass(machine, step, Slot::Send, seat.rank + 1, 0);
    }
    if last > 0 && seat.is_first() {
        pass(machine, step, Slot::Recv, last, TOKENS);
    } else if last > 0 && seat.is_last() {
        pass(machine, step, Slot::Send, 0, TOKENS);
    }
}
