//! One observation of this process from begin to end.

use std::{
    ffi::c_void,
    ptr,
    sync::{
        Arc,
        atomic::{AtomicPtr, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use engine::record::{Clock, Launches};

use super::{
    Api, Unavailable, api,
    gather::{Claim, Found, completed, pool, requested},
};
use crate::activity::clock::{Conversion, Pair};

/// Kinds of records that are asked for, in words, and whether nothing goes without them.
const KINDS: [(u32, &str, bool); 7] = [
    (api::KIND_KERNEL, "kernels", true),
    (api::KIND_EXTERNAL, "operators of launches", true),
    (api::KIND_COMMUNICATION, "collectives", false),
    (api::KIND_API, "calls", false),
    (api::KIND_MEMORY, "memory", false),
    (api::KIND_MEMCPY, "copies", false),
    (api::KIND_MEMSET, "fills", false),
];

/// An observation under way. It ends when it is dropped; what it saw comes from [`Session::finish`].
#[derive(Debug)]
pub struct Session {
    claim: Claim,
    subscriber: AtomicPtr<c_void>,
    /// Kinds that are switched on.
    kinds: Vec<u32>,
    clock: Clock,
    first: Pair,
    /// What this version does not record, and why.
    absent: Vec<(&'static str, String)>,
}

/// Now, by the clock of MSPTI's records: the system's wall clock.
fn stamp() -> Option<u64> {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_nanos()).ok()
}

/// The id of an operator of a step, which is pushed around its launch; 0 is none.
fn id(step: u32, op: u32) -> u64 {
    (u64::from(step) << 32 | u64::from(op)) + 1
}

/// The step and the place in its program that an id says.
pub(super) fn launched(id: u64) -> Option<(u32, u32)> {
    let id = id.checked_sub(1)?;
    Some((u32::try_from(id >> 32).ok()?, u32::try_from(id & u64::from(u32::MAX)).ok()?))
}

impl Session {
    /// Begins to record what this process does from now on; times are those of `clock`. Before the first call of CANN is best:
    /// only tasks that are captured from now on have operators in a replay.
    ///
    /// # Errors
    /// [`Unavailable`], when the library was not preloaded, another profiler is attached, or a call is refused.
    pub fn start(api: Arc<Api>, clock: Clock) -> Result<Self, Unavailable> {
        api.check()?;
        let claim = Claim::take(Arc::clone(&api))?;
        let why = "the wall clock is before 1970, by which its records are stamped".to_owned();
        let first = Pair::look(clock, stamp).ok_or(Unavailable::Library { why })?;
        let mut subscriber = ptr::null_mut();
        // SAFETY: no callback is given, and the function writes one handle.
        let subscribed = api.subscribe.map(|call| unsafe { call(&raw mut subscriber, None, ptr::null_mut()) });
        api.done(subscribed, || "msptiSubscribe".to_owned())?;
        let mut session =
            Self { claim, subscriber: AtomicPtr::new(subscriber), kinds: Vec::new(), clock, first, absent: Vec::new() };
        // SAFETY: both live as long as the program.
        let registered = api.register_callbacks.map(|call| unsafe { call(requested, completed) });
        api.done(registered, || "msptiActivityRegisterCallbacks".to_owned())?;
        for (kind, what, is_needed) in KINDS {
            // SAFETY: numbers only.
            let enabled = api.enable.map(|call| unsafe { call(kind) });
            match api.done(enabled, || format!("msptiActivityEnable({kind}: {what})")) {
                Ok(()) => session.kinds.push(kind),
                Err(why) if is_needed => return Err(why),
                Err(why) => session.absent.push((what, why.to_string())),
            }
        }
        Ok(session)
    }

    /// Takes what was recorded so far: between steps, so that it is no part of one.
    pub fn flush(&self) {
        // SAFETY: numbers only.
        let status = self.api().flush_all.map(|call| unsafe { call(0) });
        if status != Some(api::SUCCESS) {
            self.claim.0.count("flush_refused", 1, status.map(|status| format!("status {status}")));
        }
    }

    fn api(&self) -> &Api {
        &self.claim.0.api
    }

    /// Ends the observation and gives what was seen. The device should be idle: what still runs has no end.
    pub fn finish(mut self) -> Observed {
        let gathering = Arc::clone(&self.claim.0);
        // What the device has not handed over yet comes when its kind ends.
        self.end_kinds();
        self.flush();
        let last = Pair::look(self.clock, stamp).unwrap_or(self.first);
        self.stop();
        let without_buffer = pool().clear();
        gathering.count("requests_without_buffer", without_buffer, None);
        gathering.count("buffers_not_returned", pool().lent() as u64, None);
        Observed {
            found: gathering.take(),
            conversion: Conversion::new(self.first, last, false),
            within: self.first.within.max(last.within),
            file: gathering.api.file.display().to_string(),
            absent: std::mem::take(&mut self.absent),
        }
    }

    fn end_kinds(&mut self) {
        let api = Arc::clone(&self.claim.0.api);
        for kind in self.kinds.drain(..) {
            // SAFETY: numbers only.
            api.disable.map(|call| unsafe { call(kind) });
        }
    }

    /// Switches everything off.
    fn stop(&mut self) {
        self.end_kinds();
        let subscriber = self.subscriber.swap(ptr::null_mut(), Ordering::Relaxed);
        if !subscriber.is_null() {
            // SAFETY: the subscription is this session's, and ends once.
            self.api().unsubscribe.map(|call| unsafe { call(subscriber) });
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Launches for Session {
    fn enter(&self, step: u32, op: u32) {
        // SAFETY: numbers only.
        let pushed = self.api().push_external.map(|call| unsafe { call(api::CUSTOM0, id(step, op)) });
        if pushed != Some(api::SUCCESS) {
            self.claim.0.count("operator_not_pushed", 1, None);
        }
    }

    fn leave(&self) {
        let mut last = 0;
        // SAFETY: the function writes one number.
        self.api().pop_external.map(|call| unsafe { call(api::CUSTOM0, &raw mut last) });
    }
}

/// What an observation saw.
#[derive(Debug)]
pub struct Observed {
    pub(super) found: Found,
    pub(super) conversion: Conversion,
    /// How far the two clocks may be apart at both ends, ns.
    pub(super) within: i64,
    pub(super) file: String,
    pub(super) absent: Vec<(&'static str, String)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_says_step_and_operator_and_none_is_nothing() {
        for of in [(0, 0), (0, u32::MAX), (7, 40), (u32::MAX - 1, u32::MAX)] {
            assert_eq!(launched(id(of.0, of.1)), Some(of));
        }
        assert_eq!(launched(0), None);
    }
}
