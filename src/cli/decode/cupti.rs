//! CUPTI beside a run: it records the device where that was asked for and can be, and else the engine's own events do.

use std::sync::Arc;

use collectors::{
    cupti::{
        Api, Mode, Observed, Session,
        cost::{Cost, cost},
    },
    engine_run,
};
use engine::{
    record::{Log, Observer},
    run::{Engine, RunOptions},
};

/// CUPTI, from before the engine opens its device until the run is over.
pub(super) enum Cupti {
    /// Nobody asked for it.
    NotAsked,
    /// It records nothing, for this reason.
    Absent(String),
    /// It records.
    Records { api: Arc<Api>, mode: Mode, session: Arc<Session> },
}

/// What it saw.
pub(super) enum Saw {
    Nothing(Option<String>),
    Device { observed: Box<Observed>, cost: Result<Cost, String> },
}

impl Cupti {
    /// Begins, if `options` ask for it, by the clock of `log`; where it cannot, they ask for the engine's events from then on.
    /// `is_alone` says whether no other rank is in this process, of which CUPTI records the whole.
    pub fn begin(options: &mut RunOptions, log: Log, is_alone: bool) -> (Self, Log) {
        let mode = match options.observer {
            Observer::Off | Observer::Host | Observer::Device => {
                return (Self::NotAsked, log.observed(options.observer));
            }
            Observer::Graph => Mode::Graph,
            Observer::Node => Mode::Node,
        };
        let began = if is_alone {
            Api::find().map(Arc::new).and_then(|api| {
                let session = Session::start(Arc::clone(&api), mode, log.clock)?;
                Ok((api, Arc::new(session)))
            })
        } else {
            Err(collectors::cupti::Unavailable::Ranks)
        };
        match began {
            // What the device did CUPTI says; events between commands would hold it up.
            Ok((api, session)) => {
                let log = log.observed(Observer::Host).telling(Some(session.clone()));
                (Self::Records { api, mode, session }, log)
            }
            Err(why) => {
                options.observer = Observer::Device;
                (Self::Absent(why.to_string()), log.observed(Observer::Device))
            }
        }
    }

    /// Takes what is there, between two steps.
    pub fn flush(&self) {
        if let Self::Records { session, .. } = self {
            session.flush();
        }
    }

    /// Ends, and where `measures` says so finds out on further steps of `engine` what it cost.
    pub fn finish(self, engine: &mut Engine, log: Log, measures: bool) -> (Saw, Log) {
        let log = log.telling(None);
        let saw = match self {
            Self::NotAsked => Saw::Nothing(None),
            Self::Absent(why) => Saw::Nothing(Some(why)),
            Self::Records { api, mode, session } => match Arc::into_inner(session) {
                Some(session) => {
                    let observed = Box::new(session.finish());
                    let cost =
                        if measures { cost(api, mode, engine) } else { Err("the run was to end at a time".to_owned()) };
                    Saw::Device { observed, cost }
                }
                None => Saw::Nothing(Some("its observation is still in use".to_owned())),
            },
        };
        (saw, log)
    }
}

impl Saw {
    /// The same as a capture takes it.
    pub fn told(&self) -> engine_run::Cupti<'_> {
        match self {
            Self::Nothing(None) => engine_run::Cupti::NotAsked,
            Self::Nothing(Some(why)) => engine_run::Cupti::Absent(why),
            Self::Device { observed, cost } => {
                engine_run::Cupti::Saw { observed, cost: cost.as_ref().map_err(String::as_str) }
            }
        }
    }
}
