//! Every real capture: what the sweep says of a step adds up to the step, in integers.

use crate::common;
use crate::common::analyze;
use diagnosis::analysis::Layer;
use model::Ns;

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn buckets_and_layers_of_every_step_of_every_capture_add_up_to_its_window() {
    let corpus = common::corpus();
    let (mut captures, mut steps) = (0, 0);
    for kind in ["kineto", "nsys-sqlite"] {
        let mut folders: Vec<_> = std::fs::read_dir(corpus.join(kind)).unwrap().map(|e| e.unwrap().path()).collect();
        folders.sort();
        for file in folders.iter().flat_map(|f| std::fs::read_dir(f).unwrap().map(|e| e.unwrap().path())) {
            let analysis = analyze(&common::read(&file));
            captures += 1;
            for rank in &analysis.ranks {
                for pair in rank.steps.windows(2) {
                    assert_eq!(pair[0].window.end, pair[1].window.start, "{}", file.display());
                }
                for step in &rank.steps {
                    steps += 1;
                    let window = step.window.len();
                    assert_eq!(step.buckets.iter().map(|(_, ns)| ns).sum::<Ns>(), window, "{}", file.display());
                    let layer =
                        |l: Layer| step.buckets.iter().filter(|(b, _)| b.layer() == l).map(|(_, ns)| ns).sum::<Ns>();
                    assert_eq!(Layer::ALL.into_iter().map(layer).sum::<Ns>(), window, "{}", file.display());
                }
            }
        }
    }
    println!("{captures} captures, {steps} steps");
    assert!(captures >= 27 && steps > 20, "{captures} captures, {steps} steps");
}
