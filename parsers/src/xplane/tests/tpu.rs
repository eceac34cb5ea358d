//! Planes of TPUs, steps, and launches among annotations.

use model::{SyncKind, TrackKind::DeviceQueue};

use super::*;

/// A plane with these names of events and these lines.
fn plane(title: &str, names: &[&str], rest: &[Vec<u8>]) -> Vec<u8> {
    let table: Vec<u8> = names.iter().enumerate().flat_map(|(id, text)| name(4, id as u64 + 1, text)).collect();
    bytes(1, &[bytes(2, title.as_bytes()), table, rest.concat()].concat())
}

const START: &str =
    "%copy-start = (f32[4,256]{1,0}, f32[4,256]{1,0:S(5)}, u32[]{:S(2)}) copy-start(f32[4,256]{1,0:S(5)} %param)";
const DONE: &str =
    "%copy-done = f32[4,256]{1,0} copy-done((f32[4,256]{1,0}, f32[4,256]{1,0:S(5)}, u32[]{:S(2)}) %copy-start)";
const REDUCE: &str = "%all-reduce.3 = f32[4,256]{1,0} all-reduce(f32[4,256]{1,0} %bitcast), replica_groups={{0,1,2,3}}";
const FUSION: &str = "%fusion.2 = f32[4,256]{1,0} fusion(f32[4,256]{1,0} %copy-done), kind=kLoop";
const LONE: &str =
    "%copy-done.7 = f32[4,256]{1,0:S(5)} copy-done((f32[4,256]{1,0:S(5)}, f32[4,256]{1,0}, u32[]) %copy-start.7)";
const NAMES: [&str; 7] = [START, DONE, REDUCE, FUSION, LONE, "jit_f(12)", "jit_g(13)"];

fn at(name: u64, start: u64, dur: u64) -> Vec<u8> {
    event(name, (start * 1000, dur * 1000), &[])
}

/// Rows of the operations: a copy from the host under way while a fusion runs, a wait for it, a collective, and a wait whose start
/// lies before the recording.
fn operations() -> Vec<u8> {
    line(3, "XLA Ops", &[at(5, 0, 4), at(1, 10, 1), at(4, 11, 20), at(2, 31, 9), at(3, 40, 10)])
}

fn found(trace: &Trace) -> Vec<(TrackKind, Category, String, i64, i64)> {
    slices(trace).into_iter().map(|(kind, _, category, name, start, dur)| (kind, category, name, start, dur)).collect()
}

/// All of it was compute: `copy-done`, which waits for a copy from the host, and the collective too.
#[test]
fn asynchronous_copies_are_copies_their_ends_are_waits_and_collectives_are_told() {
    let trace = import(&plane("/device:TPU:0", &NAMES, &[operations()]));
    let row = |kind, category, name: &str, start, dur| (kind, category, name.to_owned(), start, dur);
    let expected = [
        row(DeviceQueue, Category::Memcpy, "copy-done.7", 0, 4),
        row(DeviceQueue, Category::Kernel, "fusion.2", 11, 20),
        row(DeviceQueue, Category::Kernel, "all-reduce.3", 40, 10),
        row(TrackKind::DeviceSync, Category::DeviceEvent, "copy-start", 10, 1),
        row(TrackKind::DeviceSync, Category::DeviceSync, "copy-done", 31, 9),
        row(DeviceQueue, Category::Memcpy, "copy-start", 10, 30),
    ];
    assert_eq!(found(&trace), expected);
    let detail = |name: &str, category| {
        let id = trace.strings.find(name).unwrap();
        let at =
            |lane: &&model::Columns| (0..lane.len()).find(|i| lane.name[*i] == id && lane.category[*i] == category);
        trace.lanes.iter().find_map(|lane| trace.detail(lane, at(&lane)?).cloned()).unwrap()
    };
    let Detail::Copy(copy) = detail("copy-start", Category::Memcpy) else { panic!() };
    assert_eq!((copy.direction.map(|id| trace.strings.get(id)), copy.bytes), (Some("HtoD"), Some(4096)));
    let Detail::Copy(part) = detail("copy-done.7", Category::Memcpy) else { panic!() };
    assert_eq!((part.direction.map(|id| trace.strings.get(id)), part.bytes), (Some("DtoH"), None), "a part of a copy");
    assert_eq!(detail("copy-done", Category::DeviceSync), Detail::Sync(SyncKind::StreamWaitEvent));
    let Detail::Kernel(kernel) = detail("all-reduce.3", Category::Kernel) else { panic!() };
    let call = kernel.collective.unwrap();
    assert_eq!(
        (call.op.map(|id| trace.strings.get(id)), call.bytes, call.group_size),
        (Some("allreduce"), Some(4096), Some(4))
    );
    let told: Vec<_> = trace.ledger.iter().map(|row| (row.category.as_str(), row.read, row.kept)).collect();
    assert_eq!(told, [("asynchronous operations", 1, 1), ("device operations", 5, 5)]);
}

/// The line was kept as names without work.
#[test]
fn the_line_of_asynchronous_operations_is_taken_where_it_is_drawn_and_overlaps_lie_side_by_side() {
    let drawn = line(4, "Async XLA Ops", &[at(1, 10, 30), at(1, 12, 40), at(1, 45, 5)]);
    let trace = import(&plane("/device:TPU:0", &NAMES, &[operations(), drawn]));
    let copies: Vec<_> = trace
        .tracks
        .iter()
        .zip(&trace.lanes)
        .filter(|(track, _)| track.key.kind == DeviceQueue && track.key.context.is_some())
        .map(|(track, lane)| (track.key.id, lane.start.clone(), lane.dur.clone()))
        .collect();
    assert_eq!(copies, [(0, vec![10, 45], vec![30, 5]), (1, vec![12], vec![40])]);
}

#[test]
fn runs_of_the_module_that_has_the_time_are_steps() {
    let modules = line(2, "XLA Modules", &[at(7, 0, 4), at(6, 10, 30), at(6, 40, 20)]);
    let trace = import(&plane("/device:TPU:0", &NAMES, &[modules, operations()]));
    let steps: Vec<_> = found(&trace).into_iter().filter(|row| row.2.starts_with("XLA step")).collect();
    let row =
        |name: &str, start, dur| (TrackKind::DeviceAnnotation, Category::DeviceRange, name.to_owned(), start, dur);
    assert_eq!(steps, [row("XLA step 0", 10, 30), row("XLA step 1", 40, 20)]);
}

#[test]
fn modules_of_single_operations_are_no_steps() {
    let modules = line(2, "XLA Modules", &[at(7, 0, 4), at(6, 10, 3), at(6, 20, 3), at(5, 30, 9)]);
    let trace = import(&plane("/device:TPU:0", &NAMES, &[modules, operations()]));
    assert!(found(&trace).iter().all(|row| !row.2.starts_with("XLA step")));
}

#[test]
fn the_line_of_steps_goes_before_modules() {
    let names = [&NAMES[..], &["41"]].concat();
    let modules = line(2, "XLA Modules", &[at(6, 10, 30), at(6, 40, 20)]);
    let trace = import(&plane("/device:TPU:0", &names, &[modules, operations(), line(9, "Steps", &[at(8, 0, 50)])]));
    let steps: Vec<_> =
        found(&trace).into_iter().filter(|row| row.2.starts_with("XLA step")).map(|row| row.2).collect();
    assert_eq!(steps, ["XLA step 41"]);
}

/// Launches among the annotations of a thread were annotations, so that no operation had a cause.
#[test]
fn launches_among_annotations_are_calls() {
    let fact = name(5, 1, "correlation_id");
    let stream = line(134, "Stream #134(Compute)", &[event(1, (20_000, 5_000), &[[int(1, 1), int(3, 72)].concat()])]);
    let device = plane("/device:GPU:4", &["void Eigen::k<float>()"], &[fact.clone(), stream]);
    let launch = event(1, (10_000, 2_000), &[[int(1, 1), int(3, 72)].concat()]);
    let thread = line(7, "tf_gpu_private_4/7", &[launch, event(2, (9_000, 9_000), &[])]);
    let host = plane("/host:CPU", &["void Eigen::k<float>()", "ExecutorState::Process"], &[fact, thread]);
    let trace = import(&[device, host].concat());
    assert!(trace.lanes[0].link(0).is_some());
    let categories: Vec<_> = found(&trace).into_iter().map(|row| row.1).collect();
    assert_eq!(categories, [Category::Kernel, Category::FrameworkOp, Category::HostApi]);
}
