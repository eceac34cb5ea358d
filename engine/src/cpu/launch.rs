//! The host's part of a step: it launches the operators, waits where it is told to, and goes through what holds it up.

use super::{Cpu, Prepared, ops::Part, pool::Pool, queue::Queue, stamps::Stamps};
use crate::{
    Batch, Error,
    hook::HostHook,
    options::Sync,
    program::OpCall,
    record::{Kind, Log, Ns, Span},
};

/// What is noted of a step while it runs; written into the log when it is over.
pub(super) struct Record {
    pub stamps: Stamps,
    /// Calls of the host, one per operator or one for all.
    pub calls: Vec<Call>,
}

/// A launch by the host.
#[derive(Clone, Copy)]
pub(super) struct Call {
    /// When the host turned to what it launches.
    from: Ns,
    span: Span,
}

/// What drives a step.
pub(super) struct Driver<'d> {
    pub pool: &'d mut Pool,
    pub record: &'d mut Record,
    pub sync: Sync,
    pub hook: Option<&'d mut HostHook>,
}

impl Cpu {
    /// Runs a step and records it. A step `at_once` is one launch, unless the host computes an operator of it.
    pub(super) fn launch(
        &mut self,
        prepared: &mut Prepared,
        batch: &Batch,
        log: &mut Log,
        at_once: bool,
    ) -> Result<Vec<u32>, Error> {
        let (step, Driver { pool, record: Record { stamps, calls }, sync, mut hook }) = self.step(prepared, batch)?;
        let (ops, workers) = (step.ops.len(), pool.workers());
        let queue = Queue::new(ops, workers);
        let (clock, stamped) = (log.clock, log.sees_device());
        let work = |number| {
            queue.work(|op| {
                let run = || step.execute(op, Part { number, of: workers });
                if stamped { stamps.around(&clock, number, op, run) } else { run() }
            });
        };
        let computes = |hook: &Option<&mut HostHook>, op: &OpCall| hook.as_ref().is_some_and(|h| h.computes(op));
        let at_once = at_once && !step.ops.iter().any(|op| computes(&hook, op));
        calls.clear();
        pool.run_beside(&work, |wake| {
            let host = queue.host(wake);
            if let Some(hook) = &mut hook {
                hook.before_step(log);
            }
            let wait = |count, log: &mut Log| {
                let start = log.now();
                host.wait(count);
                log.push(Kind::Sync, Span { start, end: log.now() });
            };
            let mut publish = |count, from, log: &Log| {
                let start = log.now();
                host.publish(count);
                calls.push(Call { from, span: Span { start, end: log.now() } });
            };
            for (op, call) in step.ops.iter().enumerate() {
                let from = log.now();
                if let Some(hook) = &mut hook {
                    hook.before(call, log);
                }
                if at_once {
                    publish(ops, from, log);
                    break;
                }
                if computes(&hook, call) {
                    wait(op, log);
                    let start = log.now();
                    step.compute(op, Part { number: 0, of: 1 });
                    log.push(Kind::Fallback(u32::try_from(op).unwrap_or(u32::MAX)), Span { start, end: log.now() });
                }
                publish(op + 1, from, log);
                let next = step.ops.get(op + 1);
                if next.is_some_and(|next| sync.is_after(call, next)) {
                    wait(op + 1, log);
                }
            }
            wait(ops, log);
        });
        log.observe(|log| {
            for ((op, number), call) in (0..ops).zip(0u32..).zip(step.ops) {
                match calls.get(op).filter(|_| !at_once) {
                    // Its workers had nothing to do.
                    Some(_) if computes(&hook, call) => {}
                    Some(call) => log.push_op(Kind::Op(number), call.from, call.span, stamps.of(op)),
                    None => log.push_op(Kind::ReplayedOp(number), 0, Span::default(), stamps.of(op)),
                }
            }
            if let Some(call) = calls.first().filter(|_| at_once) {
                log.push(Kind::Replay, call.span);
            }
        });
        let (chosen, collectives) = (step.chosen(), prepared.collectives.last().copied().unwrap_or(0));
        if let Some(ranks) = &mut self.ranks {
            ranks.count = ranks.count.wrapping_add(collectives);
            ranks.check()?;
        }
        Ok(chosen)
    }
}
