//! What must always hold of a report, counted again over every capture of the corpus that is not NVIDIA's.

use std::path::PathBuf;

use crate::common;
use model::Ns;
use session::{Options, Reading, Session};

/// Folders of captures of Ascend and AMD.
const FOLDERS: [&str; 5] = ["ascend-pytorch", "msprof", "mindspore", "cluster-analysis", "rocprof"];
/// Sums of parts round.
const ROUNDING: Ns = 2;

fn captures() -> Vec<PathBuf> {
    let corpus = common::corpus();
    let inside = FOLDERS.iter().flat_map(|folder| corpus.join(folder).read_dir().unwrap().map(|e| e.unwrap().path()));
    let mut all: Vec<PathBuf> = inside.collect();
    all.sort();
    all
}

/// Whoever of a whole group comes last waits for nobody, and nobody waits and transfers for longer than it was inside.
#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn the_last_to_arrive_waits_for_nobody_and_no_collective_is_shorter_than_its_parts() {
    let (mut members, mut whole, mut read) = (0, 0, 0);
    for path in captures() {
        let Ok(session) = Session::open(std::slice::from_ref(&path), &Reading::default()) else { continue };
        for (_, analysis, _) in session.examine(&Options::default()).unwrap().diagnose().unwrap().captures {
            read += 1;
            for rank in &analysis.ranks {
                // Exclusive time of both parts over all steps is no longer than the collectives themselves.
                let inside: Ns =
                    rank.timeline.ops.iter().filter(|op| op.kind == KIND).map(|op| op.end - op.start).sum();
                let parts = rank.steps.iter().flat_map(|step| &step.buckets);
                let named = parts.filter(|(bucket, _)| bucket.name(&analysis.host_labels).starts_with("comm."));
                let parts: Ns = named.map(|(_, ns)| *ns).sum();
                assert!(parts <= inside + ROUNDING, "{}: {parts} of {inside}", path.display());
            }
            for (number, instance) in analysis.job.instances.iter().enumerate() {
                let waits: Vec<Ns> = instance
                    .members
                    .iter()
                    .map(|member| {
                        let of = |wait: &&diagnosis::analysis::job::Wait| {
                            wait.instance == number && wait.rank == member.rank && wait.op == member.op
                        };
                        let waited = analysis.job.waits.iter().find(of).map_or(0, |wait| wait.ns);
                        let op = &analysis.ranks[member.rank].timeline.ops[member.op as usize];
                        let inside = op.end - op.start;
                        assert!(waited + instance.transfer <= inside + ROUNDING, "{}: {number}", path.display());
                        members += 1;
                        waited
                    })
                    .collect();
                let group = &analysis.job.groups[instance.group];
                if !group.open && group.counted {
                    whole += 1;
                    let (least, most) = (waits.iter().min().unwrap(), waits.iter().max().unwrap());
                    assert!(*least <= ROUNDING, "{}: of {number} everybody waits {least} of {most}", path.display());
                }
            }
        }
    }
    println!("{read} captures, {members} members of collectives, {whole} collectives of whole groups");
    assert!(read >= 20 && members >= 40, "{read} captures, {members} members");
}

const KIND: diagnosis::analysis::OpKind = diagnosis::analysis::OpKind::Comm;

/// From the JSON of each report: what a finding gains is no more than the time of its layer, and a step without a cost is
/// shorter. What the replay is wrong by, and what two runs differ by, is a tenth of the gain and a hundredth of the step.
#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn nothing_gains_more_than_the_time_of_its_layer() {
    let mut findings = 0;
    for path in captures() {
        let out = common::strato(&["diagnose", path.to_str().unwrap(), "--format", "json"], &std::env::temp_dir());
        let Ok(json) = serde_json::from_slice::<serde_json::Value>(&out.stdout) else { continue };
        let captures = json["captures"].as_array().cloned().unwrap_or_default();
        let reports: Vec<&serde_json::Value> = match json["findings"].as_array() {
            Some(_) => vec![&json],
            None => captures.iter().collect(),
        };
        for report in reports {
            for finding in report["findings"].as_array().into_iter().flatten() {
                let number = |value: &serde_json::Value| value.as_f64().unwrap_or(0.0);
                let [from, low] = ["from_ns", "to_ns_low"].map(|key| number(&finding["estimate"][key]));
                let layer = finding["layer"].as_str().unwrap();
                let class = finding["scope"]["class"].as_str().unwrap_or_default();
                let of = report["attribution"].as_array().unwrap().iter().filter(|row| row["class"] == class);
                let most =
                    of.map(|row| number(&row["layers"][layer]) / number(&row["steps"]).max(1.0)).fold(0.0, f64::max);
                let gain = from - low;
                if layer == "measurement" || gain <= 0.0 || most == 0.0 {
                    continue;
                }
                findings += 1;
                assert!(low <= from, "{}", path.display());
                assert!(
                    gain <= 1.1 * most + 0.01 * from,
                    "{}: {} gains {gain} of {most}",
                    path.display(),
                    finding["rule"]
                );
            }
        }
    }
    println!("{findings} findings");
    assert!(findings > 5, "{findings} findings");
}
