//! The table of operators: by operator, slot and kernel, and what a search leaves of it.

use stratoscope::tui::{App, Opened};

use crate::common::screen::{LAUNCH_BOUND, app, buffer, diagnosed, press, sample, screen, settings};

/// The rows of the operators' table, without the lines around it.
fn table(app: &mut App) -> Vec<String> {
    let shown = screen(app, 120, 40);
    let rows = shown.lines().skip(4).map(str::trim_end).take_while(|line| !line.is_empty());
    rows.map(str::to_owned).collect()
}

#[test]
fn a_search_leaves_out_the_operators_that_do_not_hold_it() {
    let mut app = app(LAUNCH_BOUND);
    press(&mut app, "4");
    let all = table(&mut app);
    press(&mut app, "/ n o r m enter");
    let norms = table(&mut app);
    assert!(!norms.is_empty() && norms.len() < all.len(), "{norms:?} of {all:?}");
    assert!(norms.iter().all(|row| row.contains("norm")), "{norms:?}");
    assert!(screen(&mut app, 120, 40).contains(&format!("{} of {} hold “norm”", norms.len(), all.len())));
    // A kernel's name holds it too, and what is selected leads on as before.
    press(&mut app, "b b b");
    insta::assert_snapshot!("operators_filtered", screen(&mut app, 120, 20));
    press(&mut app, "enter");
    assert!(screen(&mut app, 120, 40).contains("launched by"));
    // The search is another one now, and one that leaves nothing leaves everything; so does the way back.
    press(&mut app, "4 b");
    assert_eq!(table(&mut app), all);
    press(&mut app, "/ n o r m enter / q q q q enter");
    assert!(screen(&mut app, 120, 40).contains("no further match"));
    assert_eq!(table(&mut app), all);
    press(&mut app, "/ n o r m enter esc");
    assert_eq!(table(&mut app), all);
}

/// A kernel's name is none of the operators': whoever looks for it finds it under another grouping.
#[test]
fn a_filter_that_another_grouping_does_not_hold_is_no_dead_end() {
    let mut app = app(LAUNCH_BOUND);
    press(&mut app, "4 b b b / _ k e r n e l enter b");
    assert!(screen(&mut app, 120, 40).contains("0 of"));
    press(&mut app, "b b b");
    let kernels = table(&mut app);
    assert!(!kernels.is_empty() && kernels.iter().all(|row| row.contains("_kernel")), "{kernels:?}");
}

#[test]
fn a_search_made_elsewhere_leaves_no_operator_out() {
    let mut app = app(LAUNCH_BOUND);
    press(&mut app, "4");
    let all = table(&mut app);
    press(&mut app, "2");
    buffer(&mut app, 120, 40);
    press(&mut app, "/ n o r m enter 4");
    assert_eq!(table(&mut app), all);
}

#[test]
fn slots_are_the_places_of_a_layer() {
    let mut app = app(LAUNCH_BOUND);
    press(&mut app, "4 b o o o");
    let slots = screen(&mut app, 120, 40);
    assert!(screen(&mut app, 80, 24).contains("_kernel"), "where there is little room, too");
    insta::assert_snapshot!("operators_slots", slots);
    press(&mut app, "enter");
    assert!(screen(&mut app, 120, 40).contains("launched by"));
}

/// A layer that is slower than the others was not to be found.
#[test]
fn a_layer_that_is_slower_than_the_others_comes_first() {
    let mut trace = sample(LAUNCH_BOUND);
    let strings = trace.strings.clone();
    for lane in &mut trace.lanes {
        let is_attention = |row: &usize| strings.get(lane.name[*row]).contains("flash_fwd_splitkv_kernel");
        let rows: Vec<usize> = (0..lane.len()).filter(is_attention).collect();
        // The third of four layers in each step.
        rows.into_iter().enumerate().filter(|(n, _)| n % 4 == 2).for_each(|(_, row)| lane.dur[row] += 7_000);
    }
    let mut app = App::new(Opened::new(vec![diagnosed(trace)]), settings());
    press(&mut app, "4 b b");
    let first = table(&mut app).remove(0);
    assert!(first.contains("2.attn_decode") && first.contains("1.39×"), "{first}");
    press(&mut app, "enter");
    assert!(screen(&mut app, 120, 40).contains("launched by"));
}
