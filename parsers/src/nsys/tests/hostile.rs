//! Files that are damaged, or made to do harm.

use std::{
    sync::LazyLock,
    time::{Duration, Instant},
};

use proptest::prelude::*;

use super::*;

/// A small export with some pages in every table.
static SAMPLE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let export = Export::new(&format!(
        "PRAGMA page_size = 1024; {} {RUNTIME} {KERNEL} {NVTX}
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
         INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT i * 10, i * 10 + 5, 0, {TID}, i, 1, 0, NULL FROM n;
         INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT start + 7, end + 7, 0, 1, 7, correlationId, {PID}, 2, 2, 1, 1, 1, 1, 1, 1, NULL
            FROM CUPTI_ACTIVITY_KIND_RUNTIME;
         INSERT INTO NVTX_EVENTS SELECT start, end, 59, {TID}, NULL, 'range ' || start, NULL, 0, NULL FROM CUPTI_ACTIVITY_KIND_RUNTIME;",
        strings(&["cudaLaunchKernel", "gemm"])
    ));
    std::fs::read(export.path()).unwrap()
});

fn read_bytes(bytes: &[u8]) -> Result<Trace, ReadError> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    let began = Instant::now();
    let trace = read(file.path());
    assert!(began.elapsed() < Duration::from_secs(60), "reading took {:?}", began.elapsed());
    trace
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_truncated_file_gives_what_is_left_of_it(cut in 0usize..60_000) {
        let whole = &*SAMPLE;
        let cut = cut % whole.len();
        if let Ok(trace) = read_bytes(&whole[..cut]) {
            prop_assert_eq!(trace.stat("nsys.truncated_file"), 1);
        }
    }

    #[test]
    fn flipped_bytes_never_panic(flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 10)) {
        let mut bytes = SAMPLE.clone();
        for (index, value) in flips {
            let at = index.index(bytes.len());
            bytes[at] = value;
            read_bytes(&bytes).ok();
        }
    }
}

#[test]
fn a_file_cut_to_three_quarters_gives_rows_and_names_the_loss() {
    let trace = read_bytes(&SAMPLE[..SAMPLE.len() / 4 * 3]).unwrap();
    assert!(trace.slice_count() > 300, "{}", trace.slice_count());
    assert!(trace.stat("nsys.unreadable_end_of_table") > 0, "{:?}", trace.stats);
}

#[test]
fn the_rows_around_a_damaged_page_are_kept_and_the_loss_is_named() {
    let whole = &*SAMPLE;
    let intact = read_bytes(whole).unwrap().slice_count();
    let mut salvaged = 0;
    for page in 1..whole.len() / 1024 {
        let mut bytes = whole.clone();
        bytes[page * 1024..(page + 1) * 1024].fill(0xA5);
        let Ok(trace) = read_bytes(&bytes) else { continue };
        assert!(trace.slice_count() <= intact);
        let lost = trace.stats.iter().find(|stat| stat.name == "nsys.unreadable_rows");
        if let Some(lost) = lost.filter(|_| trace.slice_count() > intact / 2) {
            assert!(lost.example.as_ref().is_some_and(|e| e.starts_with("table ") && e.contains("rows ")), "{lost:?}");
            salvaged += 1;
        }
    }
    assert!(salvaged > 10, "only {salvaged} damaged pages could be read around");
}

#[test]
fn reading_changes_neither_the_file_nor_its_directory() {
    let export = Export::new(&format!(
        "{} {RUNTIME} INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 2, 0, {TID}, 1, 1, 0, NULL);",
        strings(&["x"])
    ));
    let state = || {
        let mut names: Vec<_> =
            std::fs::read_dir(export.directory()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        (names, std::fs::metadata(export.path()).unwrap().modified().unwrap(), std::fs::read(export.path()).unwrap())
    };
    let before = state();
    export.read();
    assert_eq!(state(), before);
}

#[test]
fn values_of_the_wrong_type_are_absent_and_counted_with_their_row() {
    let trace = Export::new(&format!(
        "{} CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, nameId, correlationId, returnValue);
         INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 2, {TID}, 1, 1, 0), ('1,2', 2, {TID}, 1, 1, 0), (3, 4, {TID}, 'x', x'00ff', 0.5);",
        strings(&["cudaFree"])
    ))
    .read();
    assert_eq!(
        rows(&trace, TrackKind::HostThread),
        expected(&[("cudaFree", 1, 1, Category::HostApi), ("#", 3, 1, Category::HostApi)])
    );
    assert_eq!((trace.stat("nsys.wrong_type"), trace.stat("nsys.incomplete_row")), (4, 1));
    let example = trace.stats.iter().find(|s| s.name == "nsys.wrong_type").and_then(|s| s.example.clone());
    assert_eq!(example.as_deref(), Some("table CUPTI_ACTIVITY_KIND_RUNTIME, row 2"));
}

#[test]
fn views_generated_columns_and_odd_identifiers_run_no_foreign_sql() {
    let trace = Export::new(&format!(
        "{} CREATE TABLE \"odd\"\"; DROP TABLE StringIds; --\" (start); INSERT INTO \"odd\"\"; DROP TABLE StringIds; --\" VALUES (1);
         CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS start, i AS end FROM n;
         CREATE TABLE pragma_table_info (start);
         CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, nameId, returnValue AS (length(zeroblob(900000000))));
         INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, nameId) VALUES (1, 2, {TID}, 1);",
        strings(&["cudaFree"])
    ))
    .read();
    assert_eq!(rows(&trace, TrackKind::HostThread), expected(&[("cudaFree", 1, 1, Category::HostApi)]));
    assert_eq!(trace.slice_count(), 1);
    let told =
        trace.stats.iter().find(|stat| stat.name == "nsys.view_not_read").expect("that the kernels are not read");
    assert!(told.example.as_ref().is_some_and(|example| example.starts_with("CUPTI_ACTIVITY_KIND_KERNEL is a view")));
    assert_eq!(ledger(&trace, "odd\"; DROP TABLE StringIds; --"), (0, 1));
}

#[test]
fn a_table_whose_rowid_is_hidden_by_its_columns_is_counted() {
    let trace = Export::new(
        "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
         CREATE TABLE OSRT_API (rowid, _rowid_, oid, start, end); INSERT INTO OSRT_API VALUES (1, 1, 1, 1, 2);
         CREATE TABLE CUDNN_EVENTS (start INTEGER PRIMARY KEY, end) WITHOUT ROWID; INSERT INTO CUDNN_EVENTS VALUES (1, 2);",
    )
    .read();
    assert_eq!(trace.stat("nsys.unreadable_table"), 2);
}

#[test]
fn a_name_of_a_megabyte_is_cut() {
    let trace = Export::new(&format!(
        "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT); INSERT INTO StringIds VALUES (1, hex(zeroblob(500000)));
         {RUNTIME} INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 2, 0, {TID}, 1, 1, 0, NULL);
         {NVTX} INSERT INTO NVTX_EVENTS VALUES (1, 2, 59, {TID}, NULL, hex(zeroblob(500000)) || 'b', NULL, 0, NULL);"
    ))
    .read();
    assert_eq!(trace.slice_count(), 2);
    assert!(trace.strings.iter().all(|(_, text)| text.len() <= model::strings::MAX_TEXT));
    assert!(trace.stat("trace.long_text_cut") > 0);
}

#[test]
fn what_is_no_export_is_refused_with_what_was_expected() {
    let other = Export::new("CREATE TABLE songs (title TEXT); INSERT INTO songs VALUES ('x');");
    for path in [other.path(), tempfile::NamedTempFile::new().unwrap().path().to_owned()] {
        match read(&path) {
            Err(ReadError::Malformed { expected, next, .. }) => {
                assert!(expected.contains("StringIds"), "{expected}");
                assert!(next.contains("nsys export"), "{next}");
            }
            Err(ReadError::Io { .. }) => assert!(!path.exists()),
            other => panic!("{other:?}"),
        }
    }
    assert!(matches!(read_bytes(b""), Err(ReadError::Malformed { .. })));
    assert!(matches!(read_bytes(b"no database"), Err(ReadError::Malformed { .. })));
    let path = other.path();
    let head = crate::Head::new(&path, crate::sqlite::SIGNATURE);
    assert_eq!((FORMAT.matches)(&head), crate::Match::No);
}

#[test]
fn a_write_ahead_log_that_is_not_read_is_counted() {
    let export = Export::new("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);");
    let mut log = export.path().into_os_string();
    log.push("-wal");
    std::fs::write(log, b"frames").unwrap();
    assert_eq!(export.read().stat("nsys.write_ahead_log_not_read"), 1);
}

#[test]
fn a_damaged_table_that_claims_endless_rowids_is_given_up() {
    // One row to a page: the first can be read (the second leads on to the damage), and all rowids up to 2^62 lead there.
    let text = "x".repeat(900);
    let export = Export::new(&format!(
        "PRAGMA page_size = 1024; {} {NVTX} INSERT INTO NVTX_EVENTS (rowid, start, end, eventType, globalTid, text) VALUES
         (1, 1, 2, 59, {TID}, 'a{text}'), (2, 2, 3, 59, {TID}, 'b{text}'),
         ({}, 3, 4, 59, {TID}, 'damaged{text}'), ({}, 4, 5, 59, {TID}, 'd{text}');",
        strings(&["x"]),
        1i64 << 62,
        i64::MAX,
    ));
    let mut bytes = std::fs::read(export.path()).unwrap();
    let at = bytes.windows(8).position(|w| w == b"damagedx").unwrap() / 1024 * 1024;
    bytes[at..at + 1024].fill(0xA5);
    let trace = read_bytes(&bytes).unwrap();
    let lost = trace.stats.iter().find(|stat| stat.name == "nsys.unreadable_rows").expect("told");
    // Of each stretch of numbers that a table claims no more rows are lost than the file has room for: not 2^62.
    assert!((1..1 << 32).contains(&lost.count), "{lost:?}");
    assert!(trace.slice_count() >= 1, "the row before the damage is kept");
}

#[test]
fn a_primary_key_whose_name_is_not_utf8_does_not_hold_up_the_import() {
    // A rowid is told under the name of the primary key that stands for it; sqlx ended its thread over such a name.
    let mut bytes = SAMPLE.clone();
    let at = bytes.windows(10).position(|w| w == b"id INTEGER").expect("the table of strings has a primary key");
    bytes[at..at + 2].copy_from_slice(b"\xff\xfe");
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || drop(send.send(read_bytes(&bytes))));
    let trace = receive.recv_timeout(Duration::from_secs(120)).expect("an end").unwrap();
    assert_eq!(trace.slice_count(), 900, "only the names are lost");
}

/// Cells of a page that are out of order make a table whose first rowid is after its last, so that every hint leads back.
#[test]
fn a_table_whose_rowids_lead_back_ends() {
    let export = Export::new(&format!(
        "{} CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
         INSERT INTO META_DATA_EXPORT (rowid, name, value) VALUES (-9005497106850332223, 'leads back', 'x'), (0, 'a', 'y');",
        strings(&["cudaFree"])
    ));
    let mut bytes = std::fs::read(export.path()).unwrap();
    let page = bytes.chunks(4096).position(|page| page.windows(10).any(|text| text == b"leads back") && page[0] == 13);
    let cells = page.expect("the page of the rows") * 4096 + 8;
    let (first, second) = bytes[cells..cells + 4].split_at_mut(2);
    first.swap_with_slice(second);
    let trace = read_bytes(&bytes).unwrap();
    assert!(trace.stats.iter().any(|stat| stat.severity == model::Severity::DataLoss), "{:?}", trace.stats);
}
