//! Chrome-trace JSON of the PyTorch profiler (Kineto) and of its forks, from 2021 on: plain, gzip or zstd.
//!
//! | module | owns |
//! | --- | --- |
//! | `read` | the file from first byte to last, blocks in parallel |
//! | `event` | one event, the arguments that matter |
//! | `category` | what the source's categories are to us |
//! | `detail` | shapes, copies, waits, collectives |
//! | `batch` | what a block says |
//! | `builder` | events into a batch |
//! | `halves` | slices written as two events |
//! | `micros` | timestamps as the writer spells them |
//! | `facts` | metadata, by allow list |
//! | `merge` | batches and facts into the sink |

mod again;
mod batch;
mod builder;
mod category;
mod detail;
mod event;
mod facts;
mod halves;
mod merge;
mod micros;
mod read;
mod run;

use crate::{Format, Head, Match, json::member};

/// The format.
pub const FORMAT: Format = Format {
    id: "kineto",
    name: "PyTorch profiler (Kineto) trace, JSON",
    matches,
    read: read::read,
    lead: crate::alone,
};

/// Keys that no other writer of Chrome traces uses, and what their values begin with.
const KEYS: [(&str, &[u8]); 3] =
    [("deviceProperties", b"["), ("distributedInfo", b"{"), ("baseTimeNanoseconds", member::NUMBER)];

/// Categories of events that no other writer uses, but for programs that say their own name.
const CATEGORIES: [&[u8]; 7] =
    [b"cpu_op", b"cuda_runtime", b"python_function", b"gpu_memcpy", b"user_annotation", b"Operator", b"ac2g"];

fn matches(head: &Head<'_>) -> Match {
    let bytes = head.bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head.bytes).trim_ascii_start();
    let marked = || {
        KEYS.iter().any(|(key, first)| member::has_value(bytes, key, first))
            || member::texts(bytes, "cat").any(|category| CATEGORIES.contains(&category))
    };
    match bytes.first() {
        Some(b'{' | b'[') if marked() => Match::Certain,
        Some(b'{') if member::has_key(bytes, "traceEvents") => Match::Possible,
        Some(b'[') if member::has_key(bytes, "ph") => Match::Possible,
        _ => Match::No,
    }
}

#[cfg(test)]
mod tests;
