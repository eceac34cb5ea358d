//! MSPTI beside a run on an Ascend device: it records the tasks of the device where it can, and else the engine's own events do.

use std::{ffi::OsString, sync::Arc};

use collectors::mspti::{
    Api, Observed, Session, Unavailable,
    preload::{self, GUARD, PRELOAD, Preload},
};
use engine::{
    Target,
    record::{Log, Observer},
    run::RunOptions,
};
use model::{ProcessId, Provenance, Severity, TraceSink};

/// MSPTI, from before the engine opens its device until the run is over.
pub(super) enum Mspti {
    /// It has nothing to do with such a run.
    NotAsked,
    /// It records nothing, for this reason.
    Absent(Unavailable),
    /// It records.
    Records(Arc<Session>),
}

/// What it saw.
pub(super) enum Saw {
    Nothing(Option<String>),
    Tasks { observed: Box<Observed>, attributed: collectors::mspti::Attributed },
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// Whether it is asked to record such a run.
fn is_asked(options: &RunOptions) -> bool {
    matches!(options.target, Target::Ascend(_)) && options.observer == Observer::Device
}

/// Starts this program anew with MSPTI in it, where that is what is missing. Comes back where it is not, or cannot be done: then
/// the run says that it was not preloaded.
pub(in crate::cli) fn restart(options: &RunOptions, is_alone: bool) {
    if !is_asked(options) || !is_alone {
        return;
    }
    let Ok(Preload::Restart(files)) = preload::find(&variable).and_then(|file| preload::preload(&file, &variable))
    else {
        return;
    };
    #[cfg(unix)]
    if let Ok(program) = std::env::current_exe() {
        use std::os::unix::process::CommandExt;
        let mut anew = std::process::Command::new(program);
        let _ = anew.args(std::env::args_os().skip(1)).env(PRELOAD, files).env(GUARD, "1").exec();
    }
}

impl Mspti {
    /// Begins, by the clock of `log`. `is_alone` says whether no other rank is in this process, `is_live` whether somebody looks at
    /// the operators while the run goes on.
    pub fn begin(options: &RunOptions, log: Log, is_alone: bool, is_live: bool) -> (Self, Log) {
        if !is_asked(options) {
            return (Self::NotAsked, log);
        }
        let began = match (is_alone, is_live) {
            (false, _) => Err(Unavailable::Ranks),
            (_, true) => Err(Unavailable::Live),
            _ => preload::find(&variable).and_then(|file| match preload::preload(&file, &variable)? {
                Preload::Done(file) => Session::start(Arc::new(Api::open(&file)?), log.clock),
                Preload::Restart(_) => Err(Unavailable::NotPreloaded { file }),
            }),
        };
        match began {
            Ok(session) => {
                let session = Arc::new(session);
                (Self::Records(Arc::clone(&session)), log.telling(Some(session)))
            }
            Err(why) => (Self::Absent(why), log),
        }
    }

    /// Takes what is there, between two steps.
    pub fn flush(&self) {
        if let Self::Records(session) = self {
            session.flush();
        }
    }

    /// Ends, and gives the operators in `log` the times of their tasks.
    pub fn finish(self, log: Log) -> (Saw, Log) {
        let mut log = log.telling(None);
        let saw = match self {
            Self::NotAsked => Saw::Nothing(None),
            Self::Absent(why) => Saw::Nothing(Some(why.to_string())),
            Self::Records(session) => match Arc::into_inner(session) {
                Some(session) => {
                    let observed = Box::new(session.finish());
                    let attributed = observed.attribute(&log);
                    log.attribute(&attributed.seen);
                    Saw::Tasks { observed, attributed }
                }
                None => Saw::Nothing(Some("its observation is still in use".to_owned())),
            },
        };
        (saw, log)
    }
}

impl Saw {
    /// Says in the manifest where the times of the device are from: before the run's own fields, of which the first counts.
    pub fn fields(&self, sink: &mut dyn TraceSink) {
        match self {
            Self::Nothing(None) => (),
            Self::Nothing(Some(why)) => {
                let said = format!("events of the engine, a replay as one; {why}");
                sink.manifest("evidence.device", &said, Provenance::Observed);
                sink.stat("mspti.absent", Severity::Notice, 1, Some(why));
            }
            Self::Tasks { observed, attributed } => observed.fields(attributed, sink),
        }
    }

    /// Writes what there is beside the operators.
    pub fn write(&self, process: ProcessId, sink: &mut dyn TraceSink) {
        if let Self::Tasks { observed, attributed } = self {
            observed.write(attributed, process, 0, sink);
        }
    }
}
