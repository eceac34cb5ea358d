//! Ranks that wait for one that is lost. On a CPU they look for that themselves; within a collective of devices nothing tells
//! them, and the call never comes back: then the run ends without them.

use std::{
    io,
    process::{Child, ExitStatus},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use engine::cpu::Region;

/// How long the others have to end by themselves: many times what a step takes, or writing what was recorded.
pub(super) const GRACE: Duration = Duration::from_secs(10);
/// Time between two looks.
const LOOK: Duration = Duration::from_millis(20);

/// Waits for all processes; the first that failed, if any. Those that have not ended so long after it are killed.
/// Between two looks `meanwhile` gets the processes.
pub(super) fn wait(
    ranks: &mut [Child],
    region: &Region,
    grace: Duration,
    meanwhile: &mut dyn FnMut(&mut [Child]) -> io::Result<()>,
) -> io::Result<Option<(usize, ExitStatus)>> {
    let mut failed = None;
    let mut since = None;
    let mut running = vec![true; ranks.len()];
    while running.contains(&true) {
        meanwhile(ranks)?;
        for (number, (rank, running)) in ranks.iter_mut().zip(&mut running).enumerate().filter(|(_, (_, r))| **r) {
            if let Some(status) = rank.try_wait()? {
                *running = false;
                if !status.success() {
                    // The rank that was lost first is the one that the others waited for.
                    let first = region.lost().unwrap_or(number);
                    region.lose(number);
                    if failed.is_none() || first == number {
                        failed = Some((number, status));
                    }
                    since.get_or_insert_with(Instant::now);
                }
            } else if since.is_some_and(|since| since.elapsed() > grace) {
                rank.kill()?;
            }
        }
        std::thread::sleep(LOOK);
    }
    Ok(failed)
}

/// Waits until `done`, or until a rank has been lost for so long: that rank.
pub(super) fn watch(region: &Region, done: &AtomicBool, grace: Duration) -> Option<usize> {
    let mut since = None;
    while !done.load(Ordering::Acquire) {
        if let Some(rank) = region.lost()
            && since.get_or_insert_with(Instant::now).elapsed() > grace
        {
            return Some(rank);
        }
        std::thread::sleep(LOOK);
    }
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use std::{process::Command, sync::Arc};

    use engine::cpu::World;

    use super::*;

    const SOON: Duration = Duration::from_millis(60);

    fn region() -> Arc<Region> {
        Arc::new(Region::of_threads(World { ranks: 2, workers: 1, slot: 1 }).unwrap())
    }

    #[test]
    fn a_process_that_waits_for_a_lost_one_is_killed_and_the_lost_one_is_named() {
        let child = |script: &str| Command::new("sh").args(["-c", script]).spawn().unwrap();
        let mut ranks = [child("exec sleep 1000"), child("exit 3")];
        let (number, status) = wait(&mut ranks, &region(), SOON, &mut |_| Ok(())).unwrap().unwrap();
        assert_eq!((number, status.code()), (1, Some(3)));
        let mut quiet = [child("exit 0"), child("sleep 0.2")];
        assert!(wait(&mut quiet, &region(), SOON, &mut |_| Ok(())).unwrap().is_none());
    }

    #[test]
    fn a_loss_is_told_after_a_while_and_none_where_all_end() {
        let (region, done) = (region(), AtomicBool::new(false));
        region.lose(1);
        assert_eq!(watch(&region, &done, SOON), Some(1));
        done.store(true, Ordering::Release);
        assert_eq!(watch(&region, &done, SOON), None);
    }
}
