//! A process of this program that another one has started for its work, and that ends with it: whatever ends the one, nobody is
//! left who computes for nobody.

use std::time::Duration;

use rustix::process::{Pid, Signal, getpid, getppid, kill_process};

/// Between two looks at who the parent is, where the system does not tell of its end.
const LOOK: Duration = Duration::from_millis(200);

/// From now on this process gets `signal` when its parent, the process `parent`, has ended.
///
/// Linux does that by itself (`PR_SET_PDEATHSIG` of prctl(2)), from when it is asked on: a parent that had ended before is no
/// parent any more. Elsewhere, and where a sandbox forbids the call, a thread looks again and again.
pub(super) fn to(parent: u32, signal: Signal) {
    #[cfg(target_os = "linux")]
    let is_told = rustix::process::set_parent_process_death_signal(Some(signal)).is_ok();
    #[cfg(not(target_os = "linux"))]
    let is_told = false;
    let follow = move || {
        let _ = kill_process(getpid(), signal);
    };
    if !is_child_of(parent) {
        follow();
    }
    if !is_told {
        // A thread that cannot be started leaves the process as it was.
        let _ = std::thread::Builder::new().name("parent".to_owned()).spawn(move || {
            while is_child_of(parent) {
                std::thread::sleep(LOOK);
            }
            follow();
        });
    }
}

fn is_child_of(parent: u32) -> bool {
    i32::try_from(parent).ok().and_then(Pid::from_raw).is_some_and(|parent| getppid() == Some(parent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_its_parent() {
        let parent = std::os::unix::process::parent_id();
        assert!(is_child_of(parent));
        assert!(!is_child_of(std::process::id()) && !is_child_of(0) && !is_child_of(u32::MAX));
    }
}
