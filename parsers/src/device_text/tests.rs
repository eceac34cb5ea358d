#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::*;
use Metric::*;

const MIB: f64 = 1_048_576.0;

fn one(text: &str, tool: &str) -> DeviceReadings {
    let (found, out) = read(text).unwrap();
    assert_eq!((found.id, out.unread), (tool, 0));
    out.devices.into_iter().next().unwrap()
}

fn holds(device: &DeviceReadings, expected: &[(Metric, f64)]) {
    for (metric, value) in expected {
        assert_eq!(device.value(*metric), Some(*value), "{metric:?} of {device:?}");
    }
}

#[test]
fn npu_smi_with_two_chips_and_a_power_that_is_not_shown() {
    let text = "\
+------------------------------------------------------------------------------------------------+
| npu-smi 24.1.rc3.3               Version: 24.1.rc3.3                                           |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip  Phy-ID              | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 3     Ascend910           | OK            | 182.0       36                0    / 0             |
| 0     6                   | 0000:9D:00.0  | 7           0    / 0          57895/ 65536         |
+------------------------------------------------------------------------------------------------+
| 3     Ascend910           | OK            | -           35                0    / 0             |
| 1     7                   | 0000:9F:00.0  | 0           0    / 0          3200 / 65536         |
+===========================+===============+====================================================+
+---------------------------+---------------+----------------------------------------------------+
| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
+===========================+===============+====================================================+
| 3       0                 | 4711          | python                   | 57000                   |
";
    let (tool, out) = read(text).unwrap();
    assert_eq!((tool.id, out.version.as_deref(), out.devices.len()), ("npu-smi", Some("24.1.rc3.3"), 2));
    let [a, b] = [&out.devices[0], &out.devices[1]];
    assert_eq!(
        (a.card, a.chip, a.name.as_deref(), a.bus.as_deref()),
        (3, Some(0), Some("Ascend910"), Some("0000:9D:00.0"))
    );
    holds(
        a,
        &[
            (Power, 182.0),
            (Temperature, 36.0),
            (Utilisation, 7.0),
            (MemoryUsed, 57895.0 * MIB),
            (MemoryTotal, 65536.0 * MIB),
        ],
    );
    assert_eq!((b.chip, b.get(Power)), (Some(1), Some(&Reading::Unavailable("the tool shows '-'".to_owned()))));
    holds(b, &[(Temperature, 35.0), (MemoryUsed, 3200.0 * MIB)]);
}

#[test]
fn npu_smi_lines_and_watch() {
    let text = "\tNPU ID                         : 2\n\tChip Count                     : 1\n\n\tHBM Capacity(MB)               : 32768\n\tHBM Usage Rate(%)              : 4\n\tAicore Usage Rate(%)           : NA\n\tNPU Real-time Power(W)         : 71.7\n\tChip ID                        : 0\n";
    let device = one(text, "npu-smi");
    assert_eq!((device.card, device.chip), (2, Some(0)));
    holds(&device, &[(MemoryTotal, 32768.0 * MIB), (MemoryUtilisation, 4.0), (Power, 71.7)]);
    assert!(device.get(Utilisation).unwrap().value().is_none());
    let text = "NpuID(Idx)  ChipId(Idx) Pwr(W)      Temp(C)     AI Core(%)  AI Cpu(%)   Ctrl Cpu(%) Memory(%)   Memory BW(%)\n\
                1           0           92.5        41          33          0           2           5           NA\n";
    let device = one(text, "npu-smi");
    assert_eq!(device.chip, Some(0));
    holds(&device, &[(Power, 92.5), (Temperature, 41.0), (Utilisation, 33.0), (MemoryUtilisation, 5.0)]);
    assert!(device.get(MemoryBandwidth).unwrap().value().is_none());
}

#[test]
fn nvidia_smi_as_rows_and_as_a_table() {
    let rows = "\
index, name, pci.bus_id, utilization.gpu [%], memory.used [MiB], memory.total [MiB], power.draw [W], power.limit [W], temperature.gpu, clocks.current.sm [MHz], clocks.current.memory [MHz]
0, NVIDIA A100-SXM4-40GB, 00000000:07:00.0, 97 %, 1024 MiB, 40960 MiB, 58.42 W, 400.00 W, 31, 1410 MHz, 1215 MHz
1, NVIDIA A100-SXM4-40GB, 00000000:0F:00.0, [N/A], 0 MiB, 40960 MiB, [Unknown Error], 400.00 W, 30, 210 MHz, 1215 MHz
2, cut
";
    let (tool, out) = read(rows).unwrap();
    assert_eq!((tool.id, out.devices.len(), out.unread), ("nvidia-smi", 2, 1));
    let [a, b] = [&out.devices[0], &out.devices[1]];
    assert_eq!((a.name.as_deref(), a.bus.as_deref()), (Some("NVIDIA A100-SXM4-40GB"), Some("00000000:07:00.0")));
    holds(a, &[(Utilisation, 97.0), (MemoryUsed, 1024.0 * MIB), (MemoryTotal, 40960.0 * MIB), (Power, 58.42)]);
    holds(a, &[(PowerCap, 400.0), (Temperature, 31.0), (Clock, 1410.0), (MemoryClock, 1215.0)]);
    assert_eq!(b.get(Utilisation), Some(&Reading::Unavailable("the tool shows '[N/A]'".to_owned())));
    assert!(b.get(Power).unwrap().value().is_none() && b.value(MemoryUsed) == Some(0.0));
    let table = "\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|=========================================+========================+======================|
|   0  NVIDIA H100 80GB HBM3          On  |   00000000:04:00.0 Off |                    0 |
| N/A   33C    P0             72W /  700W |       1MiB /  81559MiB |      5%      Default |
+-----------------------------------------+------------------------+----------------------+
";
    let device = one(table, "nvidia-smi");
    assert_eq!(device.name.as_deref(), Some("NVIDIA H100 80GB HBM3"));
    holds(&device, &[(Power, 72.0), (PowerCap, 700.0), (Temperature, 33.0), (MemoryUsed, MIB), (Utilisation, 5.0)]);
}

#[test]
fn boxes_of_the_other_vendors() {
    let cnmon = "\
+------------------------------------------------------------------------------+
| CNMON v5.10.13                                               Driver v5.10.13 |
+-------------------------------+----------------------+-----------------------+
| Card  VF  Name       Firmware |               Bus-Id | Util        Ecc-Error |
| Fan   Temp      Pwr:Usage/Cap |         Memory-Usage | SR-IOV   Compute-Mode |
|===============================+======================+=======================|
| 1     /   MLU370-X8    v1.1.6 |         0000:3D:00.0 | 12%               N/A |
|  0%   39C        106 W/ 250 W |    64 MiB/ 23374 MiB | N/A           Default |
+-------------------------------+----------------------+-----------------------+
";
    let device = one(cnmon, "cnmon");
    assert_eq!((device.card, device.name.as_deref()), (1, Some("MLU370-X8")));
    holds(
        &device,
        &[
            (Utilisation, 12.0),
            (Temperature, 39.0),
            (Power, 106.0),
            (PowerCap, 250.0),
            (MemoryUsed, 64.0 * MIB),
            (MemoryTotal, 23374.0 * MIB),
        ],
    );

    let mx = "\
mx-smi  version: 2.1.12
+---------------------------------------------------------------------------------+
| MX-SMI 2.1.12                       Kernel Mode Driver Version: 2.12.13         |
| MACA Version: unknown               BIOS Version: 1.13.4.0                      |
|------------------------------------+---------------------+----------------------+
| GPU         NAME                   | Bus-id              | GPU-Util             |
| Temp        Pwr:Usage/Cap          | Memory-Usage        |                      |
|====================================+=====================+======================|
| 0           MetaX C550             | 0000:2a:00.0        | 5%                   |
| 34C         97W / NA               | 858/65536 MiB       |                      |
+------------------------------------+---------------------+----------------------+
";
    let device = one(mx, "mx-smi");
    assert_eq!(device.name.as_deref(), Some("MetaX C550"));
    holds(
        &device,
        &[
            (Utilisation, 5.0),
            (Temperature, 34.0),
            (Power, 97.0),
            (MemoryUsed, 858.0 * MIB),
            (MemoryTotal, 65536.0 * MIB),
        ],
    );
    assert!(device.get(PowerCap).unwrap().value().is_none());

    let mt = "\
---------------------------------------------------------------------
    mthreads-gmi:2.4.1           Driver Version:5.1.0-server
---------------------------------------------------------------------
ID   Name                 |PCIe                |%GPU  Mem
     Device Type   Perf   |Pcie Lane Width     |Temp  MPC Capable
                                               |      ECC Mode
+-------------------------------------------------------------------+
0    MTT S5000            |00000000:18:00.0    |58%   30094MiB(81920MiB)
     Physical      P0     |16x(16x)            |48C   YES
                                               |      On-die, EDC
+-------------------------------------------------------------------+
Processes:
";
    let device = one(mt, "mthreads-gmi");
    assert_eq!((device.name.as_deref(), device.bus.as_deref()), (Some("MTT S5000"), Some("00000000:18:00.0")));
    holds(
        &device,
        &[(Utilisation, 58.0), (Temperature, 48.0), (MemoryUsed, 30094.0 * MIB), (MemoryTotal, 81920.0 * MIB)],
    );

    let ix = "\
+-----------------------------------------------------------------------------+
| IX-ML: 3.2.1        Driver Version: 3.2.1        CUDA Version: 10.2         |
|-------------------------------+----------------------+----------------------+
| GPU  Name                     | Bus-Id               | Clock-SM  Clock-Mem  |
| Fan  Temp  Perf  Pwr:Usage/Cap|      Memory-Usage    | GPU-Util  Compute M. |
|===============================+======================+======================|
| 0    Iluvatar BI-V150         | 00000000:13:00.0     | 1500MHz   1600MHz    |
| N/A  36C   P0     103W / 350W | 257MiB / 32768MiB    | 2%        Default    |
+-------------------------------+----------------------+----------------------+
";
    let device = one(ix, "ixsmi");
    holds(
        &device,
        &[
            (Clock, 1500.0),
            (Temperature, 36.0),
            (Power, 103.0),
            (PowerCap, 350.0),
            (MemoryUsed, 257.0 * MIB),
            (Utilisation, 2.0),
        ],
    );

    let xpu = "\
| XPU-SMI               Driver Version: 515.58       XPU-RT Version: N/A      |
|-------------------------------+----------------------+----------------------+
| XPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | XPU-Util  Compute M. |
|                               |             L3-Usage |            SR-IOV M. |
|===============================+======================+======================|
|   1  P800 OAM           N/A   | 00000000:16:00.0 N/A |                    0 |
| N/A   38C  N/A     94W / 400W |  31058MiB / 98304MiB |      3%      Default |
|                               |      0MiB /    96MiB |             Disabled |
+-------------------------------+----------------------+----------------------+
";
    let device = one(xpu, "xpu-smi");
    assert_eq!((device.card, device.name.as_deref()), (1, Some("P800 OAM")));
    holds(
        &device,
        &[(Temperature, 38.0), (Power, 94.0), (PowerCap, 400.0), (MemoryUsed, 31058.0 * MIB), (Utilisation, 3.0)],
    );
}

#[test]
fn lines_for_machines_of_xpu_smi() {
    let mut fields: Vec<String> = (0..32).map(|i| i.to_string()).collect();
    fields[2] = "'two words'".to_owned();
    let device = one(&fields.join(" "), "xpu-smi");
    assert_eq!(device.card, 1);
    holds(&device, &[(MemoryUsed, 17.0 * MIB), (MemoryTotal, 18.0 * MIB), (Utilisation, 19.0)]);
    let dump = "Timestamp, DeviceId, GPU Utilization (%), GPU Power (W)\n12:00:00.1,    0, 3.5, 40.2,\n12:00:01.1, 0, , 41\n12:00:02, 0, 1, 2, 3\n";
    let (_, out) = read(dump).unwrap();
    assert_eq!((out.devices.len(), out.unread), (2, 1));
    holds(&out.devices[0], &[(Utilisation, 3.5), (Power, 40.2)]);
    assert_eq!(out.devices[1].get(Utilisation), Some(&Reading::Unavailable("the cell is empty".to_owned())));
}

#[test]
fn rocm_smi_as_table_and_as_json() {
    let table = "\
========================================= ROCm System Management Interface =========================================
Device  Node  IDs              Temp        Power     Partitions          SCLK    MCLK    Fan  Perf  PwrCap  VRAM%  GPU%
              (DID,     GUID)  (Junction)  (Socket)  (Mem, Compute, ID)
====================================================================================================================
0       2     0x74a1,   28851  35.0°C      140.0W    NPS1, SPX, 0        132Mhz  900Mhz  0%   auto  750.0W  1%     98%
====================================================================================================================
";
    let device = one(table, "rocm-smi");
    holds(
        &device,
        &[
            (Temperature, 35.0),
            (Power, 140.0),
            (Clock, 132.0),
            (PowerCap, 750.0),
            (MemoryUtilisation, 1.0),
            (Utilisation, 98.0),
        ],
    );
    let json = r#"WARNING: AMD GPU device(s) is/are in a low-power state.
{"card1": {"GPU use (%)": "7", "VRAM Total Memory (B)": "206141652992", "Average Graphics Package Power (W)": "N/A", "Current Socket Graphics Package Power (W)": "154.0", "sclk clock speed:": "(1700Mhz)"}, "system": {"Driver version": "6.7"}}
"#;
    let json = json.replace("card1", "card0");
    let device = one(&json, "rocm-smi");
    holds(&device, &[(Utilisation, 7.0), (MemoryTotal, 206_141_652_992.0), (Power, 154.0), (Clock, 1700.0)]);
}

#[test]
fn drift_and_damage_never_fail() {
    assert!(read("hello").is_none());
    for text in [
        "| npu-smi",
        "| CNMON v\n|=|\n| 0",
        "| XPU-SMI \n| 99999999999 x |\n",
        "\"card0\" { \"card0\": [",
        "| MX-SMI \n| GPU NAME | Pwr |\n|---|\n| 0 |",
        "AICore(%)\n| 0 a | b |\n",
    ] {
        let (_, out) = read(text).unwrap();
        assert!(out.devices.iter().all(|d| d.readings.iter().all(|(_, r)| r.value().is_none())), "{text}: {out:?}");
    }
}
