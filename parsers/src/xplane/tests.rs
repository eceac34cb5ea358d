#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod tpu;

use std::io::Write;

use model::{Category, Detail, Trace, TraceBuilder, TrackKind};

use super::*;

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 127 {
        bytes.push(value as u8 & 127 | 128);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn int(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

fn bytes(field: u64, content: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(content.len() as u64), content.to_vec()].concat()
}

/// An entry of a table of names.
fn name(table: u64, id: u64, text: &str) -> Vec<u8> {
    bytes(table, &[int(1, id), bytes(2, &[int(1, id), bytes(2, text.as_bytes())].concat())].concat())
}

fn event(name: u64, (offset, duration): (u64, u64), stats: &[Vec<u8>]) -> Vec<u8> {
    let stats: Vec<u8> = stats.iter().flat_map(|stat| bytes(4, stat)).collect();
    bytes(4, &[int(1, name), int(2, offset), int(3, duration), stats].concat())
}

fn line(id: u64, title: &str, events: &[Vec<u8>]) -> Vec<u8> {
    bytes(3, &[int(1, id), bytes(2, title.as_bytes()), int(3, 900), events.concat()].concat())
}

/// A device with a stream and a line of modules, a host with driver calls and a thread, and the environment.
fn space() -> Vec<u8> {
    let names = |plane: &str, rest: &[Vec<u8>]| bytes(1, &[bytes(2, plane.as_bytes()), rest.concat()].concat());
    let texts = || {
        [
            "correlation_id",
            "kernel_details",
            " grid:219,40,1 block:256,1,1 occ_pct:0",
            "memcpy_details",
            "kind:HostToDevice size:4096 async:1",
            "step_num",
            "device_vendor",
            "core_count",
            "profile_start_time",
        ]
        .iter()
        .enumerate()
        .flat_map(|(id, text)| name(5, id as u64 + 1, text))
        .collect::<Vec<u8>>()
    };
    let (correlated, shaped) = (|id: u64| [int(1, 1), int(3, id)].concat(), [int(1, 2), int(7, 3)].concat());
    let copied = [int(1, 4), int(7, 5)].concat();
    let device = names(
        "/device:GPU:3",
        &[
            name(4, 1, "Im3d2Col.kd"),
            name(4, 2, "MemcpyH2D"),
            name(4, 3, "jit_f"),
            texts(),
            bytes(6, &[int(1, 7), bytes(5, b"AMD")].concat()),
            bytes(6, &[int(1, 8), int(4, 304)].concat()),
            line(
                25,
                "Stream #25(Kernel)",
                &[
                    event(1, (100_999, 17_500), &[correlated(229), shaped]),
                    event(2, (120_000, 1_000), &[correlated(230), copied]),
                ],
            ),
            line(1, "XLA Modules", &[event(3, (100_000, 30_000), &[])]),
        ],
    );
    let host = names(
        "/host:CPU",
        &[
            name(4, 1, "hipLaunchKernel"),
            name(4, 2, "train"),
            name(4, 3, "$train.py:7 step"),
            texts(),
            line(583, "Host Threads/583", &[event(1, (50_000, 2_000), &[correlated(229)])]),
            line(
                1,
                "python3",
                &[event(2, (0, 200_000), &[[int(1, 6), int(4, 3)].concat()]), event(3, (10_000, 5_000), &[])],
            ),
        ],
    );
    let start = [int(1, 9), int(3, 1_771_595_639_214_724_894)].concat();
    let environment = names("Task Environment", &[texts(), bytes(6, &start)]);
    [device, host, environment, bytes(4, b"tw003")].concat()
}

fn file(content: &[u8]) -> tempfile::NamedTempFile {
    let mut temp = tempfile::NamedTempFile::new().unwrap();
    temp.write_all(content).unwrap();
    temp
}

fn import(content: &[u8]) -> Trace {
    let mut builder = TraceBuilder::new("t", "xplane");
    let format = crate::detect::read(file(content).path(), &mut builder, &ReadOptions::default()).unwrap();
    assert_eq!(format.id, "xplane");
    builder.finish()
}

fn slices(trace: &Trace) -> Vec<(TrackKind, i64, Category, String, i64, i64)> {
    let mut all = Vec::new();
    for (track, lane) in trace.tracks.iter().zip(&trace.lanes) {
        for i in 0..lane.len() {
            let name = trace.strings.get(lane.name[i]).to_owned();
            all.push((track.key.kind, track.key.id, lane.category[i], name, lane.start[i], lane.dur[i]));
        }
    }
    all
}

#[test]
fn planes_become_queues_threads_and_facts() {
    let trace = import(&space());
    let row = |kind, id, category, name: &str, start, dur| (kind, id, category, name.to_owned(), start, dur);
    use TrackKind::{DeviceAnnotation, DeviceQueue, HostThread};
    let expected = [
        // From 900 ns and 100 999 ps for 17 500 ps: both ends are rounded down.
        row(DeviceQueue, 25, Category::Kernel, "Im3d2Col", 100, 18),
        row(DeviceQueue, 25, Category::Memcpy, "MemcpyH2D", 120, 1),
        row(DeviceAnnotation, 1, Category::DeviceRange, "jit_f", 100, 30),
        row(HostThread, 583, Category::HostApi, "hipLaunchKernel", 50, 2),
        row(HostThread, 1, Category::UserRange, "train", 0, 200),
        row(HostThread, 1, Category::PythonFrame, "$train.py:7 step", 10, 5),
    ];
    assert_eq!(slices(&trace), expected);
    let queue = &trace.lanes[0];
    assert!(queue.link(0).is_some() && queue.link(1).is_none());
    let Some(Detail::Kernel(kernel)) = trace.detail(queue, 0) else { panic!() };
    assert_eq!((kernel.grid, kernel.block), (Some([219, 40, 1]), Some([256, 1, 1])));
    let Some(Detail::Copy(copy)) = trace.detail(queue, 1) else { panic!() };
    assert_eq!((copy.bytes, copy.direction.map(|id| trace.strings.get(id))), (Some(4096), Some("HtoD")));
    assert_eq!(trace.manifest.value("hardware.vendor"), Some("amd"));
    let device = trace.devices.first().unwrap();
    assert_eq!((device.ordinal, device.cores), (3, Some(304)));
}

#[test]
fn a_cut_file_gives_what_comes_before_the_cut() {
    let whole = space();
    let mut least = usize::MAX;
    for length in (20..whole.len() - 8).rev() {
        let mut builder = TraceBuilder::new("t", "xplane");
        let cut = file(&whole[..length]);
        if read(cut.path(), &mut builder, &ReadOptions::default()).is_ok() {
            let trace = builder.finish();
            // Of an event whose successor lost its length nobody can tell that it is whole: it is counted, not kept.
            assert!(trace.slice_count() <= least.saturating_add(1), "{length}");
            least = least.min(trace.slice_count());
        }
    }
    assert_eq!(least, 0);
}

#[test]
fn a_message_of_another_kind_is_none() {
    for other in [&b"\n\x05hello"[..], b"\n\n\x12\x08/devices", b"{\"a\": 1}", &[0x0a]] {
        assert_eq!(matches(&Head::new(Path::new("x.pb"), other)), Match::No, "{other:?}");
    }
}
