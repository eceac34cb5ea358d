//! What the stages of a pipeline hand to each other: the activations to the next stage, the tokens from the last to the
//! first. Both ends come to a transfer when their streams do, and wait in it for the other.

use crate::{forward, kernel::Slot, machine::Machine, seat::Seat, step::Step};

/// Tells the tokens of a step from its activations.
const TOKENS: i64 = 1;

fn pass(machine: &mut Machine<'_>, step: Step, slot: Slot, peer: usize, nth: i64) {
    for task in forward::pass(machine.seat, step, slot, peer, nth) {
        machine.launch(&task);
    }
}

/// Time that a message between two hosts takes.
const MESSAGE_NS: i64 = 40_000;

/// Batches under way in a pipeline; 0 without one.
fn in_flight(seat: &Seat<'_>) -> usize {
    seat.config.serving.filter(|serving| serving.stages > 1).map_or(0, |serving| serving.in_flight)
}

/// Whether the tokens go to the first stage by its host, as they do where several batches are under way.
fn by_host(seat: &Seat<'_>) -> bool {
    in_flight(seat) > 1
}

/// Whether the rank copies the tokens to its host.
pub(super) fn returns_tokens(seat: &Seat<'_>) -> bool {
    !by_host(seat) || seat.is_last()
}

/// Before a step the first stage's host needs the tokens of the step before those under way. `tokens` holds when the last
/// stage had those of each step; nobody waits there for the first to take them.
pub(super) fn await_tokens(machine: &mut Machine<'_>, step: Step, tokens: &[i64]) {
    let seat = machine.seat;
    let before = usize::try_from(step.index).ok().and_then(|index| index.checked_sub(in_flight(&seat)));
    let Some(before) = before.filter(|_| by_host(&seat)) else { return };
    if seat.is_first() {
        machine.await_message(seat.stages() - 1, MESSAGE_NS);
    } else if let Some(at) = tokens.get(before).filter(|_| seat.is_last()) {
        machine.send_message(0, *at);
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
    let seat = machine.seat;
    let last = if by_host(&seat) { 0 } else { seat.stages().saturating_sub(1) };
    if !seat.is_last() {
        pass(machine, step, Slot::Send, seat.rank + 1, 0);
    }
    if last > 0 && seat.is_first() {
        pass(machine, step, Slot::Recv, last, TOKENS);
    } else if last > 0 && seat.is_last() {
        pass(machine, step, Slot::Send, 0, TOKENS);
    }
}
