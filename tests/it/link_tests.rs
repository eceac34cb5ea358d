//! Link tests as reports of their own, and two of them size by size.

use std::{fs, path::Path};

use serde_json::Value;

use super::common::{corpus, printed, schema, strato};

/// A test of two devices: sizes in MiB with their times in µs, and the rate at which the link back was trained.
fn nccl(back: &str, sizes: &[(i64, f64)]) -> String {
    let mut text = format!(
        "# Collective test starting: all_reduce_perf\n\
         #  Rank  0 Group  0 Pid  1 on  node0 device  0 [0000:17:00] NVIDIA A100 80GB PCIe\n\
         #  Rank  1 Group  0 Pid  1 on  node0 device  1 [0000:65:00] NVIDIA A100 80GB PCIe\n\
         node0:1:2 [0] NCCL INFO CPU/0-0 (1/1/2)\n\
         node0:1:2 [0] NCCL INFO + PCI[24.0] - GPU/0-17000 (0)\n\
         node0:1:2 [0] NCCL INFO               + NVL[{back}] - GPU/0-65000\n\
         node0:1:2 [0] NCCL INFO + PCI[24.0] - GPU/0-65000 (1)\n\
         node0:1:2 [0] NCCL INFO               + NVL[240.0] - GPU/0-17000\n\
         #       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
    );
    for (mib, us) in sizes {
        let bytes = mib << 20;
        let rate = bytes as f64 / us / 1e3;
        text += &format!("{bytes} {} float sum -1 {us} {rate:.2} {rate:.2} 0 {us} {rate:.2} {rate:.2} 0\n", bytes / 4);
    }
    text
}

fn pair(directory: &Path) {
    let sizes = [(1, 100.0), (64, 400.0), (8192, 40_000.0)];
    fs::write(directory.join("a.log"), nccl("240.0", &sizes)).unwrap();
    fs::write(directory.join("b.log"), nccl("20.0", &sizes.map(|(mib, us)| (mib, us * 7.6)))).unwrap();
}

#[test]
fn a_link_test_is_a_report_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    pair(directory.path());
    let text = printed(&["diagnose", "b.log", "--lang", "en"], directory.path());
    for said in [
        "all_reduce, 2 ranks, float: 28.26 GB/s of bus bandwidth at most, at 8.0 GiB, 9.4 % of the published 300 GB/s",
        "link `GPU/0-17000 (rank 0)` to `GPU/0-65000 (rank 1)` (`NVL`) 20 of 240 GB/s",
        "**Knee**: 64.0 MiB",
        "**Latency**: 760.0 µs, a call of 1.0 MiB",
    ] {
        assert!(text.contains(said), "{said} is not in\n{text}");
    }
    let zh = printed(&["diagnose", "b.log", "--lang", "zh"], directory.path());
    assert!(zh.contains("总线带宽最高 28.26 GB/s") && zh.contains("拐点"), "{zh}");
    let json: Value =
        serde_json::from_str(&printed(&["diagnose", "b.log", "--format", "json"], directory.path())).unwrap();
    schema::check(&schema::read("strato.diagnosis"), &json, "a link test");
    let test = &json["captures"][0]["link_test"];
    assert_eq!(
        (&test["series"][0]["knee_bytes"], &test["links"]["slowest"]["gb_per_s"]),
        (&Value::from(64 << 20), &Value::from(20.0))
    );
}

#[test]
fn d12_two_link_tests_are_compared_size_by_size_and_the_slower_link_is_named() {
    let directory = tempfile::tempdir().unwrap();
    pair(directory.path());
    let text = printed(&["diff", "a.log", "b.log", "--lang", "en"], directory.path());
    for said in [
        "B is 7.6 times slower at 8.0 GiB",
        "B: link `GPU/0-17000 (rank 0)` to `GPU/0-65000 (rank 1)` (`NVL`) 20 of 240 GB/s",
    ] {
        assert!(text.contains(said), "{said} is not in\n{text}");
    }
    let json: Value =
        serde_json::from_str(&printed(&["diff", "a.log", "b.log", "--format", "json"], directory.path())).unwrap();
    schema::check(&schema::read("strato.links"), &json, "two link tests");
    assert_eq!((&json["slower_link"], &json["comparable"]), (&Value::from("b"), &Value::from(true)));
    // The gate, and a test against itself.
    let gate = |b: &str| strato(&["diff", "a.log", b, "--fail-on", "high", "-q"], directory.path()).status.code();
    assert_eq!((gate("b.log"), gate("a.log")), (Some(1), Some(0)));
    // What one side did not test is not compared.
    fs::write(directory.path().join("c.log"), nccl("240.0", &[(2, 9.0)])).unwrap();
    assert_eq!(gate("c.log"), Some(5));
}

#[test]
fn a_link_test_of_hccl_has_bus_bandwidth_that_is_computed() {
    let directory = tempfile::tempdir().unwrap();
    let text = "mpirun -n 8 ./bin/all_reduce_test -b 8K -e 1G -d fp32 -o sum -p 8\n\
                data_size(Bytes): | aveg_time(us): | alg_bandwidth(GB/s): | check_result:\n\
                8192              | 12.50          | 0.65536              | success\n\
                1073741824        | 10000.00       | 107.37               | success\n";
    fs::write(directory.path().join("h.log"), text).unwrap();
    let text = printed(&["diagnose", "h.log", "--lang", "en"], directory.path());
    assert!(text.contains("187.9 GB/s of bus bandwidth at most"), "{text}");
    assert!(text.contains("prints no bus bandwidth") && text.contains("12.5 µs, a call of 8.0 KiB"), "{text}");
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn d12_the_real_pair_names_the_link_and_the_ratio() {
    let directory = corpus().join("nccl/nccl-tests-fault");
    let text = printed(&["diff", "nccl.log", "nccl-fault.log", "--lang", "en"], &directory);
    for said in ["7.6 times slower at 8.0 GiB", "20 of 240 GB/s", "plateau 216.6 GB/s", "plateau 28.55 GB/s"] {
        assert!(text.contains(said), "{said} is not in\n{text}");
    }
}
