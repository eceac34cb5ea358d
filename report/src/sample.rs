//! A report written by hand, small and with something in every part.

mod largest;
mod limits;

use model::{Area, EvidenceClass, ImportStat, LedgerRow, Light, Maturity, Provenance, SliceId, StepPart};

use super::{
    grade::Grade,
    idle::Idle,
    model::{BucketRow, Capture, ClassPart, Copies, DeviceGroup, Mapping, RankPart, Report, Slow},
    owners::IdleOwner,
    work::Work,
    workload::WorkloadPart,
};
use diagnosis::{
    analysis::{
        Anchor, AnchorKind, Confidence, Integrity, Layer, Selection,
        job_sums::{JobTotals, LinkTotal, RankTotal, SlowestLink, SlowestRank},
        replay::{Check, CriticalPath},
        steps::Shadow,
    },
    diagnose::{
        Abstention, Assessment, Competing, Condition, Counterfactual, Estimate, Evidence, Explained, Finding, First,
        Interaction, Level, Method, Over, Place, RankCheck, Readiness, Severity, Trigger, Unjudged, Verdict,
        VerdictLayer,
        finding::Remedy,
        readiness::{Cell, Fact, Next},
    },
    i18n::{Message, Text, Value},
    platform::Stage,
};

/// A launch-bound decode run of three steps that count.
pub(super) fn report(simulated: bool) -> Report {
    Report { captures: vec![capture(simulated)] }
}

fn owner() -> IdleOwner {
    IdleOwner {
        rank: 0,
        bucket: Some("rt.host.python".into()),
        owner: Some("model.py(7): forward".into()),
        kind: Some("python_frame"),
        wraps: false,
        around: vec!["nn.Module: Model_0".into()],
        children: vec![("<built-in method __getitem__ of dict>".into(), 1_207)],
        ended_by: Some("gemm".into()),
        per_step: 1.0,
        ns: 5_000_000,
        share: 0.5,
        longest: 5_100_000,
        slices: vec![SliceId(7)],
    }
}

fn capture(simulated: bool) -> Capture {
    use EvidenceClass::{Correlation, Device, Graph, HostApi};
    let evidence = [Device, HostApi, Correlation, Graph].into_iter().collect();
    let integrity = Integrity {
        device_ops: 1200,
        unlinked: 3,
        before_recording: 2,
        judged: 800,
        gaps: 1190,
        zero_gaps: 12,
        overlapping: 1,
        ..Integrity::default()
    };
    let stat = |name: &str, severity, count, example: Option<&str>| ImportStat {
        name: name.into(),
        severity,
        count,
        example: example.map(str::to_owned),
    };
    Capture {
        id: 1,
        source: "launch-bound.json.gz".into(),
        format: "kineto".into(),
        simulated,
        devices: vec![DeviceGroup {
            vendor: Some("nvidia".into()),
            name: Some("NVIDIA H100".into()),
            count: 2,
            chip: Some(limits::chip()),
        }],
        facts: vec![
            ("parallel.world_size".into(), "2".into(), Provenance::Observed),
            ("software.engine".into(), "engine 1.2".into(), Provenance::Declared),
        ],
        world_size: Some(2),
        window: Some(45_000_000),
        rows: Some(44_000_000),
        start_unix_ns: Some(1_700_000_000_000_000_000),
        evidence,
        contradicted: false,
        grade: Grade::of(evidence, &integrity, true),
        caveat: ["Durations are taken as they are.".into(), "时长按原样使用。".into()],
        integrity,
        loss: diagnosis::analysis::Loss::default(),
        summaries: Default::default(),
        job_sums: job_sums(),
        serving: Default::default(),
        link_test: Default::default(),
        ranks: vec![rank()],
        owners: vec![owner()],
        job: None,
        readiness: readiness(),
        verdict: Verdict {
            layer: VerdictLayer::Runtime,
            headline: Message::new(
                Text::new(
                    "The host cannot launch fast enough: {share} of each decode step the device waits for it.",
                    "主机启动速度不足：每个解码步有 {share} 的时间设备在等待主机。",
                ),
                [("share", Value::Share(0.4))],
            ),
            confidence: Confidence::Medium,
            because: vec!["RT-14"],
            place: Some(place()),
            first: Some(first()),
            unjudged: vec![Unjudged {
                share: 0.5,
                sentence: Message::new(
                    Text::new("how fast {bucket} could be: record shapes", "{bucket} 还能快多少：请采集形状"),
                    [("bucket", Value::Raw("compute.gemm".into()))],
                ),
                because: Vec::new(),
                decides: false,
            }],
            explained: vec![Explained { layer: Layer::Runtime, share: 0.8 }],
            level: Some(Level::Run),
            missing: vec![Message::plain(Text::new("Measured ceilings of the platform.", "平台的实测上限。"))],
            levels: levels(),
        },
        largest: largest::largest(),
        findings: vec![finding()],
        held: None,
        limits: limits::limits(),
        counterfactual: Counterfactual {
            checks: vec![RankCheck {
                rank: 0,
                class: "decode b=8 graph=eager".into(),
                check: Check { steps: 3, median: 0.001, p95: 0.004 },
            }],
            joint: None,
            paths: vec![CriticalPath {
                rank: 0,
                class: "decode b=8 graph=eager".into(),
                step: 2,
                length: 10_000_000,
                layers: Layer::ALL.into_iter().zip([5_000_000, 4_000_000, 1_000_000, 0]).collect(),
                hops: 3,
                ops: 180,
            }],
            interactions: vec![Interaction { rules: ["RT-14", "RT-12"], ns: -250_000 }],
        },
        breaches: Vec::new(),
        coverage: Default::default(),
        abstained: vec![
            Abstention { rule: "CM-01", needs: vec![EvidenceClass::MultiRank], why: None },
            Abstention { rule: "CM-02", needs: vec![EvidenceClass::MultiRank], why: None },
            Abstention {
                rule: "CM-06",
                needs: Vec::new(),
                why: Some(Message::plain(Text::new("no layer structure was found.", "没有找到层结构。"))),
            },
        ],
        mapping: Mapping { coverage: Some(0.975), unmapped: vec![("my_kernel<int>".into(), 120_000)], more: (2, 900) },
        ledger: vec![LedgerRow {
            category: "cuda_runtime".into(),
            read: 1300,
            kept: 1299,
            time_ns: 5_000_000,
            note: "host calls".into(),
        }],
        stats: vec![
            stat("kineto.clipped", model::Severity::DataLoss, 1, Some("byte 17")),
            stat("kineto.orphan_kernels", model::Severity::Notice, 3, None),
        ],
    }
}

fn job_sums() -> JobTotals {
    let rank = |rank, computing, exposed| RankTotal {
        rank,
        stage: Some(0),
        parts: [
            (StepPart::Computing, computing),
            (StepPart::ExposedCommunication, exposed),
            (StepPart::Free, 2_000_000),
        ]
        .into_iter()
        .map(|(part, ns)| (part, (ns, 2)))
        .collect(),
    };
    let link = |to, time| LinkTotal { from: 0, to, transport: "HC|CS".into(), bytes: 20_971_520, time };
    JobTotals {
        ranks: vec![rank(0, 14_000_000, 4_000_000), rank(1, 16_000_000, 2_000_000)],
        slowest_ranks: vec![SlowestRank { rank: 1, stage: Some(0), own: 9_000_000, least: 8_000_000, ranks: 2 }],
        links: vec![link(1, 863_815), link(2, 1_863_815)],
        slowest_links: vec![SlowestLink { link: link(2, 1_863_815), median: 2.427_78e10, links: 2 }],
    }
}

fn levels() -> Vec<Assessment> {
    let check = |met, en, zh| Condition { met, what: Message::plain(Text::new(en, zh)) };
    let unclaimed = Text::new("that it runs fast", "运行得快");
    let runs = check(true, "1200 device operations were recorded", "记录了 1200 个设备操作");
    let probes = check(false, "probes of this platform", "本平台探针");
    vec![
        Assessment { level: Level::Run, checks: vec![runs], unclaimed },
        Assessment { level: Level::Optimise, checks: vec![probes], unclaimed },
    ]
}

fn rank() -> RankPart {
    let bucket = |name: &str, layer, ns| BucketRow { name: name.into(), layer, ns };
    let work = |name: &str, op, count, busy, idle| Work { name: name.into(), op, count, busy, idle, first: None };
    let decode = ClassPart {
        key: "decode b=8 graph=eager".into(),
        stage: Stage::Decode,
        count: 5,
        used: 3,
        lengths: vec![9_000_000, 10_000_000, 11_000_001],
        median: 10_000_000,
        p95: None,
        p99: None,
        total: 30_000_001,
        buckets: vec![
            bucket("compute.gemm", Layer::Operator, 10_000_000),
            bucket("compute.norm", Layer::Operator, 5_000_000),
            bucket("rt.launch_api", Layer::Runtime, 10_000_000),
            bucket("rt.host.sampler", Layer::Runtime, 2_000_000),
            bucket("comm.transfer", Layer::Communication, 3_000_000),
            bucket("unattributed", Layer::Measurement, 1),
        ],
        shadow: vec![(Shadow::ComputeTransfer, 600_000), (Shadow::ComputeCopy, 0)],
        reassigned: None,
        host: Some(9_000_000),
        idle: Some(Idle::Start { early: 9_000_000, all: 9_500_000 }),
        attended: Some((512, 512)),
        slow: Some(Slow { ratio: 1.25, slowest: true, steps: 1, excess: vec![("rt.launch_api".into(), 2_500_000)] }),
    };
    let prefill = ClassPart {
        key: "prefill".into(),
        stage: Stage::Prefill,
        count: 1,
        used: 1,
        lengths: vec![4_000_000],
        median: 4_000_000,
        p95: None,
        p99: None,
        total: 4_000_000,
        buckets: vec![bucket("compute.gemm", Layer::Operator, 3_999_999), bucket("prof", Layer::Measurement, 1)],
        shadow: Vec::new(),
        slow: None,
        reassigned: None,
        host: None,
        idle: None,
        attended: None,
    };
    RankPart {
        rank: 0,
        device: 0,
        anchor: Anchor {
            kind: AnchorKind::UserRange,
            name: "execute_model".into(),
            confidence: Confidence::High,
            without_work: 2,
        },
        steps: 6,
        covered: 44_000_000,
        selections: vec![
            (Selection::Steady, vec![(1, 4)]),
            (Selection::WarmUp, vec![(0, 0)]),
            (Selection::Unfinished, vec![(5, 5)]),
        ],
        classes: vec![decode, prefill],
        main: Some(0),
        operators: vec![
            work("gemm", "gemm", 120, 10_000_000, 9_000_000),
            work("norm", "norm", 60, 5_000_000, 3_000_000),
        ],
        workload: Some(WorkloadPart {
            steps: 3,
            mean: 10_000_000,
            median: 9_000_000,
            stage: Stage::Decode,
            sequences: Some((4, 4)),
            tokens: Some((4, 4)),
            slow: (1, vec![("rt.compile".into(), 400_000)]),
        }),
        replayed: Vec::new(),
        kernels: vec![
            work("nvjet_tst_64x8", "gemm", 120, 10_000_000, 9_000_000),
            work("void rms_norm<c10::BFloat16>(T*, int)", "norm", 60, 5_000_000, 3_000_000),
        ],
        outside: [3_000_000, 0],
        awaited: Some(("cudaMemcpy".to_owned(), 9_000_000)),
        copies: vec![Copies { name: "copy.h2d", count: 3, bytes: 3 << 20, time: 150_000 }],
        untraced: Vec::new(),
        collectives: (6, 2),
        only_collectives: false,
    }
}

fn finding() -> Finding {
    Finding {
        rule: "RT-14",
        layer: Layer::Runtime,
        severity: Severity::Critical,
        confidence: Confidence::Medium,
        claim: Message::new(
            Text::new("The device waits {ns} per step for launches.", "设备每步等待启动 {ns}。"),
            [("ns", Value::Ns(4_000_000))],
        ),
        class: "decode b=8 graph=eager".into(),
        ranks: vec![0],
        evidence: vec![Evidence {
            what: Message::plain(Text::new("launches per step", "每步启动次数")),
            value: Value::Count(400),
            rows: (1..=6).map(SliceId).collect(),
        }],
        trigger: Trigger {
            formula: Text::new(
                "(rt.launch_api + rt.launch_latency) / step",
                "（rt.launch_api + rt.launch_latency）/ 步时",
            ),
            value: 0.333,
            threshold: 0.15,
        },
        estimate: Estimate { from: 10_000_000, to_low: 6_000_000, to_high: 10_000_000, method: Method::Bound },
        over: Over::Class,
        limits: None,
        unreplayed: None,
        changes: Vec::new(),
        competing: vec![Competing {
            claim: Message::plain(Text::new("The profiler slows the host down.", "采集工具拖慢了主机。")),
            refuted: false,
            why: Message::plain(Text::new("an untraced run would decide.", "不采集的运行可以判定。")),
        }],
        remedy: vec![Remedy {
            text_en: "Capture the decode step in a graph.".into(),
            text_zh: "将解码步捕获为图。".into(),
            platform: "cuda".into(),
            source: "vendor guide".into(),
            date: "2026-01".into(),
            unless: None,
            of: Vec::new(),
            kernels: Vec::new(),
        }],
        verify: Message::plain(Text::new(
            "Run again with graphs and compare the step time.",
            "启用图后重新运行并比较步时间。",
        )),
        supersedes: vec!["RT-01"],
        explains: 19_000,
        claimed: 0,
        same_time_as: None,
        beyond: false,
        cost: 0,
        selection: Vec::new(),
        stretches: Vec::new(),
        selected_on: 0,
        weight: 1.0,
    }
}

fn place() -> Place {
    Place {
        layer: VerdictLayer::Operator,
        share: 0.5,
        layers: [0.5, 0.4, 0.1, 0.0],
        bucket: "compute.gemm".into(),
        part: 0.5,
        busy: 0.6,
        rank: 0,
        class: "decode b=8 graph=eager".into(),
        steps: 3,
        mean: 10_000_000,
        median: 9_000_000,
        mark: None,
        waits_for: None,
        ahead: None,
        outside: None,
    }
}

fn first() -> First {
    First {
        rank: None,
        rule: "RT-14",
        title: Text::new("Launch-bound", "受下发速度限制"),
        layer: VerdictLayer::Runtime,
        from: 10_000_000,
        to_low: 6_000_000,
        to_high: 8_000_000,
        confidence: Confidence::Medium,
    }
}

/// A board of every light.
fn readiness() -> Readiness {
    let cell = |of, light, facts, next| Cell { of, light, facts, next };
    let hostile = "diverges: <b>|\u{1b}[2J";
    Readiness {
        vendor: "nvidia".to_owned(),
        board: vec![
            cell(
                Area::Run,
                Light::Red,
                vec![
                    Fact::Ran { operations: 4_200, steps: 3 },
                    Fact::Reference { field: "precision.deviation", value: hostile.into() },
                ],
                Some(Next::Diverges),
            ),
            cell(
                Area::Graph,
                Light::Amber,
                vec![
                    Fact::Graphs { full: 0, piecewise: 0, eager: 3 },
                    Fact::Finding { rule: "RT-01", severity: Severity::Medium },
                ],
                Some(Next::Remedy("RT-01")),
            ),
            cell(Area::Observability, Light::Green, vec![Fact::Evidence { held: 5, of: 9 }], None),
            cell(
                Area::Communication,
                Light::Unknown,
                vec![Fact::Ranks { captured: 1, world: Some(2) }],
                Some(Next::Collect(EvidenceClass::MultiRank)),
            ),
        ],
        matrix: vec![Cell {
            of: Maturity::Community,
            light: Light::Unknown,
            facts: vec![Fact::NotJudged],
            next: Some(Next::Judge),
        }],
    }
}
