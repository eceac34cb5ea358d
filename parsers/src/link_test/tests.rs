#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::io::Write;

use model::{Trace, TraceBuilder};

use super::*;

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn read_text(text: &str) -> (LinkTable, Trace) {
    let file = file(text);
    let mut sink = TraceBuilder::new("t", "link-test");
    assert_eq!(crate::detect::read(file.path(), &mut sink, &crate::ReadOptions::default()).unwrap().id, "link-test");
    (table(file.path(), &|_, _| {}).unwrap(), sink.finish())
}

const NCCL: &str = "\
$ mpirun -np 2 ./build/all_reduce_perf -b 8 -e 1M -f 2
# nThread 1 nGpus 1 minBytes 8 maxBytes 1048576 step: 2(factor)
#  Rank  0 Group  0 Pid   100 on   node0 device  0 [0x18] NVIDIA H100
#  Rank  1 Group  0 Pid   101 on   node0 device  1 [0x2a] NVIDIA H100
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
           8             2     float     sum      -1    24.62    0.00    0.00      0    24.08    0.00    0.00      0
     1048576        262144     float     sum      -1    31.457   33.33   33.34      3      N/A     N/A     N/A    N/A
     2097152        5
# Avg bus bandwidth    : 8.3
";

#[test]
fn nccl_tests_give_both_bandwidths_out_of_place_and_in_place() {
    let (table, trace) = read_text(NCCL);
    assert_eq!((table.probes.len(), table.unread), (4, 1));
    let row = &table.probes[2];
    assert_eq!(
        (row.op.as_deref(), row.ranks, row.bytes, row.dtype.as_deref()),
        (Some("all_reduce"), Some(2), 1_048_576, Some("float"))
    );
    assert_eq!((row.in_place, row.time.clone(), row.correct), (Some(false), Reading::Value(31_457), Some(false)));
    assert_eq!((row.algbw.value(), row.busbw.value()), (Some(&33.33), Some(&33.34)));
    assert!(table.probes[3].time.value().is_none() && table.probes[3].correct.is_none());
    // What is done in place is a track of its own; the calls come one after the other.
    let [lane, in_place] = [&trace.lanes[0], &trace.lanes[1]];
    assert_eq!((lane.start.clone(), lane.dur.clone()), (vec![0, 48_700], vec![24_620, 31_457]));
    assert_eq!((in_place.start.clone(), in_place.dur.clone()), (vec![24_620], vec![24_080]));
    let Some(Detail::Collective(call)) = trace.detail(lane, 1) else { panic!() };
    assert_eq!(trace.manifest.value("hardware.device"), Some("NVIDIA H100"));
    assert_eq!((call.bytes, call.group_size), (Some(1_048_576), Some(2)));
    assert_eq!(trace.stat("link_test.wrong_result"), 1);
    assert_eq!(trace.stat("link_test.unreadable_row"), 1);
}

#[test]
fn hccl_test_gives_algorithm_bandwidth_and_no_bus_bandwidth() {
    let (table, trace) = read_text(
        "mpirun -n 8 ./bin/all_reduce_test -b 8K -e 16K -d fp32 -o sum -p 8\n\
         data_size(Bytes): | aveg_time(us): | alg_bandwidth(GB/s): | check_result:\n\
         8192              | 12.50          | 0.65536              | success\n\
         16384             | 13.00          | x                    | failed\n",
    );
    let [a, b] = table.probes.as_slice() else { panic!() };
    assert_eq!(
        (a.op.as_deref(), a.ranks, a.time.clone(), a.correct),
        (Some("all_reduce"), Some(8), Reading::Value(12_500), Some(true))
    );
    assert!(matches!(&a.busbw, Reading::Unavailable(why) if why.contains("algorithm bandwidth only")));
    assert_eq!((a.algbw.value(), b.algbw.value(), b.correct), (Some(&0.65536), None, Some(false)));
    assert_eq!(trace.strings.find("busbw"), None);
}

#[test]
fn a_debug_log_gives_links_and_calls() {
    let (table, trace) = read_text(
        "node0:100:100 [0] NCCL INFO NCCL version 2.21.5+cuda12.4\n\
         node0:100:123 [0] NCCL INFO Channel 00/02 :    0   1\n\
         node0:100:123 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read\n\
         node0:100:123 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM/read\n\
         node0:100:123 [0] NCCL INFO Channel 01/0 : 1[1] -> 2[0] [send] via NET/IB/0/GDRDMA\n\
         node0:100:100 [0] NCCL INFO AllReduce: opCount 1f sendbuff 0x7f recvbuff 0x7f count 4096 datatype 7 op 0 root 0 comm 0x5 [nranks=8] stream 0x6\n\
         [INFO] HCCL(69396,python):2024-04-07 [op_base.cc] Entry-HcclAllReduce:tag[a], sendBuf[0x1], count[128], dataType[1]\n\
         node0:100:100 [0] NCCL INFO AllReduce: opCount zz\n",
    );
    let link = |from, to, via: &str| Link { from, to, via: via.to_owned() };
    assert_eq!(table.links[&link(0, 1, "P2P/CUMEM/read")], 2);
    assert_eq!(table.links[&link(1, 2, "NET/IB/0/GDRDMA")], 1);
    assert_eq!(table.calls[&("AllReduce".to_owned(), 4096, Some(8))], 1);
    assert_eq!(table.calls[&("AllReduce".to_owned(), 128, None)], 1);
    assert_eq!((table.unread, table.library.as_deref()), (1, Some("NCCL 2.21.5+cuda12.4")));
    assert_eq!(trace.manifest.value("link.P2P"), Some("2"));
}

#[test]
fn a_test_that_measured_nothing_is_an_error() {
    let header = NCCL.lines().nth(5).unwrap();
    let mut sink = TraceBuilder::new("t", "link-test");
    assert!((FORMAT.read)(file(header).path(), &mut sink, &crate::ReadOptions::default()).is_err());
    assert!(crate::detect::detect(file("hello\n8 | 9\n").path(), &crate::ReadOptions::default()).is_err());
}

/// A debug log on the same stream tears each row into its size and its groups.
const TORN: &str = "\
# nThread 1 nGpus 2 minBytes 8388608 maxBytes 16777216 step: 2(factor)
mew0:65704:65722 [0] NCCL INFO               + NVL[20.0] - GPU/0-65000
mew0:65704:65722 [0] NCCL INFO               + NVL[240.0] - GPU/0-17000
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     8388608       2097152     float     sum      -1mew0:65704:65704 [1] NCCL INFO AllReduce: opCount 0 sendbuff 0x7 recvbuff 0x9 count 2097152 datatype 7 op 0 root 0 comm 0x5 [nranks=2] stream 0x5
    314.7   26.66   26.66      0mew0:65704:65704 [1] NCCL INFO AllReduce: opCount 0 sendbuff 0x9 recvbuff 0x9 count 2097152 datatype 7 op 0 root 0 comm 0x5 [nranks=2] stream 0x5
    310.8   26.99   26.99      0
";

#[test]
fn a_row_that_a_debug_log_tore_is_put_together_and_none_is_invented() {
    let (table, trace) = read_text(&format!("{TORN}# Avg bus bandwidth    : 28.2632\n"));
    let rows: Vec<_> =
        table.probes.iter().map(|p| (p.bytes, p.time.value().copied(), p.busbw.value().copied())).collect();
    assert_eq!(rows, [(8_388_608, Some(314_700), Some(26.66)), (8_388_608, Some(310_800), Some(26.99))]);
    assert_eq!((table.unread, table.calls.values().sum::<u64>()), (0, 2));
    assert_eq!(trace.manifest.value("link.topology.NVL"), Some("20 to 240 GB/s"));
    assert_eq!(trace.stat("link_test.uneven_links"), 1);
    assert_eq!(trace.manifest.value("link.mean_busbw"), Some("28.2632 GB/s"));
}

#[test]
fn torn_rows_without_their_end_are_counted_and_give_no_row() {
    for (text, lost) in [
        // The end is missing, the groups are those of another size, and the size is missing.
        (TORN.replace("    310.8   26.99   26.99      0\n", ""), 1),
        (TORN.replace("8388608 ", "4194304 "), 1),
        (TORN.replace("     8388608       2097152     float     sum      -1mew0", "mew0"), 2),
    ] {
        let (table, _) = read_text(&text);
        assert_eq!((table.probes.len(), table.unread), (0, lost), "{text}");
    }
}

#[test]
fn the_slowest_link_is_named_by_its_two_ends() {
    let tree = |writer: &str, back: &str| {
        let line = |text: &str| format!("mew0:65704:{writer} NCCL INFO {text}\n");
        [
            "=== System : maxBw 240.0 totalBw 240.0 ===",
            "CPU/0-0 (1/1/2)",
            "+ PCI[24.0] - GPU/0-17000 (0)",
            &format!("              + NVL[{back}] - GPU/0-65000"),
            "+ PCI[24.0] - PCI/0-4a000 (15b300)",
            "              + PCI[12.0] - NIC/0-4b000",
            "              + PCI[24.0] - GPU/0-65000 (1)",
            "                            + NVL[240.0] - GPU/0-17000",
            "GPU/0-17000 :GPU/0-17000 (0/5000.0/LOC) GPU/0-65000 (1/240.0/NVL) CPU/0-0 (1/24.0/PHB)",
        ]
        .map(line)
    };
    // Two ranks print the tree at once, and their lines mix.
    let mixed = |back| -> String {
        let (one, other) = (tree("65722 [0]", back), tree("65723 [1]", back));
        one.into_iter().zip(other).map(|(a, b)| a + &b).collect()
    };
    let (table, trace) = read_text(&format!("{}{NCCL}", mixed("20.0")));
    let slow = table.topology.slowest().unwrap();
    assert_eq!((slow.kind.as_str(), slow.rate, slow.of), ("NVL", 20.0, 240.0));
    assert_eq!(slow.ends, ["GPU/0-17000 (rank 0)", "GPU/0-65000 (rank 1)"].map(str::to_owned));
    let facts = ["kind", "from", "to", "gb_per_s", "of_gb_per_s"]
        .map(|key| trace.manifest.value(&format!("link.slowest.{key}")).unwrap().to_owned());
    assert_eq!(facts, ["NVL", "GPU/0-17000 (rank 0)", "GPU/0-65000 (rank 1)", "20", "240"]);
    let even = read_text(&format!("{}{NCCL}", mixed("240.0"))).0;
    assert_eq!((even.topology.slowest(), even.topology.kinds["PCI"]), (None, (12.0, 24.0)));
}
