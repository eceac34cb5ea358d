#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use model::Ns;

use super::super::testing::{ALL_REDUCE, GEMM, NORM, Run, fires, us};

#[test]
fn cm06_compares_with_the_plan_and_needs_the_layers() {
    let layers = |layers: usize, extra: bool| {
        let mut nodes: Vec<(&str, Ns)> = Vec::new();
        for _ in 0..layers {
            nodes.extend([(NORM, us(3)), (GEMM, us(20)), (ALL_REDUCE, us(12)), (GEMM, us(30)), (ALL_REDUCE, us(12))]);
            if extra {
                nodes.push((ALL_REDUCE, us(12)));
            }
        }
        Run::steps(12, move |r, _| {
            r.graph(&nodes, us(1)).token();
        })
    };
    assert!(fires("CM-06", &layers(12, true)));
    assert!(!fires("CM-06", &layers(12, false)));
    assert!(!fires("CM-06", &layers(1, true)), "no layer structure");
}

#[test]
fn cm11_blames_collectives_only_if_other_launches_are_faster() {
    let run = |before_comm: Ns, before_other: Ns| {
        Run::steps(12, move |r, _| {
            for _ in 0..8 {
                r.think(before_other).launch(GEMM, us(10)).think(before_comm).launch(ALL_REDUCE, us(12));
            }
            r.token();
        })
    };
    assert!(fires("CM-11", &run(us(60), us(1))));
    assert!(!fires("CM-11", &run(us(60), us(60))));
    assert!(!fires("CM-11", &run(us(1), us(1))));
}
