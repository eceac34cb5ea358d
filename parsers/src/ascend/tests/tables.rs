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
    // The row of the operator stands beside its queue, under the type that the table gives.
    let operator = (Category::DeviceRange, "Add".to_owned(), 0, 185_504);
    let beside = rows(&trace, TrackKind::DeviceAnnotation);
    assert!(beside.len() == 2 && beside.contains(&step) && beside.contains(&operator), "{beside:?}");
    assert_eq!(kernel(&trace, "aclnnAdd_Add").grid, Some([40, 1, 1]));
    assert_eq!(kernel(&trace, "hcom_allReduce").collective.unwrap().seq, Some(0));
    assert_eq!(trace.devices[0].ordinal, 3);
    assert_eq!((trace.stat("ascend.incomplete_row"), ledger(&trace, "").0), (1, 3));
}

/// D3b: types and shapes of a table were not read, and called missing.
#[test]
fn types_and_shapes_of_a_table_stand_beside_the_kernels() {
    let text = "Name,Type,Accelerator Core,Start Time(us),Duration(us),Block Dim,Input Shapes,Input Data Types,Input Formats,aic_mac_fp16_ratio\n\
        Cast190,Cast,AI_CORE,1736413971558972.912,10,8,\"\"\"32,3;64,64,16,16;\"\"\",DT_BF16;FLOAT16;INT64,ND;FRACTAL_NZ;ND,0.5\n\
        a,N/A,AI_CORE,1736413971558992.912,10,8,N/A,N/A,N/A,0.5\n";
    let trace = read_as(&TABLE_FORMAT, "kernel_details.csv", text);
    let operators = rows(&trace, TrackKind::DeviceAnnotation);
    assert_eq!(operators, [(Category::DeviceRange, "Cast".to_owned(), 0, 10_000)]);
    let shapes = trace.details.iter().find_map(|detail| match detail {
        Detail::Op(op) => Some([op.shapes, op.dtypes].map(|text| trace.strings.get(text.unwrap()))),
        _ => None,
    });
    assert_eq!(shapes, Some(["[[32,3],[1024,1024],[]]", r#"["DT_BF16","FLOAT16","INT64"]"#]));
    let said = |key| trace.manifest.value(key);
    assert_eq!(said("kernels.operators"), Some("types of 1 kernels, input shapes of 1"));
    // A counter of no unit that is known is kept all the same.
    let counters: Vec<_> = trace.summaries.iter().map(|s| (s.count, s.metrics.len(), s.counters[0].1)).collect();
    assert_eq!(counters, [(1, 0, 0.5), (1, 0, 0.5)]);
    assert_eq!(trace.strings.get(trace.summaries[0].counters[0].0), "aic_mac_fp16_ratio");
}

/// D9: a row of 31 of 32 cells was taken with the wait as its duration.
#[test]
fn rows_that_lack_a_cell_are_counted_and_not_kept() {
    let text = "Name,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Dim\n\
        a,AI_CORE,1736413971558972.912,10,1.5,8\nb,AI_CORE,1736413971558992.912,1.5,8\n";
    let trace = read_as(&TABLE_FORMAT, "kernel_details.csv", text);
    assert_eq!(rows(&trace, TrackKind::DeviceQueue), [(Category::Kernel, "a".to_owned(), 0, 10_000)]);
    assert_eq!((trace.stat("ascend.short_row"), ledger(&trace, "rows that lack a cell")), (1, (1, 0, 0)));
    // A table all of whose rows end early lacks empty cells at the end.
    let trace = read_as(
        &TABLE_FORMAT,
        "kernel_details.csv",
        "Name,Accelerator Core,Start Time(us),Duration(us),Block Dim\na,AI_CORE,1736413971558972.912,10\n",
    );
    assert_eq!(trace.stat("ascend.short_row"), 0);
}

/// D9, D15: what lies beside a table sums it, and is no capture of its own.
#[test]
fn sums_beside_a_table_are_told_and_a_table_of_tasks_is_led_by_that_of_operators() {
    let operators = "Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us),Task Wait Time(us),Block Dim\n\
        a,A,AI_CORE,1692340080000000,12,0,8\nb,B,AI_CORE,1692340080000100,30,0,8\n";
    let tasks = "Device_id,kernel_name,kernel_type,stream_id,task_id,task_time(us),task_start(us),task_stop(us)\n\
        0,N/A,EVENT_WAIT,4,1,30.5,1692340080000000,0\n0,a,AI_CORE,4,2,12.5,1692340080000000,0\n\
        0,b,MIX_AIC,4,2,30,1692340080000100,0\n0,hcom_x,HCCL,4,2,30,1692340080000100,0\n";
    let output =
        Output::new().file("op_summary_20240101000000.csv", operators).file("task_time_20240101000000.csv", tasks);
    let lead = crate::detect::lead(&output.path("task_time_20240101000000.csv"), &crate::ReadOptions::default());
    assert_eq!(lead, Some(output.path("op_summary_20240101000000.csv")));
    let mut builder = TraceBuilder::new("x", "op-summary");
    (TABLE_FORMAT.read)(&output.path("op_summary_20240101000000.csv"), &mut builder, &crate::ReadOptions::default())
        .unwrap();
    let trace = builder.finish();
    let [sum] = trace.stated.as_slice() else { panic!("{:?}", trace.stated) };
    assert_eq!((sum.what, sum.count, sum.time), (model::Stated::Kernels, Some(2), 42_500));
    assert_eq!(trace.strings.get(sum.source), "task_time_20240101000000.csv");
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
