//! Files of profilers that this program knows and does not read: what each is, what it lacks, and the command whose output is
//! read. They are recognised in order to say so.

use std::path::Path;

use model::TraceSink;

use crate::{Format, Head, Match, ReadError, ReadOptions, container, csv_table, json::member};

/// The format.
pub const FORMAT: Format = Format {
    id: "not-read",
    name: "files that have to be exported first (declined: says with which command)",
    matches,
    read,
    lead: crate::alone,
};

/// Bytes that are looked at where a file is read by this format's name.
const HEAD: usize = 64 << 10;

/// A kind of file.
struct Kind {
    is: fn(&Head<'_>) -> Match,
    /// What it is.
    what: &'static str,
    /// Why it is not read.
    why: &'static str,
    /// What to do; `FILE` is the file, `STEM` its path without the last ending.
    next: &'static str,
}

const MINDINSIGHT: &str = "its operators have no stream, no calls of the host and no clock that other files share";
const AGAIN: &str = "record again with the profiler of MindSpore 2.0 or later, or export the raw data of the same run with \
                     'msprof --export=on --output=PROF_DIR' and give PROF_DIR";

/// Every kind.
const KINDS: [Kind; 13] = [
    Kind {
        is: viewers,
        what: "the JSON that JAX's profiler makes of its profile for viewers",
        why: "it holds the first million events and few of their facts",
        next: "give HOST.xplane.pb, which the profiler wrote next to it (DIRECTORY/plugins/profile/*/HOST.xplane.pb)",
    },
    Kind {
        is: |head| sure(head.bytes.starts_with(b"PK\x03\x04"), Match::Named),
        what: "a zip archive",
        why: "archives are not read",
        next: "run 'unzip FILE -d STEM' and give that directory",
    },
    Kind {
        is: |head| sure(head.bytes.get(257..262) == Some(b"ustar"), Match::Named),
        what: "a tar archive",
        why: "archives are not read",
        next: "run 'mkdir STEM && tar xf FILE -C STEM' and give that directory",
    },
    Kind {
        is: |head| sure(PACKED.iter().any(|mark| head.bytes.starts_with(mark)), Match::Named),
        what: "a file whose content is compressed (a second time, or by a program that is not known here)",
        why: "its content is compressed again",
        next: "run 'gunzip -c FILE > STEM' and give that",
    },
    Kind {
        is: |head| sure(utf16(head.bytes), Match::Named),
        what: "text in UTF-16",
        why: "traces are UTF-8; PowerShell's '>' writes UTF-16",
        next: "run 'iconv -f UTF-16 -t UTF-8 FILE > STEM.utf8' and give that",
    },
    Kind {
        is: |head| sure(head.bytes.starts_with(b"NVR\0"), Match::Named),
        what: "a report of Nsight Compute",
        why: "only 'ncu' of its version or a newer one can read it",
        next: "run 'ncu --import FILE --page raw --csv > STEM.raw.csv' and give that",
    },
    Kind {
        is: perfetto,
        what: "a Perfetto trace of protocol buffers",
        why: "its packets are not read",
        next: "record with 'rocprofv3 --runtime-trace --output-format rocpd -- COMMAND' (or csv), or convert it with \
               'traceconv json FILE STEM.json' and give that",
    },
    Kind { is: mindinsight, what: "a timeline of MindInsight (MindSpore before 2.0)", why: MINDINSIGHT, next: AGAIN },
    Kind {
        is: mindinsight_table,
        what: "a table of MindInsight (MindSpore before 2.0)",
        why: MINDINSIGHT,
        next: AGAIN,
    },
    Kind {
        is: simulator,
        what: "a trace of the simulator of msprof op",
        why: "it shows the pipes of one simulated core and no run on a device",
        next: "run 'msprof op --output=DIR COMMAND' on the device and give DIR/OPPROF_*",
    },
    Kind {
        is: unitrace,
        what: "a timeline of Intel's unitrace",
        why: "its device work has no devices and queues that other sources share, and its times are floats of a quarter of a \
              microsecond",
        next: "record the run with the profiler of PyTorch (ProfilerActivity.CPU and ProfilerActivity.XPU) and give its trace",
    },
    Kind {
        is: topology,
        what: "the topology of a machine as npu-smi or nvidia-smi prints it",
        why: "it says how devices are connected and nothing of a run",
        next: "give the trace, log or result of a run",
    },
    Kind {
        is: slice,
        what: "raw data of msprof",
        why: "it is not exported yet",
        next: "run 'msprof --export=on --output=PROF_DIR' with the PROF_* directory that it lies in, and give that directory",
    },
];

/// First bytes of gzip, zstd, xz, bzip2; that of the file itself is inflated before anybody looks.
const PACKED: [&[u8]; 4] = [b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ", b"BZh"];

/// Text in UTF-16, told by its mark, or by a zero in every other of the first bytes.
fn utf16(bytes: &[u8]) -> bool {
    let marked = bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff");
    let first = bytes.get(..32).unwrap_or_default();
    let zeros = |from: usize| first.iter().skip(from).step_by(2).all(|b| *b == 0);
    let text = |from: usize| first.iter().skip(from).step_by(2).all(|b| b.is_ascii() && *b != 0);
    marked || !first.is_empty() && (zeros(1) && text(0) || zeros(0) && text(1))
}

/// Events without categories in processes that are named like planes of XLA.
fn viewers(head: &Head<'_>) -> Match {
    let plane = |name: &[u8]| name.starts_with(b"/device:GPU") || name.starts_with(b"/device:TPU");
    let is = head.bytes.trim_ascii_start().starts_with(b"{")
        && member::has_key(head.bytes, "traceEvents")
        && member::has_key(head.bytes, "highres-ticks")
        && member::texts(head.bytes, "name").any(plane);
    sure(is, Match::Named)
}

fn sure(is: bool, how: Match) -> Match {
    if is { how } else { Match::No }
}

fn name(head: &Head<'_>) -> String {
    head.path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default()
}

/// Packets are field 1 of the trace. The message has no mark of its own, so that its name has to fit as well.
fn perfetto(head: &Head<'_>) -> Match {
    let named = [".pftrace", ".perfetto-trace", ".proto"].iter().any(|ending| name(head).ends_with(ending));
    sure(named && head.bytes.first() == Some(&0x0a), Match::Possible)
}

/// Events without a category, whose arguments are the formats of the operator's tensors as MindSpore writes them.
fn mindinsight(head: &Head<'_>) -> Match {
    let is = head.bytes.trim_ascii_start().starts_with(b"[")
        && member::texts(head.bytes, "fullname").any(|name| name.starts_with(b"Default/"))
        && member::texts(head.bytes, "data_type").next().is_some()
        && !member::has_key(head.bytes, "cat");
    sure(is, Match::Certain)
}

fn mindinsight_table(head: &Head<'_>) -> Match {
    const TABLES: [&[&str]; 2] = [
        &["op_name", "stream_id", "start_time(ms)", "duration(ms)"],
        &["task_id", "stream_id", "block_dim", "full_op_name"],
    ];
    let header = csv_table::first_header(head.bytes);
    sure(TABLES.iter().any(|columns| csv_table::has_all(&header, columns)), Match::Certain)
}

/// Lanes of a simulated core, such as `core0.veccore0`.
fn simulator(head: &Head<'_>) -> Match {
    let of_core = |pid: &[u8]| {
        let core = pid.starts_with(b"core");
        core && [&b".veccore"[..], b".cubecore"].iter().any(|kind| memchr::memmem::find(pid, kind).is_some())
    };
    let is = member::has_key(head.bytes, "ph") && member::texts(head.bytes, "pid").any(of_core);
    sure(is, Match::Named)
}

/// Device rows of unitrace (`gpu_op`) and the arrows between host and device (`Flow_H2D_<kernel>_<rank>`), which stand beside host
/// rows of a category that Kineto has too. Source: intel/pti-gpu, tools/unitrace.
fn unitrace(head: &Head<'_>) -> Match {
    const ARROWS: [&[u8]; 3] = [b"Flow_H2D_", b"Flow_D2H_", b"CL_Flow_"];
    let own = |cat: &[u8]| cat == b"gpu_op" || ARROWS.iter().any(|arrow| cat.starts_with(arrow));
    sure(member::has_key(head.bytes, "ph") && member::texts(head.bytes, "cat").any(own), Match::Named)
}

/// `npu-smi info -t topo` and `nvidia-smi topo -m`: a row and a column for each device, and the processors near it.
fn topology(head: &Head<'_>) -> Match {
    let text = String::from_utf8_lossy(head.bytes.get(..1024.min(head.bytes.len())).unwrap_or_default());
    let is_header = |line: &str| {
        let first = line.split_whitespace().next();
        matches!(first, Some("NPU0" | "GPU0")) && line.contains("CPU Affinity")
    };
    sure(text.lines().any(is_header), Match::Certain)
}

/// A raw slice (`stars_soc.data.0.slice_0`): bytes that are no text, under the name that msprof gives them.
fn slice(head: &Head<'_>) -> Match {
    sure(name(head).contains(".slice_") && head.bytes.contains(&0), Match::Possible)
}

fn kind(head: &Head<'_>) -> Option<(Match, &'static Kind)> {
    if head.path.is_dir() {
        return None;
    }
    let found = KINDS.iter().map(|kind| ((kind.is)(head), kind)).filter(|(sure, _)| *sure != Match::No);
    found.reduce(|best, next| if next.0 > best.0 { next } else { best })
}

fn matches(head: &Head<'_>) -> Match {
    kind(head).map_or(Match::No, |(sure, _)| sure)
}

fn read(path: &Path, _: &mut dyn TraceSink, _: &ReadOptions<'_>) -> Result<(), ReadError> {
    let bytes = container::head(path, HEAD)?;
    let (what, why, next) = kind(&Head::new(path, &bytes)).map_or(
        ("no file of a known kind", "it has none of their marks", "leave --as away to have it recognised"),
        |(_, kind)| (kind.what, kind.why, kind.next),
    );
    let shown = |path: &Path| format!("'{}'", path.display().to_string().replace('\'', r"'\''"));
    // Within a command that stands in quotes, a path needs none of its own unless a blank is in it.
    let plain = |path: &Path| {
        let text = path.display().to_string();
        if text.contains([' ', '\'', '"']) { shown(path).replace('\'', "\"") } else { text }
    };
    let next = next.replace("FILE", &plain(path)).replace("STEM", &plain(&path.with_extension("")));
    Err(ReadError::NotRead { path: path.to_owned(), what: what.to_owned(), why: why.to_owned(), next })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use model::TraceBuilder;

    fn refused(name: &str, content: &[u8]) -> String {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        let mut sink = TraceBuilder::new("t", "t");
        crate::detect::read(&path, &mut sink, &ReadOptions::default()).map(|f| f.id).unwrap_err().to_string()
    }

    const MINDINSIGHT_EVENTS: &[u8] = br#"[{"name": "InitData", "ph": "X", "tid": "0", "ts": 0.0, "dur": 159.9, "pid": 9000},{"name": "Cast-op1", "ph": "X", "tid": "519", "ts": 6.5, "dur": 3.1, "pid": 1, "args": {"type": "Cast", "fullname": "Default/Cast-op1", "input_0": {"format": "DefaultFormat", "data_type": "NUMBER_TYPE_UINT8", "shape": "1"}}}]"#;

    #[test]
    fn each_kind_is_declined_by_its_name_with_what_to_give_instead() {
        for (name, content, what, next) in [
            ("p.ncu-rep", &b"NVR\0\x04\0\0\0rest"[..], "a report of Nsight Compute", "p.ncu-rep --page raw --csv > "),
            ("r.pftrace", b"\x0a\x05\x50\x01\x08\x01\x10", "a Perfetto trace", "rocprofv3 --runtime-trace"),
            ("ascend_timeline_display_1.json", MINDINSIGHT_EVENTS, "a timeline of MindInsight", "msprof --export=on"),
            (
                "a.csv",
                b"task_id,stream_id,block_dim,full_op_name\n1,2,3,Default/Cast-op1\n",
                "a table of MindInsight",
                "MindSpore 2.0",
            ),
            (
                "trace.json",
                br#"{"traceEvents":[{"name":"MOV_UB","ph":"X","pid":"core0.veccore0","tid":"MTE2","ts":1,"dur":2}]}"#,
                "a trace of the simulator of msprof op",
                "msprof op --output=DIR",
            ),
            (
                "app.42.json",
                br#"{"traceEvents":[{"ph":"X","cat":"cpu_op","name":"zeCommandListAppendLaunchKernel","ts":1.5,"dur":2,"pid":1,"tid":1,"args":{"id":"7"}},{"ph":"X","cat":"gpu_op","name":"gemm[SIMD32 {8; 1; 1} {256; 1; 1}]","ts":4.25,"dur":3,"pid":2,"tid":3,"args":{"id":"7"}}]}"#,
                "a timeline of Intel's unitrace",
                "ProfilerActivity.XPU",
            ),
            (
                "topo.txt",
                b"        NPU0    NPU1  CPU Affinity\nNPU0     X      PXB   144-167\n",
                "the topology of a machine",
                "result of a run",
            ),
            ("stars_soc.data.0.slice_0", b"\x01\0\x02\0", "raw data of msprof", "msprof --export=on --output=PROF_DIR"),
        ] {
            let error = refused(name, content);
            assert!(error.contains(what) && error.contains(next), "{name}: {error}");
            assert!(!error.contains("kineto"), "{error}");
        }
    }

    #[test]
    fn what_only_looks_like_one_is_not_declined() {
        for (name, content) in [
            ("a.json", &br#"[{"ph":"X","name":"a","cat":"cpu_op","ts":1,"dur":2,"pid":1,"tid":1,"args":{"fullname":"Default/x"}}]"#[..]),
            ("x.slice_0", b"text"),
            ("a.pb", b"\x0a\x05\x50\x01\x08\x01\x10"),
            ("NVR.txt", b"NVR is a word"),
        ] {
            assert_eq!(matches(&Head::new(Path::new(name), content)), Match::No, "{name}");
        }
    }

    /// Archives, text in UTF-16 and files compressed twice were of no known format, without a word of what they are.
    #[test]
    fn archives_and_encodings_are_named() {
        let mut tar = vec![b'a'; 600];
        tar.splice(257..262, *b"ustar");
        let gzip = |content: &[u8]| {
            use std::io::Write;
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(content).unwrap();
            encoder.finish().unwrap()
        };
        let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        let json = "{\"schemaVersion\": 1, \"traceEvents\": []}";
        for (content, what) in [
            (b"PK\x03\x04 and more".to_vec(), "zip archive"),
            (tar.clone(), "tar archive"),
            (gzip(&tar), "tar archive"),
            (gzip(&gzip(json.as_bytes())), "compressed"),
            (wide(&format!("\u{feff}{json}")), "UTF-16"),
            (wide(json), "UTF-16"),
        ] {
            let told = refused("trace.json", &content);
            assert!(told.contains(what), "{told}");
        }
    }

    #[test]
    fn jaxs_json_points_to_the_profile() {
        let json = br#"{"displayTimeUnit":"ns","metadata":{"highres-ticks":true},"traceEvents":[{"ph":"M","pid":1,"name":"process_name","args":{"name":"/device:GPU:0"}}]}"#;
        assert!(refused("host.trace.json", json).contains("HOST.xplane.pb"));
    }
}
