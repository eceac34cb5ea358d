//! `strato view` on a terminal that goes away.

use std::{
    fs::File,
    io::Read,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// How long it may take to end: the machine may be busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);

/// The far end of a terminal closes, as that of a connection that is lost: crossterm would read its end for ever.
#[test]
fn a_terminal_that_hangs_up_ends_it() {
    let far = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&far).unwrap();
    unlockpt(&far).unwrap();
    let name = ptsname(&far, Vec::new()).unwrap();
    let near = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let end = || Stdio::from(near.try_clone().unwrap());
    let mut strato = Command::new(env!("CARGO_BIN_EXE_strato"))
        .args(["view", "sample-traces/launch-bound-eager.json.gz"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("TERM", "xterm-256color")
        .stdin(end())
        .stdout(end())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    drop(near);
    let mut far = File::from(far);
    let mut part = [0; 4096];
    // Something of the interface has been drawn: it reads keys.
    assert!(far.read(&mut part).unwrap() > 0);
    std::thread::sleep(Duration::from_millis(500));
    drop(far);
    let start = Instant::now();
    while strato.try_wait().unwrap().is_none() {
        if start.elapsed() > PATIENCE {
            strato.kill().unwrap();
            panic!("it goes on without a terminal");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
