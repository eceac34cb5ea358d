//! The tests of the program `strato` and of what its crates do together: one program, so that it is linked once.
//!
//! Tests that need something from outside say so where they are ignored, and fail without it when they are asked for:
//!
//! ```text
//! cargo test --test it                                         what every machine can run
//! STRATO_CORPUS=… STRATO_REFERENCE=… cargo test --test it -- --include-ignored
//! STRATO_BLESS=1 cargo test --test it golden                   accepts what the reports of tests/golden say now
//! ```
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
/// A CUDA driver without a device, shared with the tests of the engine.
#[path = "../../engine/tests/simulated_cuda/mod.rs"]
mod simulated_cuda;

mod aligned;
mod architecture;
mod ascend;
#[cfg(unix)]
mod book;
mod cli;
mod corpus_coverage;
mod corpus_files;
mod corpus_invariants;
mod corpus_kernels;
mod corpus_shown;
mod corpus_sums;
mod costs_stated;
mod cuda;
mod cupti;
mod damaged;
mod diagnose;
mod diff;
mod diff_reports;
mod diff_screen;
mod docs;
#[cfg(unix)]
mod doors;
#[cfg(target_os = "linux")]
mod ending;
mod engine_pairs;
mod export;
mod finite;
mod format_defects;
mod golden;
mod graph_capture;
#[cfg(unix)]
mod hang_up;
mod import_kill;
mod kernel_metrics;
mod link_tests;
mod live;
mod lost;
#[cfg(target_os = "linux")]
mod memory;
mod metamorphic;
mod metamorphic_capture;
mod metamorphic_diagnosis;
#[cfg(target_os = "linux")]
mod mspti;
mod numdiff;
#[cfg(target_os = "linux")]
mod observe;
mod one_truth;
mod opencl;
#[cfg(target_os = "linux")]
mod outputs;
mod packs;
mod probe;
mod public_cases;
mod rank_sums;
#[cfg(target_os = "linux")]
mod record;
mod replay;
mod results;
mod rule_docs;
mod run;
mod selftest;
mod serving;
#[cfg(unix)]
mod top;
mod truth;
mod tui;
mod tui_diff;
#[cfg(unix)]
mod tui_pty;
mod verify;
