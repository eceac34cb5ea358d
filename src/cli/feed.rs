//! The way of updates to a dashboard: bounded, and never waiting. What finds no room is counted.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    time::Instant,
};

use collectors::telemetry::{Collector, Counter, own_time};
use model::{Ns, Reading};

use crate::tui::live::{Gauge, Group, Source, Update, What};

/// Updates that wait for the dashboard, which takes them ten times a second.
const ROOM: usize = 4096;
/// Between two looks at what the dashboard itself costs, ns.
const COST: Ns = 1_000_000_000;

/// Where updates go in.
#[derive(Clone)]
pub struct Feed {
    sender: SyncSender<Update>,
    lost: Arc<AtomicU64>,
    zero: Instant,
}

impl Feed {
    /// A way, and its other end.
    pub fn new() -> (Self, Inlet) {
        let (sender, receiver) = sync_channel(ROOM);
        let feed = Self { sender, lost: Arc::default(), zero: Instant::now() };
        let inlet = Inlet { receiver, lost: Arc::clone(&feed.lost), zero: feed.zero, cost: None };
        (feed, inlet)
    }

    /// Tells something, if there is room.
    pub fn tell(&self, what: What) {
        if self.sender.try_send(Update { at: since(self.zero), what }).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Updates that found no room.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

fn since(zero: Instant) -> Ns {
    Ns::try_from(zero.elapsed().as_nanos()).unwrap_or(Ns::MAX)
}

/// Where updates come out. It belongs to the dashboard's thread, and tells what that thread costs.
pub struct Inlet {
    receiver: Receiver<Update>,
    lost: Arc<AtomicU64>,
    zero: Instant,
    cost: Option<(Ns, Reading<Ns>)>,
}

impl Source for Inlet {
    fn poll(&mut self, give: &mut dyn FnMut(Update)) {
        // No more than were there at first: a sender that is faster than this would never let it end.
        self.receiver.try_iter().take(ROOM).for_each(&mut *give);
        let at = self.now();
        if self.cost.as_ref().is_some_and(|(before, _)| at - before < COST) {
            return;
        }
        let used = own_time();
        let value = match (&used, &self.cost) {
            (Reading::Value(now), Some((since, Reading::Value(before)))) if at > *since => {
                Reading::Value((now - before) as f64 / (at - since) as f64)
            }
            (Reading::Unavailable(reason), _) => Reading::Unavailable(reason.clone()),
            _ => Reading::Unavailable("needs two looks".to_owned()),
        };
        self.cost = Some((at, used));
        let gauge = Gauge { group: Group::Watching, name: "dashboard".to_owned(), unit: "share".to_owned(), value };
        give(Update { at, what: What::Gauges(vec![gauge]) });
    }

    fn now(&self) -> Ns {
        since(self.zero)
    }

    fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

/// A collector whose looks a dashboard is told of, too.
pub struct Told<C> {
    /// What looks.
    pub collector: C,
    /// Who is told.
    pub feed: Feed,
    /// Whose counters they are, by the counter.
    pub group: Box<dyn Fn(Counter) -> Group + Send>,
}

impl<C: Collector> Collector for Told<C> {
    fn look(&mut self, at: Ns, give: &mut dyn FnMut(Counter, Reading<f64>)) {
        let (mut gauges, group) = (Vec::new(), &self.group);
        self.collector.look(at, &mut |counter, value| {
            let (name, unit) = (counter.name.to_owned(), counter.unit.to_owned());
            gauges.push(Gauge { group: group(counter), name, unit, value: value.clone() });
            give(counter, value);
        });
        if !gauges.is_empty() {
            self.feed.tell(What::Gauges(gauges));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::live::Phase;

    #[test]
    fn what_finds_no_room_is_counted_and_nobody_waits() {
        let (feed, mut inlet) = Feed::new();
        (0..ROOM + 7).for_each(|_| feed.tell(What::Phase(Phase::Running)));
        assert_eq!((feed.lost(), inlet.lost()), (7, 7));
        let mut count = 0;
        inlet.poll(&mut |update| count += usize::from(matches!(update.what, What::Phase(_))));
        assert_eq!(count, ROOM);
        drop(inlet);
        feed.tell(What::Phase(Phase::Over));
        assert_eq!(feed.lost(), 8, "nobody listens any more");
    }
}
