//! The replay itself: one pass over the points of each rank, in which every time is settled from times before it. Ranks
//! wait for each other only where they join in a collective.

use model::Ns;

use super::{
    edited::Edited,
    model::{Fate, Model, NONE, Node},
};

/// What the ranks have in common while they are replayed.
pub(super) struct Meeting {
    /// Latest arrival at each collective, measured from the observed end on the rank that arrived, ns: the clocks of ranks
    /// differ, but a collective ended on all of them at once.
    latest: Vec<Ns>,
    /// Ranks that have yet to arrive.
    missing: Vec<u32>,
    /// Time of the transfer once all are there, ns.
    transfer: Vec<Ns>,
    /// By how much each signal comes later than it did, ns; `None` until its operation has ended.
    told: Vec<Option<Ns>>,
}

impl Meeting {
    /// A meeting at which so many ranks arrive at each collective, whose transfer takes so long, and that has so many signals.
    pub fn new(members: Vec<u32>, transfer: Vec<Ns>, signals: usize) -> Self {
        Self { latest: vec![Ns::MIN; members.len()], missing: members, transfer, told: vec![None; signals] }
    }

    fn arrive(&mut self, instance: u32, at: Option<Ns>) {
        let i = instance as usize;
        if let (Some(missing), Some(latest)) = (self.missing.get_mut(i), self.latest.get_mut(i)) {
            *missing = missing.saturating_sub(1);
            *latest = at.map_or(*latest, |at| at.max(*latest));
        }
    }

    /// When the collective ends, from its observed end; `None` while ranks are missing.
    fn end(&self, instance: u32, anyway: bool) -> Option<Ns> {
        let i = instance as usize;
        let (missing, latest) = (*self.missing.get(i)?, *self.latest.get(i)?);
        (missing == 0 || anyway).then(|| latest.saturating_add(self.transfer.get(i).copied().unwrap_or(0)))
    }
}

/// One rank on its way through its points.
pub(super) struct Walk<'a> {
    model: &'a Model,
    edited: &'a Edited<'a>,
    next: usize,
    cursor: Vec<Ns>,
    begun: Vec<Ns>,
    returned: Vec<Ns>,
    /// New start and end of each operation, ns.
    pub start: Vec<Ns>,
    pub end: Vec<Ns>,
    /// When its queue is free of it.
    free: Vec<Ns>,
    /// When what runs beside the queues is done.
    beside: Ns,
}

impl<'a> Walk<'a> {
    /// A rank at its first point.
    pub fn new(model: &'a Model, edited: &'a Edited<'a>) -> Self {
        let (ops, calls) = (model.ops.len(), model.calls.len());
        Self {
            model,
            edited,
            next: 0,
            cursor: model.threads.iter().map(super::model::Thread::origin).collect(),
            begun: vec![0; calls],
            returned: vec![0; calls],
            start: vec![0; ops],
            end: vec![0; ops],
            free: vec![0; ops],
            beside: Ns::MIN,
        }
    }

    /// Whether all points have been passed.
    pub fn is_done(&self) -> bool {
        self.next >= self.model.nodes.len()
    }

    /// Whether its next point is a call that heeds a signal.
    fn awaits_signal(&self) -> bool {
        match self.model.nodes.get(self.next) {
            Some(Node::Begin(c)) => self.edited.calls().get(*c as usize).is_some_and(|row| row.heeds != NONE),
            _ => false,
        }
    }

    /// Goes on until a collective lacks ranks or a call its signal, or to the end; `anyway` passes one of them. Says whether it
    /// moved.
    pub fn advance(&mut self, meeting: &mut Meeting, mut anyway: bool) -> bool {
        let from = self.next;
        while let Some(node) = self.model.nodes.get(self.next) {
            match *node {
                Node::Begin(c) => {
                    if !self.begin(c as usize, meeting, false) {
                        if !std::mem::take(&mut anyway) {
                            break;
                        }
                        self.begin(c as usize, meeting, true);
                    }
                }
                Node::End(c) => self.finish(c as usize),
                Node::Op(o) => self.op(o as usize, meeting),
                Node::Join(o) => {
                    if !self.join(o as usize, meeting, anyway) {
                        break;
                    }
                    anyway = false;
                }
            }
            self.next += 1;
        }
        self.next > from
    }

    fn begin(&mut self, c: usize, meeting: &Meeting, anyway: bool) -> bool {
        let Some(row) = self.edited.calls().get(c) else { return true };
        let thread = row.thread as usize;
        let own = self.cursor.get(thread).copied().unwrap_or(0);
        let t = match meeting.told.get(row.heeds as usize) {
            Some(told) => {
                let Some(later) = told.or(anyway.then_some(0)) else { return false };
                // What edits leave of its own work comes behind the signal.
                let was = self.model.calls.get(c).map_or(0, |row| row.before);
                let signal = self.model.begins.get(c).copied().unwrap_or(0).saturating_sub(was);
                signal.saturating_add(later).saturating_add(row.before).max(own)
            }
            None => {
                let from = if row.follows == NONE { thread } else { row.follows as usize };
                self.cursor.get(from).map_or(own, |t| (t + row.before).max(own))
            }
        };
        self.settle(thread, t);
        if let Some(begun) = self.begun.get_mut(c) {
            *begun = t;
        }
        true
    }

    /// Says how much later an operation has ended, where somebody heeds it.
    fn tell(&self, o: usize, meeting: &mut Meeting) {
        let Some(row) = self.edited.ops().get(o) else { return };
        if let Some(told) = meeting.told.get_mut(row.tells as usize) {
            let ended = |ends: &[Ns]| ends.get(o).copied().unwrap_or(0);
            *told = Some(ended(&self.end) - ended(&self.model.ends));
        }
    }

    fn finish(&mut self, c: usize) {
        let Some(row) = self.edited.calls().get(c) else { return };
        let thread = row.thread as usize;
        let mut t = self.cursor.get(thread).copied().unwrap_or(0) + row.own;
        if let Some(end) = self.end.get(row.awaits as usize) {
            t = t.max(end + row.tail);
        }
        self.settle(thread, t);
        if let Some(returned) = self.returned.get_mut(c) {
            *returned = t;
        }
    }

    fn settle(&mut self, thread: usize, t: Ns) {
        if let Some(cursor) = self.cursor.get_mut(thread) {
            *cursor = t;
        }
    }

    fn op(&mut self, o: usize, meeting: &mut Meeting) {
        let Some(row) = self.edited.ops().get(o) else { return };
        let queue = self.free.get(row.pred as usize).copied();
        let issued = if row.from_end { &self.returned } else { &self.begun };
        let launched = issued.get(row.call as usize).map(|t| t + row.latency);
        let freed = self.begun.get(row.core as usize).map(|t| t + row.wake);
        if row.fate == Fate::Removed {
            let at = queue.or(launched).max(freed).unwrap_or_else(|| self.model.starts.get(o).copied().unwrap_or(0));
            self.book(o, at, at, at);
            if row.instance != NONE {
                meeting.arrive(row.instance, None);
            }
            return self.tell(o, meeting);
        }
        let waited = self.end.get(row.dep as usize).map(|t| t + row.lag);
        let queued = queue.map(|t| t + row.gap);
        let start = launched.max(queued).max(waited).max(freed);
        let mut start = start.unwrap_or_else(|| self.model.starts.get(o).copied().unwrap_or(0));
        if row.instance != NONE {
            let observed = self.model.ends.get(o).copied().unwrap_or(0);
            meeting.arrive(row.instance, Some(start - observed));
        }
        if row.fate == Fate::Aside {
            start = start.max(self.beside);
        }
        self.run(o, start, start + row.dur, queue);
        if row.instance == NONE {
            self.tell(o, meeting);
        }
    }

    /// Books an operation that runs.
    fn run(&mut self, o: usize, start: Ns, end: Ns, queue: Option<Ns>) {
        let aside = self.edited.ops().get(o).is_some_and(|row| row.fate == Fate::Aside);
        if !aside {
            return self.book(o, start, end, end);
        }
        self.beside = end;
        let lost = (end - start) * self.edited.lost_beside / 2;
        let free = if lost > 0 { start + lost } else { queue.unwrap_or(start) };
        self.book(o, start, end, free);
    }

    fn join(&mut self, o: usize, meeting: &mut Meeting, anyway: bool) -> bool {
        let Some(row) = self.edited.ops().get(o).filter(|row| row.fate != Fate::Removed) else { return true };
        // It waits for nobody any more, and has run already.
        if row.instance == NONE {
            return true;
        }
        let Some(since) = meeting.end(row.instance, anyway) else { return false };
        let start = self.start.get(o).copied().unwrap_or(0);
        let end = self.model.ends.get(o).map_or(start, |observed| observed.saturating_add(since)).max(start);
        let queue = self.free.get(row.pred as usize).copied();
        self.run(o, start, end, queue);
        self.tell(o, meeting);
        true
    }

    fn book(&mut self, o: usize, start: Ns, end: Ns, free: Ns) {
        if let (Some(s), Some(e), Some(f)) = (self.start.get_mut(o), self.end.get_mut(o), self.free.get_mut(o)) {
            (*s, *e, *f) = (start, end, free);
        }
    }
}

/// Replays all ranks to their ends.
pub(super) fn replay(walks: &mut [Walk<'_>], meeting: &mut Meeting) {
    loop {
        let mut moved = false;
        for walk in walks.iter_mut() {
            moved |= walk.advance(meeting, false);
        }
        // Members that were matched wrongly could wait for each other for ever: then one goes on without the others, if possible one
        // that only waits for a signal.
        let signalled = walks.iter().position(Walk::awaits_signal).filter(|_| !moved);
        let stuck = signalled.or_else(|| walks.iter().position(|walk| !walk.is_done()));
        let stuck = stuck.and_then(|at| walks.get_mut(at));
        match stuck {
            None => return,
            Some(walk) if !moved => {
                walk.advance(meeting, true);
            }
            Some(_) => {}
        }
    }
}
