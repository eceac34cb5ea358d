//! Work on a thread of its own, with how far it is. Whoever watches never waits for it, not for a core either, and can call it off.

use std::{
    any::Any,
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread::JoinHandle,
};

use session::Cancel;

/// How far a job is.
#[derive(Debug, Default)]
pub struct Progress {
    /// What is being done, and to what.
    doing: Mutex<(String, String)>,
    done: AtomicU64,
    total: AtomicU64,
    cancel: Cancel,
}

impl Progress {
    /// Says what is being done now, and to what if that has a name.
    pub fn doing(&self, what: &str, of: &str) {
        *self.doing.lock().unwrap_or_else(PoisonError::into_inner) = (what.to_owned(), of.to_owned());
        self.at(0, 0);
    }

    /// Says how much is done of how much; a total of 0 is unknown.
    pub fn at(&self, done: u64, total: u64) {
        self.done.store(done, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    /// What calls the job off; the work looks at it.
    pub fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }

    /// What is being done, and to what.
    pub fn look(&self) -> (String, String) {
        self.doing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How much is done of how much.
    pub fn part(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }
}

/// Work under way.
#[derive(Debug)]
pub struct Job<T> {
    progress: Arc<Progress>,
    thread: JoinHandle<T>,
}

/// What a job that gave nothing panicked with.
#[derive(Debug)]
pub struct Panicked(pub Box<dyn Any + Send>);

impl<T: Send + 'static> Job<T> {
    /// Begins the work.
    ///
    /// # Errors
    /// When the system gives no more threads.
    pub fn start(work: impl FnOnce(&Arc<Progress>) -> T + Send + 'static) -> io::Result<Self> {
        let progress = Arc::new(Progress::default());
        let own = Arc::clone(&progress);
        let behind = move || {
            step_back();
            rayon::broadcast(|_| step_back());
            work(&own)
        };
        let thread = std::thread::Builder::new().name("job".to_owned()).spawn(behind)?;
        Ok(Self { progress, thread })
    }

    /// How far it is.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// Calls it off; it ends when its work next looks.
    pub fn cancel(&self) {
        self.progress.cancel.cancel();
    }

    /// What it gave; waits for it.
    ///
    /// # Errors
    /// When it panicked.
    pub fn finish(self) -> Result<T, Panicked> {
        self.thread.join().map_err(Panicked)
    }
}

/// By how much the threads of a job are nicer than the one that draws: a tenth of its share where both want a core.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// Lets the thread that draws go first: what a job takes all cores for is waited for anyway, and a frame late is seen. On
/// other systems niceness is a process's and not a thread's.
fn step_back() {
    #[cfg(target_os = "linux")]
    {
        use rustix::{process, thread};
        let own = thread::gettid();
        let now = process::getpriority_process(Some(own)).unwrap_or(0);
        // Where it is refused, the job runs as fast as everything else.
        let _ = process::setpriority_process(Some(own), now.max(NICE));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_job_that_is_called_off_hears_of_it() {
        let job = Job::start(|progress| {
            let mut done = 0;
            while !progress.cancel().is_cancelled() {
                done += 1;
                progress.at(done, u64::MAX);
                std::thread::sleep(Duration::from_millis(1));
            }
        })
        .unwrap();
        let began = Instant::now();
        while job.progress().part().0 < 3 {
            assert!(began.elapsed() < Duration::from_secs(20));
            std::thread::sleep(Duration::from_millis(1));
        }
        job.cancel();
        job.finish().unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_job_takes_no_core_from_who_watches_it() {
        use rayon::prelude::*;
        let nice = || rustix::process::getpriority_process(Some(rustix::thread::gettid())).unwrap();
        let own = nice();
        let job = Job::start(move |_| (nice(), (0..64).into_par_iter().map(|_| nice()).min().unwrap()));
        let (job, least) = job.unwrap().finish().unwrap();
        assert!(job >= NICE && least >= NICE, "{job} {least}");
        assert_eq!(nice(), own);
    }

    #[test]
    fn a_job_gives_what_it_made_or_why_not() {
        let job = Job::start(|progress| {
            progress.doing("adding", "");
            40 + 2
        });
        assert_eq!(job.unwrap().finish().unwrap(), 42);
        let broken = Job::start(|_| -> u8 { std::panic::resume_unwind(Box::new("lost")) }).unwrap().finish();
        assert!(matches!(broken, Err(Panicked(why)) if why.is::<&str>()));
    }
}
