//! What versions of the exporter, and third parties, do differently.

use super::*;

#[test]
fn an_export_without_a_version_table_and_with_few_columns_is_read() {
    let trace = Export::new(&format!(
        "{} CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, correlationId, globalTid, nameId);
         INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 2, 5, 1, 1);
         CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, correlationId, shortName);
         INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (3, 4, 0, 7, 5, 2);",
        strings(&["cudaLaunchKernel", "gemm"])
    ))
    .read();
    assert_eq!(rows(&trace, TrackKind::DeviceQueue), expected(&[("gemm", 3, 1, Category::Kernel)]));
    assert_eq!(trace.stat("trace.device_work_without_launch"), 0);
    assert_eq!(trace.processes.iter().map(|p| p.pid).collect::<Vec<_>>(), [None]);
}

#[test]
fn both_names_of_the_version_table_are_known() {
    for table in ["META_DATA_EXPORT", "EXPORT_META_DATA"] {
        let trace = Export::new(&format!(
            "CREATE TABLE {table} (name TEXT, value TEXT); INSERT INTO {table} VALUES ('EXPORT_SCHEMA_VERSION', '3.0.0');"
        ))
        .read();
        assert_eq!(trace.manifest.value("nsys.schema"), Some("3.0.0"));
    }
}

#[test]
fn the_old_synchronization_type_and_null_stream_table_are_known() {
    let trace = Export::new(&format!(
        "CREATE TABLE TARGET_INFO_CUDA_NULL_STREAM (streamId, hwId, vmId, processId, deviceId, contextId);
         INSERT INTO TARGET_INFO_CUDA_NULL_STREAM VALUES (7, 0, 1, 111, 3, 2);
         CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start, end, deviceId, contextId, streamId, correlationId, globalPid, syncType, eventId);
         INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (3, 9, 0, 2, 7, 8, {PID}, 1, 0);"
    ))
    .read();
    assert_eq!(trace.tracks[0].key.device, Some(3));
    assert_eq!(rows(&trace, TrackKind::DeviceSync), expected(&[("event synchronize", 3, 6, Category::DeviceSync)]));
}

#[test]
fn times_made_absolute_are_brought_back() {
    let zero = 1_700_000_000_000_000_000i64;
    let trace = Export::new(&format!(
        "{} {RUNTIME} INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({zero} + 5, {zero} + 7, 0, {TID}, 1, 1, 0, NULL);
         CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER); INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES ({zero});
         CREATE TABLE ANALYSIS_DETAILS (duration INTEGER); INSERT INTO ANALYSIS_DETAILS VALUES (20);",
        strings(&["cudaFree"])
    ))
    .read();
    assert_eq!(rows(&trace, TrackKind::HostThread), expected(&[("cudaFree", 0, 2, Category::HostApi)]));
    assert_eq!(trace.start_unix_ns, Some(zero + 5));
    assert_eq!(trace.window, Some(model::Span::new(-5, 15)));
}

#[test]
fn negative_times_and_missing_strings_are_kept() {
    let trace = Export::new(&format!(
        "{RUNTIME} INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (-3000, -500, 0, {TID}, 1, 42, 0, NULL);"
    ))
    .read();
    assert_eq!(rows(&trace, TrackKind::HostThread), expected(&[("#42", -3000, 2500, Category::HostApi)]));
    assert_eq!(trace.stat("nsys.missing_string"), 1);
}

#[test]
fn an_export_of_our_simulator_says_that_it_is_simulated() {
    let trace = Export::new(
        "CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT); INSERT INTO META_DATA_EXPORT VALUES ('strato_simulated', 'true');",
    )
    .read();
    assert!(trace.simulated);
    assert_eq!(trace.manifest.get("simulated").map(|e| e.provenance), Some(model::Provenance::Simulated));
}

#[test]
fn tables_that_nobody_knows_are_in_the_ledger() {
    let trace = Export::new(
        "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
         CREATE TABLE MPI_P2P_EVENTS (start, end, globalTid); INSERT INTO MPI_P2P_EVENTS VALUES (1, 2, 3);
         CREATE TABLE _nsysai_notes (text);",
    )
    .read();
    assert_eq!(ledger(&trace, "MPI_P2P_EVENTS"), (0, 1));
    assert!(trace.ledger.iter().all(|row| row.category != "_nsysai_notes"));
}

/// A fifth of the calls was deleted from the export, and nothing told of it.
#[test]
fn rows_that_were_taken_out_of_a_table_are_counted_by_their_numbers() {
    let taken = |where_: &str| {
        let trace = Export::new(&format!(
            "{RUNTIME}
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)
             INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT i, i + 1, 0, {TID}, i, 1, 0, NULL FROM n;
             DELETE FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE {where_};"
        ))
        .read();
        (trace.stat("nsys.rows_taken_out"), ledger(&trace, "CUPTI_ACTIVITY_KIND_RUNTIME"))
    };
    assert_eq!(taken("false"), (0, (100, 100)));
    assert_eq!(taken("rowid % 5 = 2"), (20, (80, 100)));
    // A window that was cut out of the run, and rows that are too few for their numbers to tell.
    assert_eq!(taken("rowid < 40 OR rowid > 60").0, 0);
    assert_eq!(taken("rowid > 1 AND rowid < 100").0, 0);
}

#[test]
fn pages_of_large_and_of_trimmed_tables_come_back_whole_and_in_order() {
    let trace = Export::new(&format!(
        "{} {RUNTIME}
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
         INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT i, i + 1, 0, {TID}, i, 1, 0, NULL FROM n;
         INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME (rowid, start, end, globalTid, nameId) VALUES
            (5000000000, 30000, 30001, {TID}, 1), (9223372036854775807, 30001, 30002, {TID}, 1), (-9223372036854775808, 0, 1, {TID}, 1);",
        strings(&["cudaFree"])
    ))
    .read();
    assert_eq!(ledger(&trace, "CUPTI_ACTIVITY_KIND_RUNTIME"), (20_003, 20_003));
    assert_eq!(trace.lanes[0].start, (0..=20_000).chain([30_000, 30_001]).collect::<Vec<_>>());
}
