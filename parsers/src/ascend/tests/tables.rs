//! Tables of tasks and of sums, on their own.

use super::*;
use crate::ascend::{TABLE_FORMAT, TOTALS_FORMAT};

fn read_as(format: &crate::Format, name: &str, content: &str) -> Trace {
    let output = Output::new().file(name, content);
    assert_eq!(crate::detect::detect(&output.path(name), &crate::ReadOptions::default()).unwrap().id, format.id);
    let mut builder = TraceBuilder::new(name, format.id);
    (format.read)(&output.path(name), &mut builder, &crate::ReadOptions::default()).unwrap();
    builder.finish()
}

#[test]
fn rows_become_tasks_collectives_and_steps() {
    let text = "Step Id,Device_id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Num,Stream ID,Model ID\n\
        7,3,aclnnAdd_Add,Add,AI_VECTOR_CORE,\"1736413971558972.912\t\",185.504,1.0,40,2,4294967295\n\
        7,3,hcom_allReduce__586_0_1,hcom_allReduce_,HCCL,1736413971559200.000\t,500,0,0,N/A,N/A\n\
        ,3,broken,Add,AI_CORE,N/A,1,0,1,2,4294967295\n";
    let trace = read_as(&TABLE_FORMAT, "kernel_details.csv", text);
    assert_eq!(
        rows(&trace, TrackKind::DeviceQueue),
        [
            (Category::Kernel, "aclnnAdd_Add".to_owned(), 0, 185_504),
            (Category::Kernel, "hcom_allReduce".to_owned(), 227_088, 500_000),
        ]
    );
    let step = (Category::DeviceRange, "step 7".to_owned(), 0, 727_088);
    assert_eq!(rows(&trace, TrackKind::DeviceAnnotation), [step]);
    assert_eq!(kernel(&trace, "aclnnAdd_Add").grid, Some([40, 1, 1]));
    assert_eq!(kernel(&trace, "hcom_allReduce").collective.unwrap().seq, Some(0));
    assert_eq!(trace.devices[0].ordinal, 3);
    assert_eq!((trace.stat("ascend.incomplete_row"), ledger(&trace, "").0), (1, 3));
}

#[test]
fn tables_of_other_years_have_other_columns() {
    let old = "Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us),Task Wait Time(us),Block Dim\n\
        conv,Conv2D,AI_CORE,1692340080000000,12,0,8\n";
    let trace = read_as(&TABLE_FORMAT, "op_summary_0_1.csv", old);
    assert_eq!(kernel(&trace, "conv").grid, Some([8, 1, 1]));
    assert_eq!(trace.start_unix_ns, Some(1_692_340_080_000_000_000));
    let tasks = "Device_id,kernel_name,kernel_type,stream_id,task_id,task_time(us),task_start(us),task_stop(us)\n\
        0,N/A,EVENT_WAIT,4,1,30.5,1736413971558972.912\t,1736413971559003.412\t\n\
        0,MatMulV3,KERNEL_AICORE,4,2,10,1736413971559003.412\t,1736413971559013.412\t\n";
    let trace = read_as(&TABLE_FORMAT, "task_time_1.csv", tasks);
    assert_eq!(rows(&trace, TrackKind::DeviceQueue), [(Category::Kernel, "MatMulV3".to_owned(), 30_500, 10_000)]);
    assert_eq!(rows(&trace, TrackKind::DeviceSync), [(Category::DeviceSync, "EVENT_WAIT".to_owned(), 0, 30_500)]);
}

/// Name, count, total and range.
type Sum<'t> = (&'t str, u64, Option<i64>, Option<(i64, i64)>);

fn sums(trace: &Trace) -> Vec<Sum<'_>> {
    trace.summaries.iter().map(|s| (trace.strings.get(s.kernel), s.count, s.total, s.range)).collect()
}

#[test]
fn sums_are_no_timeline() {
    let text = "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)\n\
        0,MatMulV2,AI_CORE,8,921.5,1,2,3,90\n0,Add,AI_VECTOR_CORE,,5,1,2,3,10\n";
    let trace = read_as(&TOTALS_FORMAT, "op_statistic.csv", text);
    assert_eq!((trace.slice_count(), trace.manifest.value("evidence.grade")), (0, Some("totals")));
    assert_eq!(sums(&trace), [("MatMulV2", 8, Some(921_500), Some((1_000, 3_000)))]);
    assert_eq!((ledger(&trace, "rows"), ledger(&trace, "AI_CORE")), ((2, 1, 921_500), (8, 8, 921_500)));
    assert_eq!(trace.stat("ascend.incomplete_row"), 1);
}

#[test]
fn tasks_without_start_are_sums_of_one() {
    let text =
        "Op Name,OP Type,Task Type,Task Duration(us),Block Dim\nMatMul1,MatMulV2,AI_CORE,12.5,8\nx,Add,AI_CORE,,1\n";
    let trace = read_as(&TOTALS_FORMAT, "op_summary.csv", text);
    assert_eq!(sums(&trace), [("MatMul1", 1, Some(12_500), Some((12_500, 12_500)))]);
    assert_eq!((trace.slice_count(), trace.stat("ascend.incomplete_row")), (0, 1));
}

#[test]
fn a_table_without_a_usable_row_is_refused() {
    let output = Output::new()
        .file("op_summary.csv", "Op Name,Task Type,Task Start Time(us),Task Duration(us)\nx,AI_CORE,N/A,N/A\n");
    let mut builder = TraceBuilder::new("x", "op-summary");
    let told = (TABLE_FORMAT.read)(&output.path("op_summary.csv"), &mut builder, &crate::ReadOptions::default())
        .unwrap_err()
        .to_string();
    assert!(told.contains("export the profile again"), "{told}");
}
