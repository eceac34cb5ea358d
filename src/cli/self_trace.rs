//! The program's own spans as a capture, which `strato view` opens like any other.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use model::{Category, Clock, Ns, Slice, Trace, TraceBuilder, TraceSink, TrackKey, TrackKind};
use tracing::{
    Subscriber,
    field::{Field, Visit},
    span,
};
use tracing_subscriber::{Layer, layer::Context, registry::LookupSpan};

/// Spans that are kept; a session has some ten per file. Beyond it they are counted.
const MOST: usize = 1 << 18;
/// Bytes of a span's name.
const LONGEST: usize = 256;

/// Spans of this program since it began.
pub struct SelfTrace {
    began: Instant,
    unix: Option<Ns>,
    spans: Mutex<Vec<Spent>>,
    lost: AtomicU64,
}

/// A span that is over.
struct Spent {
    name: String,
    thread: u64,
    start: Ns,
    dur: Ns,
}

impl SelfTrace {
    /// A trace that begins now.
    pub fn new() -> Self {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).ok();
        let unix = unix.and_then(|since| Ns::try_from(since.as_nanos()).ok());
        Self { began: Instant::now(), unix, spans: Mutex::default(), lost: AtomicU64::new(0) }
    }

    fn now(&self) -> Ns {
        Ns::try_from(self.began.elapsed().as_nanos()).unwrap_or(Ns::MAX)
    }

    fn keep(&self, spent: Spent) {
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        if spans.len() < MOST {
            spans.push(spent);
        } else {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The capture of what is over by now.
    pub fn capture(&self) -> Trace {
        let mut builder = TraceBuilder::new("strato", "self");
        let process = builder.process(0);
        builder.describe_process(process, Some(i64::from(std::process::id())), Some("strato"), None);
        let spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        for spent in spans.iter() {
            let key =
                TrackKey { kind: TrackKind::HostThread, process, device: None, context: None, id: spent.thread as i64 };
            let (track, name) = (builder.track(key), builder.intern(&spent.name));
            builder.slice(Slice {
                track,
                start: spent.start,
                dur: spent.dur,
                name,
                category: Category::UserRange,
                correlation: None,
                detail: None,
            });
        }
        let lost = self.lost.load(Ordering::Relaxed);
        if lost > 0 {
            builder.stat("self.spans_not_kept", model::Severity::DataLoss, lost, None);
        }
        builder.clock(Clock::AsIs { unix_zero: self.unix });
        builder.finish()
    }
}

/// Subscribes a [`SelfTrace`] to the program's spans.
pub struct Spans(pub Arc<SelfTrace>);

/// What is known of a span while it is open.
struct Open {
    name: String,
    thread: u64,
    start: Ns,
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &span::Attributes<'_>, id: &span::Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut name = Name(attributes.metadata().name().to_owned());
        attributes.record(&mut name);
        let open = Open { name: name.0, thread: thread_number(), start: self.0.now() };
        span.extensions_mut().insert(open);
    }

    fn on_close(&self, id: span::Id, context: Context<'_, S>) {
        let open = context.span(&id).and_then(|span| span.extensions_mut().remove::<Open>());
        if let Some(Open { name, thread, start }) = open {
            self.0.keep(Spent { name, thread, start, dur: self.0.now() - start });
        }
    }
}

/// The name of a span with what it is about.
struct Name(String);

impl Visit for Name {
    fn record_debug(&mut self, _: &Field, value: &dyn std::fmt::Debug) {
        let about = format!(" {value:?}");
        if self.0.len() + about.len() <= LONGEST {
            self.0.push_str(&about);
        }
    }
}

/// A small number for this thread.
fn thread_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local!(static OWN: u64 = NEXT.fetch_add(1, Ordering::Relaxed));
    OWN.with(|own| *own)
}
