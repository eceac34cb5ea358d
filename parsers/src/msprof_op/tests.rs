#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use model::{Metric, Trace, TraceBuilder};

use super::*;

const OPERATOR: &str = "Op Name,Op Type,Task Duration(us),Block Dim,Mix Block Dim,Device Id,Pid,Current Freq,Rated Freq,\n\
    MatMulV3_ab1b6750d7f510985325b603cb06dc8b_0_mix_aic,mix,113.58,2,4,0,4711,1850,1850,\n";
const PIPES: &str = "block_id,sub_block_id,aic_time(us),aic_cube_ratio,aic_scalar_ratio,aic_mte1_ratio,aic_mte2_ratio,aiv_time(us),aiv_vec_ratio,aiv_mte2_ratio,\n\
    0,cube0,100,0.2,0.1,0.3,0.50,NA,NA,NA,\n0,vector0,NA,NA,NA,NA,NA,90,0.05,0.2,\n\
    1,cube0,100,0.4,0.1,0.1,0.54,NA,NA,NA,\n1,vector0,NA,NA,NA,NA,NA,90,0.15,0.4,\n";
const MEMORY: &str = "block_id,sub_block_id,aic_main_mem_read_bw(GB/s),aic_main_mem_write_bw(GB/s),aic_mte2_ratio,\n\
    0,cube0,10.5,1,0.9,\n0,vector0,NA,NA,NA,\n1,cube0,20,2,0.9,\n";
const CACHE: &str =
    "block_id,sub_block_id,aic_total_hit_rate(%),aiv_total_hit_rate(%),\n0,cube0,90,NA,\n0,vector0,NA,70,\n";

fn output(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    files.iter().for_each(|(name, text)| std::fs::write(directory.path().join(name), text).unwrap());
    directory
}

fn import(path: &Path) -> Result<Trace, ReadError> {
    let mut builder = TraceBuilder::new("t", "");
    let format = crate::detect::read(path, &mut builder, &crate::ReadOptions::default())?;
    assert_eq!(format.id, FORMAT.id);
    Ok(builder.finish())
}

#[test]
fn the_tables_of_an_operator_are_one_measurement() {
    let files =
        [("OpBasicInfo.csv", OPERATOR), ("PipeUtilization.csv", PIPES), ("Memory.csv", MEMORY), ("L2Cache.csv", CACHE)];
    let directory = output(&files);
    for path in
        [directory.path().to_owned(), directory.path().join("OpBasicInfo.csv"), directory.path().join("L2Cache.csv")]
    {
        let trace = import(&path).unwrap();
        let [operator] = trace.summaries.as_slice() else { panic!("{:?}", trace.summaries) };
        assert!(trace.strings.get(operator.kernel).starts_with("MatMulV3_"));
        assert_eq!((operator.total, operator.grid, trace.slice_count()), (Some(113_580), Some([2, 1, 1]), 0));
        let expected = [
            (Metric::Compute, 30.0),
            // Two tables say it; the pipes' own is believed.
            (Metric::Memory, 52.0),
            (Metric::Scalar, 10.0),
            (Metric::L2Hit, 80.0),
            (Metric::DramBytesPerSecond, 33.5e9),
        ];
        for ((metric, value), (found, measured)) in expected.into_iter().zip(&operator.metrics) {
            assert!(metric == *found && (measured / value - 1.0).abs() < 1e-12, "{metric:?} {measured}");
        }
        assert_eq!(operator.metrics.len(), expected.len());
        let rows = |name: &str| trace.ledger.iter().find(|row| row.category == name).map(|row| (row.read, row.kept));
        assert_eq!((rows("PipeUtilization.csv"), rows("Memory.csv")), (Some((4, 4)), Some((3, 2))));
    }
    assert_eq!(lead(&directory.path().join("L2Cache.csv")), Some(directory.path().join("OpBasicInfo.csv")));
    assert_eq!(lead(&directory.path().join("OpBasicInfo.csv")), None);
}

#[test]
fn a_table_of_blocks_alone_is_an_operator_without_a_name() {
    let directory = output(&[("PipeUtilization.csv", PIPES)]);
    let trace = import(&directory.path().join("PipeUtilization.csv")).unwrap();
    let [operator] = trace.summaries.as_slice() else { panic!("{:?}", trace.summaries) };
    // The part that ran longest, µs.
    assert_eq!((trace.strings.get(operator.kernel), operator.total), ("(operator without a name)", Some(100_000)));
    assert!(operator.metric(Metric::Compute).is_some());
    assert_eq!(trace.stat("msprof-op.operator_without_name"), 1);
}

#[test]
fn cut_tables_give_what_was_whole() {
    let cut = &OPERATOR[..OPERATOR.len() - 60];
    let directory = output(&[("OpBasicInfo.csv", OPERATOR), ("PipeUtilization.csv", &PIPES[..PIPES.len() - 20])]);
    assert!(import(directory.path()).unwrap().summaries[0].metrics.len() == 3);
    let directory = output(&[("OpBasicInfo.csv", cut)]);
    let trace = import(directory.path()).unwrap();
    assert_eq!((trace.summaries.len(), trace.stat("msprof-op.incomplete_row")), (0, 1));
}

fn section(kind: u8, text: &str) -> Vec<u8> {
    let padding = (4 - text.len() % 4) % 4;
    let mut bytes = ((text.len() + padding) as u64).to_le_bytes().to_vec();
    bytes.extend([kind, padding as u8, b'Z', b'Z']);
    bytes.extend(text.as_bytes());
    bytes.resize(bytes.len() + padding, 0);
    bytes
}

const BASE: &str = r#"{"advice":[],"block_dim":"24","duration":301.0400085449219,"name":"FlashAttentionScore_mix_aic","soc":"Ascend910B4"}"#;
const MAP: &str = r#"{"core_memory_map":[{"Cube":{"cycle":25,"ratio":25.0,"total_cycles":100},"L2cache":{"hit":"3","miss":"1"},"Vector":{"cycle":10,"total_cycles":100}},{"Cube":{"cycle":35,"total_cycles":100},"L2cache":{"hit":3,"miss":1}}]}"#;

fn visual(bytes: &[u8]) -> Result<Trace, ReadError> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("visualize_data.bin");
    std::fs::write(&path, bytes).unwrap();
    import(&path)
}

#[test]
fn sections_of_the_viewers_file_are_read_where_they_say_something() {
    let whole = [section(5, BASE), section(6, "{\"drawn\":1}"), section(8, MAP)].concat();
    let trace = visual(&whole).unwrap();
    let operator = &trace.summaries[0];
    assert_eq!((operator.total, operator.grid), (Some(301_040), Some([24, 1, 1])));
    assert_eq!(operator.metrics, [(Metric::Compute, 30.0), (Metric::L2Hit, 75.0)]);
    assert_eq!(trace.manifest.value("hardware.device"), Some("Ascend910B4"));
    assert_eq!(trace.ledger.iter().map(|row| (row.read, row.kept)).collect::<Vec<_>>(), [(3, 2)]);
}

#[test]
fn a_viewers_file_that_was_cut_anywhere_ends_without_panic() {
    let whole = [section(5, BASE), section(8, MAP)].concat();
    for end in 0..whole.len() {
        if let Ok(trace) = visual(&whole[..end]) {
            assert_eq!(trace.summaries.len(), 1);
            assert!(end == section(5, BASE).len() || trace.stat("msprof-op.damaged_section") > 0, "{end}");
        }
    }
    let mut huge = section(5, BASE);
    huge.extend(u64::MAX.to_le_bytes());
    huge.extend([8, 0, b'Z', b'Z']);
    assert_eq!(visual(&huge).unwrap().summaries.len(), 1);
}

/// A mean over two vector cores, of which one works and one waits, says of neither what it does.
#[test]
fn the_busiest_part_counts_and_every_column_of_every_part_is_kept() {
    let pipes = "block_id,sub_block_id,aiv_time(us),aiv_scalar_ratio,aiv_new_thing(GB/s),\n0,vector0,451.8,0.968,3,\n0,vector1,402.1,0.007,NA,\n";
    let directory = output(&[("OpBasicInfo.csv", OPERATOR), ("PipeUtilization.csv", pipes)]);
    let trace = import(directory.path()).unwrap();
    let operator = &trace.summaries[0];
    assert_eq!(operator.metrics, [(Metric::Scalar, 96.8)]);
    let counters: Vec<_> = operator.counters.iter().map(|(name, value)| (trace.strings.get(*name), *value)).collect();
    let expected = [
        ("vector0.aiv_new_thing(GB/s)", 3.0),
        ("vector0.aiv_scalar_ratio", 0.968),
        ("vector0.aiv_time(us)", 451.8),
        ("vector1.aiv_scalar_ratio", 0.007),
        ("vector1.aiv_time(us)", 402.1),
    ];
    assert_eq!(counters, expected);
}

#[test]
fn a_directory_of_the_viewers_files_is_one_profile() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(directory.path().join(name), bytes).unwrap();
    write("base_info.bin", &section(5, BASE));
    write("memory_data.bin", &[section(5, &BASE.replace("301.04", "13.06")), section(8, MAP)].concat());
    write("torn.bin", &section(5, "{\"advice\":[]}"));
    let trace = import(directory.path()).unwrap();
    let times: Vec<_> = trace.summaries.iter().map(|s| s.total.unwrap()).collect();
    assert_eq!((times, trace.stat("msprof-op.unreadable_file")), (vec![301_040, 13_060], 1));
}
