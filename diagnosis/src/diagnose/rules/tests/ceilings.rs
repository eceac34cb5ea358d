//! Rules that hold a run against what its device reaches.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use model::{EvidenceClass, Ns, ProbeRow, ProbeUnit, Provenance, Reading, Setting, Statistic, Trace};

use super::super::testing::{GEMM, NORM, Run, check, diagnosis, fires, us};
use crate::{
    analysis::{Analysis, Confidence},
    diagnose::Finding,
    i18n::Lang,
};

/// Outputs and inputs of three products; each with its share of the time that `run` gives.
const SHAPES: [(i64, i64); 3] = [(4096, 4096), (8192, 4096), (4096, 8192)];
const ELEMENTWISE: &str = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctorOnSelf_add<float>>";

/// Steps of four layers, each with a product of every shape of so many rows that takes `ns`.
fn run(rows: i64, ns: [Ns; 3]) -> (Trace, Analysis) {
    run_of(GEMM, rows, ns)
}

fn run_of(kernel: &str, rows: i64, ns: [Ns; 3]) -> (Trace, Analysis) {
    let (mut trace, analysis) = Run::steps(12, |r, _| {
        for _ in 0..4 {
            for ((outputs, inputs), ns) in SHAPES.iter().zip(ns) {
                let shapes = format!("[[{rows}, {inputs}], [{outputs}, {inputs}]]");
                r.shaped(kernel, ns, &shapes, r#"["c10::BFloat16", "c10::BFloat16"]"#).launch(NORM, us(5));
            }
        }
        r.token();
    });
    trace.manifest.set("precision.weights", "bf16", Provenance::Observed);
    (trace, analysis)
}

fn row(probe: &str, metric: &str, unit: ProbeUnit, setting: Setting, median: f64) -> ProbeRow {
    let value = Reading::Value(Statistic { median, min: median * 0.99, max: median * 1.01, mad: 0.0, repeats: 9 });
    ProbeRow { probe: probe.to_owned(), metric: metric.to_owned(), unit, setting, value }
}

/// Reads at 1000 bytes per ns.
fn bandwidth() -> ProbeRow {
    row("read", "bandwidth", ProbeUnit::BytesPerSecond, Setting::new().with("in", "memory"), 1e12)
}

fn product(shape: (i64, i64), ns: Ns) -> ProbeRow {
    product_of(4, shape, ns)
}

fn product_of(rows: i64, (outputs, inputs): (i64, i64), ns: Ns) -> ProbeRow {
    let setting = Setting::new().with(Setting::DTYPE, "bf16").with(Setting::ROWS, rows);
    let setting = setting.with(Setting::OUTPUTS, outputs).with(Setting::INPUTS, inputs);
    row("product", "time", ProbeUnit::Ns, setting, ns as f64)
}

fn probed((mut trace, mut analysis): (Trace, Analysis), rows: Vec<ProbeRow>) -> (Trace, Analysis) {
    trace.probes.rows = rows;
    analysis.evidence.insert(EvidenceClass::Probes);
    (trace, analysis)
}

fn abstains(rule: &str, capture: &(Trace, Analysis)) -> Option<String> {
    let found = diagnosis(capture).abstained.into_iter().find(|a| a.rule == rule)?;
    Some(found.why.map_or_else(|| format!("{:?}", found.needs), |why| why.render(Lang::En, |v| format!("{v:?}"))))
}

fn claim(finding: &Finding) -> String {
    finding.claim.render(Lang::En, |v| format!("{v:?}"))
}

/// The smallest shape is 33.6 MB: 33.6 µs at the ceiling, so 56 µs are 0.6 of it.
#[test]
fn op01_fires_below_60_percent_of_a_measured_ceiling_and_not_above() {
    let times = |first: Ns| [us(first), us(2 * first), us(2 * first)];
    let slow = probed(run(4, times(100)), vec![bandwidth()]);
    assert!(fires("OP-01", &slow));
    let found = &check("OP-01", &slow)[0];
    assert!(claim(found).contains("was measured to reach"), "{}", claim(found));
    assert_eq!(found.confidence, Confidence::Medium);
    // 12 products, of which each saves all but its ceiling over 0.8: 4 x (500 - 5 x 33.55 / 0.8) µs and a little.
    assert!((us(1_150)..us(1_170)).contains(&found.changes[0].1.removes), "{}", found.changes[0].1.removes);
    assert!(!fires("OP-01", &probed(run(4, times(52)), vec![bandwidth()])), "0.65 of the ceiling");
    assert!(!fires("OP-01", &probed(run(4, times(20)), vec![bandwidth()])), "operands in a cache");
}

#[test]
fn op01_counts_no_product_that_its_floor_or_its_arithmetic_bounds() {
    let slow = || run(4, [us(100), us(200), us(200)]);
    let floor = row("launch", "floor", ProbeUnit::Ns, Setting::new(), 70_000.0);
    assert!(!fires("OP-01", &probed(slow(), vec![bandwidth(), floor])), "below three floors");
    let arithmetic = |rate: f64| {
        row("gemm", "arithmetic", ProbeUnit::FlopsPerSecond, Setting::new().with(Setting::DTYPE, "bf16"), rate)
    };
    // 2 x 4 x 4096 x 4096 operations: 67 µs at 2 Tflop/s.
    assert!(!fires("OP-01", &probed(slow(), vec![bandwidth(), arithmetic(2e12)])), "bound by arithmetic");
    assert!(fires("OP-01", &probed(slow(), vec![bandwidth(), arithmetic(2e14)])));
    let prompt = probed(run(64, [us(100), us(200), us(200)]), vec![bandwidth()]);
    assert!(!fires("OP-01", &prompt) && abstains("OP-01", &prompt).is_some(), "nobody measured the arithmetic");
}

/// Eager steps of one token that compute 8 rows.
fn padding(ns: [Ns; 3]) -> (Trace, Analysis) {
    let (mut trace, analysis) = Run::steps(12, |r, _| {
        let now = r.host;
        r.script.counter("num_scheduled_tokens", now, 1.0).counter("num_padded_tokens", now, 8.0);
        for ((outputs, inputs), ns) in SHAPES.iter().zip(ns) {
            let shapes = format!("[[8, {inputs}], [{outputs}, {inputs}]]");
            r.shaped(GEMM, ns, &shapes, r#"["c10::BFloat16", "c10::BFloat16"]"#).launch(NORM, us(5));
        }
        r.token();
    });
    trace.manifest.set("precision.weights", "bf16", Provenance::Observed);
    (trace, analysis)
}

/// Padding is the runtime's doing, and what it costs is time of kernels: a step without a visible share of the runtime is where it
/// was lost.
#[test]
fn rt04_stands_where_the_runtime_itself_takes_no_time() {
    let long = [80, 160, 160].map(|ns| us(100 * ns));
    let (trace, analysis) = padding(long);
    let runtime = |bucket: crate::analysis::Bucket| bucket.layer() == crate::analysis::Layer::Runtime;
    assert!(analysis.ranks[0].classes[0].share(runtime) < 0.01, "nothing to see of the runtime");
    let capture = probed((trace, analysis), vec![bandwidth()]);
    assert!(diagnosis(&capture).findings.iter().any(|finding| finding.rule == "RT-04"));
}

#[test]
fn rt04_judges_padding_by_what_probes_measured_where_all_steps_have_one_size() {
    let slow = probed(padding([us(80), us(160), us(160)]), vec![bandwidth()]);
    let found = &check("RT-04", &slow)[0];
    assert_eq!(found.confidence, Confidence::Medium);
    // 33.56 + 2 x 67.1 µs at the median bandwidth, over 0.8: 400 µs become 210 µs at worst, and 166 µs at best.
    let removes = found.changes[0].1.removes;
    assert!((us(189)..us(192)).contains(&removes), "{removes}");
    let replayed = diagnosis(&slow).findings.into_iter().find(|finding| finding.rule == "RT-04").unwrap().estimate;
    let (least, most) = (replayed.from - replayed.to_high, replayed.from - replayed.to_low);
    assert!(us(160) < least && least < us(191) && us(230) < most && most < us(260), "{least} {most}");
    // The very products at one token, each in half of its time here.
    let own = SHAPES.iter().zip([40, 80, 80]).map(|(shape, ns)| product_of(1, *shape, us(ns)));
    let measured = probed(padding([us(80), us(160), us(160)]), own.chain([bandwidth()]).collect());
    let removes = check("RT-04", &measured)[0].changes[0].1.removes;
    assert!((us(199)..us(202)).contains(&removes), "{removes}");
    let near = probed(padding([us(36), us(72), us(72)]), vec![bandwidth()]);
    assert!(!fires("RT-04", &near), "reading the weights is what the products do");
    let why = abstains("RT-04", &padding([us(80), us(160), us(160)])).expect("nothing says what fewer rows would take");
    assert!(why.contains("same number of rows"), "{why}");
}

#[test]
fn op01_takes_published_bandwidth_as_second_best_and_says_so() {
    let unknown = run(4, [us(40), us(80), us(80)]);
    assert!(abstains("OP-01", &unknown).unwrap().contains("no probe measured it"));
    let (mut trace, analysis) = unknown;
    let name = trace.strings.intern("NVIDIA H100 80GB HBM3");
    trace.devices[0].name = Some(name);
    let capture = (trace, analysis);
    assert!(fires("OP-01", &capture));
    let found = &check("OP-01", &capture)[0];
    assert!(claim(found).contains("published of this device, not measured"), "{}", claim(found));
    assert_eq!(found.confidence, Confidence::Low);
}

#[test]
fn disturbed_probes_lower_the_confidence_and_are_named() {
    let mut slow = probed(run(4, [us(100), us(200), us(200)]), vec![bandwidth()]);
    slow.0.probes.provenance.push(("noise".to_owned(), Reading::Value("the hypervisor took 9.0 %".to_owned())));
    let found = &check("OP-01", &slow)[0];
    assert_eq!(found.confidence, Confidence::Low);
    assert!(found.evidence.iter().any(|e| format!("{:?}", e.value).contains("hypervisor")));
}

#[test]
fn op02_fires_where_the_very_shape_was_faster_and_only_there() {
    let probes = |ns: [Ns; 3]| SHAPES.iter().zip(ns).map(|(shape, ns)| product(*shape, us(ns))).collect::<Vec<_>>();
    let times = || run(4, [us(50), us(60), us(60)]);
    // One of three is badly chosen.
    let slow = probed(times(), probes([30, 60, 60]));
    assert!(fires("OP-02", &slow));
    assert_eq!(check("OP-02", &slow)[0].changes[0].1.removes, 4 * us(20));
    assert!(!fires("OP-02", &probed(times(), probes([39, 60, 60]))), "1.28 times");
    let mut other = probes([30, 60, 60]);
    other.iter_mut().for_each(|row| {
        row.setting = Setting::parse(&row.setting.to_string().replace("m=4", "m=8"));
    });
    let other = probed(times(), other);
    assert!(!fires("OP-02", &other), "another shape");
    assert!(abstains("OP-02", &other).unwrap().contains("--like"));
    assert!(abstains("OP-02", &times()).unwrap().contains("Probes"));
}

/// What all shapes share is the device's, not the choice of each kernel.
#[test]
fn products_all_slower_by_one_factor_are_op13_and_not_op02() {
    let probes = || SHAPES.iter().zip([30, 60, 60]).map(|(shape, ns)| product(*shape, us(ns))).collect();
    let slow = probed(run(4, [us(45), us(90), us(90)]), probes());
    assert!(fires("OP-13", &slow) && !fires("OP-02", &slow));
    assert!(claim(&check("OP-13", &slow)[0]).contains("probes of this device"), "{:?}", check("OP-13", &slow)[0].claim);
    let mixed = probed(run(4, [us(45), us(120), us(70)]), probes());
    assert!(!fires("OP-13", &mixed) && fires("OP-02", &mixed));
    let same = probed(run(4, [us(31), us(61), us(60)]), probes());
    assert!(!fires("OP-13", &same) && !fires("OP-02", &same));
}

/// No faster kernel is at hand than the one that ran, and how far that is from the ceiling its probe says.
#[test]
fn kernels_slower_than_their_own_probe_are_op13_and_neither_op01_nor_op02() {
    const OURS: &str = "strato_down_proj_bf16_amx";
    let capture = |times: [Ns; 3], kernel: &str, alone: [Ns; 3]| {
        let mut rows: Vec<_> = SHAPES.iter().zip(alone).map(|(shape, ns)| product(*shape, us(ns))).collect();
        rows.iter_mut().for_each(|row| row.setting = row.setting.clone().with(Setting::KERNEL, kernel));
        probed(run_of(OURS, 4, times.map(us)), rows.into_iter().chain([bandwidth()]).collect())
    };
    let fire = |capture: &(Trace, Analysis)| ["OP-01", "OP-02", "OP-13"].map(|rule| fires(rule, capture));
    // At the ceiling they take 34, 67 and 67 µs.
    let slow = capture([90, 120, 130], "amx", [40, 75, 75]);
    assert_eq!(fire(&slow), [false, false, true]);
    let found = &check("OP-13", &slow)[0];
    assert!(claim(found).contains("the very same kernels"), "{}", claim(found));
    assert_eq!(fire(&capture([90, 120, 130], "portable", [40, 75, 75])), [true, true, false], "another kernel");
    assert_eq!(fire(&capture([45, 85, 80], "amx", [40, 75, 75])), [false, false, false], "1.12 times all in all");
    // A kernel that is slow alone stays so: 4 x 33.6 µs / 0.8 less than 100 µs of it.
    let poor = capture([120, 75, 75], "amx", [100, 75, 75]);
    assert_eq!(fire(&poor), [true, false, false]);
    let removes = check("OP-01", &poor)[0].changes[0].1.removes;
    assert!((4 * us(57)..4 * us(59)).contains(&removes), "{removes}");
}

#[test]
fn op08_takes_three_probed_floors_as_its_limit() {
    let storm = || {
        let nodes: Vec<(&str, Ns)> = (0..40).map(|_| (ELEMENTWISE, us(12))).chain([(GEMM, us(100))]).collect();
        Run::steps(12, move |r, _| {
            r.graph(&nodes, us(1)).token();
        })
    };
    let floor = |ns: f64| vec![row("launch", "floor", ProbeUnit::Ns, Setting::new(), ns)];
    assert!(!fires("OP-08", &storm()), "12 µs are not small unless the floor says so");
    assert!(!fires("OP-08", &probed(storm(), floor(3_000.0))));
    let slow_to_start = probed(storm(), floor(5_000.0));
    assert!(fires("OP-08", &slow_to_start));
    assert!(claim(&check("OP-08", &slow_to_start)[0]).contains("shorter than Ns(15000)"));
}

/// Ten nodes of 50 µs, `gap` apart.
fn nodes(gap: Ns) -> (Trace, Analysis) {
    Run::steps(12, move |r, _| {
        r.graph(&[(GEMM, us(50)); 10], gap).token();
    })
}

fn node(ns: f64) -> Vec<ProbeRow> {
    vec![row("replay", "node", ProbeUnit::Ns, Setting::new(), ns)]
}

#[test]
fn rt18_holds_gaps_against_what_a_probe_took_for_an_empty_node() {
    let gains =
        |capture| diagnosis(&capture).findings.iter().any(|f| f.rule == "RT-18" && f.estimate.mid_gain_share() > 0.0);
    assert!(gains(nodes(us(9))));
    assert!(gains(probed(nodes(us(9)), node(4_000.0))));
    assert!(!gains(probed(nodes(us(9)), node(5_000.0))), "less than twice the probe's");
    let found = &check("RT-18", &probed(nodes(us(9)), node(4_000.0)))[0];
    assert!(found.competing[0].refuted && found.evidence.iter().any(|e| e.value == crate::i18n::Value::Ns(4_000)));
}

/// On a machine that others use too, a few gaps are as long as a turn of the scheduler.
#[test]
fn rt18_takes_no_stall_for_the_gap_of_a_node() {
    let stalled = Run::steps(12, |r, _| {
        let start = r.host;
        r.graph(&[(GEMM, us(50)); 5], 500);
        // The other half of the graph comes after a pause.
        let call = r.script.issue("cudaGraphLaunch", (start, start + us(5)));
        let mut at = r.device + us(300);
        for i in 0..5 {
            let detail = model::KernelDetail { graph_node: Some(10 + i), ..model::KernelDetail::default() };
            r.script.kernel(7, GEMM, (at, at + us(50)), Some(call), Some(model::Detail::Kernel(detail)));
            at += us(50) + 500;
        }
        r.device = at;
        r.token();
    });
    assert!(!fires("RT-18", &stalled));
}

#[test]
fn the_steps_are_held_against_measured_ceilings_and_against_nothing_else() {
    let slow = || run(4, [us(100), us(200), us(200)]);
    assert_eq!(diagnosis(&slow()).roofline, None, "nobody probed");
    let roofline = diagnosis(&probed(slow(), vec![bandwidth()])).roofline.unwrap();
    // 4 layers of 3 products with 5 x 33.6 MB of weights in 500 µs: a third of the 1000 GB/s.
    assert!((0.33..0.34).contains(&roofline.rows[0].reached), "{roofline:?}");
    assert!((0.33..0.34).contains(&roofline.rows[1].reached), "{roofline:?}");
    assert!(roofline.rows[2].reached < roofline.rows[0].reached, "a step is more than its products");
    let reached = roofline.reached(|kernel| kernel.name == GEMM).unwrap();
    assert!(
        (reached - roofline.rows[0].reached).abs() < 1e-6 && roofline.reached(|kernel| kernel.name == NORM).is_none()
    );
    assert_eq!((roofline.rows.len(), roofline.noise), (3, None));
}
